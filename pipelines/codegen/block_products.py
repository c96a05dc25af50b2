"""``@hloforge.block_product`` as the geometry of ``products/block_product.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.block_product import BlockProduct, Codes, Factors
from hloforge.pipelines.library_calls.registry import CustomCall

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_block_product(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a call, as ``passes/block_products.py`` says what it is."""
    product = block_product_of(op, generator.extensions)
    *given, columns, right = map(generator.pointer, op.operands)
    count = len(product.codes)
    starts = given[count + 1] if len(given) > count + 1 else None
    factors = Factors(given[:count], given[count], starts, columns, right)
    with accessing(generator.writer.function, ""):
        product.emit(
            generator.writer.function,
            factors,
            generator.pointer(op.result),
            share.number if share else None,
            generator.machine,
        )


def block_product_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a call is shared out to."""
    return block_product_of(op, generator.extensions).workgroups(generator.machine)


def block_product_of(op: Op, extensions: frozenset[str]) -> BlockProduct:
    """The product that a call is."""
    settings = CustomCall.of(op.mlir)
    codes = list(settings.setting("codes"))
    columns = op.operands[-2]
    n, blocks, size = columns.shape
    return BlockProduct(
        m=op.result.shape[0],
        n=n,
        blocks=blocks,
        size=size,
        codes=tuple(Codes(codes[at], codes[at + 1], bool(codes[at + 2])) for at in range(0, len(codes), 3)),
        is_unsigned=bool(settings.setting("is_unsigned")),
        extensions=extensions,
    )
