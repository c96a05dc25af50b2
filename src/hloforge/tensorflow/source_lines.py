"""The user's lines in an HLO proto that TensorFlow wrote: it gives the line of its own code that makes operations."""

from __future__ import annotations

import functools
import os
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tensorflow as tf

from hloforge.dialect.errors import Location
from hloforge.dialect.protobuf import encode, fields, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

# Of HloInstructionProto (xla/service/hlo.proto), and of OpMetadata (xla/xla_data.proto).
_METADATA = 7
_OP_NAME, _SOURCE_FILE, _SOURCE_LINE = 2, 3, 4
# Operations that call one function, whose name is before those of its operations.
CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def with_user_lines(proto: bytes, graph: Any) -> bytes:
    """The proto, each instruction with the line of the user's code that made its operation, or with none.

    Args:
        proto: an ``HloModuleProto``.
        graph: of the concrete function that it was made of.
    """
    lines = lines_of(graph)

    def metadata(message: memoryview) -> bytes:
        kept = [entry for entry in fields(message) if entry.number not in (_SOURCE_FILE, _SOURCE_LINE)]
        name = next((entry.text for entry in kept if entry.number == _OP_NAME), "")
        parts: list[bytes | memoryview] = [message[entry.start : entry.end] for entry in kept]
        if name in lines:
            where = lines[name]
            parts += [encode(_SOURCE_FILE, where.file.encode()), _number(_SOURCE_LINE, where.line)]
        return b"".join(parts)

    def instruction(message: memoryview) -> bytes:
        return rewrite(message, _METADATA, metadata)

    return rewrite(memoryview(proto), COMPUTATIONS, lambda message: rewrite(message, INSTRUCTIONS, instruction))


def _number(number: int, value: int) -> bytes:
    out = bytearray([number << 3])
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def lines_of(graph: Any) -> dict[str, Location]:
    """The user's lines by names of operations, as XLA writes them: names of calls come first, not those of loops."""
    found: dict[str, Location] = {}
    for name, op in _operations(graph, "", set()):
        if name not in found and (where := user_line(op.traceback or ())) is not None:
            found[name] = where
    return found


def _operations(graph: Any, prefix: str, seen: set[tuple[int, str]]) -> Iterator[tuple[str, Any]]:
    if (id(graph), prefix) in seen:
        return
    seen.add((id(graph), prefix))
    called = {}
    for op in graph.get_operations():
        yield prefix + op.name, op
        if op.type in CALLS:
            called[op.get_attr("f").name] = f"{prefix}{op.name}/"
    for name, function in graph._functions.items():
        inner = getattr(function, "graph", None)
        if inner is not None:
            yield from _operations(inner, called.get(name if isinstance(name, str) else name.decode(), ""), seen)


def user_line(frames: Iterable[Any]) -> Location | None:
    """The innermost line that is not TensorFlow's, Keras's, Python's or ours."""
    for frame in reversed(list(frames)):
        if not _is_inner(frame.filename):
            return Location(frame.filename, frame.lineno)
    return None


@functools.cache
def _is_inner(file: str) -> bool:
    # `<frozen …>` and `<string>` are in no file.
    if file.startswith((*_roots(), "<")):
        return True
    library = sysconfig.get_paths()["stdlib"]
    return file.startswith(library + os.sep) and "site-packages" not in file


@functools.cache
def _roots() -> tuple[str, ...]:
    packages = (find_spec(name) for name in ("keras", "tf_keras", "wrapt"))
    places = [Path(spec.origin).parent for spec in packages if spec is not None and spec.origin is not None]
    return tuple(f"{place}{os.sep}" for place in (Path(__file__).parents[1], Path(tf.__file__).parent, *places))
