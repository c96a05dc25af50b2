"""``legalize-shifted-windows``: running reductions that are cut, or moved by elements before the first, are one window.

Before, an exclusive running sum as ONNX, JAX and PyTorch write it::

    %w = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]>}> ({add})
      : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
    %r = stablehlo.pad %w, %zero, low = [1], high = [-1], interior = [0] : (tensor<9xf32>, …) -> tensor<9xf32>

After::

    %r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 9>, padding = dense<[[9, -1]]>}> ({add})

So are a slice that leaves the last results out, and a concatenation with a constant before the first. The reduction,
which nobody else reads, stores its results where they belong, instead of a copy. Source: G. Blelloch, "Prefix sums and
their applications" (1990), prescan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import i64_matrix
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, numbers_of
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.passes.integer_factors import known_array
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Elements of constants that are looked into.
_MOST = 1 << 12


@pattern("stablehlo.pad")
def of_padding(op: ir.Operation) -> Replacement:
    """Elements before the first, or after the last; others left out."""
    low, high = integers(op, "edge_padding_low"), integers(op, "edge_padding_high")
    if any(integers(op, "interior_padding")):
        return NoMatch("elements between")
    return _moved(op, op.operands[0], op.operands[1], list(zip(low, high, strict=True)))


@pattern("stablehlo.slice")
def of_part(op: ir.Operation) -> Replacement:
    """Results left out at an end."""
    starts, limits = integers(op, "start_indices"), integers(op, "limit_indices")
    if any(step != 1 for step in integers(op, "strides")):
        return NoMatch("some of them")
    dims = Value(op.operands[0]).dims
    return _moved(op, op.operands[0], None, [(-a, b - n) for a, b, n in zip(starts, limits, dims, strict=True)])


@pattern("stablehlo.concatenate")
def of_joint(op: ir.Operation) -> Replacement:
    """A constant before the first, or after the last."""
    if len(op.operands) != 2 or not is_static(op):
        return NoMatch("several arrays")
    along = integer(op, "dimension")
    for window, other in ((0, 1), (1, 0)):
        made = defining_op(op.operands[window])
        if made is not None and made.name == "stablehlo.reduce_window":
            edges = [(0, 0)] * Value(op.results[0]).rank
            size = Value(op.operands[other]).dims[along]
            edges[along] = (0, size) if window == 0 else (size, 0)
            return _moved(op, op.operands[window], op.operands[other], edges)
    return NoMatch("no windows")


def _moved(op: Any, given: SSAValue, fill: SSAValue | None, edges: Sequence[tuple[int, int]]) -> Replacement:
    """The window with other paddings, where what is filled in is its initial value."""
    made: Any = defining_op(given)
    if made is None or made.name != "stablehlo.reduce_window" or len(made.results) != 1 or not is_static(made):
        return NoMatch("no running reduction")
    if len(list(given.uses)) > 1:
        return NoMatch("all of it has other readers")
    dims = Value(made.operands[0]).dims
    steps = [
        integers(made, name) or [1] * len(dims) for name in ("window_strides", "base_dilations", "window_dilations")
    ]
    numbers = numbers_of(made, "padding") or [0] * (2 * len(dims))
    padding = list(zip(numbers[::2], numbers[1::2], strict=True))
    windows = [
        Window(n, size, stride, low, high, base, dilation)
        for n, size, (low, high), stride, base, dilation in zip(
            dims, integers(made, "window_dimensions"), padding, *steps, strict=True
        )
    ]
    moving = [d for d, window in enumerate(windows) if not window.is_plain]
    if len(moving) != 1 or any(edge != (0, 0) for d, edge in enumerate(edges) if d != moving[0]):
        return NoMatch("windows along several dimensions, or none")
    (along,) = moving
    padding[along] = (padding[along][0] + edges[along][0], padding[along][1] + edges[along][1])
    window = windows[along]
    after = Window(window.n, window.size, low=padding[along][0], high=padding[along][1])
    before_first, after_last = reversed(edges[along]) if window.is_backward else edges[along]
    if not (window.is_cumulative and after.is_cumulative) or before_first < 0 or after_last > 0:
        return NoMatch("windows that do not grow from one end to the other")
    if max(edges[along]) > 0 and not (fill is not None and _are_equal(fill, made.operands[1])):
        return NoMatch("filled with others than the initial value")
    type_ = ir.RankedTensorType.get(Value(op.results[0]).dims, ir.RankedTensorType(op.results[0].type).element_type)
    attributes = {name: made.attributes[name] for name in made.attributes} | {"padding": i64_matrix(padding, 2)}
    found: Any = ir.Operation.create(made.name, [type_], list(made.operands), attributes, regions=1)
    copy = made.clone()
    copy.regions[0].blocks[0].append_to(found.regions[0])
    copy.erase()
    return [Value(found.results[0])]


def _are_equal(fill: SSAValue, start: SSAValue) -> bool:
    """Whether all elements are the same known number."""
    if fill == start:
        return True
    known = KnownValues(_MOST)
    filled, number = known_array(fill, known), known_array(start, known)
    if filled is None or number is None:
        return False
    return filled.tobytes() == number.tobytes() * filled.size


@register
@dataclass(frozen=True)
class LegalizeShiftedWindows(PatternPass):
    """Running reductions begin before the first element, and end before the last."""

    name: ClassVar[str] = "legalize-shifted-windows"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = of_padding + of_part + of_joint
