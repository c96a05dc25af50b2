"""Convolutions with their dimensions in one order, whatever their dimension numbers say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class InOrder:
    """The operands of a ``stablehlo.convolution``, transposed.

    Attributes:
        image: ``[batch, *space, features]``.
        kernel: ``[*window, input features of a group, output features]``.
        dims: the sizes of the result as ``[batch, *space, features]``.
        order: which dimension of the result each of these is.
    """

    image: Value
    kernel: Value
    dims: list[int]
    order: list[int]

    @classmethod
    def of(cls, op: Any) -> InOrder:
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        image = [numbers.input_batch_dimension, *numbers.input_spatial_dimensions, numbers.input_feature_dimension]
        features = [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension]
        order = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension]
        dims = Value(op.results[0]).dims
        return cls(
            ops.transpose(Value(op.operands[0]), image),
            ops.transpose(Value(op.operands[1]), [*numbers.kernel_spatial_dimensions, *features]),
            [dims[dimension] for dimension in order],
            order,
        )

    def forwards(self, op: AnyOp) -> Value:
        """The kernel without the reversal that the operation says."""
        turned = [d for d, is_turned in enumerate(integers(op, "window_reversal")) if is_turned]
        return ops.rev(self.kernel, turned) if turned else self.kernel

    def result(self, value: Value) -> Value:
        """A result ``[batch, *space, features]`` in the order of the convolution's own."""
        return ops.transpose(value, [self.order.index(dimension) for dimension in range(len(self.order))])


def numbers_of_order(space: int, *, first: bool) -> ir.Attribute:
    """Dimension numbers with the features first, or last: then the kernel's are ``[*window, inputs, outputs]``."""
    last = space + 1
    image = (0, 1, range(2, space + 2)) if first else (0, last, range(1, last))
    kernel = (1, 0, range(2, space + 2)) if first else (space, last, range(space))
    places: tuple[Any, ...] = (*image, *kernel, *image)
    return stablehlo.ConvDimensionNumbers.get(*map(_listed, places))


def _listed(places: int | range) -> Any:
    return places if isinstance(places, int) else list(places)
