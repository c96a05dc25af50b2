"""How far a result may be from the expected one: a row for each width of floats.

A value ``got`` agrees with a finite ``want`` when ``|got - want| <= relative * (|want| + 0.01 * scale) + absolute``,
where ``scale`` is the largest ``|want|`` of the array that is not next to overflow. The share of the scale is what
cancellation leaves: an element of a sum or product that comes out near zero carries the rounding errors of its large
terms. NaN agrees with NaN, an infinity with the infinity of its sign, and zeros of either sign. Integers and booleans
agree exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.dialect.element_types import ElementType, element_type

SCALE_SHARE = 1e-2


@dataclass(frozen=True)
class Tolerance:
    """Bounds on a difference, as in the module's formula; 0 and 0 ask for equality."""

    relative: float
    absolute: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.relative == 0 and self.absolute == 0

    def __str__(self) -> str:
        if self.is_exact:
            return "exact"
        return f"rtol {self.relative:g}" + (f", atol {self.absolute:g}" if self.absolute else "")


EXACT = Tolerance(0.0)

# By the bits of one real number. Reordered sums of a few thousand terms lose about 3 decimal digits, and two good
# implementations of an elementary function differ by a few units in the last place; the rows allow for both.
_BY_BITS: dict[int, Tolerance] = {
    64: Tolerance(1e-9),  # 2^-53 is 1e-16: room for long chains, and far from the 1e-7 of a value demoted to f32
    32: Tolerance(1e-4),  # 2^-24 is 6e-8
    16: Tolerance(1e-2),  # 2^-11 for f16, 2^-8 = 4e-3 for bf16: one step of bf16 and a half
    8: Tolerance(1e-1),  # steps of 1/8 or 1/4 of a value: of two neighbours only close ones pass
    6: Tolerance(1e-1),  # steps of 1/8 or 1/4 of a value, as with 8 bits
    4: Tolerance(1e-1),  # steps of 0.5 from 0 to 6: no neighbour passes
}

# Of one operation, whose errors no chain adds up: in f64 a series that stops too early shows.
_OF_ONE_OPERATION = _BY_BITS | {64: Tolerance(1e-11)}


def tolerance_of(element: ElementType | str, *, is_one_operation: bool = False) -> Tolerance:
    """The row of an element type: a complex one counts as its parts; integers and booleans are exact."""
    row = element_type(element)
    table = _OF_ONE_OPERATION if is_one_operation else _BY_BITS
    if row.is_complex:
        return table[row.bits // 2]
    return table[row.bits] if row.is_float else EXACT
