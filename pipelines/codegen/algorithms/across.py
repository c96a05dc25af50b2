"""Small matrices of a batch, one in each lane of vectors.

An element of the matrices is a vector, so that roots and divisions, which each step of a factorization waits for, are
those of all lanes. Whole vectors are read and written, as squares that are turned in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.algorithms.arrays import Element
from hloforge.pipelines.codegen.algorithms.matrices import Matrix, turned_lines
from hloforge.pipelines.codegen.algorithms.vectors import lane, mapped
from hloforge.pipelines.codegen.elements.kinds import is_complex
from hloforge.pipelines.codegen.lang.functions import Function

# Multiplications of numbers, for a cube of the rows, up to which a factorization is code without loops. For 12 rows
# LLVM takes 0.3 s.
_MOST = 12**3


def takes(n: int, element: str, count: int, lanes: int) -> bool:
    """Whether a batch of matrices of n rows is computed so."""
    return count >= lanes and n**3 * (4 if is_complex(element) else 1) <= _MOST


def read(function: Function, matrices: Sequence[Matrix], n: int) -> list[list[Element]]:
    """The elements of square matrices, row by row, in the lanes of vectors.

    Args:
        matrices: a power of two of them, whose elements follow each other.
    """
    lanes, found = len(matrices), dict[int, Element]()
    if n * n < lanes:
        for place in range(n * n):
            found[place] = _collected(function, [one.array.at(one.place(0, place)) for one in matrices])
    for place in _pieces(n * n, lanes):
        lines = turned_lines([one.array.at(one.place(0, place), lanes) for one in matrices])
        found.update((place + number, line) for number, line in enumerate(lines))
    return [[found[row * n + column] for column in range(n)] for row in range(n)]


def write(matrices: Sequence[Matrix], elements: Sequence[Sequence[Element]]) -> None:
    """The opposite."""
    lanes, flat = len(matrices), [element for row in elements for element in row]
    if len(flat) < lanes:
        for place, element in enumerate(flat):
            for number, one in enumerate(matrices):
                one.array.put(lane(element, number), one.place(0, place))
    for place in _pieces(len(flat), lanes):
        for one, line in zip(matrices, turned_lines(flat[place : place + lanes]), strict=True):
            one.array.put(line, one.place(0, place))


def _pieces(count: int, lanes: int) -> list[int]:
    """Where vectors of elements begin; the last one ends with them."""
    return sorted({*range(0, count - lanes + 1, lanes), count - lanes} if count >= lanes else ())


def _collected(function: Function, elements: Sequence[Element]) -> Element:
    """Elements as the lanes of one."""
    if isinstance(elements[0], tuple):
        both = [_collected(function, [one[part] for one in elements if isinstance(one, tuple)]) for part in (0, 1)]
        assert not isinstance(both[0], tuple) and not isinstance(both[1], tuple)
        return both[0], both[1]
    lines = [mapped(one, lambda value: function.spread(value, 1)) for one in elements]
    return function.joined([line for line in lines if not isinstance(line, tuple)])
