"""``stablehlo.dot_general`` as the geometry of ``products/gemm.py``, and how any product is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen.elements.memory import storage
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.epilogues import EpilogueWriter
from hloforge.pipelines.codegen.factor_strides import joined
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.parts import part_of, strides
from hloforge.pipelines.codegen.products.complex_products import ComplexGemm
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.codegen.products.packed import PackedGemm, gains
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Parts of scratch memory begin at multiples of it.
LINE = 64


class Product(Protocol):
    """What ``products/`` write."""

    def scratch(self, machine: Machine) -> int: ...

    def emit(self, work: Work) -> None: ...


class PackedProduct(Product, Protocol):
    """A product whose right factor may be packed apart."""

    def packs_apart(self, machine: Machine) -> bool: ...

    def packed_bytes(self, machine: Machine) -> int: ...

    def pack_workgroups(self, machine: Machine) -> int: ...

    def pack(
        self, function: Function, factor: Value, target: Value, workgroup: Value | None, /, *, machine: Machine
    ) -> None: ...


@dataclass(frozen=True)
class Packed:
    """A product whose right factor was packed before.

    Attributes:
        packed: where it is.
    """

    product: PackedProduct
    packed: Value

    def scratch(self, machine: Machine) -> int:
        return self.product.scratch(machine)

    def emit(self, work: Work) -> None:
        self.product.emit(replace(work, packed=self.packed))


def emit(
    generator: Generator,
    op: Op,
    product: Product,
    share: Share | None,
    after: EpilogueWriter | None = None,
    factors: tuple[Value, Value] | None = None,
    rounded: Array | None = None,
) -> None:
    """Write a product of two arrays in memory, or a workgroup's part of it.

    Args:
        after: writes what is stored instead of its sums.
        rounded: what is stored instead of its sums by the product itself.
        factors: where they are; None for the operands themselves, or the right one's strips if it has some.
    """
    if factors is None and op in generator.strips:
        factors = generator.pointer(op.operands[0]), generator.writer.memory(generator.strips[op]).pointer
    lhs, rhs = factors or tuple(map(generator.pointer, op.operands[:2]))
    # Nobody stores where sums would be.
    out = lhs if after else generator.pointer(rounded or op.result)
    scratch = scratch_of(generator, product.scratch(generator.machine), share)
    function = generator.writer.function
    number = share.number if share else None
    if after:
        after.write_borders()
    with accessing(function, ""):
        store = after.store if after else None
        product.emit(Work(function, lhs, rhs, out, scratch, number, generator.machine, store=store))


def scratch_of(generator: Generator, size: int, share: Share | None) -> Value | None:
    """Memory of so many bytes that each workgroup works in; None for none."""
    size = -(-size // LINE) * LINE
    scratch = generator.scratch(size * (share.count if share else 1))
    if scratch is None or share is None:
        return scratch
    return generator.writer.function.offset(scratch, I8, share.number * size)


def write_dot_general(generator: Generator, op: Op, share: Share | None, epilogue: Sequence[Array] = ()) -> None:
    """The code of a ``stablehlo.dot_general``."""
    after = EpilogueWriter(generator, op, epilogue) if epilogue else None
    if is_complex_product(op):
        emit(generator, op, complex_product_of(op), share)
        return
    if op.packed is None:
        product = product_of(op, generator.extensions)
        rounded = after.rounded if after and product.form(generator.machine) == "registers" else None
        if rounded:
            product, after = replace(product, rounds=True), None
        if op.apart:
            strips = generator.writer.memory(generator.packed[op]).pointer
            emit(generator, op, Packed(product, strips), share, after, rounded=rounded)
        else:
            emit(generator, op, product, share, after, rounded=rounded)
        return
    strips = generator.writer.memory(generator.packed[op]).pointer
    factors = generator.pointer(op.operands[1 - op.packed]), strips
    emit(generator, op, packed_product(op, op.packed, generator.extensions), share, after, factors)


def pack_before(generator: Generator, loop: Op) -> None:
    """Pack factors of products in a loop that are in memory before it, where that pays."""
    for op in _products_in(loop):
        if op.packed is not None or op.panel is not None or op.strips is not None:
            continue
        side = _packed_side(op, loop, generator)
        if side is None:
            continue
        product = packed_product(op, side, generator.extensions)
        slot = generator.room("i8", -(-product.packed_bytes(generator.machine) // LINE) * LINE)
        function, factor = generator.writer.function, generator.pointer(op.operands[side])
        with accessing(function, ""):
            product.pack(function, factor, generator.writer.memory(slot).pointer, machine=generator.machine)
        op.packed, generator.packed[op] = side, slot


def _products_in(loop: Op) -> Iterator[Op]:
    for block in loop.inner:
        for op in block.ops:
            if op.name == "dot_general":
                yield op
            yield from _products_in(op)


def _packed_side(op: Op, loop: Op, generator: Generator) -> int | None:
    """The factor of a product that is to be packed before a loop; None for neither."""
    if is_complex_product(op) or not all(array.elements for array in (*op.operands, op.result)):
        return None
    side = 1 if product_of(op, generator.extensions).form(generator.machine) != "transposed" else 0
    part = part_of(op.operands[side], generator.in_memory)
    if part is None or not part.is_dense or part.is_moved or any(part.base.block.inside(one) for one in loop.inner):
        return None
    product = packed_product(op, side, generator.extensions)
    return side if gains(product.gemm, generator.machine) else None


def packed_product(op: Op, side: int, extensions: frozenset[str]) -> PackedGemm:
    """The product of a ``dot_general`` whose factor of this side is packed before a loop."""
    gemm = product_of(op, extensions)
    return PackedGemm(gemm) if side else PackedGemm(gemm.transposed(), exchanged=True)


def complex_product_of(op: Op) -> ComplexGemm:
    """The product of complex matrices that a ``dot_general`` is. Raises RefusedError for what has no such form."""
    found = _product_of(op, frozenset())
    if found.lhs.kind != found.out.kind or found.rhs.kind != found.out.kind:
        raise RefusedError("a product of complex numbers of several types")
    lhs, rhs = _with_neighbours(found.lhs, found.m, found.k), _with_neighbours(found.rhs, found.k, found.n)
    return ComplexGemm(found.batch, found.m, found.n, found.k, lhs, rhs, found.out)


def _with_neighbours(matrix: Matrix, rows: int, columns: int) -> Matrix:
    """A matrix whose rows or columns lie next to each other, also if there is one alone."""
    if 1 in (matrix.row, matrix.column):
        return matrix
    if rows == 1:
        return replace(matrix, row=1)
    if columns == 1:
        return replace(matrix, column=1)
    raise RefusedError("a product of complex matrices whose rows and columns lie apart")


def is_complex_product(op: Op) -> bool:
    return any(array.element.startswith("complex") for array in (*op.operands, op.result))


def product_of(op: Op, extensions: frozenset[str]) -> Gemm:
    """The product of matrices that a ``dot_general`` is. Raises RefusedError for what ``lowering.py`` rewrites."""
    if is_complex_product(op) or op.result.element == "i1":
        raise RefusedError("a product of complex numbers or booleans")
    return replace(_product_of(op, extensions), strips=op.strips, apart=op.apart)


def _product_of(op: Op, extensions: frozenset[str]) -> Gemm:
    lhs, rhs = op.operands
    result = op.result
    if 0 in (*lhs.shape, *rhs.shape):
        raise RefusedError("a product of empty arrays")
    numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    lhs_batch, rhs_batch = tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)
    lhs_depth, rhs_depth = tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)
    rows = [d for d in range(lhs.rank) if d not in (*lhs_batch, *lhs_depth)]
    columns = [d for d in range(rhs.rank) if d not in (*rhs_batch, *rhs_depth)]
    batch = tuple(lhs.shape[d] for d in lhs_batch)
    left, right = (
        part.strides if part else strides(one.shape) for one, part in zip(op.operands, op.parts, strict=True)
    )
    out = strides(result.shape)
    row, m = joined(lhs.shape, left, rows)
    left_depth, k = joined(lhs.shape, left, lhs_depth)
    right_depth, _ = joined(rhs.shape, right, rhs_depth)
    column, n = joined(rhs.shape, right, columns)
    return Gemm(
        batch,
        m,
        n,
        k,
        Matrix(storage_kind(lhs.element), tuple(left[d] for d in lhs_batch), row, left_depth, is_signed(lhs)),
        Matrix(storage_kind(rhs.element), tuple(right[d] for d in rhs_batch), right_depth, column, is_signed(rhs)),
        Matrix(storage_kind(result.element), tuple(out[: len(batch)]), n, 1, is_signed(result)),
        extensions,
    )


def is_signed(array: Array) -> bool:
    """Whether integers of an array have a sign; of other types, true."""
    return not array.element.startswith(("u", "i1")) or array.element == "i16"


def storage_kind(element: str) -> str:
    """LLVM's type of an element in memory, of half precision as a float."""
    return "bfloat" if element == "bf16" else storage(element)
