"""Which sizes of a program's arguments are open, which of them are one, and what bounds them.

ONNX names sizes (``dim_param``), JAX's exports write expressions (``2*s + 1``) into the messages of their assertions,
and StableHLO has bounds. What nothing names is called by its argument and dimension: ``x.0``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hloforge.dialect.abi import crosses
from hloforge.dialect.bounded_sizes import BoundedSize, Place
from hloforge.dialect.errors import OptionError, UnsupportedError
from hloforge.dialect.mlir import in_context
from hloforge.dialect.operations import operations, string_attribute
from hloforge.dialect.program import Program
from hloforge.pipelines.padding.family import ASSERTION

_SPECIFICATIONS = re.compile(r"specifications: (.*?)\. Obtained dimension variables", re.DOTALL)
_SHAPE = re.compile(r"\.shape = \(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_CONSTRAINT = re.compile(r"symbolic shape constraint (\w+) ?(<=|>=) ?(\d+)\.")
_LEAST = re.compile(r"Expected value >= (\d+) for dimension variable '(\w+)'")
# Where a dimension is: the number of the argument and its own.
Dimension = tuple[int, int]


def open_sizes(program: Program, ties: Iterable[str] = ()) -> tuple[BoundedSize, ...]:
    """The open sizes of a program's arguments, by where the first dimension of each is.

    Args:
        ties: names that a user gives, of which ``x.0=y.0`` says that two dimensions are of one size.

    Raises:
        UnsupportedError: a size of several others, or of another form than ``2*n + 1``.
        OptionError: a dimension in ``ties`` that is not open.
    """
    leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
    if program.open_sizes:
        return program.open_sizes
    texts = _texts(program)
    places: dict[str, list[Place]] = {}
    bounds: dict[str, list[int]] = {}
    alias: dict[str, str] = {}
    for number, leaf in enumerate(leaves):
        for d, (size, dynamic) in enumerate(zip(leaf.shape.dimensions, leaf.shape.dynamic, strict=True)):
            if not (dynamic or size < 0):
                continue
            own = f"{leaf.name}.{d}"
            name, factor, rest = affine(texts.get((number, d), ""), own)
            alias[own] = name
            places.setdefault(name, []).append(Place(number, d, factor, rest))
            if size >= 0:
                bounds.setdefault(name, []).append((size - rest) // factor)
    for tie in ties:
        first, *others = (part.strip() for part in tie.split("="))
        for other in others:
            _tie(alias, places, bounds, first, other)
    limits = _limits_of_jax(program) if program.template is None else {}
    found = []
    for name, where in places.items():
        said = limits.get(name, [])
        least = max([1, *(number for relation, number in said if relation == ">=")])
        most = [*bounds.get(name, []), *(number for relation, number in said if relation == "<=")]
        found.append(BoundedSize(name, least, min(most, default=None), tuple(where)))
    return tuple(found)


def _tie(
    alias: dict[str, str], places: dict[str, list[Place]], bounds: dict[str, list[int]], first: str, other: str
) -> None:
    known = [alias.get(name, name) for name in (first, other)]
    for name, given in zip(known, (first, other), strict=True):
        if name not in places:
            raise OptionError(f"no open size is called {given!r}", hint=f"open sizes: {', '.join(places)}")
    if known[0] != known[1]:
        places[known[0]] += places.pop(known[1])
        bounds.setdefault(known[0], []).extend(bounds.pop(known[1], []))
        if not bounds[known[0]]:
            del bounds[known[0]]
        alias.update({name: known[0] for name, value in alias.items() if value == known[1]})


def names_of(sizes: Iterable[BoundedSize], program: Program) -> dict[str, str]:
    """What each open size may be called: its name, and ``x.0`` for each of its places."""
    leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
    found: dict[str, str] = {}
    for size in sizes:
        found[size.name] = size.name
        for place in size.places:
            found.setdefault(f"{leaves[place.parameter].name}.{place.dimension}", size.name)
    return found


def affine(text: str, own: str) -> tuple[str, int, int]:
    """The name, factor and rest of ``2*n + 1``; a dimension without a name is of its own.

    Raises:
        UnsupportedError: another form.
    """
    if not text.strip():
        return own, 1, 0
    try:
        names, factor, rest = _linear(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        # A name that is no expression, such as "batch size" of ONNX.
        return text, 1, 0
    if len(names) != 1 or factor < 1:
        raise UnsupportedError(f"the size of {own} is {text}, which is not of the form 2*n + 1")
    return names.pop(), factor, rest


def _linear(node: Any) -> tuple[set[str], int, int]:
    """Names, factor and rest of an expression. Raises ValueError for a form of another kind."""
    if isinstance(node, ast.Name):
        return {node.id}, 1, 0
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return set(), 0, node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        names, factor, rest = _linear(node.operand)
        return names, -factor, -rest
    if isinstance(node, ast.BinOp):
        left, right = _linear(node.left), _linear(node.right)
        names = left[0] | right[0]
        if isinstance(node.op, ast.Add):
            return names, left[1] + right[1], left[2] + right[2]
        if isinstance(node.op, ast.Sub):
            return names, left[1] - right[1], left[2] - right[2]
        if isinstance(node.op, ast.Mult) and not (left[0] and right[0]):
            (_, factor, rest), number = (right, left[2]) if right[0] else (left, right[2])
            return names, factor * number, rest * number
        if isinstance(node.op, ast.Mult):
            return names, 0, 0
    raise ValueError("no sum")


def _texts(program: Program) -> Mapping[Dimension, str]:
    """What the program's source says of open dimensions."""
    if program.template is not None:
        said = getattr(program.template, "size_texts", None)
        found: Mapping[Dimension, str] = said() if said is not None else {}
        return found
    return _texts_of_jax(program)


def _messages(program: Program) -> list[str]:
    """What a program says where its arguments' sizes are not those that it was made for."""
    with in_context(program.module):
        calls = operations(program.module, ["stablehlo.custom_call"])
        asserted = [op for op in calls if string_attribute(op, "call_target_name") == ASSERTION]
        return [string_attribute(op, "error_message") for op in asserted]


def _texts_of_jax(program: Program) -> Mapping[Dimension, str]:
    matches = (_SPECIFICATIONS.search(message) for message in _messages(program))
    return next((found for match in matches if match and (found := _of_specifications(program, match[1]))), {})


def _limits_of_jax(program: Program) -> dict[str, list[tuple[str, int]]]:
    """What an export's constraints say of single sizes: ``>=`` and ``<=`` with a number."""
    found: dict[str, list[tuple[str, int]]] = {}
    for message in _messages(program):
        for name, relation, number in _CONSTRAINT.findall(message):
            found.setdefault(name, []).append((relation, int(number)))
        for number, name in _LEAST.findall(message):
            found.setdefault(name, []).append((">=", int(number)))
    return found


def _of_specifications(program: Program, text: str) -> dict[Dimension, str]:
    """Expressions by dimension. Arrays of fixed sizes are not among the specifications, which are in order."""
    shapes = [[part.strip() for part in _parts(shape)] for shape in _SHAPE.findall(text)]
    leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
    dynamic = [number for number, leaf in enumerate(leaves) if not leaf.shape.is_static]
    if [len(shape) for shape in shapes] != [leaves[number].shape.rank for number in dynamic]:
        return {}
    return {
        (number, d): part
        for number, shape in zip(dynamic, shapes, strict=True)
        for d, part in enumerate(shape)
        if leaves[number].shape.dimensions[d] < 0 or leaves[number].shape.dynamic[d]
    }


def _parts(shape: str) -> list[str]:
    """The dimensions of a tuple, whose expressions may have parentheses with commas."""
    parts, depth = [""], 0
    for char in shape:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts if parts[-1].strip() else parts[:-1]
