"""Products of matrices of complex numbers, which lie in memory as pairs of a real and an imaginary part.

A vector of the right factor holds pairs, and so does a vector of sums. A term ``(a + bi)(c + di)`` is two
multiplications of such vectors by one number each::

    sums += a * (c, d, ...)
    sums += b * (-d, c, ...)             # the same vector with its parts exchanged

So one pass over each factor does, nothing is split into parts, and results are stored as they lie in memory. The
second vector is made once for all rows of a tile. The loops are those of real products (``tiled.py``,
``row_products.py``), whose columns are parts here, and ``complex_dots.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.products import complex_dots, row_products, tiled
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine


@dataclass(frozen=True)
class ComplexGemm:
    """A product of matrices of complex numbers; sizes and strides count these, ``kind`` is the type of their parts.

    The attributes are those of ``Gemm``.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix
    out: Matrix

    @property
    def sums(self) -> str:
        """LLVM's type of a part."""
        return self.out.kind

    @property
    def count(self) -> int:
        """Matrices of the batch."""
        return math.prod(self.batch)

    def transposed(self) -> ComplexGemm:
        """The same product with the factors exchanged."""
        return ComplexGemm(
            self.batch, self.n, self.m, self.k, self.rhs.transposed(), self.lhs.transposed(), self.out.transposed()
        )

    @property
    def parts(self) -> Gemm:
        """The product whose columns are parts of numbers, and whose terms are numbers."""
        lhs, rhs, out = self.lhs, self.rhs, self.out
        left = replace(_doubled(lhs), column=2 * lhs.column)
        return Gemm(self.batch, self.m, 2 * self.n, self.k, left, _doubled(rhs), _doubled(out), is_complex=True)

    def form(self, machine: Machine) -> str:
        """Which loops are written."""
        if complex_dots.takes_exchanged(self, machine):
            return "transposed"
        if complex_dots.takes(self, machine):
            return "dots"
        takes_rows = self.out.column == 1 and row_products.takes(self.parts, machine)
        return "rows" if takes_rows else "tiles"

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs, at an address that 64 divides."""
        form = self.form(machine)
        if form == "transposed":
            return self.transposed().scratch(machine)
        if form == "dots":
            return complex_dots.scratch_bytes(self)
        if form == "rows":
            return row_products.scratch_bytes(self.parts, row_products.plan(self.parts, machine))
        return tiled.scratch_bytes(self.parts, tiled.plan(self.parts, machine))

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut; 1 if that does not pay."""
        if self.form(machine) == "transposed":
            return self.transposed().workgroups(machine)
        return min(self.parts.pieces(machine), math.prod(self._units(machine)))

    def _units(self, machine: Machine) -> Sequence[int]:
        """Parts of the work that no piece cuts."""
        form = self.form(machine)
        if form == "dots":
            return complex_dots.units(self, complex_dots.plan(self, machine))
        if form == "rows":
            return self.count, row_products.plan(self.parts, machine).chunks
        return tiled.units(self.parts, tiled.plan(self.parts, machine))

    def emit(self, work: Work) -> None:
        """As ``Gemm.emit``; results are stored as they are."""
        assert work.store is None, "nothing is computed of complex sums"
        machine, parts = work.machine, self.parts
        form = self.form(machine)
        if form == "transposed":
            self.transposed().emit(work.exchanged())
            return
        function, lhs, rhs, scratch = work.function, work.lhs, work.rhs, work.scratch
        piece = work.piece(math.prod(self._units(machine)), self.workgroups(machine))
        if form == "dots":
            complex_dots.write(function, self, complex_dots.plan(self, machine), lhs, rhs, work.out, scratch, *piece)
            return
        results = Results(function, work.out, parts.out, parts.batch)
        if form == "rows":
            assert scratch is not None
            row_products.write(function, parts, row_products.plan(parts, machine), lhs, rhs, results, scratch, *piece)
            return
        tiled.TiledProduct(function, parts, tiled.plan(parts, machine), lhs, rhs, results, scratch).run(*piece)


def _doubled(matrix: Matrix) -> Matrix:
    """Matrices whose columns are parts of numbers."""
    return replace(matrix, batch=tuple(2 * step for step in matrix.batch), row=2 * matrix.row)
