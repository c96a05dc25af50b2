"""Forms of windowed reductions that IREE misreads."""

from __future__ import annotations

from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.pipelines.analysis.forms import is_static, numbers_of


def unread_window_edges(op: ir.Operation) -> list[int]:
    """``forms.unread_edges`` of a reduction of windows."""
    image, result = op.operands[0].type.shape, op.results[0].type.shape
    rank = len(image)
    edges = numbers_of(op, "padding") or [0] * (2 * rank)
    windows = integers(op, "window_dimensions")
    spreads, reaches = (integers(op, name) or [1] * rank for name in ("base_dilations", "window_dilations"))
    unread = []
    for number, size in enumerate(image):
        spread = (size - 1) * spreads[number] + 1 + edges[2 * number] + edges[2 * number + 1]
        reach = (windows[number] - 1) * reaches[number] + 1
        unread.append(spread - reach if result[number] == 1 and size > 0 else 0)
    return unread


def windows_leave_edges_unread(op: ir.Operation) -> bool:
    """A reduction with one window along some dimension, which does not reach the end of the padded array."""
    return is_static(op) and any(unread_window_edges(op))


def windows_pass_for_running_sums(op: ir.Operation) -> bool:
    """A reduction of windows as long as their dimension, padded by one less on one side and more on the other."""
    if not is_static(op):
        return False
    dims, edges = op.operands[0].type.shape, numbers_of(op, "padding")
    windows = integers(op, "window_dimensions")
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return any(
        size == window > 1 and (size - 1 in pair) and 0 not in pair
        for size, window, pair in zip(dims, windows, pairs, strict=False)
    )


def windows_are_misread(op: ir.Operation) -> bool:
    """Either of the two forms above."""
    return windows_leave_edges_unread(op) or windows_pass_for_running_sums(op)
