"""``polyphase-convolutions``: convolve dilated images without the zeros between their elements.

Before::

    %y = stablehlo.convolution(%x, %w) {lhs_dilate = [2], pad = [[2, 2]]} : [n,h,c], [4,c,f] -> [n,2*h,f]

After::

    %even = stablehlo.convolution(%x, %w[0::2]) {pad = [[1, 0]]} : [n,h,c], [2,c,f] -> [n,h,f]
    %odd  = stablehlo.convolution(%x, %w[1::2]) {pad = [[0, 1]]}
    %y = reshape (concatenate %even, %odd, along a new dimension after h)

Such are transposed convolutions, and gradients of strided ones by their images. In two dimensions of stride 2, a
quarter of the multiplications is left. Where the features of a result are few, or all phases multiply the same
elements, the phases are features of one convolution instead, as in Shi et al., "Is the deconvolution layer the same as
a convolutional layer?" (2016). Zeros between elements no longer meet infinite numbers of a kernel, which made NaN.

For code generation (``element``), phases of many features stay one operation with features last, because registers for
tiles compute them where they are: a gradient by two images of 56x56 of 3x3 with a stride of 2, from 64 to 128 features
in bf16, took 1.45 ms as four convolutions, and 0.48 since (one core of a Xeon).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import dense_elements, ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder, numbers_of_order
from hloforge.pipelines.analysis.memory_elements import element_in_memory
from hloforge.pipelines.analysis.polyphase import WORTH, Phase, Phases
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern

# Features of a group for which registers for tiles compute phases where they are: with fewer ones, columns of several
# phases fill vectors together, or blocks of terms are mostly zeros.
_LEAST_OUTPUTS, _LEAST_INPUTS = 16, 8


@register
@dataclass(frozen=True)
class PolyphaseConvolutions(Pass):
    """Replace convolutions of dilated images by one convolution per phase (polyphase).

    Attributes:
        worth: multiplications that have to be saved.
        element: that both factors have in memory, where their groups have several features; "" for any convolutions.
        steps: whether only those are taken whose windows have steps along a dimension with gaps between pixels.
    """

    name: ClassVar[str] = "polyphase-convolutions"
    worth: int = WORTH
    element: str = ""
    steps: bool = False

    def run(self, module: ir.Module) -> None:
        @pattern("stablehlo.convolution")
        def by_phases(op: ir.Operation) -> Replacement:
            if self.steps and not _has_steps(op):
                return NoMatch("phases next to each other")
            if self.element and not self._takes(op):
                return NoMatch("factors of other types, or single features")
            if self.element and _has_phases_in_place(op):
                return _in_order(op)
            phases = Phases.of(op, self.worth)
            if phases is None:
                return NoMatch("no zeros between elements, or few")
            rewriting = _Rewriting.of(op, phases)
            return rewriting.joined() if phases.joined else rewriting.apart()

        apply_patterns(module, by_phases)

    def _takes(self, op: Any) -> bool:
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        inputs = Value(op.operands[1]).dims[numbers.kernel_input_feature_dimension]
        return inputs != 1 and all(element_in_memory(factor) == self.element for factor in op.operands)


def _has_steps(op: Any) -> bool:
    """Whether windows move by several pixels, or have gaps, along a dimension of pixels apart."""
    names = ("lhs_dilation", "window_strides", "rhs_dilation")
    return any(base > 1 < max(steps) for base, *steps in zip(*(integers(op, name) for name in names), strict=False))


def _has_phases_in_place(op: Any) -> bool:
    """Whether code generation computes the phases where they are, by registers for tiles (``phased_tiles.py``)."""
    if max(integers(op, "lhs_dilation"), default=1) == 1:
        return False
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = Value(op.operands[1])
    groups = integer(op, "feature_group_count") * integer(op, "batch_group_count")
    outputs = kernel.dims[numbers.kernel_output_feature_dimension] // groups
    if outputs < _LEAST_OUTPUTS or kernel.dims[numbers.kernel_input_feature_dimension] < _LEAST_INPUTS:
        return False
    bases = integers(op, "lhs_dilation")
    steps = [integers(op, name) or (1,) * len(bases) for name in ("window_strides", "rhs_dilation")]
    return integer(op, "batch_group_count") == 1 and all(
        base == 1
        or (stride == dilation == 1 and base <= min(kernel.dims[in_kernel], Value(op.results[0]).dims[in_result]))
        for base, stride, dilation, in_kernel, in_result in zip(
            bases, *steps, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions, strict=True
        )
    )


def _in_order(op: Any) -> Replacement:
    """The convolution with features last, also of the weights, which have no reversal."""
    space = len(integers(op, "lhs_dilation"))
    numbers = numbers_of_order(space, first=False)
    if op.attributes["dimension_numbers"] == numbers and not any(integers(op, "window_reversal")):
        return NoMatch("features are last, and weights in order")
    ordered = InOrder.of(op)
    attributes = {name: op.attributes[name] for name in op.attributes if name != "window_reversal"}
    attributes["dimension_numbers"] = numbers
    type_ = ir.RankedTensorType.get(ordered.dims, op.results[0].type.element_type)
    return ordered.result(emit(op.name, [ordered.image, ordered.forwards(op)], type_, **attributes))


@dataclass(frozen=True)
class _Rewriting:
    """A convolution that is taken apart.

    Attributes:
        ordered: its operands with their features last.
        kernel: that of ``ordered``, not reversed.
        order: the result's dimensions: ``n`` of the batch, ``f`` of the features, and numbers of those of space.
    """

    op: Any
    phases: Phases
    ordered: InOrder
    kernel: Value
    order: tuple[str, ...]

    @classmethod
    def of(cls, op: Any, phases: Phases) -> _Rewriting:
        ordered = InOrder.of(op)
        names = ["n", *map(str, range(len(phases.axes))), "f"]
        places = sorted(zip(ordered.order, names, strict=True))
        return cls(op, phases, ordered, ordered.forwards(op), tuple(name for _, name in places))

    def joined(self) -> Value:
        """One convolution over all elements that any phase meets, with the features of each phase after another."""
        wholes = [_known(axis.whole) for axis in self.phases.axes]
        kernels = [self._kernel(phases, wholes) for phases in product(*(axis.phases for axis in self.phases.axes))]
        kernel = ops.concat_in_dim(kernels, self.kernel.rank - 1)
        counts = [len(axis.phases) for axis in self.phases.axes]
        batch, features = self.ordered.dims[0], self.ordered.dims[-1]
        lengths = [axis.length for axis in self.phases.axes]
        names = [f"phase {d}" for d in range(len(counts))]
        if self._is_product_of_features(wholes):
            image = _features_first(self.ordered.image)
            # Outputs, inputs, window.
            rank = kernel.rank
            kernel = ops.transpose(kernel, [rank - 1, rank - 2, *range(rank - 2)])
            made = self._convolution(image, kernel, wholes, [batch, prod(counts) * features, *lengths], first=True)
            whole = ops.reshape(made, [batch, *counts, features, *lengths])
            return self._interleaved(whole, ["n", *names, "f", *map(str, range(len(counts)))])
        columns = prod(counts) * features
        made = self._convolution(self.ordered.image, kernel, wholes, [batch, *lengths, columns])
        whole = ops.reshape(made, [batch, *lengths, *counts, features])
        return self._interleaved(whole, ["n", *map(str, range(len(counts))), *names, "f"])

    def apart(self) -> Value:
        """A convolution for each phase, zeros for one that meets no element."""
        axes = self.phases.axes
        batch, features = self.ordered.dims[0], self.ordered.dims[-1]
        lengths, counts = [axis.length for axis in axes], [len(axis.phases) for axis in axes]
        dims = [batch, *lengths, features]
        parts = [
            self._convolution(self.ordered.image, self._kernel(phases, phases), phases, dims)
            if all(phase.places for phase in phases)
            else zeros(Value(self.op.results[0]).element_type, dims)
            for phases in product(*(axis.phases for axis in axes))
        ]
        beside = [ops.reshape(part, [batch, *lengths, 1, features]) for part in parts]
        whole = ops.concat_in_dim(beside, len(axes) + 1)
        names = [*map(str, range(len(axes))), *(f"phase {d}" for d in range(len(axes)))]
        return self._interleaved(ops.reshape(whole, [batch, *lengths, *counts, features]), ["n", *names, "f"])

    def _kernel(self, phases: Sequence[Phase], wholes: Sequence[Phase]) -> Value:
        """The positions of the kernel that meet elements in phases of each dimension, in a window of ``wholes``."""
        kernel, axes = self.kernel, self.phases.axes
        if not all(phase.places for phase in phases):
            return zeros(kernel.element_type, [*(whole.places for whole in wholes), *kernel.dims[-2:]])
        starts = [phase.place for phase in phases]
        limits = [phase.place + (phase.places - 1) * axis.step + 1 for phase, axis in zip(phases, axes, strict=True)]
        steps = [axis.step for axis in axes]
        part = ops.slice(kernel, [*starts, 0, 0], [*limits, *kernel.dims[-2:]], [*steps, 1, 1])
        edges = []
        for phase, whole, axis in zip(phases, wholes, axes, strict=True):
            before = (phase.first - whole.first) // axis.dilation
            edges.append((before, whole.places - phase.places - before))
        return part if not any(map(any, edges)) else _padded(part, [*edges, (0, 0), (0, 0)])

    def _is_product_of_features(self, wholes: Sequence[Phase]) -> bool:
        """Whether ``unfold-convolutions`` multiplies the image as it lies, features first."""
        names = ["n", "f", *map(str, range(len(wholes)))]
        is_real = self.kernel.element_type.name in ("f32", "f64")
        in_place = all(
            whole.places == 1 and axis.stride == 1 and not any(axis.padding(whole))
            for whole, axis in zip(wholes, self.phases.axes, strict=True)
        )
        return is_real and in_place and list(self.order) == names

    def _convolution(
        self, image: Value, kernel: Value, phases: Sequence[Phase], dims: Sequence[int], *, first: bool = False
    ) -> Value:
        """Of an image without zeros, to a result of these sizes; features are last, or first."""
        space = len(phases)
        attributes = {name: self.op.attributes[name] for name in self.op.attributes}
        for name in ("lhs_dilation", "window_reversal"):
            attributes.pop(name, None)
        axes = self.phases.axes
        padding = [axis.padding(phase) for axis, phase in zip(axes, phases, strict=True)]
        type_ = ir.RankedTensorType.get([space, 2], ir.IntegerType.get_signless(64))
        attributes["padding"] = dense_elements(np.array(padding, np.int64).reshape(space, 2), type_)
        attributes["window_strides"] = ir.DenseI64ArrayAttr.get([axis.stride for axis in axes])
        attributes["rhs_dilation"] = ir.DenseI64ArrayAttr.get([axis.dilation for axis in axes])
        attributes["dimension_numbers"] = numbers_of_order(space, first=first)
        result = ir.RankedTensorType.get(dims, self.op.results[0].type.element_type)
        return emit(self.op.name, [image, kernel], result, **attributes)

    def _interleaved(self, whole: Value, names: Sequence[str]) -> Value:
        """The result from an array whose dimensions are called so, with one more for the phases along each of space."""
        order = []
        for name in self.order:
            order += [name] if name in "nf" else [name, f"phase {name}"]
        result = Value(self.op.results[0])
        sizes = [
            size if name in "nf" else self.phases.axes[int(name)].length * len(self.phases.axes[int(name)].phases)
            for name, size in zip(self.order, result.dims, strict=True)
        ]
        moved = ops.reshape(ops.transpose(whole, [names.index(name) for name in order]), sizes)
        return moved if sizes == list(result.dims) else ops.slice(moved, [0] * len(sizes), result.dims)


def _known(phase: Phase | None) -> Phase:
    if phase is None:
        raise ValueError("phases that do not meet are not joined")
    return phase


def _padded(kernel: Value, edges: Sequence[tuple[int, int]]) -> Value:
    """Complex numbers by their parts, as in ``unfold-convolutions``."""
    if kernel.element_type.is_complex:
        return ops.complex(_padded(ops.real(kernel), edges), _padded(ops.imag(kernel), edges))
    return ops.pad(kernel, 0, edges)


def _features_first(image: Value) -> Value:
    return ops.transpose(image, [0, image.rank - 1, *range(1, image.rank - 1)])
