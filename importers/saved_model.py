"""SavedModels of TensorFlow and models of Keras, read by TensorFlow in a child process: its import takes seconds.

The child is ``hloforge.tensorflow.worker``, in the extra ``tensorflow``; nothing of it is imported here.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hloforge.dialect.bounded_sizes import BoundedSize
from hloforge.dialect.errors import Error, ImporterError, Location, UnsupportedError
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.dialect.temporary import PREFIX

# Represents the bytes of a model that is a folder; what follows tells its files from others.
MARK = b"hloforge: SavedModel "
# Of a model of a gigabyte, on a busy machine.
_SECONDS = 600.0
# Bytes that an archive may unpack to: so many, and so many for each of its own. Keras compresses none of them.
_UNPACKED_FREELY, _MOST_UNPACKED = 1 << 26, 16
_Parse = Callable[[bytes], Program]


@dataclass(frozen=True)
class Child:
    """Who reads a model: a module that is run as ``python -m worker MODEL OUTPUT [SIZES]``.

    Attributes:
        framework: its name, for messages.
        way_out: where the child has ended without an answer.
    """

    worker: str
    framework: str
    way_out: str


_TENSORFLOW = Child(
    "hloforge.tensorflow.worker",
    "TensorFlow",
    "hloforge.tensorflow.compile(path, freeze=True) reads the model in your own process, and shows where it ends; "
    "a model that TensorFlow cannot trace can be exported to ONNX",
)
# Lines of a traceback that tell where a child ended.
_LAST_LINES = 6


def is_saved_model(path: Path) -> bool:
    """Whether a folder is a SavedModel."""
    return any((path / name).is_file() for name in ("saved_model.pb", "saved_model.pbtxt"))


def mark_of(path: Path) -> bytes:
    """What represents a SavedModel: its files' contents decide, so that a cache knows it again."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            digest.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return MARK + digest.hexdigest().encode()


def is_keras(data: bytes) -> bool:
    """Whether the bytes are a ``.keras`` archive."""
    return data.startswith(b"PK\x03\x04") and b"model.weights.h5" in data[-4096:] and b"config.json" in data[-4096:]


def read_model(path: str, parse: _Parse, child: Child = _TENSORFLOW, signature: str | None = None) -> Program:
    """The program of a model, its variables constants; with a template where sizes are known at a call only.

    Args:
        path: of the folder or file.
        parse: makes a program of MLIR bytecode.
        child: reads the model.
        signature: which function of a model of TensorFlow; by default ``serving_default``, or the only one.

    Raises:
        ImporterError: the framework is missing, or cannot read the model, or it has no such signature.
    """
    if child is _TENSORFLOW and Path(path).is_file():
        _check_archive(Path(path))
    template = Template(path, parse, child, signature)
    program = template.read(None)
    if any(not parameter.shape.is_static for parameter in program.signature.parameters):
        program.template = template
    return program


def _check_archive(path: Path) -> None:
    """Refuse a ``.keras`` archive that unpacks to many times its size: Keras unpacks whatever is inside."""
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, OverflowError, ValueError, NotImplementedError):
        return  # Keras says what is wrong
    if claimed > _UNPACKED_FREELY + _MOST_UNPACKED * path.stat().st_size:
        raise ImporterError(
            f"the archive claims to unpack to {claimed:,} bytes, of a file of {path.stat().st_size:,}",
            location=Location(str(path)),
            hint="model.save writes archives that are not compressed; save the model again",
        )


@dataclass(eq=False)
class Template:
    """A model, to be read for the sizes of its inputs."""

    path: str
    parse: _Parse
    child: Child
    signature: str | None = None
    _ahead: dict[str, Program] = field(default_factory=dict)

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """None: elements that decide sizes are fixed in the model."""
        return ()

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for inputs of these shapes. Raises ImporterError, also for sizes that the model does not take."""
        sizes = [list(shape.dimensions) for shape in shapes]
        found = self._ahead.pop(json.dumps(sizes), None)
        return self.read(sizes) if found is None else found

    def read_ahead(self, wanted: Sequence[list[list[int]]]) -> None:
        """Read the program for several choices of sizes, in one child: it loads the framework once.

        What it cannot read is read again when it is asked for, and then says why.
        """
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            output = Path(folder) / "program.mlirbc"
            answer = self._run(self._command(output, json.dumps({"each": list(wanted)})))
            for number, sizes in enumerate(wanted):
                made = output.with_name(f"{output.name}.{number}")
                if made.is_file():
                    program = self.parse(made.read_bytes())
                    program.name = answer["name"]
                    self._ahead[json.dumps(sizes)] = program

    def _command(self, output: Path, sizes: str) -> list[str]:
        command = [sys.executable, "-m", self.child.worker, self.path, str(output), sizes]
        return command + ([self.signature] if self.signature is not None else [])

    def read(self, sizes: list[list[int]] | None) -> Program:
        """The program for sizes; without them, as far as it is known."""
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            output = Path(folder) / "program.mlirbc"
            answer = self._run(self._command(output, json.dumps(sizes) if sizes is not None else ""))
            if not output.is_file():
                notes = tuple(answer.get("notes", ()))
                raise ImporterError(answer["message"], location=Location(self.path), hint=answer["hint"], notes=notes)
            program = self.parse(output.read_bytes())
        program.name = answer["name"]
        program.open_sizes = tuple(map(BoundedSize.from_json, answer.get("open_sizes", ())))
        return program

    def _run(self, command: list[str]) -> dict[str, Any]:
        """The child's answer, the last line that it prints."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise ImporterError(f"reading took longer than {_SECONDS:g} s", location=Location(self.path)) from None
        answer = _answer(done.stdout) if not done.returncode else None
        if answer is None:
            raise self._ended(done.returncode, done.stderr)
        return answer

    def _ended(self, status: int, log: str) -> Error:
        """The error for a child without an answer: a signal, or what Python said last, with the place."""
        where = Location(self.path)
        if status < 0:
            name = signal.Signals(-status).name
            hint = self.child.way_out
            if status == -signal.SIGKILL:
                hint = "Linux ends processes like that where memory is short: free memory, or use another machine"
            message = f"the process in which {self.child.framework} reads the model was ended by {name}"
            return ImporterError(message, location=where, hint=hint)
        lines = [line for line in log.strip().splitlines() if line.strip()]
        last = lines[-1].strip() if lines else "it ended without an answer"
        return UnsupportedError(
            f"{self.child.framework} cannot make a program of the model: {last}",
            location=where,
            notes=tuple(line.rstrip() for line in lines[-1 - _LAST_LINES : -1]),
            hint=self.child.way_out,
        )


def _answer(output: str) -> dict[str, Any] | None:
    """The last line of a child's output, if it is an answer."""
    with suppress(ValueError):
        found = json.loads((output.strip().splitlines() or [""])[-1])
        return found if isinstance(found, dict) else None
    return None
