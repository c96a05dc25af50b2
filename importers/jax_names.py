"""Names that JAX gives the arguments and results of ``main``: paths within trees, as ``params['dense']['kernel']``.

A training step takes its state and returns it. The results that are an argument's next value get that argument's
names, so that a file of results is a file of arguments. JAX says ``result[0]['dense']['kernel']`` of them, and nothing
of where they belong; what is donated is the caller's word that a new value takes its place. A donated tree is found
among the results by its structure: the same paths below it, with the same shapes. Donation alone is not enough, because
it pairs buffers by their shapes and mixes up trees that are returned in another order. Of several arguments of one
structure (``params, m, v``) the first is the first result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import entries, in_context, ir
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.shapes import Shape

_RESULT_INFO = "jax.result_info"
_ROOT = "result"
_STEP = re.compile(r"""\.\w+|\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[[^\]]*\]""")

Path = tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    name: str
    path: Path
    shape: Shape

    @classmethod
    def of(cls, name: str, shape: Shape) -> _Leaf:
        first = _STEP.search(name)
        steps = _STEP.findall(name, first.start()) if first else []
        root = name[: first.start()] if first else name
        return cls(name, (root, *steps) if root + "".join(steps) == name else (name,), shape)


def argument_names(module: Any, function: Any) -> list[str]:
    """The names of main's arguments, empty where it has none.

    JAX wraps programs of several sizes or platforms into a function that has lost the names: then those of the one that
    it calls count.
    """
    names = [_location_name(argument) for argument in function.arguments]
    if not all(names) and len(function.regions[0].blocks):
        functions = {string_attribute(op, "sym_name"): op for op in module.body.operations if _is_function(op)}
        own = {argument: number for number, argument in enumerate(function.arguments)}
        for call in function.regions[0].blocks[0].operations:
            if call.operation.name != "func.call":
                continue
            callee: Any = functions.get(ir.FlatSymbolRefAttr(call.operation.attributes["callee"]).value)
            if callee is None or not len(callee.regions[0].blocks):
                continue
            for operand, argument in zip(call.operation.operands, callee.arguments, strict=False):
                number = own.get(operand)
                if number is not None and not names[number]:
                    names[number] = _location_name(argument)
    return names


def _is_function(op: Any) -> bool:
    return bool(op.operation.name == "func.func")


def _location_name(argument: Any) -> str:
    location = argument.location
    return str(location.name_str) if isinstance(location, ir.NameLoc) else ""


def result_names(
    module: Any,
    function: Any,
    parameters: Sequence[tuple[str, Shape]],
    results: Sequence[Shape],
    donated: Collection[int],
) -> tuple[str, ...]:
    """The names of the results, if JAX has said what they are.

    Args:
        parameters: names (empty: none) and shapes of the arguments.
        results: their shapes.
        donated: numbers of the arguments that a result may overwrite.
    """
    with in_context(module):
        attributes = function.operation.attributes
        said = [entries(entry) for entry in attributes["res_attrs"]] if "res_attrs" in attributes else []
        if len(said) != len(results) or not all(_RESULT_INFO in entry for entry in said):
            return ()
        infos = [str(ir.StringAttr(entry[_RESULT_INFO]).value) for entry in said]
    infos = [info if info.startswith(_ROOT) else _ROOT + info for info in infos]
    names = _with_state(
        [_Leaf.of(*parameter) for parameter in parameters],
        [_Leaf.of(*each) for each in zip(infos, results, strict=True)],
        donated,
    )
    return tuple(names if len(set(names)) == len(names) else infos)


def _with_state(parameters: Sequence[_Leaf], results: Sequence[_Leaf], donated: Collection[int]) -> list[str]:
    names = [leaf.name for leaf in results]
    free = set(range(len(results)))

    def visit(groups: list[list[int]], depth: int) -> None:
        """Name the results that are the trees of these arguments, large ones first, else what is below them."""
        for members in sorted(groups, key=len, reverse=True):
            if not any(number in donated for number in members):
                continue
            found = _tree(parameters, members, depth, results, free)
            for number, result in zip(members, found, strict=False):
                names[result] = parameters[number].name
            free.difference_update(found)
            if not found and len(members) > 1:
                visit(_groups(parameters, members, depth + 1), depth + 1)

    named = [number for number, leaf in enumerate(parameters) if leaf.name]
    visit(_groups(parameters, named, 1), 1)
    return names


def _groups(leaves: Sequence[_Leaf], members: Collection[int], depth: int) -> list[list[int]]:
    """The members by the first ``depth`` steps of their paths."""
    groups: dict[Path, list[int]] = {}
    for number in members:
        groups.setdefault(leaves[number].path[:depth], []).append(number)
    return list(groups.values())


def _tree(
    parameters: Sequence[_Leaf], members: Sequence[int], depth: int, results: Sequence[_Leaf], free: Collection[int]
) -> list[int]:
    """The free results that have the paths and shapes of these arguments, in their order; empty if there are none."""
    wanted = {parameters[number].path[depth:]: parameters[number].shape.without_layout() for number in members}
    path = parameters[members[0]].path[:depth]
    deepest = max((len(leaf.path) for leaf in results), default=0)
    places = {results[n].path[:length]: None for length in range(1, deepest + 1) for n in sorted(free)}
    # A place of the tree's own name first, as ``['params']`` of a dictionary.
    for place in sorted(places, key=lambda place: _key(place[-1]) != _key(path[-1])):
        if not _may_be(path, place, len(members)):
            continue
        below = {results[n].path[len(place) :]: n for n in sorted(free) if results[n].path[: len(place)] == place}
        if {rest: results[n].shape.without_layout() for rest, n in below.items()} == wanted:
            return [below[parameters[number].path[depth:]] for number in members]
    return []


def _may_be(path: Path, place: Path, leaves: int) -> bool:
    """Whether the results at ``place`` may be the next value of what is at ``path`` among the arguments.

    A part of an argument's tree has to be at the same place of a result's. One array looks like many others: it is one
    of the results themselves, by its name if these have names.
    """
    inner = path[1:]
    if inner and place[-len(inner) :] != inner:
        return False
    if leaves > 1 or inner:
        return True
    return len(place) <= 2 and (place[-1] == _ROOT or _key(place[-1]).isdigit() or _key(place[-1]) == _key(path[-1]))


def _key(step: str) -> str:
    return step.strip("[].'\"")
