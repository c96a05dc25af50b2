"""Products of tensor cores that IREE would pad: on NVIDIA's GPUs it reads beyond their operands.

Where a batch of products of bf16 or f16 has sizes that the tiles of tensor cores do not divide, IREE 3.13 copies padded
tiles into shared memory. Rows and columns that do not exist are read too, from the place behind the last one, and
replaced by zeros afterwards. The results are right, but the last of these reads leave the array.
"""

from __future__ import annotations

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import operations

# What divides these sizes is a multiple of the tiles of all instructions that IREE knows (16x8x16 and 16x16x16).
_TILE = 16
_NARROW = ("bf16", "f16")


def has_uneven_narrow_products(module: ir.Module) -> bool:
    """Whether IREE would pad a batch of products of bf16 or f16, also of numbers that were converted from these."""
    products = [op for op in operations(module, ["stablehlo.dot_general"]) if _is_uneven_batch(op)]
    if any(_is_narrow(operand.type) for op in products for operand in op.operands):
        return True
    # IREE takes a conversion, and what is between it and the product, for a part of the product.
    return bool(products) and any(_is_narrow(op.operands[0].type) for op in operations(module, ["stablehlo.convert"]))


def _is_narrow(of: ir.Type) -> bool:
    return isinstance(of, ir.RankedTensorType) and str(of.element_type) in _NARROW


def _is_uneven_batch(product: ir.Operation) -> bool:
    dimensions = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    batches = (dimensions.lhs_batching_dimensions, dimensions.rhs_batching_dimensions)
    sizes = [operand.type.shape for operand in product.operands]
    if all(sizes[0][number] == 1 for number in batches[0]):
        return False
    others = [
        size
        for shape, batch in zip(sizes, batches, strict=True)
        for number, size in enumerate(shape)
        if number not in batch
    ]
    # A size that is known only at a call is negative.
    return any(size < 0 or size % _TILE for size in others)
