"""Convolutions of any number of spatial dimensions.

Source: XLA "Conv", "ConvWithGeneralPadding"; StableHLO specification "convolution".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import emit, flags, i64, i64s
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.products import Precision, precision_config, product_element
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.dialect.windows import Padding, Window, windows


@dataclass(frozen=True)
class ConvolutionDimensionNumbers:
    """What each dimension of the input, the kernel and the output of a convolution is.

    In XLA's text, as of ``parse`` and ``str``, each dimension has a letter: ``b`` batch, ``f`` feature, ``i`` the
    kernel's input feature, ``o`` its output feature, and a digit for a spatial one: ``b01f_01io->b01f``.
    """

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    @classmethod
    def default(cls, spatial: int) -> ConvolutionDimensionNumbers:
        """XLA's order of ``spatial`` spatial dimensions: ``bf01_oi01->bf01``."""
        last = tuple(range(2, spatial + 2))
        return cls(0, 1, last, 1, 0, last, 0, 1, last)

    @classmethod
    def parse(cls, text: str) -> ConvolutionDimensionNumbers:
        """Read XLA's text.

        Raises:
            OperationError: it has another form, or a letter lacks or is there twice.
        """
        parts = re.fullmatch(r"(\w+)_(\w+)->(\w+)", text)
        if parts is None:
            raise OperationError(f"dimension numbers {text!r} are not of the form 'b01f_01io->b01f'")
        (batch, feature), spatial = _places(text, parts[1], "bf")
        (inner, outer), kernel = _places(text, parts[2], "io")
        (out_batch, out_feature), out = _places(text, parts[3], "bf")
        return cls(batch, feature, spatial, inner, outer, kernel, out_batch, out_feature, out)

    def __str__(self) -> str:
        source = _letters(self.input_batch_dimension, self.input_feature_dimension, self.input_spatial_dimensions)
        kernel = _letters(
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            self.kernel_spatial_dimensions,
            "io",
        )
        result = _letters(self.output_batch_dimension, self.output_feature_dimension, self.output_spatial_dimensions)
        return f"{source}_{kernel}->{result}"

    @property
    def input(self) -> tuple[int, ...]:
        """The input's batch, feature and spatial dimensions."""
        return self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions

    @property
    def kernel(self) -> tuple[int, ...]:
        """The kernel's input feature, output feature and spatial dimensions."""
        return (
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            *self.kernel_spatial_dimensions,
        )

    @property
    def output(self) -> tuple[int, ...]:
        """The output's batch, feature and spatial dimensions."""
        return self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions

    def attribute(self) -> Any:
        """``#stablehlo.conv<…>``."""
        return stablehlo.ConvDimensionNumbers.get(
            self.input_batch_dimension,
            self.input_feature_dimension,
            list(self.input_spatial_dimensions),
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            list(self.kernel_spatial_dimensions),
            self.output_batch_dimension,
            self.output_feature_dimension,
            list(self.output_spatial_dimensions),
        )


def _places(text: str, letters: str, features: str) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Where the two letters of ``features`` are, and the digits from 0."""
    order = features + "".join(map(str, range(len(letters) - 2)))
    if sorted(letters) != sorted(order):
        raise OperationError(f"in dimension numbers {text!r}, {letters!r} must have each of {order!r} once")
    first, second, *spatial = (letters.index(letter) for letter in order)
    return (first, second), tuple(spatial)


def _letters(first: int, second: int, spatial: Sequence[int], features: str = "bf") -> str:
    places = {first: features[0], second: features[1], **{place: str(n) for n, place in enumerate(spatial)}}
    return "".join(places[place] for place in sorted(places))


@op("Conv", emits="stablehlo.convolution", on=ARRAY)
def conv(
    lhs: Value,
    rhs: Value,
    window_strides: Sequence[int],
    padding: str,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    dimension_numbers: ConvolutionDimensionNumbers | str | None = None,
    precision: Precision = "DEFAULT",
    preferred_element_type: Any = None,
) -> Value:
    """``conv_with_general_padding`` with the padding in short.

    Args:
        padding: ``"VALID"`` for none, or ``"SAME"`` for as many zeros as give a stride of 1 the input's size, and other
            strides the size divided by them, rounded up; an odd zero is at the high end.

    Other arguments, result and errors as of ``conv_with_general_padding``.

    Example:
        >>> x = constant([[[1.0, 2.0, 3.0, 4.0]]], "f32")
        >>> conv(x, constant([[[1.0, 10.0, 100.0]]], "f32"), [1], "SAME")
        [[[210. 321. 432.  43.]]]
    """
    if not isinstance(padding, str):
        raise OperationError('padding must be "SAME" or "VALID"', hint="conv_with_general_padding takes pairs")
    groups = feature_group_count, batch_group_count
    return _convolution(
        lhs, rhs, dimension_numbers, groups, precision, preferred_element_type, strides=window_strides, padding=padding
    )


@op("ConvWithGeneralPadding", emits="stablehlo.convolution", on=ARRAY)
def conv_with_general_padding(
    lhs: Value,
    rhs: Value,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] = (),
    rhs_dilation: Sequence[int] = (),
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    dimension_numbers: ConvolutionDimensionNumbers | str | None = None,
    window_reversal: Sequence[bool] = (),
    precision: Precision = "DEFAULT",
    preferred_element_type: Any = None,
) -> Value:
    """The sums of products of a kernel with the part of an input under it, at every position that the kernel moves to.

    Args:
        lhs: the input: a batch of arrays with features at each position of any number of spatial dimensions.
        rhs: the kernel: for each output feature an array with weights for the input features.
        window_strides: steps from one position of the kernel to the next, in each spatial dimension.
        padding: ``(low, high)`` for each spatial dimension: zeros added at either end, or elements cut off if negative;
            or ``"SAME"`` or ``"VALID"`` as of ``conv``.
        lhs_dilation: ``d`` puts ``d - 1`` zeros between neighbours of the input, before the padding; default 1.
        rhs_dilation: the same for the kernel.
        feature_group_count: into how many groups the features are divided, each convolved for itself: the kernel has
            the input features of one group, and the output features of all.
        batch_group_count: into how many groups the batch and the output features are divided, of which only those of
            the same number meet.
        dimension_numbers: what the dimensions are, also as XLA's text; default ``bf01_oi01->bf01``: batch and feature,
            and the kernel's output and input feature, before the spatial ones.
        window_reversal: whether the kernel is reversed, in each spatial dimension; default False.
        precision, preferred_element_type: as of ``dot_general``.

    Returns:
        An array of the batch divided by ``batch_group_count``, the kernel's output features, and the kernel's positions
        in each spatial dimension.

    Raises:
        OperationError: the ranks differ, the dimension numbers do not name each dimension once, a list does not have
            one entry for each spatial dimension, strides or dilations are below 1, features or batches do not fit the
            groups, or as of ``dot_general``.

    Example:
        >>> x = constant([[[1.0, 2.0, 3.0]]], "f32")
        >>> kernel = constant([[[1.0, 10.0]]], "f32")
        >>> conv_with_general_padding(x, kernel, [2], [(1, 0)])
        [[[10. 32.]]]
    """
    groups = feature_group_count, batch_group_count
    return _convolution(
        *(lhs, rhs, dimension_numbers, groups, precision, preferred_element_type),
        strides=window_strides,
        padding=padding,
        base_dilations=lhs_dilation,
        window_dilations=rhs_dilation,
        reversal=window_reversal,
    )


def _convolution(
    lhs: Value,
    rhs: Value,
    dimension_numbers: ConvolutionDimensionNumbers | str | None,
    groups: tuple[int, int],
    precision: Precision,
    preferred_element_type: Any,
    **window: Any,
) -> Value:
    """What both forms emit; ``window`` is passed on to ``windows``."""
    numbers = _checked_numbers(lhs, rhs, dimension_numbers)
    _check_groups(lhs.shape, rhs.shape, numbers, *groups)
    moving = windows(
        [lhs.dims[d] for d in numbers.input_spatial_dimensions],
        [rhs.dims[d] for d in numbers.kernel_spatial_dimensions],
        **window,
    )
    element = product_element(lhs.element_type, rhs.element_type, preferred_element_type)
    shape = _result(lhs.shape, rhs.shape, numbers, groups[1], moving)
    pairs = np.array([(w.low, w.high) for w in moving], np.int64).reshape(len(moving), 2)
    return emit(
        "stablehlo.convolution",
        [lhs, rhs],
        Shape(element, shape.dimensions, shape.dynamic),
        window_strides=i64s(w.stride for w in moving),
        padding=dense(pairs, element_type("s64")),
        lhs_dilation=i64s(w.base_dilation for w in moving),
        rhs_dilation=i64s(w.window_dilation for w in moving),
        window_reversal=flags(w.reversal for w in moving),
        dimension_numbers=numbers.attribute(),
        feature_group_count=i64(groups[0]),
        batch_group_count=i64(groups[1]),
        precision_config=precision_config(precision),
    )


def _checked_numbers(
    lhs: Value, rhs: Value, dimension_numbers: ConvolutionDimensionNumbers | str | None
) -> ConvolutionDimensionNumbers:
    if lhs.rank < 2 or rhs.rank != lhs.rank:
        raise OperationError(
            f"lhs and rhs must have equal ranks, two more than spatial dimensions, not {lhs.shape} and {rhs.shape}"
        )
    if dimension_numbers is None:
        return ConvolutionDimensionNumbers.default(lhs.rank - 2)
    numbers = dimension_numbers
    if isinstance(numbers, str):
        numbers = ConvolutionDimensionNumbers.parse(numbers)
    for name, found in (("input", numbers.input), ("kernel", numbers.kernel), ("output", numbers.output)):
        if sorted(found) != list(range(lhs.rank)):
            raise OperationError(
                f"dimension numbers of the {name} must name each of {lhs.rank} dimensions once, not {list(found)}"
            )
    return numbers


def _check_groups(
    lhs: Shape, rhs: Shape, numbers: ConvolutionDimensionNumbers, feature_groups: int, batch_groups: int
) -> None:
    if feature_groups < 1 or batch_groups < 1:
        raise OperationError(f"group counts must be at least 1, not {feature_groups} and {batch_groups}")
    if feature_groups > 1 and batch_groups > 1:
        raise OperationError(
            f"feature_group_count {feature_groups} and batch_group_count {batch_groups} cannot both be above 1"
        )
    batch, features = (lhs.dimensions[d] for d in numbers.input[:2])
    inner, outer = (rhs.dimensions[d] for d in numbers.kernel[:2])
    if min(features, inner) >= 0 and features != inner * feature_groups:
        raise OperationError(
            f"{lhs} has {features} features, and the kernel {rhs} takes {inner} in each of {feature_groups} groups"
        )
    for name, size, groups in (
        ("output features by feature_group_count", outer, feature_groups),
        ("output features by batch_group_count", outer, batch_groups),
        ("batch by batch_group_count", batch, batch_groups),
    ):
        if size >= 0 and size % groups:
            raise OperationError(f"the {name}, {size} by {groups}, cannot be divided without a remainder")
    if rhs.dynamic[numbers.kernel_output_feature_dimension] and outer >= 0:
        raise OperationError(f"the kernel {rhs} must have a static number of output features")


def _result(
    lhs: Shape, rhs: Shape, numbers: ConvolutionDimensionNumbers, batch_groups: int, moving: Sequence[Window]
) -> Shape:
    """The output's shape, with the element type of ``lhs``."""
    sizes, dynamic = [0] * lhs.rank, [False] * lhs.rank
    batch = lhs.dimensions[numbers.input_batch_dimension]
    outer = numbers.kernel_output_feature_dimension
    sizes[numbers.output_batch_dimension] = batch if batch < 0 else batch // batch_groups
    dynamic[numbers.output_batch_dimension] = lhs.dynamic[numbers.input_batch_dimension]
    sizes[numbers.output_feature_dimension] = rhs.dimensions[outer]
    dynamic[numbers.output_feature_dimension] = rhs.dynamic[outer]
    for number, window in enumerate(moving):
        source, kernel = numbers.input_spatial_dimensions[number], numbers.kernel_spatial_dimensions[number]
        place = numbers.output_spatial_dimensions[number]
        sizes[place] = window.output_size(lhs.dimensions[source])
        dynamic[place] = lhs.dynamic[source] or rhs.dynamic[kernel]
    return Shape(lhs.element, tuple(sizes), tuple(dynamic))
