"""What each operation says of the sizes of its operands and results, and its attributes for other sizes.

A rule states which sizes are equal and which equations hold (``shrink_sizes.py``), and leaves a function that writes
the attributes that hold sizes, once all are decided. Source: the shape rules of the StableHLO specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import i64, i64_matrix, i64s
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import blocks, integer, integers, string_attribute
from hloforge.dialect.traits import ELEMENTWISE, QUANTIZATIONS, keeps_shape
from hloforge.tools.shrink_sizes import (
    Equation,
    Function,
    Known,
    Part,
    Product,
    Size,
    Sum,
    System,
    decide,
    refusal,
    unite,
)

Sizes: TypeAlias = list[Size]

# Where a custom call may hold sizes. A number of 8 bits is a letter of LAPACK's (``side = 76 : ui8``).
_SETTINGS = ("backend_config", "mhlo.backend_config")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])(?! : u?i8\b)")
# Repeats the sizes, for the partitioner alone.
_SHARDING_RULE = "sdy.sharding_rule"


class Shapes:
    """The sizes of all values of a program, with their equations and what is to be written afterwards."""

    def __init__(self) -> None:
        self.system = System()
        self.of_value: dict[Any, Sizes] = {}
        self.results: dict[str, list[Sizes]] = {}
        self.functions: dict[str, ir.Block] = {}
        self.writers: list[Callable[[], None]] = []

    def of(self, value: Any) -> Sizes:
        """The sizes of a value; none of what is no array."""
        if value not in self.of_value:
            shape = value.type.shape if isinstance(value.type, ir.RankedTensorType) else ()
            self.of_value[value] = [Size(size) for size in shape]
        return self.of_value[value]

    def equal(self, op: ir.Operation, *values: Any) -> None:
        """All dimensions of some values are equal, of those that have a rank as the first."""
        first = self.of(values[0])
        for value in values[1:]:
            self.match(op, first, self.of(value))

    def match(self, op: ir.Operation, left: Sizes, right: Sizes) -> None:
        """Sizes are equal one by one, as far as they are in the given program."""
        if len(left) == len(right):
            for one, other in zip(left, right, strict=True):
                if one.old == other.old:
                    unite(one, other, op)

    def add(self, equation: Equation) -> None:
        self.system.equations.append(equation)

    def write(self, op: ir.Operation, name: str, make: Callable[[], ir.Attribute]) -> None:
        """Set an attribute once the sizes are known."""

        def set_attribute() -> None:
            op.attributes[name] = make()

        self.writers.append(set_attribute)


Rule: TypeAlias = Callable[[ir.Operation, Shapes], None]


def _all_equal(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, *op.results, *op.operands)


def _pairs(op: ir.Operation, shapes: Shapes) -> None:
    for operand, result in zip(op.operands, op.results, strict=False):
        shapes.equal(op, result, operand)


def _nothing(op: ir.Operation, shapes: Shapes) -> None:
    """Its sizes are of its own."""


def _elementwise(op: ir.Operation, shapes: Shapes) -> None:
    if keeps_shape(op) or op.name != "stablehlo.bitcast_convert":
        return _all_equal(op, shapes)
    operand, result = shapes.of(op.operands[0]), shapes.of(op.results[0])
    rank = min(len(operand), len(result))
    return shapes.match(op, operand[:rank], result[:rank])


def _broadcast(op: ir.Operation, shapes: Shapes) -> None:
    result = shapes.of(op.results[0])
    shapes.match(op, shapes.of(op.operands[0]), [result[number] for number in integers(op, "broadcast_dimensions")])


def _transpose(op: ir.Operation, shapes: Shapes) -> None:
    operand = shapes.of(op.operands[0])
    shapes.match(op, shapes.of(op.results[0]), [operand[number] for number in integers(op, "permutation")])


def _reshape(op: ir.Operation, shapes: Shapes) -> None:
    sides = [[size for size in shapes.of(value) if size.old != 1] for value in (op.operands[0], op.results[0])]
    if any(size.old <= 0 for side in sides for size in side):
        return shapes.match(op, shapes.of(op.operands[0]), shapes.of(op.results[0]))
    left, right = (iter(side) for side in sides)
    for one, other in _groups(left, right):
        if len(one) == len(other) == 1:
            unite(one[0], other[0], op)
        else:
            shapes.add(Product(op, one, other))
    return None


def _groups(left: Iterator[Size], right: Iterator[Size]) -> Iterator[tuple[Sizes, Sizes]]:
    """The shortest runs of both sides with equal products."""
    for first in left:
        one, other, product, target = [first], [next(right)], first.old, 0
        target = other[0].old
        while product != target:
            if product < target:
                one.append(next(left))
                product *= one[-1].old
            else:
                other.append(next(right))
                target *= other[-1].old
        yield one, other


def _concatenate(op: ir.Operation, shapes: Shapes) -> None:
    axis, result = integer(op, "dimension"), shapes.of(op.results[0])
    operands = [shapes.of(operand) for operand in op.operands]
    for operand in operands:
        shapes.match(op, _without(operand, [axis]), _without(result, [axis]))
    shapes.add(Sum(op, [operand[axis] for operand in operands], result[axis]))


def _without(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    return [size for number, size in enumerate(sizes) if number not in numbers]


def _scaled(number: int, old: int, new: int) -> int | None:
    """A position in the same proportion; None where that is no integer."""
    return number * new // old if old and number * new % old == 0 else None


def _anchored(number: int, old: int, new: int) -> int:
    """A position at the same distance from the nearer end."""
    return number if number <= old // 2 else new - (old - number)


def _bounds(start: int, limit: int, old: int, new: int) -> tuple[int, int]:
    """Where a slice of a dimension lies in one of another size."""
    scaled = _scaled(start, old, new), _scaled(limit, old, new)
    if scaled[0] is not None and scaled[1] is not None:
        return scaled[0], scaled[1]
    return _anchored(start, old, new), _anchored(limit, old, new)


def _slice(op: ir.Operation, shapes: Shapes) -> None:
    starts, limits, strides = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    rows = list(zip(shapes.of(op.operands[0]), shapes.of(op.results[0]), starts, limits, strides, strict=True))
    for whole, part, start, limit, stride in rows:
        if part.old == whole.old:
            unite(whole, part, op)
            continue

        least = min(part.old, 1)

        def usual(
            old: int, new: int, start: int = start, limit: int = limit, stride: int = stride, least: int = least
        ) -> int:
            first, end = _bounds(start, limit, old, new)
            return max(-(-(end - first) // stride), least)

        shapes.add(Part(op, whole, part, usual))

    def ranges() -> list[tuple[int, int]]:
        found = []
        for whole, part, start, limit, stride in rows:
            old, new, length = whole.root().old, whole.value(), (part.value() - 1) * stride + 1 if part.value() else 0
            if old == new and part.value() == part.root().old:
                found.append((start, limit))
                continue
            if length > new:
                raise refusal(f"a slice of {part.value()} with stride {stride} exceeds the size {new}", op)
            first = min(max(_bounds(start, limit, old, new)[0], 0), new - length)
            # What a stride left over behind the last element is kept, if it fits.
            over = limit - start - ((part.root().old - 1) * stride + 1)
            found.append((first, min(first + length + over, new)))
        return found

    shapes.write(op, "start_indices", lambda: i64s(first for first, _ in ranges()))
    shapes.write(op, "limit_indices", lambda: i64s(end for _, end in ranges()))


def _usual_window(old: int) -> Callable[[int, int], int]:
    """The size of what is read at a computed position: one stays one, others keep their proportion if they can."""

    def usual(whole: int, new: int) -> int:
        scaled = _scaled(old, whole, new)
        return min(old, new) if old <= 1 or scaled is None else scaled

    return usual


def _window(op: ir.Operation, shapes: Shapes, whole: Sizes, part: Sizes) -> None:
    """Each size is equal to, or a part of, one of the whole."""
    for outer, inner in zip(whole, part, strict=True):
        if outer.old == inner.old:
            unite(outer, inner, op)
        else:
            shapes.add(Part(op, outer, inner, _usual_window(inner.old)))


def _dynamic_slice(op: ir.Operation, shapes: Shapes) -> None:
    result = shapes.of(op.results[0])
    _window(op, shapes, shapes.of(op.operands[0]), result)
    shapes.write(op, "slice_sizes", lambda: i64s(size.value() for size in result))


def _dynamic_update_slice(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, op.results[0], op.operands[0])
    _window(op, shapes, shapes.of(op.results[0]), shapes.of(op.operands[1]))


def _pad(op: ir.Operation, shapes: Shapes) -> None:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (integers(op, name) for name in names)
    rows = list(zip(shapes.of(op.operands[0]), shapes.of(op.results[0]), low, high, interior, strict=True))
    for inner, outer, before, after, between in rows:
        if inner.old == outer.old and before == after == between == 0:
            unite(inner, outer, op)
        else:
            shapes.add(_Padded(op, inner, outer, before, after, between))

    def borders() -> list[tuple[int, int]]:
        found = []
        for inner, outer, before, after, between in rows:
            length = _dilated(inner.value(), between + 1)
            scaled = _scaled(before, outer.root().old, outer.value())
            if outer.value() - length == before + after or scaled is None:
                first = before if before <= outer.value() - length or before < 0 else outer.value() - length - after
            else:
                first = scaled
            found.append((first, outer.value() - length - first))
        return found

    shapes.write(op, names[0], lambda: i64s(first for first, _ in borders()))
    shapes.write(op, names[1], lambda: i64s(last for _, last in borders()))


class _Padded(Equation):
    """A size between two borders, which follow both sizes."""

    def __init__(self, op: ir.Operation, inner: Size, outer: Size, before: int, after: int, between: int) -> None:
        super().__init__(op)
        self.inner, self.outer, self.borders, self.step = inner, outer, before + after, between + 1

    def sizes(self) -> Sizes:
        return [self.inner, self.outer]

    def choose(self, known: Known) -> None:
        old = self.outer.root().old
        if self.outer.is_open():
            scaled = _scaled(old, self.inner.root().old, self.inner.value())
            # A part of a whole stays in its proportion, as of slices; a border of a few elements keeps its width.
            is_part = scaled is not None and 2 * self.inner.root().old <= old and self.inner.root().old > 1
            new = _dilated(self.inner.value(), self.step) + self.borders
            self._decide(self.outer, scaled if is_part and scaled is not None else new)
        elif self.inner.is_open() and self.step == 1:
            scaled = _scaled(self.inner.root().old, old, self.outer.value())
            new = self.outer.value() - self.borders if scaled is None else scaled
            if new > 0:
                self._decide(self.inner, new)

    def _decide(self, size: Size, new: int) -> None:
        decide(size, new, "by a padding", self.op)


def _dilated(size: int, step: int) -> int:
    return (size - 1) * step + 1 if size > 0 else 0


def _gather(op: ir.Operation, shapes: Shapes) -> None:
    numbers: Any = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices, result = shapes.of(op.operands[0]), shapes.of(op.operands[1]), shapes.of(op.results[0])
    batching = list(numbers.operand_batching_dims)
    left_out = [*numbers.collapsed_slice_dims, *batching]
    windowed = [number for number in range(len(operand)) if number not in left_out]
    _window(op, shapes, [operand[n] for n in windowed], [result[n] for n in numbers.offset_dims])
    shapes.match(op, _without(indices, [numbers.index_vector_dim]), _without(result, list(numbers.offset_dims)))
    shapes.match(op, [operand[n] for n in batching], [indices[n] for n in numbers.start_indices_batching_dims])
    sizes = integers(op, "slice_sizes")

    def slice_sizes() -> ir.Attribute:
        new = list(sizes)
        for place, number in zip(windowed, numbers.offset_dims, strict=True):
            new[place] = result[number].value()
        return i64s(new)

    shapes.write(op, "slice_sizes", slice_sizes)


def _scatter(op: ir.Operation, shapes: Shapes) -> None:
    numbers: Any = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = len(op.results)
    inputs, indices, updates = op.operands[:count], shapes.of(op.operands[count]), op.operands[count + 1 :]
    batching = list(numbers.input_batching_dims)
    for result, given, update in zip(op.results, inputs, updates, strict=True):
        shapes.equal(op, result, given)
        operand, sizes = shapes.of(given), shapes.of(update)
        inner = _without(operand, [*numbers.inserted_window_dims, *batching])
        _window(op, shapes, inner, [sizes[n] for n in numbers.update_window_dims])
        shapes.match(
            op, _without(indices, [numbers.index_vector_dim]), _without(sizes, list(numbers.update_window_dims))
        )
        shapes.match(op, [operand[n] for n in batching], [indices[n] for n in numbers.scatter_indices_batching_dims])


def _dot_general(op: ir.Operation, shapes: Shapes) -> None:
    numbers: Any = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    _product(
        op,
        shapes,
        (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)),
        (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)),
    )


def _dot(op: ir.Operation, shapes: Shapes) -> None:
    _product(op, shapes, ([], []), ([len(shapes.of(op.operands[0])) - 1], [0]))


def _product(
    op: ir.Operation, shapes: Shapes, batch: tuple[list[int], list[int]], summed: tuple[list[int], list[int]]
) -> None:
    left, right = shapes.of(op.operands[0]), shapes.of(op.operands[1])
    for ours, theirs in (batch, summed):
        shapes.match(op, [left[n] for n in ours], [right[n] for n in theirs])
    outer = [_without(side, [*batch[n], *summed[n]]) for n, side in enumerate((left, right))]
    shapes.match(op, shapes.of(op.results[0]), [*(left[n] for n in batch[0]), *outer[0], *outer[1]])


def _windows(
    op: ir.Operation, shapes: Shapes, given: Sizes, result: Sizes, window: Sizes, spatial: Sequence[int] | None = None
) -> None:
    """Windows over dimensions, with the attributes of reduce_window, select_and_scatter and convolution."""
    rank = len(given)
    strides, bases, dilations = (
        next((found for name in names if (found := integers(op, name))), [1] * rank)
        for names in (("window_strides",), ("base_dilations", "lhs_dilation"), ("window_dilations", "rhs_dilation"))
    )
    flat = _padding(op, rank)

    def padding(number: int, size: int, width: int) -> tuple[int, int]:
        pairs = []
        for border in flat[number]:
            old, old_width = given[number].root().old, window[number].root().old
            # A border as long as the window (a running sum) or as the array follows it.
            if border == old_width - 1 and border > 0:
                border = width - 1
            elif border in (old - 1, old) and border > 0:
                border += size - old
            pairs.append(border)
        return pairs[0], pairs[1]

    for number in range(rank):
        if given[number].old == window[number].old > 1:
            unite(given[number], window[number], op)
        if given[number].old == result[number].old:
            unite(given[number], result[number], op)

        def windows(size: int, width: int, number: int = number) -> int:
            padded = _dilated(size, bases[number]) + sum(padding(number, size, width))
            reach = _dilated(width, dilations[number])
            return (padded - reach) // strides[number] + 1 if padded >= reach else 0

        shapes.add(Function(op, [given[number], window[number]], result[number], windows))
    if "padding" in op.attributes:

        def matrix() -> ir.Attribute:
            return i64_matrix([padding(n, given[n].value(), window[n].value()) for n in range(rank)], 2)

        shapes.write(op, "padding", matrix)


def _padding(op: ir.Operation, rank: int) -> list[tuple[int, int]]:
    flat = [int(n) for n in np.asarray(op.attributes["padding"]).reshape(-1)] if "padding" in op.attributes else []
    return list(zip(flat[::2], flat[1::2], strict=True)) if flat else [(0, 0)] * rank


def _reduce_window(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, *op.results)
    count = len(op.results)
    shapes.equal(op, *op.operands[:count])
    window = [Size(size) for size in integers(op, "window_dimensions")]
    _windows(op, shapes, shapes.of(op.operands[0]), shapes.of(op.results[0]), window)
    shapes.write(op, "window_dimensions", lambda: i64s(size.value() for size in window))


def _select_and_scatter(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, op.results[0], op.operands[0])
    operand = shapes.of(op.operands[0])
    window = [Size(size) for size in integers(op, "window_dimensions") or [1] * len(operand)]
    _windows(op, shapes, operand, shapes.of(op.operands[1]), window)
    shapes.write(op, "window_dimensions", lambda: i64s(size.value() for size in window))


def _convolution(op: ir.Operation, shapes: Shapes) -> None:
    numbers: Any = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = shapes.of(op.operands[0]), shapes.of(op.operands[1]), shapes.of(op.results[0])
    batch, feature = image[numbers.input_batch_dimension], image[numbers.input_feature_dimension]
    groups, batch_groups = (Size(integer(op, name)) for name in ("feature_group_count", "batch_group_count"))
    depth = kernel[numbers.kernel_input_feature_dimension]
    unite(kernel[numbers.kernel_output_feature_dimension], result[numbers.output_feature_dimension], op)
    for whole, count, rest, name in (
        (feature, groups, depth, "feature_group_count"),
        (batch, batch_groups, result[numbers.output_batch_dimension], "batch_group_count"),
    ):
        if count.old == 1:
            unite(whole, rest, op)
        elif rest.old == 1:
            unite(whole, count, op)
        else:
            shapes.add(Product(op, [whole], [count, rest]))
        shapes.write(op, name, lambda count=count: i64(count.value()))  # type: ignore[misc]
    _windows(
        op,
        shapes,
        [image[n] for n in numbers.input_spatial_dimensions],
        [result[n] for n in numbers.output_spatial_dimensions],
        [kernel[n] for n in numbers.kernel_spatial_dimensions],
    )


def _reduce(op: ir.Operation, shapes: Shapes) -> None:
    count = len(op.results)
    shapes.equal(op, *op.operands[:count])
    shapes.equal(op, *op.results)
    shapes.match(op, _without(shapes.of(op.operands[0]), integers(op, "dimensions")), shapes.of(op.results[0]))


def _cholesky(op: ir.Operation, shapes: Shapes) -> None:
    _all_equal(op, shapes)
    sizes = shapes.of(op.operands[0])
    unite(sizes[-2], sizes[-1], op)


def _triangular_solve(op: ir.Operation, shapes: Shapes) -> None:
    matrix, right = shapes.of(op.operands[0]), shapes.of(op.operands[1])
    shapes.equal(op, op.results[0], op.operands[1])
    shapes.match(op, matrix[:-2], right[:-2])
    unite(matrix[-2], matrix[-1], op)
    unite(matrix[-1], right[-2 if bool(op.attributes["left_side"].value) else -1], op)  # type: ignore[attr-defined]


def _fft(op: ir.Operation, shapes: Shapes) -> None:
    operand, result = shapes.of(op.operands[0]), shapes.of(op.results[0])
    shapes.match(op, operand, result)
    kind = str(op.attributes["fft_type"])
    real = result if "IRFFT" in kind else operand
    if "RFFT" in kind:
        half = operand if real is result else result
        shapes.add(Function(op, [real[-1]], half[-1], lambda size: size // 2 + 1, lambda size: 2 * (size - 1)))
    count = len(integers(op, "fft_length"))
    shapes.write(op, "fft_length", lambda: i64s(size.value() for size in real[len(real) - count :]))


def _batch_norm(op: ir.Operation, shapes: Shapes) -> None:
    feature = shapes.of(op.operands[0])[integer(op, "feature_index")]
    for value in (*op.operands, *op.results):
        sizes = shapes.of(value)
        shapes.match(op, sizes, [feature] if len(sizes) == 1 else shapes.of(op.operands[0]))


def _top_k(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, *op.results)
    result = shapes.of(op.results[0])
    _window(op, shapes, shapes.of(op.operands[0]), result)
    shapes.write(op, "k", lambda: i64(result[-1].value()))


def _collective(op: ir.Operation, shapes: Shapes) -> None:
    """Sizes are equal, a multiple or a fraction of the operand's, by the number of devices."""
    for given, made in zip(op.operands, op.results, strict=False):
        for operand, result in zip(shapes.of(given), shapes.of(made), strict=True):
            small, large = sorted((operand, result), key=lambda size: size.old)
            if small.old == large.old:
                unite(operand, result, op)
            elif small.old > 0 and large.old % small.old == 0:
                devices = large.old // small.old
                shapes.add(Product(op, [large], [small, Size(devices, devices)]))


def _control(op: ir.Operation, shapes: Shapes) -> None:
    """Loops and branches: what goes in, is carried and comes out is one."""
    is_loop = op.name == "stablehlo.while"
    for number, block in enumerate(blocks(op)):
        last = list(block.operations)[-1].operation
        if is_loop:
            for argument, operand in zip(block.arguments, op.operands, strict=True):
                shapes.equal(op, argument, operand)
        if not (is_loop and number == 0):
            for result, returned in zip(op.results, last.operands, strict=True):
                shapes.equal(op, result, returned)


def function(op: ir.Operation, shapes: Shapes) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    results = [
        [Size(size) for size in found.shape] if isinstance(found, ir.RankedTensorType) else []
        for found in type_.results
    ]
    name = string_attribute(op, "sym_name")
    shapes.results[name] = results
    for block in blocks(op):
        shapes.functions[name] = block
        last = list(block.operations)[-1].operation
        for sizes, returned in zip(results, last.operands, strict=True):
            shapes.match(op, sizes, shapes.of(returned))


def _call(op: ir.Operation, shapes: Shapes) -> None:
    name = string_attribute(op, "callee" if op.name == "func.call" else "decomposition")
    if name not in shapes.functions:
        return _all_equal(op, shapes)
    for argument, operand in zip(shapes.functions[name].arguments, op.operands, strict=True):
        shapes.equal(op, argument, operand)
    for sizes, result in zip(shapes.results[name], op.results, strict=True):
        shapes.match(op, sizes, shapes.of(result))
    return None


def _constant(op: ir.Operation, shapes: Shapes) -> None:
    sizes = shapes.of(op.results[0])

    def cut() -> None:
        if not any(size.is_changed() for size in sizes):
            return
        array = constant_of(op)
        for axis, size in enumerate(sizes):
            if size.is_changed():
                # The first elements, again from the first one where the size grows.
                array = array.take(np.arange(size.value()) % max(size.old, 1), axis)
        op.attributes["value"] = dense(array, element_type(op.results[0].type.element_type))

    if sizes:
        shapes.writers.append(cut)


def _rng(op: ir.Operation, shapes: Shapes) -> None:
    sizes = shapes.of(op.results[0])

    def set_shape() -> None:
        if any(size.is_changed() for size in sizes):
            with ir.InsertionPoint(op), op.location:
                value = dense(np.array([size.value() for size in sizes], np.int64), element_type("s64"))
                made = ir.Operation.create("stablehlo.constant", results=[value.type], attributes={"value": value})
            op.operands[2] = made.results[0]

    shapes.writers.append(set_shape)


def _generator(op: ir.Operation, shapes: Shapes) -> None:
    shapes.equal(op, op.results[0], op.operands[0])


class _Unknown(Equation):
    """An operation of unknown meaning: a size of a result becomes what that size of the operands becomes."""

    def __init__(self, op: ir.Operation, operands: Sizes, results: Sizes) -> None:
        super().__init__(op)
        self.operands, self.results = operands, results

    def sizes(self) -> Sizes:
        return [*self.operands, *self.results]

    def _by_old(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for size in self.operands:
            found.setdefault(size.root().old, set()).add(size.value())
        return found

    def choose(self, known: Known) -> None:
        values = self._by_old()
        for size in self.results:
            new = values.get(size.root().old, set())
            if size.is_open() and len(new) > 1:
                raise refusal(
                    f"a size {size.root().old} of the operands becomes {sorted(new)}: which the result has is unknown",
                    self.op,
                )
            if size.is_open() and new:
                decide(size, new.pop(), "as the operands", self.op)

    def check(self) -> None:
        changed = {size.root().old for size in self.sizes() if size.is_changed() and size.root().old > 1}
        for name in _SETTINGS:
            text = str(self.op.attributes[name]) if name in self.op.attributes else ""
            if found := sorted(changed & {int(number) for number in _NUMBER.findall(text)}):
                raise refusal(f"its {name} has the number {found[0]}, which may be a size that shrinks", self.op)


def _unknown(op: ir.Operation, shapes: Shapes) -> None:
    operands, results = (
        [size for value in values for size in shapes.of(value)] for values in (op.operands, op.results)
    )
    if operands or results:
        shapes.add(_Unknown(op, operands, results))
    if _SHARDING_RULE in op.attributes:

        def drop() -> None:
            del op.attributes[_SHARDING_RULE]

        shapes.writers.append(drop)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("after_all", "create_token", "infeed", "iota", "outfeed", "partition_id"), _nothing),
    **dict.fromkeys(("get_dimension_size", "recv", "replica_id", "return", "send"), _nothing),
    **dict.fromkeys(("reverse", "set_dimension_size", "sort", "map"), _all_equal),
    **dict.fromkeys(("all_gather", "all_reduce", "all_to_all", "collective_broadcast"), _collective),
    **dict.fromkeys(("collective_permute", "cross-replica-sum", "reduce_scatter"), _collective),
    **dict.fromkeys(("case", "if", "while"), _control),
    **dict.fromkeys(("batch_norm_grad", "batch_norm_inference", "batch_norm_training"), _batch_norm),
    "broadcast_in_dim": _broadcast,
    "cholesky": _cholesky,
    "composite": _call,
    "concatenate": _concatenate,
    "constant": _constant,
    "convolution": _convolution,
    "dot": _dot,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "fft": _fft,
    "gather": _gather,
    "optimization_barrier": _pairs,
    "pad": _pad,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "reshape": _reshape,
    "rng": _rng,
    "rng_bit_generator": _generator,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
    "slice": _slice,
    "transpose": _transpose,
    "triangular_solve": _triangular_solve,
}


def rule_of(op: ir.Operation) -> Rule:
    """What is known of an operation's sizes."""
    dialect, _, name = op.name.partition(".")
    if op.name in ELEMENTWISE | QUANTIZATIONS:
        return _elementwise
    if dialect == "chlo":
        return _top_k if name == "top_k" else _all_equal
    if dialect == "func":
        return {"call": _call, "func": _nothing, "return": _nothing}.get(name, _unknown)
    return _RULES.get(name, _unknown) if dialect == "stablehlo" else _unknown
