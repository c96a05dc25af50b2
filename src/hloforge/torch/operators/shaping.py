"""Shape operators: sizes, axes and slices, without arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.jax import platform
from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, lowers, number
from hloforge.torch.types import dtype_of


@lowers(
    *("aten.clone", "aten.alias", "aten.detach", "aten.contiguous", "aten.lift_fresh_copy", "aten.lift_fresh"),
    *("aten.lift", "aten.alias_copy", "aten.detach_copy", "prims.view_of", "prims.clone", "aten._to_copy", "aten.to"),
    "prims.copy_strided",
    *("prims.convert_element_type", "prims.device_put", "aten.view_of", "aten.conj", "aten._conj", "aten.resolve_conj"),
    *("aten.resolve_neg", "aten._neg_view", "aten.positive", "prims.conj", "aten._conj_copy", "aten._neg_view_copy"),
)
def same(call: Call, x: Any, *_: Any, **__: Any) -> Any:
    name = str(call.target)
    if "conj" in name and "resolve" not in name:
        return jnp.conj(x)
    if "_neg_view" in name:
        return -x
    return converted(x, call.dtype)


@lowers("aten.copy", "prims.copy_to")
def copy(call: Call, x: Any, source: Any, *_: Any, **__: Any) -> Any:
    return jnp.broadcast_to(converted(source, call.dtype), x.shape)


@lowers(
    *("aten.view.default", "aten._unsafe_view", "aten.reshape", "aten.view_copy.default", "prims.reshape"),
    *("aten._reshape_alias", "aten._reshape_copy", "prims.collapse", "prims.collapse_view", "prims.split_dim"),
    *("aten.squeeze", "aten.unsqueeze", "aten.squeeze_copy", "aten.unsqueeze_copy", "prims.squeeze"),
    *("aten.unflatten", "aten.flatten", "prims.expand_dims"),
)
def reshape(call: Call, x: Any, *arguments: Any, **__: Any) -> Any:
    if all(isinstance(size, int) for size in call.shape):
        return jnp.reshape(x, call.shape)
    return jnp.reshape(x, _dynamic(call, x, arguments))


def _dynamic(call: Call, x: Any, arguments: tuple[Any, ...]) -> Sequence[Any]:
    """The new sizes where PyTorch's are symbols: they follow from the sizes of this call."""
    name = str(call.target)
    if "unsqueeze" in name:
        axis = arguments[0] % (x.ndim + 1)
        return (*x.shape[:axis], 1, *x.shape[axis:])
    if "squeeze" in name:
        axes = arguments[0] if arguments else range(x.ndim)
        dropped = {a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)}
        return [size for axis, size in enumerate(x.shape) if axis not in dropped or size != 1]
    if "collapse" in name:
        start, end = arguments
        return (*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])
    if "split_dim" in name:
        axis, outer = arguments
        return (*x.shape[:axis], outer, x.shape[axis] // outer, *x.shape[axis + 1 :])
    sizes: Sequence[Any] = arguments[0]
    return sizes


@lowers("aten.view.dtype", "prims.view_element_type", "aten.view_copy.dtype")
def bitcast(call: Call, x: Any, dtype: Any) -> Any:
    wanted = dtype_of(dtype)
    if wanted.kind == "c" or x.dtype.kind == "c":
        return _complex_bits(x, wanted)
    if wanted == np.bool_ or x.dtype == np.bool_:
        return x.astype(np.uint8).view(wanted) if wanted != np.bool_ else x != 0
    return x.view(wanted)


def _complex_bits(x: Any, wanted: np.dtype[Any]) -> Any:
    if x.dtype.kind == "c":
        parts = jnp.stack([jnp.real(x), jnp.imag(x)], -1).reshape(*x.shape[:-1], -1)
        return parts if parts.dtype == wanted else parts.view(wanted)
    half = np.dtype(np.float32 if wanted == np.complex64 else np.float64)
    parts = x.view(half).reshape(*x.shape[:-1], -1, 2)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


@lowers("aten.view_as_real", "aten.view_as_real_copy")
def view_as_real(call: Call, x: Any) -> Any:
    return jnp.stack([jnp.real(x), jnp.imag(x)], -1)


@lowers("aten.view_as_complex", "aten.view_as_complex_copy")
def view_as_complex(call: Call, x: Any) -> Any:
    parts = np.finfo(call.dtype).dtype
    return jax.lax.complex(x[..., 0].astype(parts), x[..., 1].astype(parts))


@lowers("aten.permute", "aten.permute_copy", "prims.transpose")
def permute(call: Call, x: Any, dims: Sequence[int]) -> Any:
    return jnp.transpose(x, [d % max(x.ndim, 1) for d in dims])


@lowers("aten.transpose", "aten.transpose_copy")
def transpose(call: Call, x: Any, first: int, second: int) -> Any:
    return jnp.swapaxes(x, first, second) if x.ndim else x


@lowers("aten.t", "aten.t_copy")
def t(call: Call, x: Any) -> Any:
    return x.T


@lowers("aten.expand", "aten.expand_copy")
def expand(call: Call, x: Any, sizes: Sequence[Any], *, implicit: bool = False) -> Any:
    new = len(sizes) - jnp.ndim(x)
    known = [x.shape[axis - new] if isinstance(s, int) and s == -1 else s for axis, s in enumerate(sizes)]
    return jnp.broadcast_to(x, known)


@lowers("prims.broadcast_in_dim")
def broadcast_in_dim(call: Call, x: Any, sizes: Sequence[Any], dims: Sequence[int]) -> Any:
    return jax.lax.broadcast_in_dim(x, sizes, dims)


@lowers("aten.repeat")
def repeat(call: Call, x: Any, times: Sequence[Any]) -> Any:
    return jnp.tile(x, times)


@lowers("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(call: Call, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[_along(x, dim, slice(*_bounds(x.shape[dim], start, end), step))]


def _bounds(size: int, start: Any, end: Any) -> tuple[int, int]:
    first = 0 if start is None else start
    last = size if end is None else end
    first = max(0, first + size) if first < 0 else min(first, size)
    last = max(0, last + size) if last < 0 else min(last, size)
    return first, max(first, last)


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """An index of one axis."""
    return (*[slice(None)] * (dim % max(x.ndim, 1)), index)


@lowers("aten.slice_scatter")
def slice_scatter(
    call: Call, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return x.at[_along(x, dim, slice(*_bounds(x.shape[dim], start, end), step))].set(source)


@lowers("aten.select.int", "aten.select_copy.int")
def select(call: Call, x: Any, dim: int, index: Any) -> Any:
    return jax.lax.index_in_dim(x, index, dim, keepdims=False) if isinstance(index, int) else jnp.take(x, index, dim)


@lowers("aten.select_scatter")
def select_scatter(call: Call, x: Any, source: Any, dim: int, index: Any) -> Any:
    return x.at[_along(x, dim, index)].set(converted(source, x.dtype))


@lowers("aten.cat", "prims.cat", "aten.concatenate")
def cat(call: Call, tensors: Sequence[Any], dim: int = 0) -> Any:
    # An empty tensor of one axis goes with any others.
    rank = max(tensor.ndim for tensor in tensors)
    fitting = [tensor for tensor in tensors if tensor.ndim == rank] or list(tensors)
    return jnp.concatenate([converted(tensor, call.dtype) for tensor in fitting], dim)


@lowers("aten.stack")
def stack(call: Call, tensors: Sequence[Any], dim: int = 0) -> Any:
    return jnp.stack([converted(tensor, call.dtype) for tensor in tensors], dim)


@lowers("aten.split_with_sizes", "aten.split_with_sizes_copy")
def split_with_sizes(call: Call, x: Any, sizes: Sequence[int], dim: int = 0) -> Any:
    return jnp.split(x, np.cumsum(sizes)[:-1].tolist(), dim)


@lowers("aten.split.Tensor", "aten.split_copy.Tensor")
def split(call: Call, x: Any, size: int, dim: int = 0) -> Any:
    if size == 0:
        return [x]
    return [x[_along(x, dim, slice(at, at + size))] for at in range(0, max(x.shape[dim], 1), size)]


@lowers("aten.unbind", "aten.unbind_copy")
def unbind(call: Call, x: Any, dim: int = 0) -> Any:
    return [jax.lax.index_in_dim(x, at, dim, keepdims=False) for at in range(x.shape[dim])]


@lowers("aten.flip", "prims.rev")
def flip(call: Call, x: Any, dims: Sequence[int]) -> Any:
    return jnp.flip(x, tuple(dims)) if x.ndim else x


@lowers("aten.roll")
def roll(call: Call, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    return jnp.roll(x, shifts, tuple(dims)) if dims else jnp.roll(x, sum(shifts))


@lowers("aten.diagonal", "aten.diagonal_copy")
def diagonal(call: Call, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return jnp.diagonal(x, offset, dim1, dim2)


@lowers("aten.constant_pad_nd")
def constant_pad(call: Call, x: Any, widths: Sequence[Any], value: Any = 0) -> Any:
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    config = [(0, 0, 0)] * (x.ndim - len(pairs)) + [(low, high, 0) for low, high in pairs]
    return jax.lax.pad(x, number(value, x.dtype), config)


@lowers("aten.as_strided", "aten.as_strided_copy", "prims.as_strided")
def as_strided(call: Call, x: Any, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Any:
    return x.reshape(-1)[_elements_at(call, sizes, strides, offset)]


def _elements_at(call: Call, sizes: Sequence[int], strides: Sequence[int], offset: int | None) -> np.ndarray[Any, Any]:
    """The numbers of the first argument's elements that a strided view of its memory shows.

    Raises:
        UnsupportedError: it shows memory that is none of the argument's.
    """
    like = call.arguments[0]
    first = like.storage_offset()
    own = strided_positions(like.shape, like.stride(), first).reshape(-1)
    wanted = strided_positions(sizes, strides, first if offset is None else offset)
    order = np.argsort(own, kind="stable")
    found = np.minimum(np.searchsorted(own[order], wanted), max(own.size - 1, 0))
    if wanted.size and (not own.size or (own[order[found]] != wanted).any()):
        raise UnsupportedError("a view by strides of memory that is not the tensor's own")
    return order[found] if wanted.size else wanted


def strided_positions(sizes: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray[Any, Any]:
    """The positions in memory of a strided view's elements."""
    positions = np.array(offset, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        positions = positions[..., None] + np.arange(size) * stride
    return positions


@lowers("aten.as_strided_scatter", "prims.as_strided_scatter")
def as_strided_scatter(
    call: Call, x: Any, source: Any, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Any:
    return x.reshape(-1).at[_elements_at(call, sizes, strides, offset)].set(source).reshape(x.shape)


# --- New tensors.


@lowers("aten.full", "prims.full")
def full(call: Call, sizes: Sequence[Any], value: Any, **_: Any) -> Any:
    return jnp.broadcast_to(_scalar(value, call.dtype), tuple(sizes))


@lowers("aten.full_like", "prims.full_like", "aten.fill", "prims.fill")
def full_like(call: Call, x: Any, value: Any, **_: Any) -> Any:
    return jnp.broadcast_to(_scalar(value, call.dtype), x.shape)


@lowers("aten.new_full")
def new_full(call: Call, x: Any, sizes: Sequence[Any], value: Any, **_: Any) -> Any:
    return jnp.broadcast_to(_scalar(value, call.dtype), tuple(sizes))


def _scalar(value: Any, dtype: Any) -> Any:
    return converted(value, dtype) if hasattr(value, "dtype") else number(value, dtype)


@lowers("aten.scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(call: Call, value: Any, **_: Any) -> Any:
    return _scalar(value, call.dtype)


@lowers("aten.empty", "aten.zeros", "prims.empty_strided", "aten.empty_strided", "prims.empty_permuted", "prims.empty")
def zeros(call: Call, sizes: Sequence[Any], *_: Any, **__: Any) -> Any:
    return jnp.zeros(tuple(sizes), call.dtype)


@lowers("aten.empty_permuted")
def empty_permuted(call: Call, sizes: Sequence[Any], *_: Any, **__: Any) -> Any:
    return jnp.zeros(tuple(sizes), call.dtype)


@lowers("aten.ones")
def ones(call: Call, sizes: Sequence[Any], **_: Any) -> Any:
    return jnp.ones(tuple(sizes), call.dtype)


@lowers("aten.zeros_like", "aten.empty_like")
def zeros_like(call: Call, x: Any, **_: Any) -> Any:
    return jnp.zeros(x.shape, call.dtype)


@lowers("aten.ones_like")
def ones_like(call: Call, x: Any, **_: Any) -> Any:
    return jnp.ones(x.shape, call.dtype)


@lowers(*(f"aten.replication_pad{rank}d_backward" for rank in (1, 2, 3)))
def replication_pad_backward(call: Call, gradient: Any, x: Any, padding: Sequence[int]) -> Any:
    def padded(x: Any) -> Any:
        for axis in range(1, len(padding) // 2 + 1):
            low, high = padding[2 * axis - 2 : 2 * axis]
            places = np.clip(np.arange(-low, x.shape[-axis] + high), 0, x.shape[-axis] - 1)
            x = jnp.take(x, places, x.ndim - axis)
        return x

    return jax.vjp(padded, x)[1](gradient)[0]


@lowers("aten._new_zeros_with_same_feature_meta", "aten._efficientzerotensor")
def zeros_as_declared(call: Call, *_: Any, **__: Any) -> Any:
    return jnp.zeros(call.shape, call.dtype)


@lowers("aten.new_zeros", "aten.new_empty", "aten.new_empty_strided")
def new_zeros(call: Call, x: Any, sizes: Sequence[Any], *_: Any, **__: Any) -> Any:
    return jnp.zeros(tuple(sizes), call.dtype)


@lowers("aten.new_ones")
def new_ones(call: Call, x: Any, sizes: Sequence[Any], **_: Any) -> Any:
    return jnp.ones(tuple(sizes), call.dtype)


@lowers("prims.iota")
def iota(call: Call, length: Any, *, start: Any, step: Any, **_: Any) -> Any:
    return jnp.arange(length, dtype=call.dtype) * number(step, call.dtype) + number(start, call.dtype)


@lowers("aten.arange.start_step")
def arange(call: Call, start: Any, end: Any, step: Any = 1, **_: Any) -> Any:
    count = max(0, int(np.ceil((end - start) / step)))
    dtype = np.promote_types(call.dtype, np.float32) if call.dtype.kind in "fV" else np.dtype(np.int64)
    return number(start, dtype) + jnp.arange(count, dtype=dtype) * number(step, dtype)


@lowers("aten.sym_size.int")
def sym_size(call: Call, x: Any, dim: int) -> Any:
    return x.shape[dim]


@lowers("aten.sym_numel")
def sym_numel(call: Call, x: Any) -> Any:
    return x.size


@lowers("aten.sym_stride.int")
def sym_stride(call: Call, x: Any, dim: int) -> Any:
    return int(np.prod(x.shape[dim + 1 :]))


@lowers("aten.sym_storage_offset")
def sym_storage_offset(call: Call, x: Any) -> Any:
    return 0


@lowers("aten._assert_scalar", "aten._assert_async")
def asserted(call: Call, condition: Any, message: str = "an assertion of the module does not hold") -> None:
    """An error of the call, which the host raises where only the call knows the condition."""
    if condition is not True:
        platform.require(jnp.asarray(condition).reshape(()) != 0, message)


@lowers("aten._assert_tensor_metadata", "aten.sym_constrain_range")
def nothing(call: Call, *_: Any, **__: Any) -> None:
    return None


lowers("aten.sym_constrain_range_for_size")(nothing)


@lowers("aten.diagonal_scatter")
def diagonal_scatter(call: Call, x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    rows = np.arange(source.shape[-1]) + max(-offset, 0)
    columns = np.arange(source.shape[-1]) + max(offset, 0)
    return jnp.moveaxis(moved.at[..., rows, columns].set(source), (-2, -1), (dim1, dim2))


@lowers("aten._local_scalar_dense", "prims.item")
def item(call: Call, x: Any) -> Any:
    """A number of the program's run: good for arithmetic, no size."""
    return x.reshape(())


@lowers("aten.repeat_interleave.self_int")
def repeat_interleave(call: Call, x: Any, repeats: int, dim: int | None = None, **_: Any) -> Any:
    return jnp.repeat(x, repeats, dim)


@lowers("aten.tril", "aten.triu")
def triangle(call: Call, x: Any, diagonal: int = 0) -> Any:
    return (jnp.tril if "tril" in str(call.target) else jnp.triu)(x, diagonal)


@lowers("aten.unfold", "aten.unfold_copy")
def unfold(call: Call, x: Any, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return jnp.broadcast_to(x, (size,))
    starts = np.arange((x.shape[dim] - size) // step + 1) * step
    places = starts[:, None] + np.arange(size)
    return jnp.moveaxis(jnp.take(x, places, dim), dim % x.ndim + 1, -1)


@lowers("aten.resize")
def resize(call: Call, x: Any, sizes: Sequence[int], **_: Any) -> Any:
    count = int(np.prod(sizes))
    flat = x.reshape(-1)[:count]
    return jnp.pad(flat, (0, count - flat.shape[0])).reshape(tuple(sizes))
