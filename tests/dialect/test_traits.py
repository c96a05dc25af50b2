"""The table of operations against the dialect that jaxlib registers, and the lists that come from it."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloforge import Builder, ops
from hloforge.dialect import traits
from hloforge.dialect.mlir import context, ir, stablehlo
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.traits import TABLE, Kind, Trait
from tests.engines import interpret

ROOT = Path(__file__).parents[2]
# An operation of each of these types is verified: a right arity passes with one of them.
_TYPES = ("f32", "i32", "i1", "complex<f32>")
_SIGNATURES = [(operand, result) for operand in _TYPES for result in _TYPES]
_ATTRIBUTES = {
    "compare": "{comparison_direction = #stablehlo<comparison_direction EQ>}",
    "reduce_precision": "{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}",
}


def _classes() -> dict[str, Any]:
    found = (
        value
        for value in vars(import_module(stablehlo.__name__)).values()
        if inspect.isclass(value) and hasattr(value, "_ODS_REGIONS")
    )
    return {value.OPERATION_NAME: value for value in found}


def test_every_operation_of_the_dialect_has_a_row_and_every_row_an_operation() -> None:
    assert set(_classes()) == set(TABLE)


def test_regions_are_those_of_the_dialect() -> None:
    given = {name: (-1 if not value._ODS_REGIONS[1] else value._ODS_REGIONS[0]) for name, value in _classes().items()}
    assert {name: row.regions for name, row in TABLE.items()} == given


@pytest.mark.parametrize("name", sorted(traits.ELEMENTWISE))
def test_the_arity_of_an_elementwise_operation_is_the_dialects(name: str) -> None:
    with context():
        accepted = {count for count in (1, 2, 3) if any(_verifies(name, count, *types) for types in _SIGNATURES)}
    assert accepted == {TABLE[name].arity}


def _verifies(name: str, count: int, operand: str, result: str) -> bool:
    short = name.removeprefix("stablehlo.")
    types = [f"tensor<3x{operand}>"] * count
    if short == "select" and count == 3:
        types[0] = "tensor<3xi1>"
    body = f'%r = "{name}"({", ".join(f"%x{n}" for n in range(count))}) {_ATTRIBUTES.get(short, "")}'
    arguments = ", ".join(f"%x{n}: {type_}" for n, type_ in enumerate(types))
    text = f"func.func @main({arguments}) {{ {body} : ({', '.join(types)}) -> tensor<3x{result}> return }}"
    try:
        ir.Module.parse(text)
    except ir.MLIRError:
        return False
    return True


def test_kinds_and_traits_agree() -> None:
    for row in TABLE.values():
        assert (row.arity > 0) == (row.kind is Kind.ELEMENTWISE), row
        assert not (row.traits & Trait.EFFECTS and row.traits & (Trait.NAMES | Trait.VIEW | Trait.IN_PLACE)), row
        assert not (Trait.COMMUTATIVE in row.traits and row.arity != 2), row
    assert traits.IDEMPOTENT <= traits.COMMUTATIVE
    assert traits.TRANSCENDENTAL <= traits.FLOAT_ARITHMETIC
    assert traits.ELEMENTWISE < ELEMENTWISE == traits.ELEMENTWISE | {"stablehlo.constant"}


@pytest.mark.parametrize("name", sorted(traits.COMMUTATIVE))
def test_commutative_operations_are(name: str) -> None:
    type_ = "tensor<4xi32>"
    text = f"func.func @main(%x: {type_}, %y: {type_}) -> {type_} {{ %r = {name} ORDER : {type_} return %r : {type_} }}"
    x, y = np.array([-7, 0, 3, 2**31 - 1], np.int32), np.array([5, -1, 3, 2], np.int32)
    one, other = (interpret(text.replace("ORDER", order), x, y) for order in ("%x, %y", "%y, %x"))
    assert (one[0] == other[0]).all()


def test_no_file_types_a_list_of_the_elementwise_operations_again() -> None:
    """A list of most elementwise operations belongs into the table."""
    elementwise = {name.removeprefix("stablehlo.") for name in traits.ELEMENTWISE}
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for folder in ("dialect", "pipelines", "runtime")
        for path in sorted((ROOT / folder).glob("**/*.py"))
        if path.name not in (*_ALLOWED, "traits.py", "__init__.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if len(_names(node) & elementwise) >= 24
    ]
    assert not found, f"take these from dialect/traits.py: {found}"


# Capabilities of a compiler are rows of their own; what the next one lists is being replaced.
_ALLOWED = ("cpu_table.py", "equal_results.py")


def _names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return set(node.value.split())
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        texts = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
        return {str(text).removeprefix("stablehlo.") for text in texts}
    return set()


def test_arithmetic_behind_a_bitcast_that_splits_elements() -> None:
    """``sizes_of`` followed every elementwise operation to an operand of its rank; here is none."""
    with Builder("b") as b:
        x = b.parameter(0, "f32[?]", "x")
        program = b.build(ops.bitcast_convert_type(x, "u8") + 1)
    assert str(program.signature.result) == "u8[?,4]"
