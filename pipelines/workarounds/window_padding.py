"""``legalize-window-padding``: windows over padded unsigned integers, and edges that no window reads.

Before::

    %r = "stablehlo.reduce_window"(%x, %init) ({ add }) {window [3], padding [[2, 0]]} : (tensor<8xui16>, ...

After::

    %p = stablehlo.pad %x, %init, low = [2], high = [0], interior = [0] : ... -> tensor<10xui16>
    %r = "stablehlo.reduce_window"(%p, %init) ({ add }) {window [3]} : (tensor<10xui16>, ...

IREE 3.13 pads other types itself, and leaves types that nothing converts when it pads these. Source: StableHLO spec
"reduce_window": windows lie over ``pad(input, init_value, padding[:, 0], padding[:, 1], base_dilations - 1)``.

Numbers of 64 bits IREE pads in a way that may fail, too (``legalize-wide-fills``).

IREE makes a scan of a window as long as its dimension and padded by one less on one side, as of running sums, and
leaves out its initial value. One that is not known to be the identity is therefore combined with the results, as XLA
does. It takes windows with padding on the other side too for running sums, and fails: these are padded before. Of
numbers of 64 bits and more than four dimensions it makes no scan for Vulkan ("'vector.transfer_read' op with rank > 1
should be broken down by prior passes"): the dimensions before and behind that of a running sum are one each.

Windows over an array without elements, in padding alone, it takes for windows of another size: each is a reduction of
initial values, and all are equal.

A convolution or reduction that has room for one window, as of 7 positions in an image padded to 8 with strides of 2,
leaves the end of the image unread. IREE folds that window's position away and takes the image to be as long as the
window, which is an error of its compiler. Here a convolution's padding is made so much smaller, or negative: 7
positions of 7. A reduction's is made by an operation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import create, emit
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, leaves_edges_unread, pads_unsigned_windows, unread_edges
from hloforge.pipelines.analysis.wide_fills import is_wide_fill
from hloforge.pipelines.analysis.window_forms import unread_window_edges, windows_are_misread
from hloforge.pipelines.decompose.scatter_combiner import Combiner
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.workarounds.constant_folds import number_of

_TAKEN = ("padding", "base_dilations")
# Of running sums that IREE makes no scans of.
_MANY_DIMENSIONS = 5


@pattern("stablehlo.reduce_window")
def over_padded(op: ir.Operation) -> Replacement:
    """reduce_window -> pad, reduce_window without padding and base dilation; static operands."""
    if not (pads_unsigned_windows(op) or windows_are_misread(op) or _pads_with_64_bits(op)):
        return NoMatch("IREE pads it")
    operands = [Value(operand) for operand in op.operands]
    count = len(op.results)
    rank = operands[0].rank
    edges = np.array(op.attributes["padding"]).tolist() if "padding" in op.attributes else [[0, 0]] * rank
    dilations = integers(op, "base_dilations") or [1] * rank
    unread = unread_window_edges(op)
    padding = [(low, high - n, step - 1) for (low, high), n, step in zip(edges, unread, dilations, strict=True)]
    padded = [ops.pad(array, init, padding) for array, init in zip(operands[:count], operands[count:], strict=True)]
    attributes = {name: op.attributes[name] for name in op.attributes if name not in _TAKEN}
    made = create(op.name, [*padded, *operands[count:]], [result.type for result in op.results], 1, **attributes)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return [Value(result) for result in made.results]


@pattern("stablehlo.reduce_window")
def of_nothing(op: ir.Operation) -> Replacement:
    """reduce_window of an empty array -> broadcast (reduce (broadcast init))."""
    count = len(op.results)
    inits = [Value(operand) for operand in list(op.operands)[count:]]
    if not is_static(op) or 0 not in Value(op.operands[0]).dims or 0 in Value(op.results[0]).dims:
        return NoMatch("it has elements, or no windows")
    window = integers(op, "window_dimensions")
    padding = [ops.broadcast(init, window) for init in inits]
    along = ir.DenseI64ArrayAttr.get(list(range(len(window))))
    made = create("stablehlo.reduce", [*padding, *inits], [init.type for init in inits], 1, dimensions=along)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return [ops.broadcast(Value(one), Value(op.results[0]).dims) for one in made.results]


@pattern("stablehlo.reduce_window")
def of_many_dimensions(op: Any) -> Replacement:
    """reduce_window, as of running sums -> reshape (reduce_window (reshape x)), of three dimensions."""
    array, init = map(Value, list(op.operands)[:2])
    if not _is_scan(op) or array.rank < _MANY_DIMENSIONS:
        return NoMatch("no scan, or IREE makes it")
    window, edges = integers(op, "window_dimensions"), np.array(op.attributes["padding"])
    (along,) = (d for d, size in enumerate(window) if size > 1)
    three = [prod(array.dims[:along]), array.dims[along], prod(array.dims[along + 1 :])]
    made = create(
        op.name,
        [ops.reshape(array, three), init],
        [ir.RankedTensorType.get(three, array.ir.type.element_type)],
        1,
        window_dimensions=ir.DenseI64ArrayAttr.get([1, window[along], 1]),
        padding=dense(np.array([[0, 0], edges[along], [0, 0]]), element_type("s64")),
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    return ops.reshape(Value(made.results[0]), array.dims)


@pattern("stablehlo.convolution")
def of_one_window(op: Any) -> Replacement:
    """convolution -> convolution whose padded image ends with its only window."""
    if not leaves_edges_unread(op):
        return NoMatch("no edge is left out")
    unread = np.array(unread_edges(op))
    given = op.attributes["padding"] if "padding" in op.attributes else [0] * (2 * unread.size)
    edges = np.array([int(number) for number in given]).reshape(-1, 2)
    edges[:, 1] -= unread
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["padding"] = dense(edges, element_type("s64"))
    return emit(op.name, [Value(operand) for operand in op.operands], op.results[0].type, **attributes)


@pattern("stablehlo.reduce_window")
def of_running_sums(op: Any) -> Replacement:
    """reduce_window(x, init), as of running sums -> combine(init, reduce_window(x, identity))."""
    array, init = map(Value, list(op.operands)[:2])
    if not _is_scan(op):
        return NoMatch("no scan of real numbers")
    combiner = Combiner(op.regions[0])
    identity = combiner.identity(0)
    if identity is None or _number_before_conversions(init.ir) == identity:
        return NoMatch("nothing is lost")
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [array, constant(identity, init.element_type)]
    made = create(op.name, operands, [op.results[0].type], 1, **attributes)
    combining = combiner.returned[0].owner.operation.name
    op.regions[0].blocks[0].append_to(made.regions[0])
    found = Value(made.results[0])
    return emit(combining, [ops.broadcast(init, found.dims), found], found.type)


def _pads_with_64_bits(op: Any) -> bool:
    """Whether IREE would write into an array filled with numbers of 64 bits: see ``legalize-wide-fills``."""
    if not is_static(op) or _is_scan(op) or "padding" not in op.attributes:
        return False
    inits = list(op.operands)[len(op.results) :]
    # The parts of c128, which become arrays of their own after this pass, have 64 bits.
    is_wide = any(is_wide_fill(init) or Value(init).element_type.bits > 64 for init in inits)
    return is_wide and any(int(number) for number in op.attributes["padding"])


def _is_scan(op: AnyOp) -> bool:
    """A ``reduce_window`` of one array, as long as a dimension and padded by one less on one side: running sums.

    One of complex numbers becomes one of two arrays after this pass.
    """
    if len(op.results) != 1 or Value(op.operands[0]).element_type.is_complex:
        return False
    dims = op.operands[0].type.shape
    window = integers(op, "window_dimensions")
    steps = [n for name in ("window_strides", "base_dilations", "window_dilations") for n in integers(op, name)]
    long = [d for d, size in enumerate(window) if size > 1]
    if not op.operands[0].type.has_static_shape or len(long) != 1 or any(step != 1 for step in steps):
        return False
    (along,) = long
    if window[along] != dims[along] or "padding" not in op.attributes:
        return False
    edges = np.array(op.attributes["padding"])
    return bool(edges.sum() == edges[along].max() == edges[along].sum() == dims[along] - 1)


def _number_before_conversions(value: Any) -> Any:
    while is_made_by(value, "stablehlo.convert"):
        value = value.owner.operation.operands[0]
    return number_of(value)


@register
@dataclass(frozen=True)
class LegalizeWindowPadding(PatternPass):
    """Pad unsigned integers and booleans before windowed operations; cut arrays where the only window ends."""

    name: ClassVar[str] = "legalize-window-padding"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        *of_nothing,
        *of_many_dimensions,
        *of_running_sums,
        *over_padded,
        *of_one_window,
    )
