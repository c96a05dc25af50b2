"""Compile and run programs in a child process, so that a crash or endless loop is a finding."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from hloforge.dialect import errors
from hloforge.dialect.errors import Error, Location
from hloforge.dialect.program import Parameter, Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.dialect.temporary import VARIABLE, prefix_of_child
from hloforge.runtime.data.files import remove_temporary
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.debug.stages import Recipe, Stage, bytecode, options_json
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.session.convention import flatten_arguments, nest_results

# What a process says on its end that tells nothing.
_QUIET = ("I0000", "W0000", "WARNING: All log messages before absl")
_STARTING = "starting"
_COMPILERS_WORDS = ("crashed", "ran out of time")


class TargetError(Error):
    """The target did not give results.

    Attributes:
        kind: ``refused`` (by a pass that knows the limit), ``pass`` (a pass failed), ``compiler`` (IREE's compiler),
            ``crash`` or ``hang`` of any of them, ``load``, ``run``.
        step: what was being done: ``pass NAME``, ``code generation``, ``iree-compile``, ``loading``, ``running``.
    """

    def __init__(self, kind: str, step: str, error: Error) -> None:
        super().__init__(error.message, location=error.location, op=error.op, hint=error.hint, notes=error.notes)
        self.kind = kind
        self.step = step


@dataclass(frozen=True, eq=False)
class TargetProgram:
    """A program that is loaded in the child process; called like a ``Session``."""

    signature: Signature
    _process: TargetProcess
    _key: int
    _generation: int

    @property
    def is_live(self) -> bool:
        """Whether the process that holds it has not died since."""
        return self._process.generation == self._generation

    def __call__(self, *arguments: Any) -> Any:
        """Raises TargetError where it fails, ArgumentError for arguments that do not fit."""
        leaves = flatten_arguments(self.signature, arguments)
        return nest_results(self.signature.result, self._process.call(self._key, leaves))

    def forget(self) -> None:
        """Free what the child process keeps of it."""
        if self.is_live:
            self._process.forget(self._key)


# glibc's: memory is filled when it is given out and taken back, so that a result that nobody wrote is not zero by
# chance.
_FILLED = {"MALLOC_PERTURB_": "170"}


class TargetProcess:
    """A child process that compiles and runs; started when first needed, and again after a crash.

    Its memory is filled with other bytes than zero, unless the environment says otherwise (``MALLOC_PERTURB_``).

    Args:
        timeout: seconds that one request may take; None for any time.
        plugins: Python files that it executes first.

    Attributes:
        generation: how many processes have ended.
    """

    def __init__(self, timeout: float | None = None, plugins: Sequence[Path] = ()) -> None:
        self.timeout = timeout
        self.plugins = tuple(plugins)
        self.generation = 0
        self._keys = itertools.count()
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self._temporary = prefix_of_child()

    def compile(
        self, program: Program, recipe: Recipe, *, device: str | None = None, threads: int | None = None
    ) -> TargetProgram:
        """Compile and load a program. Raises TargetError."""
        header = {"recipe": recipe.to_json(), "device": device, "threads": threads} | _named(program)
        return self._loaded("compile", header, _signed(program))

    def load(
        self, vmfb: bytes, options: CompileOptions, *, device: str | None = None, threads: int | None = None
    ) -> TargetProgram:
        """Load a vmfb. Raises TargetError."""
        return self._loaded("load", {"options": options_json(options), "device": device, "threads": threads}, vmfb)

    def stages(self, program: Program, recipe: Recipe) -> list[Stage]:
        """The passes that change a program, and what they leave. Raises TargetError."""
        header = {"request": "stages", "key": -1, "recipe": recipe.to_json()} | _named(program)
        facts, modules = self._request(header, (), _signed(program))
        rows = zip(facts["names"], facts["upto"], modules, strict=True)
        return [Stage(name, upto, module.tobytes()) for name, upto, module in rows]

    def call(self, key: int, leaves: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The leaves of a loaded program's results. Raises TargetError."""
        return self._request({"request": "call", "key": key}, leaves, b"")[1]

    def forget(self, key: int) -> None:
        """Free a loaded program, if the process lives."""
        if self._child is not None:
            self._request({"request": "forget", "key": key}, (), b"")

    def close(self) -> None:
        """End the child process and all that it started."""
        if self._child is None:
            return
        child, self._child = self._child, None
        self.generation += 1
        _kill(child)
        child.wait()
        remove_temporary(self._temporary)  # what a killed one could not remove
        for stream in (child.stdin, child.stdout, self._errors):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> TargetProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _loaded(self, request: str, header: dict[str, Any], blob: bytes) -> TargetProgram:
        key = next(self._keys)
        facts, _ = self._request({"request": request, "key": key} | header, (), blob)
        parameters = tuple(Parameter(name, Shape.parse(shape)) for name, shape in facts["parameters"])
        return TargetProgram(Signature(parameters, Shape.parse(facts["result"])), self, key, self.generation)

    def _live(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115
            # -P: a folder called hloforge where the user is must not hide the installed package.
            command = [sys.executable, "-P", "-m", "hloforge.runtime.debug.target_worker", *map(str, self.plugins)]
            # A session of its own: Ctrl-C reaches the parent alone, which ends the whole group.
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                env=_FILLED | os.environ | {VARIABLE: self._temporary},
            )
        return self._child

    def _request(
        self, header: dict[str, Any], arrays: Sequence[np.ndarray[Any, Any]], blob: bytes
    ) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
        child, step, expired = self._live(), _STARTING, threading.Event()

        def expire() -> None:
            expired.set()
            _kill(child)

        timer = threading.Timer(self.timeout, expire) if self.timeout is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            write_frame(cast(BinaryIO, child.stdin), header, arrays, blob)
            while True:
                reply, results, _ = read_frame(cast(BinaryIO, child.stdout))
                if "step" not in reply:
                    break
                step = reply["step"]
        except (EOFError, BrokenPipeError):
            raise self._died(child, step, expired.is_set()) from None
        except BaseException:
            # An interrupted exchange leaves the pipe in the middle of a message.
            self.close()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if "error" in reply:
            raise _failed(reply["error"], step)
        return reply, results

    def _died(self, child: subprocess.Popen[bytes], step: str, expired: bool) -> Error:
        status = child.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        self.close()
        if expired and step == _STARTING:
            return Error(f"the process that compiles did not start within {self.timeout:g} s", hint="give it more time")
        if expired:
            return TargetError("hang", step, Error(f"{step} did not end within {self.timeout:g} s"))
        how = f"crashed ({signal.Signals(-status).name})" if status < 0 else f"ended with status {status}"
        told = [line.strip() for line in lines if line.strip() and not line.startswith(_QUIET)]
        if step == _STARTING:
            return Error(f"the process that compiles did not start: it {how}" + (f": {told[-1][:300]}" if told else ""))
        return TargetError("crash", step, Error(f"{step} {how}" + (f": {told[-1][:300]}" if told else "")))


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _named(program: Program) -> dict[str, Any]:
    return {"name": program.name, "source": program.source}


def _signed(program: Program) -> bytes:
    copy = program.clone()
    copy.signature.attach(copy.module)
    return bytecode(copy.module)


def _failed(facts: dict[str, Any], step: str) -> Error:
    """What the child raised, as a TargetError; bad options are the caller's."""
    place = Location(*facts["location"]) if facts["location"] else None
    told = {"op": facts.get("op", ""), "hint": facts.get("hint", ""), "notes": tuple(facts.get("notes", ()))}
    class_: type[Error] = getattr(errors, facts["kind"], Error)
    error = class_(facts["message"], location=place, **told)
    return error if class_ is errors.OptionError else TargetError(_kind(facts, step, class_), step, error)


def _kind(facts: dict[str, Any], step: str, class_: type[Error]) -> str:
    if step == "iree-compile":
        message = facts["message"]
        crashed, late = (word in message.partition(":")[0] for word in _COMPILERS_WORDS)
        return "crash" if crashed else "hang" if late else "compiler"
    if issubclass(class_, errors.UnsupportedError):
        return "refused"
    if step.startswith("pass "):
        return "pass"
    return {"loading": "load", "running": "run"}.get(step, "pass")
