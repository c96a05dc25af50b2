"""The child process of an isolated reference engine: modules and arrays on stdin, results on stdout.

Run as ``python -m hloforge.runtime.reference.worker ENGINE``; the messages are those of ``frames``.
"""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO

from hloforge.dialect.errors import Error, ReferenceEngineError
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.reference.jaxlib_engines import ENGINES, FlatEngine, FlatFunction


def serve(engine: FlatEngine, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until the parent closes the stream."""
    functions: dict[int, FlatFunction] = {}
    while True:
        try:
            header, arrays, blob = read_frame(requests)
        except EOFError:
            return
        try:
            results = _answer(engine, functions, header, arrays, blob)
        except Error as error:
            write_frame(replies, {"error": error.message, "hint": error.hint})
        else:
            write_frame(replies, {}, results)


def _answer(
    engine: FlatEngine, functions: dict[int, FlatFunction], header: dict[str, Any], arrays: list[Any], blob: bytes
) -> list[Any]:
    key, request = header["program"], header["request"]
    if request == "compile":
        functions[key] = engine.compile(blob)
        return []
    if request == "forget":
        functions.pop(key, None)
        return []
    try:
        return functions[key](arrays)
    except MemoryError:
        raise ReferenceEngineError("the reference engine ran out of memory") from None


def main() -> None:
    # Replies keep the pipe to themselves: what a library prints goes to stderr.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(ENGINES[sys.argv[1]](), sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
