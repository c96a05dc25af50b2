"""Products of reflectors with a matrix, strips of whose columns are in the cache. Source: LAPACK "ormtr", "ormbr"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import Matrix, copy, fill, steps
from hloforge.pipelines.codegen.algorithms.places import divided, times
from hloforge.pipelines.codegen.algorithms.qr import Panel, Room
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Columns of a strip, a multiple of every vector's numbers.
_COLUMNS = 64


@dataclass(frozen=True)
class Reflected:
    """``H_0 H_1 ... c`` of ``batch`` matrices c of n rows.

    Attributes:
        columns: of c.
        element: f32, f64 or complex numbers of these.
        vector_bytes: of the processor's registers.
    """

    batch: int
    n: int
    columns: int
    element: str
    vector_bytes: int = 64

    @cached_property
    def _room(self) -> Room:
        return Room(self.n, min(self.columns, _COLUMNS), self.element, self.vector_bytes)

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._room.scratch

    @property
    def strips(self) -> int:
        """Of all matrices; each is computed by itself."""
        return self.batch * -(-self.columns // _COLUMNS)

    def write(
        self,
        function: Function,
        reflectors: Elements,
        taus: Elements,
        c: Elements,
        target: Elements,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            reflectors: ``[b, n, n]``, a vector in each row; the rows of their matrix before k are zero in row k.
            taus: ``[b, n]``, their scalar factors.
            c: the matrices by columns: ``[b, columns, n]``.
            target: the products: ``[b, n, columns]``.
            memory: ``scratch`` bytes.
            rows: the first of the strips and the one after the last; None for all.
        """
        room, n, strips = self._room, self.n, self.strips // self.batch
        first, last = rows or (0, self.strips)
        lanes, matrices = room.registers.lanes, room.matrices(memory)
        work, own = matrices[0], matrices[4]
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, first, last) as item:
            number, strip = divided(item, strips)
            column = times(strip, _COLUMNS)
            source = Matrix(reflectors.moved(times(number, n * n)), n).transposed()
            given = taus.moved(times(number, n))
            before = Matrix(c.moved(times(number, n * self.columns)), n).transposed()
            into = Matrix(target.moved(times(number, n * self.columns)), self.columns)
            fill(function, work, (0, room.height), room.side, zero)
            self._each_width(function, strip, lambda width: copy(function, before.below(0, column), work, n, width))
            panels = -(-n // lanes)
            with steps(function, 0, panels) as panel:
                start = ((panel * -1) + (panels - 1)) * lanes
                stop = (start + lanes).minimum(n)
                fill(function, own, (0, 1), lanes, zero)
                with steps(function, start, stop) as place:
                    own.put(given.at(place), 0, place - start)
                vectors = source.below(0, start)
                Panel(room, matrices, start, lanes).write_whole(function, vectors, stop - start)
            self._each_width(function, strip, lambda width: copy(function, work, into.below(0, column), n, width))

    def _each_width(self, function: Function, strip: Number, write: Callable[[int], None]) -> None:
        """Code for the columns of a strip, of which the last one may have fewer."""
        rest = self.columns % _COLUMNS
        if not rest or self.columns < _COLUMNS:
            write(min(self.columns, _COLUMNS))
            return
        is_last = function.index(strip).compare("eq", self.columns // _COLUMNS)
        with function.if_(is_last):
            write(rest)
        with function.if_(is_last ^ 1):
            write(_COLUMNS)
