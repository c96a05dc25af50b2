"""Products in a loop, of a right factor that the loop does not change: its strips are packed once, before the loop.

A product of few rows reads each strip once, so that packing takes as long as multiplying. Before a loop it is paid for
once, and each iteration reads the factor from end to end::

    packed = strips of the right factor
    while ...:
        for strip of packed, tile of rows:
            sums = 0; for each term: sums += column * row
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.products import tiled
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine

# Rows up to which packing pays: of more it is a small part of multiplying, and its memory is as much as the factor's.
_MOST_ROWS = 256


@dataclass(frozen=True)
class PackedGemm:
    """A product with a right factor that is packed.

    Attributes:
        gemm: the product, with the packed factor as its right one.
        exchanged: whether that is the left factor of the program's product.
    """

    gemm: Gemm
    exchanged: bool = False

    def _plan(self, machine: Machine) -> tiled.TiledPlan:
        found = tiled.plan(self.gemm, machine)
        return replace(found, packs_right=True, depth=found.left.run, outer=0, by_rows=False)

    def packed_bytes(self, machine: Machine) -> int:
        """Of all strips."""
        return tiled.packed_bytes(self.gemm, self._plan(machine))

    def pack(self, function: Function, factor: Value, target: Value, *, machine: Machine) -> None:
        """Write the strips."""
        results = Results(function, target, self.gemm.out, self.gemm.batch)
        product = tiled.TiledProduct(function, self.gemm, self._plan(machine), factor, factor, results, None)
        product.pack(target, function.index(0), function.index(tiled.packed_units(self.gemm, self._plan(machine))))

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs, at an address that 64 divides."""
        return self._plan(machine).left.size

    def workgroups(self, machine: Machine) -> int:
        """As of ``Gemm``."""
        return min(self.gemm.pieces(machine), self._units(self._plan(machine)))

    def _units(self, plan: tiled.TiledPlan) -> int:
        count, chunks, strips = tiled.units(self.gemm, plan)
        return count * chunks * strips

    def emit(self, work: Work) -> None:
        """As ``Gemm.emit``, of the factor that is not packed as the left one and the strips of the other one."""
        function, found = work.function, self._plan(work.machine)
        results = Results(function, work.out, self.gemm.out, self.gemm.batch, None, work.store, self.exchanged)
        product = tiled.TiledProduct(
            *(function, self.gemm, found, work.lhs, work.rhs, results, work.scratch), is_packed=True
        )
        product.run(*work.piece(self._units(found), self.workgroups(work.machine)))


def gains(gemm: Gemm, machine: Machine) -> bool:
    """Whether a product that runs again and again gains by a right factor that is packed before."""
    form = gemm.form(machine)
    if gemm.m > _MOST_ROWS:
        return False
    if form == "dots":
        # One row is multiplied as fast term by term.
        return gemm.m > 1
    return form == "tiles" and tiled.gains_by_strips(gemm, tiled.plan(gemm, machine))
