"""What the code of a product reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.products.loops import piece_of
from hloforge.pipelines.codegen.products.results import Epilogue, Store
from hloforge.pipelines.framework.machine import Machine


@dataclass(frozen=True)
class Work:
    """What the code of a product, or of a piece of it, reads and writes.

    Attributes:
        function: into which it is written.
        lhs, rhs, out: the addresses of both factors (of a convolution image and kernel) and of the results.
        scratch: of as many bytes as the product's ``scratch`` says, of this workgroup alone; None where it needs none.
        workgroup: the number of the piece, below the product's ``workgroups``; None for all of it.
        epilogue: what is stored instead of sums. An element may be computed and stored more than once, so it must
            not read what is stored, and ``store`` must not add to it. Of a product with one column it is given
            numbers; written with that column as the left factor (``transposed``) it is given vectors. Of a convolution
            indices are [image, *spatial indices, feature], where the feature counts through all groups. Lanes go along
            the dimension of the result that is contiguous: features if they are and there are several, else pixels of
            a row.
        store: stores results, with indices as of an epilogue, in place of a plain store to ``out``; then ``out`` says
            no strides.
        packs: of a product that ``keeps`` strips, whether this run packs them: the right factor is another one.
        packed: what ``pack`` has written, where the right factor is packed apart.
    """

    function: Function
    lhs: Value
    rhs: Value
    out: Value
    scratch: Value | None
    workgroup: Value | None
    machine: Machine
    epilogue: Epilogue | None = None
    store: Store | None = None
    packs: Value | None = None
    packed: Value | None = None

    def piece(self, units: int, workgroups: int) -> tuple[Value, Value]:
        """The first of so many units that the workgroup writes, one of so many, and the one after its last."""
        return piece_of(self.function, units, self.workgroup, workgroups)

    def exchanged(self) -> Work:
        """With the right factor as the left one."""
        return replace(self, lhs=self.rhs, rhs=self.lhs)
