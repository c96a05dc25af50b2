"""The child process in which ``hloforge verify`` and ``hloforge bisect`` compile and run programs.

Run as ``python -m hloforge.runtime.debug.target_worker [PLUGIN …]``; the messages are those of ``runtime.frames``.
Before each step it says on its own what it begins, so that the parent knows what it was doing when it died.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from hloforge.dialect.errors import Error, OptionError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.artifact.code_signing import Verified
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.debug.stages import Recipe, check_passes, compile_recipe, options_of, stages_of
from hloforge.runtime.replicas.replicas import load_on_grid
from hloforge.runtime.session.convention import nest_results, result_leaves

Say = Callable[[str], None]


@dataclass
class _Loaded:
    session: Any
    signature: Signature


class Worker:
    """Keeps what is loaded by the parent's keys."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.loaded: dict[int, _Loaded] = {}

    def answer(self, header: dict[str, Any], arrays: list[Any], blob: bytes) -> tuple[dict[str, Any], list[Any]]:
        """The reply to a request: facts, and arrays."""
        key: int = header["key"]
        if header["request"] == "forget":
            self.loaded.pop(key, None)
            return {}, []
        if header["request"] == "call":
            return {}, self._called(self.loaded[key], arrays)
        if header["request"] == "stages":
            self.say("replaying passes")
            found = list(stages_of(_program(blob, header), Recipe.from_json(header["recipe"])))
            facts = {"names": [stage.name for stage in found], "upto": [stage.upto for stage in found]}
            return facts, [np.frombuffer(stage.module, np.uint8) for stage in found]
        if header["request"] == "compile":
            self.say("reading")
            recipe = Recipe.from_json(header["recipe"])
            check_passes(recipe)
            source: Executable | bytes = compile_recipe(_program(blob, header), recipe, self.say)
            options = recipe.options
        else:
            # The parent has compiled it.
            source, options = Verified(blob), options_of(header["options"])
        self.say("loading")
        near: dict[str, Any] = (
            {"weights": options.weights, "libraries": options.libraries} if isinstance(source, bytes) else {}
        )
        session = load_on_grid(source, options, device=header["device"], threads=header["threads"], **near)
        self.loaded[key] = _Loaded(session, session.signature)
        return signature_facts(session.signature), []

    def _called(self, loaded: _Loaded, arrays: list[Any]) -> list[Any]:
        self.say("running")
        shape = Shape.tuple_of(*(parameter.shape for parameter in loaded.signature.parameters))
        results = loaded.session(*nest_results(shape, arrays))
        return [np.asarray(leaf) for leaf in result_leaves(loaded.signature.result, results)]


def signature_facts(signature: Signature) -> dict[str, Any]:
    """A signature without its aliases, as JSON."""
    return {
        "parameters": [[parameter.name, str(parameter.shape)] for parameter in signature.parameters],
        "result": str(signature.result),
    }


def _program(blob: bytes, header: dict[str, Any]) -> Program:
    module = parse_module(blob)
    return Program(module, Signature.of(module), header["name"], header["source"])


def run_plugins(paths: list[str]) -> None:
    """Execute Python files, such as those that register passes. Raises OptionError."""
    for number, path in enumerate(paths):
        try:
            _imported(path, f"hloforge_plugin_{number}")
        except Exception as error:
            raise OptionError(f"the plugin {path} failed: {type(error).__name__}: {error}") from None


def _imported(path: str, name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OptionError("its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _error_facts(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, Error):
        text = str(error).strip().partition("\n")[0]
        return {"kind": "internal", "message": f"{type(error).__name__}: {text}", "location": None}
    place = error.location
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "location": [place.file, place.line, place.column] if place else None,
        "op": error.op,
        "hint": error.hint,
        "notes": list(error.notes),
    }


def serve(requests: BinaryIO, replies: BinaryIO, plugins: list[str]) -> None:
    """Answer requests until the parent closes the stream."""
    worker = Worker(lambda step: write_frame(replies, {"step": step}))
    failed: Error | None = None
    try:
        run_plugins(plugins)
    except Error as error:
        failed = error
    while True:
        try:
            header, arrays, blob = read_frame(requests)
        except EOFError:
            return
        try:
            if failed is not None:
                raise failed
            facts, results = worker.answer(header, arrays, blob)
        except (Exception, RecursionError) as error:
            write_frame(replies, {"error": _error_facts(error)})
        else:
            write_frame(replies, facts, results)


def main() -> None:
    # Replies keep the pipe to themselves: what a library prints goes to stderr.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, replies, sys.argv[1:])


if __name__ == "__main__":
    main()
