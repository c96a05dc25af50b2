"""What exported programs take and return, of types of libraries that need not be there: names of leaves."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from hloforge.torch.exported import RETURNED, Convention, Result


class Foreign:
    """An object of a library's type: its parts, with the names that the file says.

    Attributes:
        context: what the library's type wrote: for dataclasses, a list of names.
    """

    def __init__(self, parts: Sequence[Any], context: Any) -> None:
        self.parts, self.context = list(parts), context


def declare_types(path: str) -> None:
    """Make PyTorch read structures of types that no library here defines: a class of our own for each name.

    No module is imported for a name, and no code of the file runs.

    Args:
        path: of an archive that was vetted.
    """
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        model = json.loads(archive.read(name))
    for found in set(_types(model)) - set(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE):
        _declare(found)


def _declare(name: str) -> None:
    kind = type(name.rpartition(".")[2] or "Foreign", (Foreign,), {})
    pytree.register_pytree_node(
        kind,
        lambda each: (each.parts, each.context),
        lambda parts, context: kind(list(parts), context),
        serialized_type_name=name,
        to_dumpable_context=json.dumps,
        from_dumpable_context=_context,
        # PyTorch names the graph's inputs by their paths.
        flatten_with_keys_fn=lambda each: (_with_keys(each), each.context),
    )


def _with_keys(each: Foreign) -> list[tuple[Any, Any]]:
    names = _names(each.context, len(each.parts))
    return [(pytree.GetAttrKey(name), part) for name, part in zip(names, each.parts, strict=True)]


def _context(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _types(value: Any) -> Iterator[str]:
    """The names of types in all structures that JSON describes."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            for key, entry in each.items():
                if key in ("in_spec", "out_spec") and isinstance(entry, str) and entry:
                    pending.append({"spec": json.loads(entry)})
                else:
                    pending.append(entry)
            if {"type", "context", "children_spec"} <= set(each) and isinstance(each["type"], str):
                yield each["type"]


def result_names(convention: Convention, parameters: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Names of a program's results: of what it changes, the paths to the leaves of what is returned, gradients.

    Args:
        parameters: names of the user's leaves, some of which are changed.
        arguments: of the graph's outputs, for a leaf without a path.
    """

    def name(kind: str, number: int) -> str:
        return convention.names[number] if kind == "state" else parameters[number]

    changed = [name(*place) for place in convention.updates]
    gradients = [f"{name(*place)}.grad" for place in convention.gradients]
    paths = [".".join(path) for path in _paths(convention.out_spec)]
    if len(paths) != len(convention.outputs):
        return []
    returned = [
        path or argument
        for path, output, argument in zip(paths, convention.outputs, arguments, strict=True)
        if isinstance(output, Result)
    ]
    return [*changed, *returned, *gradients]


def _paths(spec: Any) -> Iterator[tuple[str, ...]]:
    if spec.is_leaf():
        yield ()
        return
    children = spec.children()
    for key, child in zip(_keys(spec, len(children)), children, strict=True):
        for path in _paths(child):
            yield key, *path


def _keys(spec: Any, count: int) -> list[str]:
    if issubclass(spec.type, tuple) and hasattr(spec.type, "_fields"):
        return list(spec.type._fields)
    return _names(spec.context, count)


def _names(context: Any, count: int) -> list[str]:
    """The names of so many parts that a structure's context tells, or their numbers."""
    if isinstance(context, list | tuple) and len(context) == count and all(isinstance(key, str) for key in context):
        return list(context)
    # Dataclasses: names with values, and those that are None.
    if isinstance(context, list | tuple) and context and isinstance(context[0], list | tuple):
        names = [str(name) for name in context[0]]
        if len(names) == count:
            return names
    return [str(number) for number in range(count)]


def output_names(exported: torch.export.ExportedProgram) -> list[str]:
    """PyTorch's names of the leaves of what is returned."""
    specs = exported.graph_signature.output_specs
    return [str(getattr(spec.arg, "name", "")) for spec in specs if spec.kind in RETURNED]


def input_names(exported: torch.export.ExportedProgram) -> list[str]:
    """PyTorch's names of the leaves of what the user gives."""
    kind = torch.export.graph_signature.InputKind.USER_INPUT
    return [str(spec.arg.name) for spec in exported.graph_signature.input_specs if spec.kind is kind]
