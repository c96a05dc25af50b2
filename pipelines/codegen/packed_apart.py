"""Right factors of products that are packed before, by workgroups of their own (``products/tile_registers.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.contractions import PackedProduct, is_complex_product, product_of
from hloforge.pipelines.codegen.convolutions import convolution_of
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.nest_loops import Share

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def packs_apart(generator: Generator, op: Op) -> bool:
    """Whether a product's right factor is packed before it by workgroups of their own."""
    if op.strips is not None or not all(array.elements for array in (*op.operands, *op.results)):
        return False
    if op.name == "dot_general" and (is_complex_product(op) or op.packed is not None or op.panel is not None):
        return False
    product = _product(generator, op)
    return product is not None and product.packs_apart(generator.machine)


def packing_of(generator: Generator, op: Op) -> tuple[int, int]:
    """The bytes of a product's packed factor, and how many workgroups pack it."""
    product, machine = _product(generator, op), generator.machine
    assert product is not None
    return product.packed_bytes(machine), product.pack_workgroups(machine)


def write_packing(generator: Generator, op: Op, share: Share | None) -> None:
    """The code that packs a product's right factor, or a workgroup's share of it."""
    product, function = _product(generator, op), generator.writer.function
    assert product is not None
    factor, target = generator.pointer(op.operands[1]), generator.writer.memory(generator.packed[op]).pointer
    with accessing(function, ""):
        product.pack(function, factor, target, share.number if share else None, machine=generator.machine)


def _product(generator: Generator, op: Op) -> PackedProduct | None:
    if op.name == "convolution":
        return convolution_of(op, generator.extensions)
    return product_of(op, generator.extensions) if op.name == "dot_general" else None
