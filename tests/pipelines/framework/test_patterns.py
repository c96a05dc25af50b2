"""The driver of patterns: changes in place are progress, and a pattern does not match what it has changed."""

from __future__ import annotations

from typing import Any

import pytest

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.dynamic.dynamic_shapes import with_opaque_sizes
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, apply_patterns, pattern
from hloforge.pipelines.workarounds.host_scalars import from_memory
from hloforge.pipelines.workarounds.loop_carries import with_opaque_carries
from hloforge.pipelines.workarounds.paddings import padded_after_a_barrier
from hloforge.pipelines.workarounds.sliced_operands import (
    read_behind_a_barrier,
    skipped_behind_a_barrier,
    updated_behind_a_barrier,
    widened_behind_a_barrier,
)

ADD = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}"""


def names(module: Any) -> list[str]:
    kinds = {"stablehlo.negate", "stablehlo.add", "stablehlo.abs", "stablehlo.multiply"}
    return [op.name for op in operations(module, kinds)]


@pattern("stablehlo.add")
def of_abs(op: Any) -> Replacement:
    """Add the absolute value of the second operand."""
    if op.operands[1].owner.name == "stablehlo.abs":
        return NoMatch("it adds an absolute value already")
    op.operands[1] = ops.abs(Value(op.operands[1])).ir
    return REWRITTEN


def test_a_change_in_place_is_progress() -> None:
    module = parse_module(ADD)
    outcome = apply_patterns(module, of_abs)
    assert outcome.rewritten == 1
    assert outcome.refused == {"stablehlo.add": ["it adds an absolute value already"]}
    assert names(module) == ["stablehlo.negate", "stablehlo.abs", "stablehlo.add"]
    assert apply_patterns(module, of_abs).rewritten == 0


def test_what_a_change_in_place_builds_is_matched() -> None:
    """Though no operation is replaced in the sweep that builds it."""

    @pattern("stablehlo.abs")
    def as_product(op: Any) -> Replacement:
        return ops.mul(Value(op.operands[0]), Value(op.operands[0]))

    module = parse_module(ADD)

    @pattern("stablehlo.add")
    def once(op: Any) -> Replacement:
        if op.operands[0] != op.operands[1]:
            return NoMatch("done")
        op.operands[1] = ops.abs(Value(op.operands[1])).ir
        return REWRITTEN

    assert apply_patterns(module, (*once, *as_product)).rewritten == 2
    assert names(module) == ["stablehlo.negate", "stablehlo.multiply", "stablehlo.add"]


def test_the_next_pattern_sees_what_was_changed_in_place() -> None:
    seen: list[str] = []

    @pattern("stablehlo.add")
    def look(op: Any) -> Replacement:
        seen.append(op.operands[1].owner.name)
        return NoMatch("only looking")

    apply_patterns(parse_module(ADD), (*of_abs, *look))
    assert seen == ["stablehlo.abs"]


def test_a_pattern_that_matches_what_it_changed_is_reported() -> None:
    @pattern("stablehlo.add")
    def again(op: Any) -> Replacement:
        op.operands[0] = ops.neg(Value(op.operands[0])).ir
        return REWRITTEN

    with pytest.raises(RuntimeError, match="still match"):
        apply_patterns(parse_module(ADD), again)


def function(parameters: str, result: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"func.func @main({parameters}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


# A scalar loop whose count IREE does not see, and whose carries change places.
SWAPPED = function(
    "%a: tensor<f32>, %b: tensor<f32>, %n: tensor<i32>",
    "tensor<f32>",
    "%one = stablehlo.constant dense<1> : tensor<i32>",
    "%w:4 = stablehlo.while(%x = %a, %y = %b, %z = %b, %k = %n) : tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>",
    "cond {",
    "%go = stablehlo.compare NE, %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    "stablehlo.return %go : tensor<i1>",
    "} do {",
    "%next = stablehlo.add %k, %one : tensor<i32>",
    "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
    "stablehlo.return %y, %x, %zero, %next : tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>",
    "}",
    "%r = stablehlo.add %w#0, %w#2 : tensor<f32>",
)
COUNTED = function(
    "%x: tensor<?xf32>, %n: tensor<i32>",
    "tensor<?xf32>",
    "%zero = stablehlo.constant dense<0> : tensor<i32>",
    "%one = stablehlo.constant dense<1> : tensor<i32>",
    "%w:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<?xf32>",
    "cond {",
    "%go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    "stablehlo.return %go : tensor<i1>",
    "} do {",
    "%next = stablehlo.add %i, %one : tensor<i32>",
    "%f = stablehlo.convert %i : (tensor<i32>) -> tensor<f64>",
    "%g = stablehlo.convert %f : (tensor<f64>) -> tensor<f32>",
    "%p = stablehlo.multiply %v, %v : tensor<?xf32>",
    "stablehlo.return %next, %p : tensor<i32>, tensor<?xf32>",
    "}",
    "%r = stablehlo.negate %w#1 : tensor<?xf32>",
)
REVERSED = function(
    "%x: tensor<5xf32>",
    "tensor<3xf32>",
    "%s = stablehlo.slice %x [0:5:2] : (tensor<5xf32>) -> tensor<3xf32>",
    "%r = stablehlo.reverse %s, dims = [0] : tensor<3xf32>",
)
PADDED = function(
    "%x: tensor<5xf32>, %z: tensor<f32>",
    "tensor<6xf32>",
    "%s = stablehlo.pad %x, %z, low = [-1], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<4xf32>",
    "%r = stablehlo.pad %s, %z, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>",
)
THINNED = function(
    "%x: tensor<6xf32>, %z: tensor<f32>",
    "tensor<3xf32>",
    "%s = stablehlo.negate %x : tensor<6xf32>",
    '%r = "stablehlo.reduce_window"(%s, %z) <{window_dimensions = array<i64: 1>, window_strides = array<i64: 2>}> ({',
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
    "%m = stablehlo.maximum %a, %b : tensor<f32>",
    "stablehlo.return %m : tensor<f32>",
    "}) : (tensor<6xf32>, tensor<f32>) -> tensor<3xf32>",
)
SCATTERED = function(
    "%x: tensor<5xf32>, %i: tensor<1xi32>, %u: tensor<f32>",
    "tensor<3xf32>",
    "%s = stablehlo.slice %x [1:4] : (tensor<5xf32>) -> tensor<3xf32>",
    '%r = "stablehlo.scatter"(%s, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<'
    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({",
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
    "stablehlo.return %b : tensor<f32>",
    "}) : (tensor<3xf32>, tensor<1xi32>, tensor<f32>) -> tensor<3xf32>",
)
GATHERED = function(
    "%x: tensor<5xi1>, %i: tensor<3x1xi32>",
    "tensor<3xi8>",
    '%g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],'
    " start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> :"
    " (tensor<5xi1>, tensor<3x1xi32>) -> tensor<3xi1>",
    "%r = stablehlo.convert %g : (tensor<3xi1>) -> tensor<3xi8>",
)
IN_PLACE = {
    "host scalars": (from_memory, COUNTED),
    "carries": (with_opaque_carries, SWAPPED),
    "sizes": (with_opaque_sizes, COUNTED),
    "read": (read_behind_a_barrier, REVERSED),
    "padded": (padded_after_a_barrier, PADDED),
    "skipped": (skipped_behind_a_barrier, THINNED),
    "updated": (updated_behind_a_barrier, SCATTERED),
    "widened": (widened_behind_a_barrier, GATHERED),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_patterns_that_change_in_place_converge(name: str) -> None:
    patterns: tuple[Pattern, ...]
    patterns, text = IN_PLACE[name]
    module = parse_module(text)
    before = str(module)
    assert apply_patterns(module, patterns).rewritten > 0
    changed = str(module)
    assert changed != before
    assert apply_patterns(module, patterns).rewritten == 0
    assert str(module) == changed
    assert isinstance(module, ir.Module) and module.operation.verify()
