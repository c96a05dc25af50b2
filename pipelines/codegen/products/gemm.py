"""Products of matrices: ``out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]``, in any strides.

    lhs, rhs, out = dense("float", (), 64, 512), dense("float", (), 512, 256), dense("float", (), 64, 256)
    gemm = Gemm((), 64, 256, 512, lhs, rhs, out)
    gemm.emit(Work(function, *pointers, scratch, workgroup, machine, epilogue=epilogue))

Which loops are written depends on the sizes and strides (``form``):
- ``tiles``: a tile of sums in registers (``tiled.py``), the right factor in place or packed;
- ``registers``: the same with the processor's own registers for tiles (``tile_registers.py``);
- ``rows``: few rows times a right factor whose columns lie next to each other, which is read once in its order
  (``row_products.py``);
- ``dots``: few rows times columns whose terms lie next to each other, and all that is small and deep
  (``dot_products.py``).

A product of a matrix and a vector is one of these with the vector as the left factor: ``transposed`` makes it so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import BFLOAT, Value
from hloforge.pipelines.codegen.products import dot_products, row_products, tile_registers, tiled
from hloforge.pipelines.codegen.products.arithmetic import BF16
from hloforge.pipelines.codegen.products.blocking import lanes_for, pieces_for
from hloforge.pipelines.codegen.products.loops import piece_of
from hloforge.pipelines.codegen.products.operands import Matrix, sum_kind
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.strips import Strips, strips_of
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine

# Bytes that a workgroup packs at least.
_PACKED_PIECE = 1 << 15


@dataclass(frozen=True)
class Gemm:
    """A product of matrices.

    Attributes:
        batch: sizes of the dimensions that both factors and the result have.
        m: rows of ``lhs`` and the result.
        n: columns of ``rhs`` and the result.
        k: terms of a sum, at least 1.
        lhs: ``[batch, m, k]``.
        rhs: ``[batch, k, n]``.
        out: ``[batch, m, n]``.
        extensions: of the processor that may be used, by LLVM's names: ``avx512vnni``, ``avx512bf16``, ``avx2``,
            ``amx-int8``, ``amx-bf16``.
        is_complex: whether terms are complex numbers, whose parts are columns of ``rhs`` and ``out`` and lie next to
            each other in ``lhs`` (``complex_products.py``).
        strips: how ``rhs``, whose strides are those before, was packed when the program was compiled.
        rounds: whether sums are stored as bf16, in the places of ``out``.
        keeps: whether packed strips of ``rhs`` stay in the scratch area from one run of the code to the next.
        apart: whether ``rhs`` is packed by ``pack`` before.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix
    out: Matrix
    extensions: frozenset[str] = frozenset()
    is_complex: bool = False
    strips: Strips | None = None
    rounds: bool = False
    keeps: bool = False
    apart: bool = False

    @property
    def stored(self) -> Matrix:
        """Where results are stored."""
        return replace(self.out, kind=BFLOAT) if self.rounds else self.out

    @property
    def sums(self) -> str:
        """LLVM's type in which terms are added, which an epilogue is given."""
        return sum_kind(self.lhs.kind, self.rhs.kind, self.out.kind)

    @property
    def count(self) -> int:
        """Matrices of the batch."""
        return math.prod(self.batch)

    @property
    def multiplications(self) -> int:
        return self.count * self.m * self.n * self.k * (1 + self.is_complex)

    def transposed(self) -> Gemm:
        """The same product with the factors exchanged, whose result's rows are this one's columns."""
        return Gemm(
            self.batch,
            self.n,
            self.m,
            self.k,
            self.rhs.transposed(),
            self.lhs.transposed(),
            self.out.transposed(),
            self.extensions,
        )

    def packed(self, machine: Machine) -> Strips | None:
        """How a constant right factor is packed when the program is compiled; None where that does not pay."""
        if self.is_complex or self.form(machine) == "transposed":
            return None
        vectors = tiled.plan(tile_registers.by_vectors(self), machine)
        return strips_of(self, vectors, has_blocks=tile_registers.takes(self, machine))

    def form(self, machine: Machine) -> str:
        """Which loops are written."""
        if self.strips is not None:
            return "registers" if tile_registers.takes(self, machine) else "tiles"
        if dot_products.takes_exchanged(self, machine) or tile_registers.takes_exchanged(self, machine):
            return "transposed"
        if dot_products.takes(self, machine):
            return "dots"
        if tile_registers.takes(self, machine):
            return "registers"
        return "rows" if row_products.takes(self, machine) else "tiles"

    def packs_apart(self, machine: Machine) -> bool:
        """Whether it pays to pack the right factor before, once for all pieces of the work."""
        return self.form(machine) == "registers" and tile_registers.packs_apart(self, machine)

    def packed_bytes(self, machine: Machine) -> int:
        """Of what ``pack`` writes."""
        return tiled.packed_bytes(self, tile_registers.plan(self, machine))

    def pack_workgroups(self, machine: Machine) -> int:
        """Into how many pieces packing may be cut."""
        units = tiled.packed_units(self, tile_registers.plan(self, machine))
        return max(1, min(units, self.packed_bytes(machine) // _PACKED_PIECE, 4 * machine.workers))

    def pack(
        self, function: Function, factor: Value, target: Value, workgroup: Value | None, *, machine: Machine
    ) -> None:
        """Write the strips of the right factor, or a piece of them, for ``emit``."""
        found = tile_registers.plan(self, machine)
        results = Results(function, target, self.out, self.batch)
        product = tiled.TiledProduct(function, self, found, factor, factor, results, None)
        units = tiled.packed_units(self, found)
        product.pack(target, *piece_of(function, units, workgroup, self.pack_workgroups(machine)))

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs for copies of factors, at an address that 64 divides."""
        form = self.form(machine)
        if form == "transposed":
            return self.transposed().scratch(machine)
        if form == "dots":
            return dot_products.scratch_bytes(self)
        if form == "rows":
            return row_products.scratch_bytes(self, row_products.plan(self, machine))
        if form == "registers":
            own = tiled.scratch_bytes(self, self._kept(tile_registers.plan(self, machine)))
            return max(own, tile_registers.by_vectors(self).scratch(machine))
        return tiled.scratch_bytes(self, self._kept(tiled.plan(self, machine)))

    def _kept(self, found: tiled.TiledPlan) -> tiled.TiledPlan:
        """The plan, with all strips kept where it packs them whole."""
        is_whole = found.packs_right and found.strips is None and not found.is_blocked
        return replace(found, keeps=True) if self.keeps and is_whole else found

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut; 1 if that does not pay."""
        if self.form(machine) == "transposed":
            return self.transposed().workgroups(machine)
        pieces = min(self.pieces(machine), self.units(machine))
        if self.form(machine) != "tiles" or not (found := tiled.plan(self, machine)).left.size:
            return pieces
        # Each piece copies the left factor of its chunk: a chunk is cut only where workers would have nothing to do.
        count, chunks, _ = tiled.units(self, found)
        return min(pieces, max(count * chunks, machine.workers))

    def pieces(self, machine: Machine) -> int:
        """Into how many pieces it pays to cut the product, whether or not it can be."""
        lanes = lanes_for(self.sums, self.n, machine)
        left = self.m * self.lhs.bytes * (1 + self.is_complex)
        read = self.count * self.k * (left + self.n * self.rhs.bytes)
        work = self.multiplications
        if tile_registers.takes(self, machine) or tile_registers.takes_exchanged(self, machine):
            work //= tile_registers.FASTER
        return pieces_for(work, read, lanes, machine)

    def emit(self, work: Work) -> None:
        """Write the product, or a piece of it."""
        machine = work.machine
        if work.scratch is None and (needed := self.scratch(machine)):
            raise ValueError(f"this product needs {needed} bytes of scratch")
        results = Results(work.function, work.out, self.stored, self.batch, work.epilogue, work.store)
        self.write(work, results, work.piece(self.units(machine), self.workgroups(machine)))

    def write(self, work: Work, results: Results, piece: tuple[Value, Value]) -> None:
        """Write the units of a piece, from its first up to its last one, with results of their own."""
        function, machine, packs = work.function, work.machine, work.packs
        form, factors = self.form(machine), (work.lhs, work.rhs)
        if form == "transposed":
            turned = self.transposed()
            turned.write(work.exchanged(), replace(results, matrix=turned.out, exchanged=True), piece)
        elif form == "dots":
            plan = dot_products.plan(self, machine)
            dot_products.write(function, self, plan, *factors, results, work.scratch, *piece)
        elif form == "rows":
            assert work.scratch is not None
            row_products.write(
                *(function, self, row_products.plan(self, machine), *factors, results, work.scratch), *piece
            )
        elif form == "registers":
            found = self._kept(tile_registers.plan(self, machine))
            right = work.rhs if work.packed is None else work.packed
            product = tile_registers.TileRegisterProduct(
                *(function, self, found, work.lhs, right, results, work.scratch),
                is_packed=work.packed is not None,
                packs=packs,
            )
            vectors = tile_registers.by_vectors(self)
            tile_registers.run_if_allowed(
                function,
                lambda part: product.run(*part),
                piece,
                (self.units(machine), vectors.units(machine)),
                lambda part: vectors.write(replace(work, packed=None), results, part),
                rounds=BF16 in self.extensions,
            )
        else:
            found = self._kept(tiled.plan(self, machine))
            tiled.TiledProduct(function, self, found, *factors, results, work.scratch, packs=packs).run(*piece)

    def units(self, machine: Machine) -> int:
        """Parts of the work that no piece cuts."""
        form = self.form(machine)
        if form == "transposed":
            return self.transposed().units(machine)
        if form == "dots":
            return math.prod(dot_products.units(self, dot_products.plan(self, machine)))
        if form == "rows":
            return self.count * row_products.plan(self, machine).chunks
        if form == "registers":
            return math.prod(tiled.units(self, tile_registers.plan(self, machine)))
        return math.prod(tiled.units(self, tiled.plan(self, machine)))
