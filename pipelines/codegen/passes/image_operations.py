"""Operations on arrays of images, written for another order of the dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import dense
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.emission import create, emit, i64, i64_matrix, i64s, mlir_type_of
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.traits import keeps_shape
from hloforge.dialect.values import Value

# Of images, as convolutions have them: the batch, the features, one to three dimensions of space.
_RANKS = (3, 4, 5)
# Input features up to which a convolution reads an image as it lies: pixels of so few fill no vector.
_FEW = 4
_TRANSPOSE = "stablehlo.transpose"


def last(rank: int) -> tuple[int, ...]:
    """Which dimension of features-first each one of features-last is."""
    return 0, *range(2, rank), 1


def first(rank: int) -> tuple[int, ...]:
    """Which dimension of features-last each one of features-first is."""
    return 0, rank - 1, *range(1, rank - 1)


def is_turned(op: ir.Operation | None, order: tuple[int, ...]) -> bool:
    """Whether an operation is the transposition to an order of dimensions."""
    return op is not None and op.name == _TRANSPOSE and integers(op, "permutation") == list(order)


def is_image(value: SSAValue) -> bool:
    """Whether a value has the rank of images, and known sizes."""
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and type_.rank in _RANKS and type_.has_static_shape


def images_of(op: ir.Operation) -> list[SSAValue]:
    """The operands and results that have one order of the dimensions; none of an operation without a rule here."""
    if keeps_shape(op):
        found = [*op.operands, *op.results]
    elif op.name == "stablehlo.convolution":
        found = _images_of_convolution(op)
    elif op.name == "stablehlo.concatenate":
        found = [*op.operands, *op.results]
    elif op.name in ("stablehlo.pad", "stablehlo.slice", "stablehlo.reverse"):
        found = [op.operands[0], op.results[0]]
    elif op.name == "stablehlo.reduce_window":
        found = [op.operands[0], op.results[0]] if len(op.results) == 1 else []
    elif op.name == "stablehlo.reduce":
        found = [op.operands[0]] if len(op.results) == 1 and _keeps_order(op) else []
    elif op.name == "stablehlo.broadcast_in_dim":
        found = [op.results[0], *(op.operands if _is_stretched(op) else ())]
    elif op.name == "stablehlo.gather":
        found = [op.operands[0], op.results[0]] if _gathers_pixels(op) else []
    else:
        found = []
    return [value for value in found if is_image(value)]


def _images_of_convolution(op: ir.Operation) -> list[SSAValue]:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image = numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions
    out = numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions
    in_order = [*range(len(out))]
    if [*out] != in_order or [*image] != in_order or integer(op, "batch_group_count") > 1:
        return []
    few = Value(op.operands[0]).dims[1] <= _FEW if is_image(op.operands[0]) else False
    # One that a transposition made of features-last lies so.
    few = few and not is_turned(defining_op(op.operands[0]), first(len(out)))
    return [op.results[0]] if few else [op.operands[0], op.results[0]]


def _keeps_order(op: ir.Operation) -> bool:
    """Whether the dimensions that a reduction leaves follow each other in either order."""
    kept = [d for d in last(Value(op.operands[0]).rank) if d not in integers(op, "dimensions")]
    return kept == sorted(kept)


def _is_stretched(op: ir.Operation) -> bool:
    """Whether a broadcast repeats images along dimensions of one element."""
    rank = Value(op.results[0]).rank
    return Value(op.operands[0]).rank == rank and integers(op, "broadcast_dimensions") == list(range(rank))


def _gathers_pixels(op: ir.Operation) -> bool:
    """Whether all images and features of some pixels are gathered, as interpolation does."""
    if not (is_image(op.operands[0]) and is_image(op.results[0])):
        return False
    numbers, whole = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"]), Value(op.operands[0])
    windows = [d for d in range(whole.rank) if d not in numbers.collapsed_slice_dims]
    return (
        whole.rank == Value(op.results[0]).rank
        and not numbers.operand_batching_dims
        and windows[:2] == list(numbers.offset_dims)[:2] == [0, 1]
        and integers(op, "slice_sizes")[:2] == list(whole.dims[:2])
    )


def moves_nothing(dims: Sequence[int]) -> bool:
    """Whether elements of such an array follow each other alike in both orders."""
    kept = [d for d in last(len(dims)) if dims[d] != 1]
    return kept == sorted(kept)


def reordered(value: Value, order: Sequence[int]) -> Value:
    """A value with its dimensions in another order: a constant or another view, if it is one; else a copy."""
    if list(order) == list(range(value.rank)):
        return value
    made = defining_op(value.ir)
    if made is not None and made.name == "stablehlo.constant" and not value.element_type.is_complex:
        return _known(made, value, order)
    while made is not None and made.name == "stablehlo.transpose":
        before = integers(made, "permutation")
        value, order = Value(made.operands[0]), [before[d] for d in order]
        made = defining_op(value.ir)
    if list(order) == list(range(value.rank)):
        return value
    kept = [d for d in order if value.dims[d] != 1]
    if kept == sorted(kept):
        return ops.reshape(value, [value.dims[d] for d in order])
    return ops.transpose(value, list(order))


def _known(made: ir.Operation, value: Value, order: Sequence[int]) -> Value:
    """A constant with its dimensions in another order."""
    shape = Shape.array(value.element_type, *(value.dims[d] for d in order))
    attribute = ir.DenseElementsAttr(made.attributes["value"])
    if attribute.is_splat:
        same = ir.DenseElementsAttr.get_splat(mlir_type_of(shape), attribute.get_splat_value())
        return emit("stablehlo.constant", [], shape, value=same)
    array = np.ascontiguousarray(np.transpose(constant_of(made), order))
    return emit("stablehlo.constant", [], shape, value=dense(array, value.element_type))


@dataclass(frozen=True)
class Reorder:
    """Writes operations for images whose features are last.

    Attributes:
        image: the image with its features last that an operand became.
        plain: an operand as it was, which may have become such an image.
    """

    image: Callable[[SSAValue], Value]
    plain: Callable[[SSAValue], Value]

    def write(self, op: ir.Operation) -> Value:
        """The operation with its images in the other order, at the current insertion point."""
        if op.name == "stablehlo.convolution":
            return self._convolution(op)
        if op.name == "stablehlo.broadcast_in_dim":
            return self._broadcast(op)
        if op.name == "stablehlo.gather":
            return self._gather(op)
        images = images_of(op)
        operands = [self.image(value) if value in images else self.plain(value) for value in op.operands]
        order = last(Value(images[0]).rank)
        attributes = {name: op.attributes[name] for name in op.attributes} | _attributes(op, order)
        result = Value(op.results[0])
        dims = [result.dims[d] for d in order] if op.results[0] in images else result.dims
        type_ = ir.RankedTensorType.get(dims, ir.RankedTensorType(op.results[0].type).element_type)
        made = create(op.name, operands, [type_], len(op.regions), **attributes)
        for old, new in zip(op.regions, made.regions, strict=True):
            for block in list(old.blocks):
                block.append_to(new)
        return Value(made.results[0])

    def _broadcast(self, op: ir.Operation) -> Value:
        result = Value(op.results[0])
        dims = [result.dims[d] for d in last(result.rank)]
        if _is_stretched(op):
            return ops.broadcast_in_dim(self.image(op.operands[0]), dims, list(range(result.rank)))
        # Where each of the result's dimensions is.
        place = {d: number for number, d in enumerate(last(result.rank))}
        places = [place[d] for d in integers(op, "broadcast_dimensions")]
        order = sorted(range(len(places)), key=places.__getitem__)
        return ops.broadcast_in_dim(reordered(self.plain(op.operands[0]), order), dims, sorted(places))

    def _gather(self, op: ir.Operation) -> Value:
        numbers, result = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"]), Value(op.results[0])
        order = last(result.rank)
        # Pixels are one dimension further to the front, and features behind them.
        moved = stablehlo.GatherDimensionNumbers.get(
            offset_dims=[0, *(d - 1 for d in list(numbers.offset_dims)[2:]), result.rank - 1],
            collapsed_slice_dims=[d - 1 for d in numbers.collapsed_slice_dims],
            operand_batching_dims=[],
            start_indices_batching_dims=[],
            start_index_map=[d - 1 if d > 1 else d * (result.rank - 1) for d in numbers.start_index_map],
            index_vector_dim=numbers.index_vector_dim,
        )
        sizes = integers(op, "slice_sizes")
        attributes = {name: op.attributes[name] for name in op.attributes} | {
            "dimension_numbers": moved,
            "slice_sizes": i64s(sizes[d] for d in order),
        }
        type_ = ir.RankedTensorType.get(
            [result.dims[d] for d in order], ir.RankedTensorType(op.results[0].type).element_type
        )
        return emit(op.name, [self.image(op.operands[0]), self.plain(op.operands[1])], type_, **attributes)

    def _convolution(self, op: ir.Operation) -> Value:
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        kernel, result = self.plain(op.operands[1]), Value(op.results[0])
        is_tied, space = len(images_of(op)) > 1, result.rank - 2
        kernel_numbers = (
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
            list(numbers.kernel_spatial_dimensions),
        )
        if is_made_known(kernel):
            kernel = reordered(kernel, [*kernel_numbers[2], *kernel_numbers[:2]])
            kernel_numbers = space, space + 1, list(range(space))
        elif (turned := _features_last(kernel, kernel_numbers)) is not None:
            kernel, kernel_numbers = turned, (space + 1, 0, list(range(1, space + 1)))
        features_last, features_first = (0, space + 1, list(range(1, space + 1))), (0, 1, list(range(2, space + 2)))
        attributes = {name: op.attributes[name] for name in op.attributes} | {
            "dimension_numbers": stablehlo.ConvDimensionNumbers.get(
                *(features_last if is_tied else features_first), *kernel_numbers, *features_last
            )
        }
        element = ir.RankedTensorType(op.results[0].type).element_type
        type_ = ir.RankedTensorType.get([result.dims[d] for d in last(result.rank)], element)
        operand = self.image(op.operands[0]) if is_tied else self.plain(op.operands[0])
        return emit(op.name, [operand, kernel], type_, **attributes)


def _features_last(kernel: Value, numbers: tuple[int, int, list[int]]) -> Value | None:
    """Weights that a transposition was made of, if their last dimension are input features, the first one output ones.

    Args:
        numbers: of input features, output features and positions.
    """
    made = defining_op(kernel.ir)
    if made is None or made.name != _TRANSPOSE:
        return None
    inputs, outputs, positions = numbers
    permutation = integers(made, "permutation")
    order = [permutation[d] for d in (outputs, *positions, inputs)]
    return Value(made.operands[0]) if order == list(range(kernel.rank)) else None


def _attributes(op: ir.Operation, order: Sequence[int]) -> dict[str, Any]:
    """Those that name dimensions, which become these."""
    found: dict[str, Any] = {}
    place = {d: number for number, d in enumerate(order)}
    for name in _BY_DIMENSION:
        if numbers := integers(op, name):
            found[name] = i64s(numbers[d] for d in order)
    if op.name == "stablehlo.reduce_window" and "padding" in op.attributes:
        edges = np.array(op.attributes["padding"]).reshape(len(order), 2)
        found["padding"] = i64_matrix([[int(edge) for edge in edges[d]] for d in order], 2)
    if op.name == "stablehlo.concatenate":
        found["dimension"] = i64(place[integer(op, "dimension")])
    if op.name in ("stablehlo.reduce", "stablehlo.reverse"):
        found["dimensions"] = i64s(sorted(place[d] for d in integers(op, "dimensions")))
    return found


# Attributes with a number for each dimension of an image, of all operations that have rules.
_BY_DIMENSION = (
    *("edge_padding_low", "edge_padding_high", "interior_padding"),
    *("start_indices", "limit_indices", "strides"),
    *("window_dimensions", "window_strides", "base_dilations", "window_dilations"),
)


def is_made_known(value: Value) -> bool:
    """Whether the program states the value's numbers."""
    return defining_op(value.ir, "stablehlo.constant") is not None
