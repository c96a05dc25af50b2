"""Elided constants: XLA prints a large constant as ``constant({...})``, and its parser reads that as garbage."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.errors import ElidedConstantError, Location, OptionError
from hloforge.dialect.inlining import inline_calls
from hloforge.dialect.marks import ELIDED
from hloforge.dialect.mlir import in_context, ir, passmanager
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Parameter, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.importers.hlo_text import Position

POLICIES = ("refuse", "parameters", "random")
_HINT = (
    "dump the module with --xla_dump_hlo_as_proto or print_large_constants to keep its values; or go on without them: "
    "--elided=parameters makes each an argument, --elided=random fills in seeded values"
)
_ELIDED_MLIR = re.compile(r"dense(?:_resource)?<__elided__>")


def check_policy(policy: str) -> None:
    """Raises OptionError for a policy that does not exist."""
    if policy not in POLICIES:
        raise OptionError(f"elided={policy!r} is none of {', '.join(POLICIES)}")


def refuse(positions: list[Position], file: str) -> None:
    """Raises ElidedConstantError for the first of the positions, if there is one."""
    if not positions:
        return
    first, *others = positions
    notes = tuple(f"{file}:{p.line}:{p.column}: {p.name} is elided too" for p in others[:3])
    if len(others) > 3:
        notes += (f"and {len(others) - 3} more: {len(positions)} elided constants in all",)
    raise ElidedConstantError(
        f"the values of constant {first.name} were dropped when the text was printed",
        location=Location(file, first.line, first.column),
        op=f"{first.name} = … constant({{...}})",
        hint=_HINT,
        notes=notes,
    )


def refuse_mlir(text: str, file: str) -> None:
    """Raises ElidedConstantError for MLIR text printed with ``--mlir-elide-elementsattrs-if-larger``."""
    match = _ELIDED_MLIR.search(text)
    if match is None:
        return
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + 1
    raise ElidedConstantError(
        "the values of a constant were dropped when the text was printed",
        location=Location(file, line, column),
        op=match[0],
        hint="print the module without --mlir-elide-elementsattrs-if-larger and --mlir-elide-resource-strings",
    )


def fill_random(constants: dict[int, tuple[str, list[Any]]], seed: int) -> None:
    """Give each elided constant values that depend on the seed and on its name alone.

    Floats lie in [0.01, 0.1): positive, so that a variance or a divisor stays one. Integers are 0 or 1 and so are
    valid indices; booleans are either.

    Args:
        constants: by label number the instruction's name and its ``stablehlo.constant`` operations.
    """
    for name, ops in constants.values():
        for op in ops:
            with in_context(op):
                shape = Shape.of_type(op.results[0].type)
                row = element_type(op.results[0].type.element_type)
                generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
                op.attributes["value"] = dense(_values(generator, row, shape.dimensions), row)


def _values(generator: np.random.Generator, row: ElementType, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if row.kind is Kind.PRED or row.is_integer:
        return generator.integers(0, 2, dims).astype(row.dtype)
    if row.is_complex:
        return (generator.uniform(0.01, 0.1, dims) + 1j * generator.uniform(0.01, 0.1, dims)).astype(row.dtype)
    return generator.uniform(0.01, 0.1, dims).astype(row.dtype)


def to_parameters(module: ir.Module, constants: dict[int, tuple[str, list[Any]]], signature: Signature) -> Signature:
    """Turn each elided constant into a parameter of main, named after the instruction and appended in text order.

    Functions are inlined first, so that a constant of a called computation is in main; regions of main see its
    arguments.

    Raises:
        ElidedConstantError: a constant is in a computation that cannot be inlined.
    """
    with in_context(module):
        integer = ir.IntegerType.get_signless(64)
        for number, (_, ops) in constants.items():
            for op in ops:
                op.attributes[ELIDED] = ir.IntegerAttr.get(integer, number)
        inline_calls(module)
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
        entry = entry_function(module)
        marked = [op for op in operations(module, {"stablehlo.constant"}) if ELIDED in op.attributes]
        added = _replace(entry, marked, {number: name for number, (name, _) in constants.items()}, signature)
        _extend_type(entry, len(added))
    return replace(signature, parameters=(*signature.parameters, *added))


def _replace(entry: Any, marked: list[Any], names: dict[int, str], signature: Signature) -> list[Parameter]:
    used = {parameter.name for parameter in signature.parameters}
    arguments: dict[int, Any] = {}
    added: list[Parameter] = []
    marked.sort(key=lambda op: int(ir.IntegerAttr(op.attributes[ELIDED]).value))
    for op in marked:
        if _function_of(op) != entry.operation:
            raise ElidedConstantError(
                "an elided constant is in a computation that is not inlined into main",
                location=location_of(op),
                hint="--elided=random fills in seeded values",
            )
        number = int(ir.IntegerAttr(op.attributes[ELIDED]).value)
        if number not in arguments:
            arguments[number] = entry.regions[0].blocks[0].add_argument(op.results[0].type, op.location)
            added.append(Parameter(_unused(names[number], used), Shape.of_type(op.results[0].type)))
        op.results[0].replace_all_uses_with(arguments[number])
        op.erase()
    return added


def _unused(name: str, used: set[str]) -> str:
    candidate, count = name, 0
    while candidate in used:
        count += 1
        candidate = f"{name}.{count}"
    used.add(candidate)
    return candidate


def _function_of(op: Any) -> Any:
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        parent = parent.parent
    return parent


def _extend_type(entry: Any, count: int) -> None:
    attributes = entry.operation.attributes
    type_ = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
    inputs = [argument.type for argument in entry.regions[0].blocks[0].arguments]
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, type_.results))
    if "arg_attrs" in attributes:
        entries = [*attributes["arg_attrs"], *(ir.DictAttr.get({}) for _ in range(count))]
        attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
