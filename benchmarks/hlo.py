"""What the cases are written in, as XLA's operations; ``benchmarks.eager`` has the same names for PyTorch.

A case is a function of one argument, ``nn``: an ``Hlo`` builds its program, an ``Eager`` runs it at once. Arrays have
Python's arithmetic and basic indexing in both; nothing is broadcast but numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import hloforge
from hloforge import Value, ops
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import leaves

LOWEST = float("-inf")


class Hlo:
    """Builds a program.

    Attributes:
        limits: for integer parameters, by number: random values lie below.
    """

    def __init__(self, builder: hloforge.Builder) -> None:
        self._builder = builder
        self._count = 0
        self.limits: dict[int, int] = {}

    def new(self, shape: str, below: int | None = None) -> Value:
        """The next parameter, of a shape in XLA's text; the elements of integers may be limited."""
        if below is not None:
            self.limits[self._count] = below
        self._count += 1
        return self._builder.parameter(self._count - 1, shape, f"p{self._count - 1}")

    # Arrays out of nothing.
    def full(self, number: float, shape: str) -> Value:
        parsed = Shape.parse(shape)
        return ops.broadcast_in_dim(ops.constant(number, parsed.element), parsed.dimensions, ())

    def one_hot(self, labels: Value, classes: int) -> Value:
        """``[n]`` integers to ``[n, classes]`` of f32."""
        dims = [*labels.dims, classes]
        places = ops.iota("s32", dims, len(dims) - 1)
        return self.cast(places.eq(ops.broadcast_in_dim(labels, dims, range(labels.rank))), "f32")

    # Shapes.
    def reshape(self, x: Value, *dims: int) -> Value:
        return ops.reshape(x, dims)

    def transpose(self, x: Value, *order: int) -> Value:
        return ops.transpose(x, order)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        return ops.concat_in_dim(parts, axis % parts[0].rank)

    def pad(self, x: Value, *edges: tuple[int, int]) -> Value:
        return ops.pad(x, 0.0, edges)

    def along(self, vector: Value, like: Value, axis: int) -> Value:
        """A vector as an array of the size of another one, along one of its dimensions."""
        return ops.broadcast_in_dim(vector, like.dims, [axis % like.rank])

    def spread(self, reduced: Value, like: Value, *axes: int) -> Value:
        """What a reduction over some dimensions of an array left, repeated along them."""
        return ops.broadcast_in_dim(reduced, like.dims, [d for d in range(like.rank) if d not in _places(like, axes)])

    def cast(self, x: Value, element: str) -> Value:
        return ops.convert_element_type(x, element)

    # Element by element.
    exp = staticmethod(ops.exp)
    log = staticmethod(ops.log)
    sin = staticmethod(ops.sin)
    tanh = staticmethod(ops.tanh)
    sqrt = staticmethod(ops.sqrt)
    abs = staticmethod(ops.abs)
    sigmoid = staticmethod(ops.logistic)
    where = staticmethod(ops.select)

    def relu(self, x: Value) -> Value:
        return ops.max(x, 0.0)

    def silu(self, x: Value) -> Value:
        return x * ops.logistic(x)

    def gelu(self, x: Value) -> Value:
        """By the error function."""
        return x * 0.5 * (ops.erf(x * 0.5**0.5) + 1.0)

    # Products.
    def matmul(self, a: Value, b: Value, *, transposed: bool = False, out: str | None = None) -> Value:
        """``[..., m, k]`` by ``[..., k, n]``, or by ``[..., n, k]`` if that is transposed; or by a vector."""
        batch = list(range(a.rank - 2)) if b.rank > 2 else []
        contracted = b.rank - 1 if transposed or b.rank == 1 else b.rank - 2
        numbers = ops.DotDimensionNumbers([a.rank - 1], [contracted], batch, batch)
        return ops.dot_general(a, b, numbers, preferred_element_type=out)

    def dense(self, x: Value, weights: Value, bias: Value) -> Value:
        product = self.matmul(x, weights)
        return product + self.along(bias, product, -1)

    def attention(self, q: Value, k: Value, v: Value, *, causal: bool = False) -> Value:
        """Queries, keys and values ``[..., n, d]``; if causal, keys after the query do not count."""
        scores = self.matmul(q, k, transposed=True) * q.dims[-1] ** -0.5
        if causal:
            rank = scores.rank
            late = ops.iota("s32", scores.dims, rank - 1) > ops.iota("s32", scores.dims, rank - 2)
            scores = ops.select(late, ops.broadcast(ops.constant(-1e9, scores.element_type), scores.dims), scores)
        return self.matmul(self.softmax(scores), v)

    def conv(
        self,
        x: Value,
        kernel: Value,
        *,
        stride: int = 1,
        padding: tuple[int, int] = (0, 0),
        dilation: int = 1,
        groups: int = 1,
        layout: str = "NHWC",
    ) -> Value:
        """Two spatial dimensions; the kernel is HWIO for NHWC and OIHW for NCHW."""
        numbers = "b01f_01io->b01f" if layout == "NHWC" else "bf01_oi01->bf01"
        return ops.conv_with_general_padding(
            x,
            kernel,
            [stride] * 2,
            [padding] * 2,
            rhs_dilation=[dilation] * 2,
            feature_group_count=groups,
            dimension_numbers=numbers,
        )

    def conv_transpose(self, x: Value, kernel: Value, stride: int, padding: tuple[int, int] = (0, 0)) -> Value:
        """NHWC, the gradient of a strided convolution by its image: the kernel is ``[size, size, outputs, inputs]``.

        Args:
            padding: what of the full result is cut off before and behind each dimension of space; negative for zeros.
        """
        before, after = (kernel.dims[0] - 1 - cut for cut in padding)
        return ops.conv_with_general_padding(
            x,
            ops.rev(kernel, [0, 1]),
            [1, 1],
            [(before, after)] * 2,
            lhs_dilation=[stride] * 2,
            dimension_numbers="b01f_01oi->b01f",
        )

    # Reductions and windows.
    def sum(self, x: Value, *axes: int) -> Value:
        return ops.reduce(x, 0, ops.add, _places(x, axes))

    def max(self, x: Value, *axes: int) -> Value:
        return ops.reduce(x, LOWEST, ops.max, _places(x, axes))

    def mean(self, x: Value, *axes: int) -> Value:
        return self.sum(x, *axes) * (1.0 / prod(x.dims[d] for d in _places(x, axes)))

    def argmax(self, x: Value, axis: int) -> Value:
        (place,) = _places(x, (axis,))

        def better(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
            first = a >= b
            return ops.select(first, a, b), ops.select(first, i, j)

        return leaves(ops.reduce([x, ops.iota("s32", x.dims, place)], [LOWEST, 0], better, [place]))[1]

    def cumsum(self, x: Value) -> Value:
        """Along the last dimension, as a window."""
        ones, size = [1] * (x.rank - 1), x.dims[-1]
        return ops.reduce_window(x, 0.0, ops.add, [*ones, size], padding=[*([(0, 0)] * (x.rank - 1)), (size - 1, 0)])

    def max_pool(self, x: Value, size: int, stride: int, padding: tuple[int, int] = (0, 0)) -> Value:
        """NHWC."""
        edges = [(0, 0), padding, padding, (0, 0)]
        return ops.reduce_window(x, LOWEST, ops.max, [1, size, size, 1], [1, stride, stride, 1], edges)

    def max_pool_gradient(self, x: Value, source: Value, size: int, stride: int, padding: tuple[int, int]) -> Value:
        """NHWC: what of ``source`` reaches each element of ``x`` through a max-pool."""
        edges = [(0, 0), padding, padding, (0, 0)]
        return ops.select_and_scatter(
            x, ops.ge, [1, size, size, 1], [1, stride, stride, 1], edges, source, 0.0, ops.add
        )

    # Normalization, along the last dimension if nothing else is said.
    def softmax(self, x: Value) -> Value:
        e = ops.exp(x - self.spread(self.max(x, -1), x, -1))
        return e / self.spread(self.sum(e, -1), x, -1)

    def log_softmax(self, x: Value) -> Value:
        shifted = x - self.spread(self.max(x, -1), x, -1)
        return shifted - self.spread(ops.log(self.sum(ops.exp(shifted), -1)), x, -1)

    def layer_norm(self, x: Value, scale: Value, offset: Value) -> Value:
        centred = x - self.spread(self.mean(x, -1), x, -1)
        factor = ops.rsqrt(self.mean(centred * centred, -1) + 1e-5)
        return centred * self.spread(factor, x, -1) * self.along(scale, x, -1) + self.along(offset, x, -1)

    def rms_norm(self, x: Value, scale: Value) -> Value:
        factor = ops.rsqrt(self.mean(x * x, -1) + 1e-5)
        return x * self.spread(factor, x, -1) * self.along(scale, x, -1)

    def batch_norm(self, x: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
        """Inference, features last."""
        return ops.batch_norm_inference(x, scale, offset, mean, variance, 1e-5, -1)

    def batch_norm_training(self, x: Value, scale: Value, offset: Value) -> Value:
        """Features last."""
        return ops.batch_norm_training(x, scale, offset, 1e-5, -1)[0]

    def group_norm(self, x: Value, scale: Value, offset: Value, groups: int) -> Value:
        """NHWC."""
        n, height, width, features = x.dims
        parts = ops.reshape(x, [n, height, width, groups, features // groups])
        axes = (1, 2, 4)
        centred = parts - self.spread(self.mean(parts, *axes), parts, *axes)
        factor = ops.rsqrt(self.mean(centred * centred, *axes) + 1e-5)
        normal = ops.reshape(centred * self.spread(factor, parts, *axes), x.dims)
        return normal * self.along(scale, x, -1) + self.along(offset, x, -1)

    # Places known at run time.
    def take(self, table: Value, rows: Value) -> Value:
        """``table[rows]`` for ``[n]`` integers."""
        window = [1, *table.dims[1:]]
        numbers = ops.GatherDimensionNumbers(range(1, table.rank), [0], [0], 1)
        return ops.gather(table, ops.reshape(rows, [*rows.dims, 1]), numbers, window)

    def scatter_add(self, table: Value, rows: Value, updates: Value) -> Value:
        numbers = ops.ScatterDimensionNumbers(range(1, table.rank), [0], [0], 1)
        return ops.scatter(table, ops.reshape(rows, [*rows.dims, 1]), updates, ops.add, numbers)

    def row(self, x: Value, number: Any) -> Value:
        """``x[number]``."""
        return x[number]

    def put_row(self, x: Value, number: Any, row: Value) -> Value:
        """``x`` with ``x[number]`` replaced."""
        starts = [number, *([0] * (x.rank - 1))]
        return ops.dynamic_update_slice(x, ops.reshape(row, [1, *row.dims]), starts)

    # Order.
    def sort(self, x: Value) -> Value:
        return ops.sort(x, is_stable=True)

    def argsort(self, x: Value) -> Value:
        return self.sort_pairs(x, ops.iota("s32", x.dims, x.rank - 1))[1]

    def sort_pairs(self, keys: Value, values: Value) -> tuple[Value, Value]:
        first, second = leaves(ops.sort([keys, values], lambda a, b, *_: a < b, is_stable=True))
        return first, second

    def top_k(self, x: Value, k: int) -> tuple[Value, Value]:
        values, places = leaves(ops.top_k(x, k))
        return values, places

    def fft(self, x: Value, axes: int = 1) -> Value:
        return ops.fft(x, "FFT", x.dims[-axes:])

    # Loops.
    def loop(self, count: int, body: Callable[..., Sequence[Value]], *init: Value) -> list[Value]:
        """``count`` turns of ``body(number, *values)``."""
        return for_loop(count, init, body)

    def while_(self, more: Callable[..., Value], body: Callable[..., Sequence[Value]], *init: Any) -> list[Value]:
        return leaves(ops.while_(more, body, list(init)))

    def scalar(self, number: float, element: str) -> Value:
        return ops.constant(number, element)

    def zeros(self, *dims: int, element: str = "f32") -> Value:
        return zeros(element, dims)


def _places(x: Value, axes: Sequence[int]) -> list[int]:
    """Dimension numbers; all of them where none is named."""
    return sorted(axis % x.rank for axis in axes or range(x.rank))


def text_of(body: Callable[[Any], Any]) -> tuple[str, dict[int, int]]:
    """A case's StableHLO, and the limits of its integer parameters."""
    with hloforge.Builder("main") as builder:
        nn = Hlo(builder)
        result = body(nn)
        return builder.build(tuple(result) if isinstance(result, list) else result).text(), nn.limits
