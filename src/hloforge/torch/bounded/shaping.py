"""Shapes and slices of padded arrays: padding stays behind the elements of each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded, within
from hloforge.torch.bounded.sizes import are_equal, expression_of, fit, is_open, known
from hloforge.torch.interpreter import converted
from hloforge.torch.registry import number


@bounded(
    *("aten.view.default", "aten._unsafe_view", "aten.reshape", "aten.view_copy.default", "prims.reshape"),
    *("aten._reshape_alias", "aten._reshape_copy", "prims.collapse", "prims.collapse_view", "prims.split_dim"),
    *("aten.squeeze", "aten.unsqueeze", "aten.squeeze_copy", "aten.unsqueeze_copy", "prims.squeeze"),
    *("aten.unflatten", "aten.flatten", "prims.expand_dims"),
)
def reshape(call: OpenCall, x: Any, *_: Any, **__: Any) -> Any:
    return reshaped(call, x, call.said[0].shape, call.result.shape)


def reshaped(call: OpenCall, x: Any, before: Sequence[Any], after: Sequence[Any]) -> Any:
    """An array of other sizes, as PyTorch says them, with its elements in the same order."""
    before, after = [*map(known, before)], [*map(known, after)]
    extents = [call.sizes.extent(size) for size in after]
    if _same([s for s in before if not _is_one(s)], [s for s in after if not _is_one(s)]):
        return jnp.reshape(fit(x, [call.sizes.extent(size) for size in before]), extents)
    at = [next((d for d, size in enumerate(sizes) if is_open(size)), len(sizes)) for sizes in (before, after)]
    lone = not any(is_open(size) for sizes, d in zip((before, after), at, strict=True) for size in sizes[d + 1 :])
    rows = [prod(int(size) for size in sizes[:d]) for sizes, d in zip((before, after), at, strict=True)]
    if lone and rows[0] == rows[1]:
        # Padding is at the end of each row on both sides.
        flat = jnp.reshape(x, (rows[0], -1)) if x.size else jnp.zeros((rows[0], 0), x.dtype)
        return jnp.reshape(fit(flat, (rows[0], prod(extents[at[1] :]))), extents)
    if (apart := _groups(before, after)) is not None:
        # Each group of dimensions is a reshape of its own, whose padding is at the end of its first dimension.
        fitted = [call.sizes.extent(size) for size in before]
        for first, second in apart:
            wanted = prod(extents[d] for d in second)
            fitted[first[0]] = wanted // max(prod(x.shape[d] for d in first[1:]), 1)
        if prod(fitted) == prod(extents):
            return jnp.reshape(fit(x, fitted), extents)
    # Elements change places, but for those of the last dimensions that both sides have.
    kept = next(
        (n for n, sizes in enumerate(zip(before[::-1], after[::-1], strict=False)) if not _same(*([s] for s in sizes))),
        min(len(before), len(after)),
    )
    ends = (len(before) - kept, len(after) - kept)
    x = fit(x, (*x.shape[: ends[0]], *extents[ends[1] :]))
    source = _places_of(call, before[: ends[0]], x.shape, after[: ends[1]])
    flat = x.reshape(prod(x.shape[: ends[0]]), *x.shape[ends[0] :])
    return jnp.take(flat, source, 0, mode="clip") if x.size else jnp.zeros(extents, x.dtype)


def _places_of(call: OpenCall, before: Sequence[Any], padded: Sequence[int], after: Sequence[Any]) -> Any:
    """Where the elements of a reshaped array are among those of the one before, its padding counted.

    Args:
        padded: the sizes of the array before.
    """
    extents = [call.sizes.extent(size) for size in after]
    place: Any = jnp.zeros(extents, np.int64)
    for d, size in enumerate(after):
        place = place * call.sizes.real(size) + jax.lax.broadcasted_iota(np.int64, extents, d)
    source: Any = jnp.zeros(extents, np.int64)
    stride = 1
    for size, extent in reversed(list(zip(before, padded, strict=False))):
        real = call.sizes.real(size)
        real = max(real, 1) if isinstance(real, int) else jnp.maximum(real, 1)
        source += place % real * stride
        place, stride = place // real, stride * extent
    return source


@bounded("aten.as_strided", "aten.as_strided_copy", "prims.as_strided")
def as_strided(call: OpenCall, x: Any, sizes: Any, strides: Any, offset: Any = None) -> Any:
    """Where it is a reshape: all elements in their order."""
    said = [list(each) for each in (call.said[0].shape, call.result.shape)]
    are_dense = all(_is_dense(each.shape, each.stride()) for each in (call.said[0], call.result))
    elements = [sympy.prod([expression_of(size) for size in each]) for each in said]
    is_same = are_equal(*elements) and are_equal(call.said[0].storage_offset(), call.result.storage_offset())
    if not are_dense or not is_same:
        raise UnsupportedError("a view by strides that is no reshape")
    return reshaped(call, x, *said)


@bounded("aten.as_strided_scatter", "prims.as_strided_scatter")
def as_strided_scatter(call: OpenCall, x: Any, source: Any, sizes: Any, strides: Any, offset: Any = None) -> Any:
    """Where it replaces all elements in their order."""
    whole, part, *said = call.said
    start = whole.storage_offset() if offset is None else said[2]
    are_dense = _is_dense(whole.shape, whole.stride()) and _is_dense(said[0], said[1])
    if not are_dense or not are_equal(whole.numel(), part.numel()) or not are_equal(start, whole.storage_offset()):
        raise UnsupportedError("a view by strides that is no reshape is written")
    return reshaped(call, source, part.shape, whole.shape)


def _is_dense(sizes: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether the elements lie in the order of the dimensions, whatever the sizes are."""
    expected: Any = sympy.Integer(1)
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if not _is_one(size):
            if not are_equal(stride, expected):
                return False
            expected *= expression_of(size)
    return True


def _groups(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[list[int], list[int]]] | None:
    """Dimensions of both sides that hold as many elements, group by group; None if one holds padding inside of it.

    The first dimension of a group may be open.
    """
    groups: list[tuple[list[int], list[int]]] = []
    sides = [
        [(d, expression_of(size)) for d, size in enumerate(sizes) if not _is_one(size)] for sizes in (before, after)
    ]
    while sides[0] and sides[1]:
        (d, left), (e, right) = sides[0].pop(0), sides[1].pop(0)
        group: tuple[list[int], list[int]] = ([d], [e])
        while not are_equal(left, right):
            side = 0 if sides[0] and (not sides[1] or not _is_multiple(left, right)) else 1
            if not sides[side]:
                return None
            d, size = sides[side].pop(0)
            if is_open(before[d] if side == 0 else after[d]):
                return None
            group[side].append(d)
            left, right = (left * size, right) if side == 0 else (left, right * size)
        groups.append(group)
    return None if sides[0] or sides[1] else groups


def _is_multiple(left: Any, right: Any) -> bool:
    """Whether the left product has factors that the right one lacks."""
    quotient = sympy.cancel(left / right)
    return bool(sympy.denom(quotient) == 1)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(
        is_open(x) == is_open(y) and are_equal(x, y) for x, y in zip(first, second, strict=True)
    )


@bounded("aten.expand", "aten.expand_copy")
def expand(call: OpenCall, x: Any, *_: Any, **__: Any) -> Any:
    return jnp.broadcast_to(call.fitted(x), call.shape)


@bounded("prims.broadcast_in_dim")
def broadcast_in_dim(call: OpenCall, x: Any, sizes: Any, dims: Sequence[int]) -> Any:
    x = fit(x, [1 if size == 1 else call.shape[dim] for size, dim in zip(x.shape, dims, strict=True)])
    return jax.lax.broadcast_in_dim(x, call.shape, dims)


def _taken(x: Any, places: Any, dim: int) -> Any:
    return jnp.take(x, places, dim, mode="clip") if x.shape[dim] else x


@bounded("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(call: OpenCall, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    dim %= x.ndim
    size = call.count(0, dim)
    if all(isinstance(each, int | None) for each in (size, start, end)):
        return call.plain(x, dim, start, end, step)
    extent = call.shape[dim]
    if step == 1 and (start is None or (isinstance(start, int) and start >= 0)):
        cut = x[(*[slice(None)] * dim, slice(start, None))]
        return fit(cut, [extent if d == dim else s for d, s in enumerate(cut.shape)])
    first = start if not isinstance(start, int) or start >= 0 else size + start
    if not isinstance(start, int):
        first = jnp.where(start < 0, size + start, start)
    places = jnp.clip(first, 0, size) + step * jnp.arange(extent)
    taken = _taken(x, places, dim)
    return fit(taken, [extent if d == dim else s for d, s in enumerate(taken.shape)])


@bounded("aten.select.int", "aten.select_copy.int")
def select(call: OpenCall, x: Any, dim: int, index: Any) -> Any:
    dim %= x.ndim
    size = call.count(0, dim)
    if isinstance(index, int) and (index >= 0 or isinstance(size, int)):
        return call.plain(x, dim, index)
    return _taken(x, jnp.where(index < 0, size + index, index), dim)


@bounded("aten.cat", "prims.cat", "aten.concatenate")
def cat(call: OpenCall, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Each part begins where the real elements of the one before end, over its padding."""
    said = [s for s in call.said[0] if s.ndim == len(call.shape)]
    parts = [converted(x, call.dtype) for x in tensors if x.ndim == len(call.shape)]
    dim %= len(call.shape)
    parts = [
        fit(x, [s if d == dim else e for d, (s, e) in enumerate(zip(x.shape, call.shape, strict=True))]) for x in parts
    ]
    sizes = [call.sizes.real(each.shape[dim]) for each in said]
    if all(isinstance(size, int) for size in sizes[:-1]):
        return fit(jnp.concatenate(parts, dim), call.shape)
    total = [sum(x.shape[dim] for x in parts) if d == dim else extent for d, extent in enumerate(call.shape)]
    whole = jnp.zeros(total, call.dtype)
    at: Any = 0
    for part, size in zip(parts, sizes, strict=True):
        starts = [jnp.asarray(at if d == dim else 0, np.int64) for d in range(len(total))]
        whole = jax.lax.dynamic_update_slice(whole, part, starts)
        at = at + size
    return fit(whole, call.shape)


@bounded("aten.stack")
def stack(call: OpenCall, tensors: Sequence[Any], dim: int = 0) -> Any:
    dim %= len(call.shape)
    extents = [extent for d, extent in enumerate(call.shape) if d != dim]
    return call.plain([fit(x, extents) for x in tensors], dim)


@bounded("aten.unbind", "aten.unbind_copy")
def unbind(call: OpenCall, x: Any, dim: int = 0) -> Any:
    return call.plain(x, dim)  # PyTorch asks how many there are, so this dimension is known


@bounded("aten.split_with_sizes", "aten.split_with_sizes_copy")
def split_with_sizes(call: OpenCall, x: Any, sizes: Sequence[Any], dim: int = 0) -> Any:
    dim %= x.ndim
    at: Any = 0
    parts = []
    for size, value in zip(sizes, call.wanted, strict=True):
        parts.append(_taken(x, at + jnp.arange(value.shape[dim]), dim))
        at = at + size
    return parts


@bounded("aten.split.Tensor", "aten.split_copy.Tensor")
def split(call: OpenCall, x: Any, size: Any, dim: int = 0) -> Any:
    dim %= x.ndim
    if dim not in call.open(0):
        return call.plain(x, size, dim)
    # PyTorch knows how many there are; the last one has what is left.
    return [_taken(x, n * size + jnp.arange(part.shape[dim]), dim) for n, part in enumerate(call.wanted)]


@bounded("aten.flip", "prims.rev")
def flip(call: OpenCall, x: Any, dims: Sequence[int]) -> Any:
    for dim in (d % x.ndim for d in dims):
        x = _taken(x, call.count(0, dim) - 1 - jnp.arange(x.shape[dim]), dim)
    return x


@bounded("aten.roll")
def roll(call: OpenCall, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        flat = reshaped(call, x, call.said[0].shape, [call.said[0].numel()])
        count = call.sizes.real(call.said[0].numel())
        rolled = _taken(flat, (jnp.arange(flat.shape[0]) - sum(shifts)) % jnp.maximum(count, 1), 0)
        return reshaped(call, rolled, [call.said[0].numel()], call.said[0].shape)
    for shift, dim in zip(shifts, (d % x.ndim for d in dims), strict=True):
        x = _taken(x, (jnp.arange(x.shape[dim]) - shift) % jnp.maximum(call.count(0, dim), 1), dim)
    return x


@bounded("aten.repeat")
def repeat(call: OpenCall, x: Any, times: Sequence[Any]) -> Any:
    new = len(times) - x.ndim
    for dim in range(x.ndim):
        if not (isinstance(times[dim + new], int) and times[dim + new] == 1):
            places = jnp.arange(call.shape[dim + new]) % jnp.maximum(call.count(0, dim), 1)
            x = _taken(x, places, dim)
    return jnp.broadcast_to(fit(x, call.shape[new:]), call.shape)


@bounded("aten.constant_pad_nd")
def constant_pad(call: OpenCall, x: Any, widths: Sequence[Any], value: Any = 0) -> Any:
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    first = x.ndim - len(pairs)
    counts = [call.count(0, dim) for dim in range(x.ndim)]
    lows = [0] * first + [low for low, _ in pairs]
    for dim, low in enumerate(lows):
        x = _taken(x, jnp.arange(call.shape[dim]) - low, dim)
    ends = {dim: counts[dim] + low for dim, low in enumerate(lows)}
    inside = within(x.shape, ends)
    for dim, low in enumerate(lows):
        inside &= jax.lax.broadcasted_iota(np.int64, x.shape, dim) >= low
    return jnp.where(inside, x, number(value, x.dtype))


# --- New tensors: of the largest size.


@bounded("aten.full", "prims.full", "aten.empty", "aten.zeros", "prims.empty_strided", "aten.empty_strided")
def sized(call: OpenCall, sizes: Any, *arguments: Any, **named: Any) -> Any:
    return call.plain(call.shape, *arguments, **named)


bounded("aten.ones", "prims.empty", "prims.empty_permuted", "aten.empty_permuted")(sized)
bounded("aten.rand", "aten.randn")(sized)


@bounded("aten.randint", "aten.normal.float_float")
def drawn(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """The sizes are the last argument."""
    return call.plain(*arguments[:-1], call.shape, **named)


@bounded("aten.new_full", "aten.new_zeros", "aten.new_empty", "aten.new_ones", "aten.new_empty_strided")
def sized_like(call: OpenCall, x: Any, sizes: Any, *arguments: Any, **named: Any) -> Any:
    return call.plain(x, call.shape, *arguments, **named)


@bounded("aten.arange.start_step")
def arange(call: OpenCall, start: Any, end: Any, step: Any = 1, **_: Any) -> Any:
    dtype = np.promote_types(call.dtype, np.float32) if call.dtype.kind in "fV" else np.dtype(np.int64)
    first, by = (jnp.asarray(each).astype(dtype) for each in (start, step))
    return first + jnp.arange(call.shape[0], dtype=dtype) * by


@bounded("prims.iota")
def iota(call: OpenCall, length: Any, *, start: Any, step: Any, **_: Any) -> Any:
    first, by = (jnp.asarray(each).astype(call.dtype) for each in (start, step))
    return first + jnp.arange(call.shape[0], dtype=call.dtype) * by
