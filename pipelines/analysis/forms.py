"""Forms of operations that capability rows distinguish: predicates on an ``ir.Operation``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from hloforge.dialect.marks import IN_BOUNDS, IN_RANGE, NORMAL
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers, is_made_by
from hloforge.dialect.traits import FLOAT_ARITHMETIC
from hloforge.pipelines.analysis.polyphase import Phases
from hloforge.pipelines.analysis.space_to_depth_plan import WindowRows
from hloforge.pipelines.framework.machine import AVX2

# Elementwise operations on floats that round their result. A selection is left out: it moves bits.
ROUNDING = tuple(sorted(FLOAT_ARITHMETIC))


def is_static(op: AnyOp) -> bool:
    """All sizes of its operands are known."""
    return all(operand.type.has_static_shape for operand in op.operands)


def is_static_without_ellipsis(op: AnyOp) -> bool:
    """An einsum of known sizes that names every dimension."""
    return is_static(op) and "." not in ir.StringAttr(op.attributes["einsum_config"]).value


def has_dynamic_operand(op: AnyOp) -> bool:
    """An operand has a size that only a call knows."""
    return not is_static(op)


def has_dynamic_results(op: ir.Operation) -> bool:
    """It has more than one result of a size that only a call knows."""
    types = [result.type for result in op.results]
    return sum(isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape for type_ in types) > 1


def updates_a_dynamic_array(op: ir.Operation) -> bool:
    """An update of a slice whose array or update has a size that only a call knows."""
    return not all(operand.type.has_static_shape for operand in list(op.operands)[:2])


def changes_the_width_of_a_dynamic_array(op: ir.Operation) -> bool:
    """A bitcast between elements of different widths, of a size that only a call knows."""
    return op.operands[0].type.rank != op.results[0].type.rank and not is_static(op)


def is_wide_complex(op: ir.Operation) -> bool:
    """Its result is c128."""
    element = op.results[0].type.element_type
    return isinstance(element, ir.ComplexType) and isinstance(element.element_type, ir.F64Type)


def names_an_algorithm(op: AnyOp) -> bool:
    """A dot_general with a dot algorithm."""
    return "algorithm" in op.attributes


def has_16_bit_float_result(op: ir.Operation) -> bool:
    """One of its results is bf16 or f16."""
    floats = (ir.BF16Type, ir.F16Type)
    return any(
        isinstance(value.type, ir.ShapedType) and isinstance(value.type.element_type, floats) for value in op.results
    )


def sums_16_bit_floats(op: ir.Operation) -> bool:
    """A reduction to one bf16 or f16 array whose computation is one sum or product of its two arguments."""
    return (
        len(op.results) == 1 and has_16_bit_float_result(op) and combiner(op) in ("stablehlo.add", "stablehlo.multiply")
    )


def computes_in_bf16(op: Any) -> bool:
    """It has a bf16 operand, and is not in the computation of a reduction, sort or scatter."""
    if op.parent.name not in ("func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if"):
        return False
    return any(isinstance(operand.type.element_type, ir.BF16Type) for operand in op.operands)


def may_overflow_an_integer(op: ir.Operation) -> bool:
    """A conversion of a float or complex number to an integer type other than pred, not yet clamped to its range."""
    source, target = (value.type.element_type for value in (op.operands[0], op.results[0]))
    if not isinstance(source, ir.FloatType | ir.ComplexType) or not isinstance(target, ir.IntegerType):
        return False
    return target.width > 1 and IN_RANGE not in op.attributes


def may_flush_a_subnormal(op: ir.Operation) -> bool:
    """A ceil or floor of a type whose subnormal numbers the processor flushes; f16 is converted to f32 exactly."""
    element = op.operands[0].type.element_type
    return isinstance(element, (ir.BF16Type, ir.F32Type, ir.F64Type)) and NORMAL not in op.attributes


def promoted_operands(op: ir.Operation) -> dict[int, Any]:
    """The operands of a reduction or scatter, by number, whose element type differs from their result's; and this."""
    indices = 1 if op.name == "stablehlo.scatter" else 0
    count = len(op.results)
    found = {}
    for number, operand in enumerate(op.operands):
        if indices and number == count:
            continue
        element = op.results[(number - indices * (number > count)) % count].type.element_type
        if operand.type.element_type != element and not str(element).startswith("!quant"):
            found[number] = element
    return found


def promotes(op: ir.Operation) -> bool:
    """A reduction or scatter that computes in another type than its operands'."""
    return bool(promoted_operands(op))


def reverses_unsigned_or_nothing(op: ir.Operation) -> bool:
    """A reverse of unsigned integers, or along no dimension."""
    return _is_unsigned(op.operands[0]) or not integers(op, "dimensions")


def _is_unsigned(value: SSAValue) -> bool:
    element = value.type.element_type
    return isinstance(element, ir.IntegerType) and bool(element.is_unsigned)


def starts_oddly(op: ir.Operation) -> bool:
    """A slice, or an update of one, that starts at numbers of a type other than s32 and s64, or at none."""
    starts = list(op.operands)[2 if op.name.endswith("update_slice") else 1 :]
    return not starts or any(str(start.type.element_type) not in ("i32", "i64") for start in starts)


def pads_unsigned_windows(op: Any) -> bool:
    """A reduction of windows over unsigned integers or booleans, with padding or base dilation."""
    elements = [result.type.element_type for result in op.results]
    if not is_static(op) or not any(map(_is_unsigned_type, elements)):
        return False
    padding = "padding" in op.attributes and any(int(number) for number in op.attributes["padding"])
    return padding or any(size != 1 for size in integers(op, "base_dilations"))


def unread_edges(op: AnyOp) -> list[int]:
    """How many elements of the padded image, along each dimension of space, the one window of a convolution leaves out.

    0 where there are several windows, between which IREE skips what strides do, and of an image that is empty.
    """
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (value.type.shape for value in (*op.operands, *op.results))
    space = len(numbers.input_spatial_dimensions)
    edges = numbers_of(op, "padding") or [0] * (2 * space)
    unread = []
    for number in range(space):
        size, window = (
            image[numbers.input_spatial_dimensions[number]],
            kernel[numbers.kernel_spatial_dimensions[number]],
        )
        spread = (size - 1) * (integers(op, "lhs_dilation") or [1] * space)[number] + 1
        reach = (window - 1) * (integers(op, "rhs_dilation") or [1] * space)[number] + 1
        is_one = result[numbers.output_spatial_dimensions[number]] == 1 and size > 0
        unread.append(spread + edges[2 * number] + edges[2 * number + 1] - reach if is_one else 0)
    return unread


def leaves_edges_unread(op: AnyOp) -> bool:
    """A convolution with one window along some dimension, which does not reach the end of the padded image."""
    return is_static(op) and any(unread_edges(op))


def is_static_dynamism(op: AnyOp) -> bool:
    """A dynamic conv, gather or pad of arrays of static size whose sizes or paddings are constants."""
    constants = all(is_made_by(value, "stablehlo.constant") for value in list(op.operands)[2:])
    return constants and all(value.type.has_static_shape for value in (*op.operands, *op.results))


def is_no_bf16_rounding(op: ir.Operation) -> bool:
    """A reduce_precision other than that of static f32 to bf16, which IREE gets right; it crashes on dynamic ones."""
    formats = (integer(op, "exponent_bits"), integer(op, "mantissa_bits"))
    type_ = op.operands[0].type
    return formats != (8, 7) or not isinstance(type_.element_type, ir.F32Type) or not type_.has_static_shape


_FILLS = ("stablehlo.constant", "stablehlo.broadcast_in_dim")


def _is_filled(value: SSAValue) -> bool:
    """Whether an array repeats a number, or is a part of one that does."""
    while slice_ := defining_op(value, "stablehlo.slice", "stablehlo.dynamic_slice"):
        value = slice_.operands[0]
    return is_made_by(value, *_FILLS)


def fills_with_complex(op: ir.Operation) -> bool:
    """A pad of complex numbers, an update of a complex constant or a part of it, or a broadcast of a c128 scalar."""
    if "pad" in op.name:
        return isinstance(op.results[0].type.element_type, ir.ComplexType)
    if op.name == "stablehlo.dynamic_update_slice":
        return _is_filled(op.operands[0]) and isinstance(op.operands[0].type.element_type, ir.ComplexType)
    return is_wide_complex(op) and all(size == 1 for size in op.operands[0].type.shape)


def reduces_complex(op: AnyOp) -> bool:
    """A reduction of complex numbers, alone or among others."""
    return any(isinstance(result.type.element_type, ir.ComplexType) for result in op.results)


def is_between_complex_types(op: ir.Operation) -> bool:
    """A conversion from one complex type to another."""
    return all(isinstance(value.type.element_type, ir.ComplexType) for value in (op.operands[0], op.results[0]))


def is_integer_to_bf16(op: ir.Operation) -> bool:
    """A conversion of integers or booleans to bf16."""
    source, target = (value.type.element_type for value in (op.operands[0], op.results[0]))
    return isinstance(source, ir.IntegerType) and isinstance(target, ir.BF16Type)


def multiplies_zeros(op: AnyOp) -> bool:
    """A convolution of a dilated image of which much is zeros, so that it is worth to be done in phases."""
    return is_static(op) and Phases.of(op) is not None


def has_long_windows(op: AnyOp) -> bool:
    """A convolution of one feature whose windows are worth to be laid out in part."""
    return WindowRows.of(op) is not None


# Fewer features than a vector has lanes: IREE's own loops are as fast (7x7 by 3 features: 0.7 of XLA's time).
_FEWEST_FEATURES = 8
# Elements of a kernel: as many of f32 as a core's own cache holds.
_LARGE_KERNEL = AVX2.l2_bytes // 4
# Places of a window that are laid out one by one where there is one feature.
_MOST_PLACES = 64
# Elements of the unfolded windows: 128 MiB of f32.
_MOST_UNFOLDED = 1 << 25


def is_better_unfolded(op: ir.Operation) -> bool:
    """A convolution that IREE computes slowly, or crashes on as on complex ones with padding, in the form of loops."""
    is_complex = isinstance(op.results[0].type.element_type, ir.ComplexType)
    batch_groups = integer(op, "batch_group_count")
    if not is_static(op) or (batch_groups > 1 and not is_complex):
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (value.type for value in (*op.operands, *op.results))
    features = image.shape[numbers.input_feature_dimension] * batch_groups
    window = prod(kernel.shape[d] for d in numbers.kernel_spatial_dimensions)
    places = prod(result.shape) // max(1, result.shape[numbers.output_feature_dimension])
    if not prod(result.shape) or not prod(image.shape) or places * window * features > _MOST_UNFOLDED:
        return False
    if is_complex:
        return True
    if not isinstance(result.element_type, ir.F32Type | ir.BF16Type | ir.F16Type):
        return False
    if integer(op, "feature_group_count") > 1:
        return bool(kernel.shape[numbers.kernel_input_feature_dimension] > _MOST_CHANNELS)
    # One position at every element is a product as it is, which IREE does well until the kernel outgrows a cache.
    is_apart = window > 1 or any(stride > 1 for stride in integers(op, "window_strides"))
    return (is_apart or prod(kernel.shape) >= _LARGE_KERNEL) and (
        features >= _FEWEST_FEATURES
        or _is_filter_bank(features, window, result.shape[numbers.output_feature_dimension])
    )


def _is_filter_bank(features: int, window: int, outputs: int) -> bool:
    """A convolution of numbers with many kernels, of which IREE has no vectors."""
    return features == 1 and 1 < window <= _MOST_PLACES and outputs >= _FEWEST_FEATURES


def is_product_of_features(op: ir.Operation) -> bool:
    """A convolution of one position with itself whose features are before the space, in f32 or f64."""
    if not is_static(op) or integer(op, "batch_group_count") > 1 or integer(op, "feature_group_count") > 1:
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (value.type for value in (*op.operands, *op.results))
    space = list(range(2, image.rank))
    stands_first = (
        [numbers.input_batch_dimension, numbers.input_feature_dimension] == [0, 1]
        and [numbers.output_batch_dimension, numbers.output_feature_dimension] == [0, 1]
        and list(numbers.input_spatial_dimensions) == list(numbers.output_spatial_dimensions) == space
    )
    is_float = isinstance(result.element_type, ir.F32Type | ir.F64Type)
    is_alike = image.element_type == kernel.element_type == result.element_type
    is_one = all(kernel.shape[d] == 1 for d in numbers.kernel_spatial_dimensions)
    is_in_place = list(image.shape)[2:] == list(result.shape)[2:] and not any(numbers_of(op, "padding"))
    steps = [*integers(op, "window_strides"), *integers(op, "lhs_dilation")]
    is_worth = image.shape[1] >= _FEWEST_FEATURES and prod(result.shape) > 0
    return stands_first and is_float and is_alike and is_one and is_in_place and set(steps) <= {1} and is_worth


def numbers_of(op: Any, name: str) -> list[int]:
    """The numbers of an attribute of any shape; none where it is left out."""
    return [int(number) for number in op.attributes[name]] if name in op.attributes else []


# Channels of a group, each of which is a convolution by channels: with more, sums over them pay for their loops.
_MOST_CHANNELS = 16


def is_better_by_channels(op: AnyOp) -> bool:
    """A two-dimensional convolution by groups of some channels, few enough to take them one after the other."""
    if not is_static(op) or integer(op, "batch_group_count") > 1:
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel, result = op.operands[1].type, op.results[0].type
    is_float = isinstance(result.element_type, ir.F64Type | ir.F32Type | ir.BF16Type | ir.F16Type)
    is_plane = len(numbers.kernel_spatial_dimensions) == 2 and prod(result.shape) > 0
    channels = kernel.shape[numbers.kernel_input_feature_dimension]
    return integer(op, "feature_group_count") > 1 and is_float and is_plane and 1 < channels <= _MOST_CHANNELS


# Features of the result that are too few for vectors, and those of the image that are worth products by positions.
_FEW_OUTPUTS, _MANY_CHANNELS = 7, 8


def has_few_outputs(op: ir.Operation) -> bool:
    """A convolution of floats of many features to a few, with a window of some positions."""
    groups = [integer(op, f"{kind}_group_count") for kind in ("feature", "batch")]
    if not is_static(op) or groups != [1, 1]:
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (value.type for value in (*op.operands, *op.results))
    places = prod(kernel.shape[d] for d in numbers.kernel_spatial_dimensions)
    is_float = isinstance(result.element_type, ir.F64Type | ir.F32Type | ir.BF16Type | ir.F16Type)
    features, outputs = image.shape[numbers.input_feature_dimension], result.shape[numbers.output_feature_dimension]
    fits = 1 < places <= _MOST_PLACES and prod(result.shape) > 0
    return is_float and fits and features >= _MANY_CHANNELS and outputs <= _FEW_OUTPUTS


def is_better_features_last(op: AnyOp) -> bool:
    """A convolution that is left to IREE, reversed or with its dimensions not in the order batch, space, features.

    IREE leaves out some reversals: of groups, and of batches by groups.
    """
    if not is_static(op) or not prod(op.results[0].type.shape) or not prod(op.operands[0].type.shape):
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    places = [
        [numbers.input_batch_dimension, *numbers.input_spatial_dimensions, numbers.input_feature_dimension],
        [
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ],
        [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension],
    ]
    return any(integers(op, "window_reversal")) or any(list(order) != sorted(order) for order in places)


# What multiplies, and what IREE moves or folds away from between a conversion and a product.
_PRODUCTS = frozenset({"stablehlo.convolution", "stablehlo.dot_general"})
_MOVED = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "convert", "dynamic_slice", "reshape", "reverse", "slice", "transpose")
)


def multiplies_nothing(op: ir.Operation) -> bool:
    """A product of arrays of known sizes, of which one has no elements."""
    return is_static(op) and any(not prod(operand.type.shape) for operand in op.operands)


def mixes_up_types(op: ir.Operation) -> bool:
    """A product in a wider type than its operands': of unsigned or complex numbers, by groups, or that sums nothing."""
    element = op.results[0].type.element_type
    if all(operand.type.element_type == element for operand in op.operands):
        return False
    is_unsigned = any(_is_unsigned_type(operand.type.element_type) for operand in op.operands)
    return _is_by_groups(op) or is_unsigned or isinstance(element, ir.ComplexType) or _sums_nothing(op)


def _sums_nothing(op: AnyOp) -> bool:
    """Whether each element of a ``dot_general`` is one product."""
    if op.name != "stablehlo.dot_general":
        return False
    contracted = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions
    return bool(prod(op.operands[0].type.shape[d] for d in contracted) == 1)


def is_unsigned_factor(op: ir.Operation) -> bool:
    """A conversion of booleans or unsigned integers whose result is multiplied by dots or convolutions."""
    source, target = (value.type.element_type for value in (op.operands[0], op.results[0]))
    return _is_unsigned_type(source) and source != target and _is_multiplied(op.results[0])


def _is_unsigned_type(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and (element.is_unsigned or element.width == 1)


def is_mixed_up_factor(op: ir.Operation) -> bool:
    """A conversion whose result is multiplied by a convolution by groups, or as complex numbers."""
    source, target = (value.type.element_type for value in (op.operands[0], op.results[0]))
    is_complex = isinstance(target, ir.ComplexType)
    return source != target and _is_multiplied(op.results[0], lambda user: is_complex or _is_by_groups(user))


def _is_by_groups(op: AnyOp) -> bool:
    return op.name == "stablehlo.convolution" and integer(op, "feature_group_count") > 1


def _is_multiplied(value: SSAValue, fits: Callable[[Any], bool] = lambda user: True) -> bool:
    users = [use.owner.operation for use in value.uses]
    return any(
        fits(user) if user.name in _PRODUCTS else user.name in _MOVED and _is_multiplied(user.results[0], fits)
        for user in users
    )


def is_reverse_scan(op: ir.Operation) -> bool:
    """A scan that starts at the end."""
    return "is_reverse" in op.attributes and bool(ir.BoolAttr(op.attributes["is_reverse"]).value)


def is_not_in_bounds(op: AnyOp) -> bool:
    """A scatter or gather whose indices may lie out of bounds, or a scatter in a form that IREE does not take."""
    return IN_BOUNDS not in op.attributes


def is_static_or_stable(op: AnyOp) -> bool:
    """A sort that hloforge's network can do, or whose ties matter; IREE's own sort is left the others."""
    return is_stable(op) or bool(op.operands[0].type.has_static_shape)


def is_stable(op: AnyOp) -> bool:
    """A sort that keeps the order of equal elements."""
    return "is_stable" in op.attributes and bool(ir.BoolAttr(op.attributes["is_stable"]).value)


def combiner(op: AnyOp) -> str:
    """The name of the operation that alone combines the two arguments of a region; empty for any other region."""
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations]
    if len(body) != 2 or set(body[0].operands) != set(block.arguments) or body[1].operands[0] != body[0].results[0]:
        return ""
    return str(body[0].name)
