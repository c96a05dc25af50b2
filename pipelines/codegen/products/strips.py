"""Right factors that are known when a program is compiled, in the order in which the micro-kernel reads them.

Packing a strip takes as long as multiplying some rows by it. A constant is packed once, by whoever compiles the
program: for each matrix and each vector of columns, groups of terms with the vector's columns next to each other, and
behind them what sums begin with where the instruction needs that (``Arithmetic.flips``)::

    [matrices, vectors of columns, steps + 1, lanes]         # units of four bytes

The last vector begins early enough to end with the matrix. Steps are whole blocks of the processor's registers for
tiles if it has some, so that these and vectors read the same strips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hloforge.pipelines.codegen.lang.values import FLOAT, I8
from hloforge.pipelines.codegen.products.dot_products import MOST_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hloforge.pipelines.codegen.products.gemm import Gemm
    from hloforge.pipelines.codegen.products.tiled import TiledPlan

# Terms of a unit of bytes, and bytes of one; a unit of f32 is a term.
_GROUP, _UNIT_BYTES = 4, 4
# Of f32: tiles of rows that read a strip, bytes between its terms, and bytes that tiles read of it, for which it is
# packed: 3x3 from 256 to 256 features over 14x14 takes 0.91 of the time, 128 to 128 over 28x28 as long. Of few rows,
# weights in place are read as fast as memory gives them, but for those that have to be exchanged as they are read, as
# PyTorch's are: 5 to 16 rows by 784x400 take 0.2 to 0.5 of the time.
_LEAST_TILES, _FAR, _MOST_BYTES = 4, 1024, 3 << 19
# Units that a register for tiles takes at once.
BLOCK = 16
# What a flipped byte differs by.
_FLIP = 128

_Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.int8 | np.uint8 | np.float32]]"


@dataclass(frozen=True)
class Strips:
    """How a factor of bytes or f32 is packed. All strides count elements.

    Attributes:
        matrices: the sizes and strides of the dimensions of the batch along which matrices differ.
        loops: the numbers and strides of the loops of terms, the innermost one last; its terms fill whole units.
        columns: how many there are, and their stride.
        lanes: columns of a vector.
        steps: units of terms, with those of zeros.
        beginning: what the sums of terms are multiplied by where sums begin with them; 0 where they begin with 0.
        group: terms of a unit.
    """

    matrices: tuple[tuple[int, int], ...]
    loops: tuple[tuple[int, int], ...]
    columns: tuple[int, int]
    lanes: int
    steps: int
    beginning: int
    group: int = _GROUP

    @property
    def vectors(self) -> int:
        return -(-self.columns[0] // self.lanes)

    @property
    def vector_bytes(self) -> int:
        """From one vector's terms to the next one's."""
        return (self.steps + (self.beginning != 0)) * self.lanes * _UNIT_BYTES

    def batch_strides(self, batch: Sequence[int], strides: Sequence[int]) -> list[int]:
        """The bytes from one matrix to the next along each dimension of a batch.

        Args:
            strides: of the factor before it was packed.
        """
        found, step = [], self.vectors * self.vector_bytes
        for size, stride in zip(reversed(batch), reversed(strides), strict=True):
            found.append(step if stride else 0)
            step *= size if stride else 1
        return found[::-1]

    def packed(self, factor: _Elements, start: int) -> bytes:
        """The strips.

        Args:
            factor: its elements as they lie in memory.
            start: the number of the first matrix's first one.
        """
        dims = (*self.matrices, *self.loops, self.columns)
        flat = np.ascontiguousarray(factor).reshape(-1)
        strides = tuple(stride * flat.itemsize for _, stride in dims)
        found = np.lib.stride_tricks.as_strided(flat[start:], tuple(size for size, _ in dims), strides)
        count, run = math.prod(size for size, _ in self.matrices), self.loops[-1][0]
        found = found.reshape(count, -1, run, self.columns[0])
        if run % self.group:
            found = np.pad(found, [(0, 0), (0, 0), (0, -run % self.group), (0, 0)])
        found = found.reshape(count, -1, self.group, self.columns[0])
        if found.shape[1] < self.steps:
            found = np.pad(found, [(0, 0), (0, self.steps - found.shape[1]), (0, 0), (0, 0)])
        # [matrices, steps, group, vectors, lanes]
        if self.columns[0] % self.lanes:
            firsts = np.minimum(np.arange(self.vectors) * self.lanes, self.columns[0] - self.lanes)
            found = found[..., firsts[:, None] + np.arange(self.lanes)]
        else:
            found = found.reshape(*found.shape[:-1], self.vectors, self.lanes)
        parts = [np.ascontiguousarray(found.transpose(0, 3, 1, 4, 2)).view(np.int32)[..., 0]]
        if self.beginning:
            sums = found.astype(np.int64).sum((1, 2)) * self.beginning
            parts.append(sums.astype(np.uint32).view(np.int32)[:, :, None])
        return np.concatenate(parts, axis=2).tobytes()


def strips_of(gemm: Gemm, found: TiledPlan, *, has_blocks: bool) -> Strips | None:
    """The strips of a product's right factor, or None where it has to be packed as it is read.

    Args:
        gemm: the product; its sums are computed by vectors so.
        has_blocks: whether the processor's registers for tiles read the same strips.
    """
    arithmetic, matrix = found.arithmetic, gemm.rhs
    is_of_bytes = arithmetic.group == _GROUP and matrix.kind == I8
    if not is_of_bytes and not _gains(gemm, found):
        return None
    if any(not isinstance(turn.right, int) for turn in found.left.turns):
        return None
    group = arithmetic.group
    loops = [(found.left.run, matrix.row)]
    for turn in reversed(found.left.turns):
        assert isinstance(turn.count, int)
        assert isinstance(turn.right, int)
        (count, stride), step = loops[0], turn.right // matrix.bytes
        if count % group == 0 and step == count * stride:
            loops[0] = count * turn.count, stride
        else:
            loops.insert(0, (turn.count, step))
    if has_blocks and len(loops) > 1:
        return None
    *around, (run, _) = loops
    steps = math.prod(count for count, _ in around) * -(-run // group)
    return Strips(
        tuple((size, stride) for size, stride in zip(gemm.batch, matrix.batch, strict=True) if stride),
        tuple(loops),
        (gemm.n, matrix.column),
        found.tile.lanes,
        -(-steps // BLOCK) * BLOCK if has_blocks else steps,
        (_FLIP if arithmetic.unsigned_right else -_FLIP) if arithmetic.flips else 0,
        group,
    )


def _gains(gemm: Gemm, found: TiledPlan) -> bool:
    """Whether a product of f32 is faster with strips."""
    if found.arithmetic.group > 1 or {gemm.lhs.kind, gemm.rhs.kind, gemm.sums} != {FLOAT} or gemm.is_complex:
        return False
    if found.packs_right and gemm.m > MOST_ROWS:
        return True
    if -(-gemm.m // found.tile.rows) < _LEAST_TILES or gemm.k * found.tile.columns * gemm.rhs.bytes > _MOST_BYTES:
        return False
    return found.packs_right or gemm.rhs.row * gemm.rhs.bytes >= _FAR


def read_by(found: TiledPlan, strips: Strips | None) -> TiledPlan:
    """The plan of a product that reads strips, of which no block waits."""
    if strips is None:
        return found
    return replace(found, packs_right=True, strips=strips, depth=found.left.run, outer=0, by_rows=False)
