"""``stablehlo.convolution`` as the geometry of ``products/convolution.py``: any dimension numbers are strides there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.codegen.contractions import Packed, emit, is_signed, storage_kind
from hloforge.pipelines.codegen.epilogues import EpilogueWriter
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.parts import strides
from hloforge.pipelines.codegen.products.convolution import Convolution
from hloforge.pipelines.codegen.products.images import Axis, Image, Kernel
from hloforge.pipelines.codegen.refusal import RefusedError

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_convolution(generator: Generator, op: Op, share: Share | None, epilogue: Sequence[Array] = ()) -> None:
    """The code of a ``stablehlo.convolution``."""
    after = EpilogueWriter(generator, op, epilogue) if epilogue else None
    convolution = convolution_of(op, generator.extensions)
    rounded = after.rounded if after and convolution.in_registers(generator.machine) else None
    if rounded:
        convolution, after = replace(convolution, rounds=True), None
    if op.apart:
        packed = generator.writer.memory(generator.packed[op]).pointer
        emit(generator, op, Packed(convolution, packed), share, after, rounded=rounded)
    else:
        emit(generator, op, convolution, share, after, rounded=rounded)


def convolution_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a convolution is shared out to."""
    return convolution_of(op, generator.extensions).workgroups(generator.machine)


def convolution_of(op: Op, extensions: frozenset[str]) -> Convolution:
    """The geometry of a convolution of arrays with elements. Raises RefusedError for what ``lowering.py`` rewrites."""
    image, kernel = op.operands
    result = op.result
    if any(array.element.startswith("complex") for array in (image, kernel, result)) or result.element == "i1":
        raise RefusedError("a convolution of complex numbers or booleans")
    if not image.elements * kernel.elements:
        raise RefusedError("a convolution of empty arrays")
    numbers = stablehlo.ConvDimensionNumbers(op.attribute("dimension_numbers"))
    feature_groups, batch_groups = _count(op, "feature_group_count"), _count(op, "batch_group_count")
    groups = feature_groups * batch_groups
    own, weights, out = strides(image.shape), strides(kernel.shape), strides(result.shape)
    batch_dim, feature_dim = numbers.input_batch_dimension, numbers.input_feature_dimension
    input_dim, output_dim = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    out_batch, out_feature = numbers.output_batch_dimension, numbers.output_feature_dimension
    batch, inputs = image.shape[batch_dim] // batch_groups, kernel.shape[input_dim]
    outputs = kernel.shape[output_dim] // groups
    # Groups of images make groups of features of the result, as groups of features do.
    of_batch = batch_groups > 1
    group = batch * own[batch_dim] if of_batch else inputs * own[feature_dim]
    axes = _axes(op, numbers)
    # In the order of the result's memory; one of size 1 is as good as none.
    order = sorted(range(len(axes)), key=lambda d: -out[numbers.output_spatial_dimensions[d]])
    spatial = [numbers.kernel_spatial_dimensions[d] for d in order]
    is_reversed = [_flags(op, len(axes))[d] for d in order]
    steps = [-weights[d] if back else weights[d] for d, back in zip(spatial, is_reversed, strict=True)]
    start = sum((kernel.shape[d] - 1) * weights[d] for d, back in zip(spatial, is_reversed, strict=True) if back)
    chosen = [axes[d] for d in order] or [Axis(1, 1, 1)]
    in_image = [own[numbers.input_spatial_dimensions[d]] for d in order] or [0]
    in_result = [out[numbers.output_spatial_dimensions[d]] for d in order] or [0]
    return Convolution(
        batch,
        groups,
        inputs,
        outputs,
        tuple(chosen),
        Image(
            storage_kind(image.element),
            own[batch_dim],
            tuple(in_image),
            # Weights and features are one loop where these lie next to each other, as one feature does.
            own[feature_dim] if inputs > 1 else 1,
            group if groups > 1 else 0,
            is_signed(image),
        ),
        Kernel(
            storage_kind(kernel.element),
            tuple(steps or [0]),
            weights[input_dim],
            weights[output_dim],
            outputs * weights[output_dim] if groups > 1 else 0,
            start,
            is_signed(kernel),
        ),
        Image(
            storage_kind(result.element),
            out[out_batch],
            tuple(in_result),
            out[out_feature],
            outputs * out[out_feature] if groups > 1 else 0,
            is_signed(result),
        ),
        extensions,
        op.strips,
        op.apart,
    )


def _axes(op: Op, numbers: stablehlo.ConvDimensionNumbers) -> list[Axis]:
    """The spatial dimensions in the order of the dimension numbers."""
    image, kernel = op.operands
    rank = len(numbers.input_spatial_dimensions)
    padding = np.array(op.attribute("padding")).reshape(rank, 2) if "padding" in op.mlir.attributes else None
    window_strides, bases = _each(op, "window_strides", rank), _each(op, "lhs_dilation", rank)
    dilations = _each(op, "rhs_dilation", rank)
    return [
        Axis(
            image.shape[numbers.input_spatial_dimensions[d]],
            op.result.shape[numbers.output_spatial_dimensions[d]],
            kernel.shape[numbers.kernel_spatial_dimensions[d]],
            window_strides[d],
            dilations[d],
            0 if padding is None else int(padding[d][0]),
            bases[d],
        )
        for d in range(rank)
    ]


def _each(op: Op, name: str, rank: int) -> Sequence[int]:
    """A number for each spatial dimension, 1 where nothing is said."""
    return op.integers(name) if name in op.mlir.attributes else [1] * rank


def _flags(op: Op, rank: int) -> Sequence[bool]:
    name = "window_reversal"
    return [bool(flag) for flag in op.attribute(name)] if name in op.mlir.attributes else [False] * rank


def _count(op: Op, name: str) -> int:
    return ir.IntegerAttr(op.attribute(name)).value
