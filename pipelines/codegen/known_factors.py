"""Constants that products alone read: they lie in memory in the order in which the products read them.

Which constants these are is decided before the steps of a program are: such a constant is in memory only as its strips
(``products/strips.py``), once for each way in which products read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.pipelines.codegen.contractions import is_complex_product, product_of
from hloforge.pipelines.codegen.convolutions import convolution_of
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.grouped_products import grouped_product_of
from hloforge.pipelines.codegen.narrow_factors import PRODUCTS
from hloforge.pipelines.codegen.products.strips import Strips

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def pack_constants(generator: Generator, block: Block) -> None:
    """Give the constants of a program that products alone read their memory, and tell these products."""
    for constant in _constants(block):
        found = _products(generator, constant.result)
        if not found:
            continue
        data = np.ascontiguousarray(constant_of(constant.mlir))
        slots = {key: generator.constant(key[0].packed(data, key[1])) for key in dict.fromkeys(found.values())}
        for op, key in found.items():
            op.strips = key[0]
            generator.strips[op] = slots[key]
        # For whoever asks whether it is in memory.
        generator.slots[constant.result] = next(iter(slots.values()))


def _constants(block: Block) -> Iterator[Op]:
    for op in block.ops:
        if op.name == "constant" and op.result.element in ("i8", "ui8", "f32") and not op.is_splat:
            yield op
        for inner in op.inner:
            yield from _constants(inner)


def _products(generator: Generator, array: Array) -> dict[Op, tuple[Strips, int]]:
    """The products that read an array as their right factor, how, and from which element on; none if others read it."""
    found: dict[Op, tuple[Strips, int]] = {}
    if array.is_result:
        return {}
    for reader in array.readers:
        if array not in reader.operands or _is_unread(reader):
            # What reads it in an inner block is a reader as well.
            continue
        if reader.name == "reshape":
            more = _products(generator, reader.result)
            if not more:
                return {}
            found |= more
            continue
        if (
            reader.name not in (*PRODUCTS, "grouped_product")
            or array is not reader.operands[1]
            or array is reader.operands[0]
        ):
            return {}
        key = _packed(generator, reader)
        if key is None:
            return {}
        found[reader] = key
    return found


def _is_unread(op: Op) -> bool:
    return bool(op.results) and not any(array.readers or array.is_result for array in op.results)


def _packed(generator: Generator, op: Op) -> tuple[Strips, int] | None:
    if is_complex_product(op) or not all(array.elements for array in (*op.operands, op.result)):
        return None
    if op.name == "grouped_product":
        strips = grouped_product_of(op, generator.extensions).packed(generator.machine)
        return (strips, 0) if strips else None
    if op.name == "dot_general":
        strips = product_of(op, generator.extensions).packed(generator.machine)
        return (strips, 0) if strips else None
    convolution = convolution_of(op, generator.extensions)
    strips = convolution.packed(generator.machine)
    return (strips, convolution.kernel.start) if strips else None
