"""The cases' words in PyTorch, run at once: the optional engine of the extra ``bench``.

Functions that PyTorch has as such (softmax, normalization, attention's parts) are called as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

_TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "s32": torch.int32}


def tensor(array: np.ndarray[Any, Any]) -> Any:
    """A copy of an array; bfloat16 goes by its bits."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def array(value: Any) -> np.ndarray[Any, Any]:
    """A tensor, or a number, as an array; bfloat16 as float32."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    return np.asarray((value.float() if value.dtype is torch.bfloat16 else value).contiguous().numpy())


class Eager:
    """Runs a case on given tensors; ``benchmarks.hlo.Hlo`` says what each word means.

    Weights are kept in the form that PyTorch's convolutions read, as a user's module would hold them.
    """

    def __init__(self, arguments: Sequence[np.ndarray[Any, Any]]) -> None:
        self._arguments = [tensor(argument) for argument in arguments]
        self._kernels: dict[int, Any] = {}
        self._next = 0

    def run(self, body: Callable[[Any], Any]) -> list[Any]:
        self._next = 0
        with torch.inference_mode():
            found = body(self)
        return list(found) if isinstance(found, list | tuple) else [found]

    def new(self, shape: str, below: int | None = None) -> Any:
        self._next += 1
        return self._arguments[self._next - 1]

    def full(self, number: float, shape: str) -> Any:
        element, _, dims = shape.rstrip("]").partition("[")
        return torch.full([int(size) for size in dims.split(",") if size], number, dtype=_TYPES[element])

    def one_hot(self, labels: Any, classes: int) -> Any:
        return functional.one_hot(labels.long(), classes).float()

    def reshape(self, x: Any, *dims: int) -> Any:
        return x.reshape(dims)

    def transpose(self, x: Any, *order: int) -> Any:
        return x.permute(order)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        return torch.cat(list(parts), axis)

    def pad(self, x: Any, *edges: tuple[int, int]) -> Any:
        return functional.pad(x, [size for edge in reversed(edges) for size in edge])

    def along(self, vector: Any, like: Any, axis: int) -> Any:
        dims = [1] * like.ndim
        dims[axis] = -1
        return vector.reshape(dims)

    def spread(self, reduced: Any, like: Any, *axes: int) -> Any:
        for place in sorted(axis % like.ndim for axis in axes or range(like.ndim)):
            reduced = reduced.unsqueeze(place)
        return reduced

    def cast(self, x: Any, element: str) -> Any:
        return x.to(_TYPES[element])

    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    sin = staticmethod(torch.sin)
    tanh = staticmethod(torch.tanh)
    sqrt = staticmethod(torch.sqrt)
    abs = staticmethod(torch.abs)
    sigmoid = staticmethod(torch.sigmoid)
    where = staticmethod(torch.where)
    relu = staticmethod(torch.relu)
    silu = staticmethod(functional.silu)
    gelu = staticmethod(functional.gelu)

    def matmul(self, a: Any, b: Any, *, transposed: bool = False, out: str | None = None) -> Any:
        right = b.mT if transposed else b
        if a.dtype is torch.int8:
            return torch._int_mm(a, right)
        return a @ right

    def dense(self, x: Any, weights: Any, bias: Any) -> Any:
        return torch.addmm(bias, x, weights) if x.ndim == 2 else x @ weights + bias

    def attention(self, q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def conv(
        self,
        x: Any,
        kernel: Any,
        *,
        stride: int = 1,
        padding: tuple[int, int] = (0, 0),
        dilation: int = 1,
        groups: int = 1,
        layout: str = "NHWC",
    ) -> Any:
        if padding[0] != padding[1]:
            spatial = ((0, 0), padding, padding, (0, 0)) if layout == "NHWC" else ((0, 0), (0, 0), padding, padding)
            x, padding = self.pad(x, *spatial), (0, 0)
        if layout == "NCHW":
            return functional.conv2d(x, kernel, None, stride, padding[0], dilation, groups)
        if id(kernel) not in self._kernels:
            self._kernels[id(kernel)] = kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        weights = self._kernels[id(kernel)]
        result = functional.conv2d(x.permute(0, 3, 1, 2), weights, None, stride, padding[0], dilation, groups)
        return result.permute(0, 2, 3, 1)

    def conv_transpose(self, x: Any, kernel: Any, stride: int, padding: tuple[int, int] = (0, 0)) -> Any:
        before, after = padding
        image, weights = x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1)
        result = functional.conv_transpose2d(image, weights, None, stride, before, before - after)
        return result.permute(0, 2, 3, 1)

    def sum(self, x: Any, *axes: int) -> Any:
        return x.sum(axes or None)

    def max(self, x: Any, *axes: int) -> Any:
        return x.amax(axes)

    def mean(self, x: Any, *axes: int) -> Any:
        return x.mean(axes or None)

    def argmax(self, x: Any, axis: int) -> Any:
        return x.argmax(axis)

    def cumsum(self, x: Any) -> Any:
        return x.cumsum(-1)

    def max_pool(self, x: Any, size: int, stride: int, padding: tuple[int, int] = (0, 0)) -> Any:
        return functional.max_pool2d(x.permute(0, 3, 1, 2), size, stride, padding[0]).permute(0, 2, 3, 1)

    def max_pool_gradient(self, x: Any, source: Any, size: int, stride: int, padding: tuple[int, int]) -> Any:
        images = x.permute(0, 3, 1, 2)
        _, places = functional.max_pool2d(images, size, stride, padding[0], return_indices=True)
        back = torch.ops.aten.max_pool2d_with_indices_backward
        gradient = source.permute(0, 3, 1, 2)
        window = ([size] * 2, [stride] * 2, [padding[0]] * 2, [1, 1], False)
        return back(gradient, images, *window, places).permute(0, 2, 3, 1)

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def log_softmax(self, x: Any) -> Any:
        return x.log_softmax(-1)

    def layer_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        return functional.layer_norm(x, scale.shape, scale, offset, 1e-5)

    def rms_norm(self, x: Any, scale: Any) -> Any:
        return functional.rms_norm(x, scale.shape, scale, 1e-5)

    def batch_norm(self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        last = x.ndim - 1
        moved = functional.batch_norm(x.movedim(last, 1), mean, variance, scale, offset, False, 0.0, 1e-5)
        return moved.movedim(1, last)

    def batch_norm_training(self, x: Any, scale: Any, offset: Any) -> Any:
        last = x.ndim - 1
        moved = functional.batch_norm(x.movedim(last, 1), None, None, scale, offset, True, 0.0, 1e-5)
        return moved.movedim(1, last)

    def group_norm(self, x: Any, scale: Any, offset: Any, groups: int) -> Any:
        return functional.group_norm(x.permute(0, 3, 1, 2), groups, scale, offset, 1e-5).permute(0, 2, 3, 1)

    def take(self, table: Any, rows: Any) -> Any:
        return table.index_select(0, rows)

    def scatter_add(self, table: Any, rows: Any, updates: Any) -> Any:
        return table.index_add(0, rows, updates)

    def row(self, x: Any, number: Any) -> Any:
        return x[number]

    def put_row(self, x: Any, number: Any, row: Any) -> Any:
        x[number] = row
        return x

    def sort(self, x: Any) -> Any:
        return x.sort(stable=True).values

    def argsort(self, x: Any) -> Any:
        return x.argsort(stable=True)

    def sort_pairs(self, keys: Any, values: Any) -> tuple[Any, Any]:
        ordered, places = keys.sort(stable=True)
        return ordered, values[places]

    def top_k(self, x: Any, k: int) -> tuple[Any, Any]:
        found = x.topk(k)
        return found.values, found.indices

    def fft(self, x: Any, axes: int = 1) -> Any:
        return torch.fft.fftn(x, dim=tuple(range(-axes, 0)))

    def loop(self, count: int, body: Callable[..., Sequence[Any]], *init: Any) -> list[Any]:
        values = [value.clone() for value in init]
        for number in range(count):
            values = list(body(number, *values))
        return values

    def while_(self, more: Callable[..., Any], body: Callable[..., Sequence[Any]], *init: Any) -> list[Any]:
        values = list(init)
        while more(*values):
            values = list(body(*values))
        return values

    def scalar(self, number: float, element: str) -> Any:
        return number

    def zeros(self, *dims: int, element: str = "f32") -> Any:
        return torch.zeros(dims, dtype=_TYPES[element])
