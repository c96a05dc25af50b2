"""Turn TensorFlow's messages about unsupported functions into one error with the operation and the line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Location, UnsupportedError
from hloforge.tensorflow.source_lines import lines_of, user_line

# A node, after the function that it is in.
_NODE = re.compile(r"(?:\{\{function_node [^}]+\}\} ?)?\{\{node ([^}]+)\}\}")
_UNKNOWN = re.compile(r"(\w+) \((?:No registered|Trying to access)[^{]*" + _NODE.pattern)
_CONSTANT = re.compile(r"Input (\d+) to node `([^`]+)` with op (\w+) must be a compile-time constant")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_RETURNED = "_Retval"
_HINT = "XLA has no such operation: compute it outside of the function, or with operations that XLA has"


@dataclass(frozen=True)
class _Frame:
    filename: str
    lineno: int


@dataclass(frozen=True)
class UnknownConstant:
    """An operation's input that decides sizes and is not known when the function is compiled.

    Attributes:
        node: the operation's name.
        number: of its input.
        kind: of the operation.
    """

    node: str
    number: int
    kind: str


def unknown_constant(report: str) -> UnknownConstant | None:
    """What XLA would have to know, if this is why it refuses."""
    match = _CONSTANT.search(report)
    return UnknownConstant(match[2], int(match[1]), match[3]) if match else None


def refusal(report: str, graph: Any) -> UnsupportedError:
    """The error for what TensorFlow reports when it makes HLO of a function.

    Args:
        report: its message.
        graph: of the function.
    """
    lines = lines_of(graph)
    named = {node: kind for kind, node in _UNKNOWN.findall(report)}
    # Where an operation returns strings, so do TensorFlow's own operations after it.
    unknown = {node: kind for node, kind in named.items() if not kind.startswith("_")} or named
    if unknown and all(kind == _RETURNED for kind in unknown.values()):
        message = "the function returns strings, and XLA has arrays of numbers only"
        return UnsupportedError(message, hint="convert its results to strings outside of it")
    if unknown:
        kinds = list(dict.fromkeys(unknown.values()))
        node = next(iter(unknown))
        others = tuple(f"at {_where(name, lines)}: {kind} ({name})" for name, kind in list(unknown.items())[1:])
        message = f"XLA cannot compile tf.raw_ops.{kinds[0]} ({node})"
        return UnsupportedError(message, location=_line(node, lines, report), notes=others, hint=_HINT)
    constant = unknown_constant(report)
    if constant is not None:
        message = (
            f"input {constant.number} of {constant.kind} ({constant.node}) decides sizes, and the call computes it"
        )
        hint = "make it of shapes and constants, or pass it as an argument of its own"
        return UnsupportedError(message, location=_line(constant.node, lines, report), hint=hint)
    match = _NODE.search(report)
    return UnsupportedError(_brief(report), location=_line(match[1] if match else "", lines, report))


def refuse_growing_lists(graph: Any) -> None:
    """Refuse a ``tf.TensorArray`` with ``dynamic_size=True``, of which XLA silently leaves out what grows.

    Args:
        graph: of the function.

    Raises:
        UnsupportedError: a write that may make a list longer, with its line.
    """
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    grown = [n for n in nodes if n.op == "TensorListSetItem" and n.attr["resize_if_index_out_of_bounds"].b]
    if grown:
        raise UnsupportedError(
            f"a TensorArray with dynamic_size=True ({grown[0].name}): XLA gives lists a fixed size",
            location=_named(grown[0].name, lines_of(graph)),
            hint="make it with its size, as tf.TensorArray(dtype, size)",
        )


def _brief(report: str) -> str:
    """The first line of a report without its heading and its nodes' marks."""
    text = re.sub(r"^Failed getting HLO text: '?", "", report.strip())
    line = next((line for line in text.splitlines() if line.strip()), text)
    return "TensorFlow cannot make HLO of the function: " + _NODE.sub(r"\1", line).strip().rstrip("'")


def _where(node: str, lines: Mapping[str, Location]) -> str:
    found = _named(node, lines)
    return str(found) if found else node


def _line(node: str, lines: Mapping[str, Location], report: str) -> Location | None:
    return _named(node, lines) or _told(report)


def _named(node: str, lines: Mapping[str, Location]) -> Location | None:
    """The line of a node, whose name may lack those of the calls around it."""
    return lines.get(node) or next((where for name, where in lines.items() if name.endswith(f"/{node}")), None)


def _told(report: str) -> Location | None:
    """The user's line in the stack that TensorFlow writes into its report, which begins paths after the root."""
    frames = [_Frame(_whole(file), int(line)) for file, line in _FRAME.findall(report)]
    return user_line(frames)


def _whole(file: str) -> str:
    return f"/{file}" if not file.startswith("/") and Path(f"/{file}").exists() else file
