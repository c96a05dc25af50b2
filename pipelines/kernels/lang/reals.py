"""Single floats in a dispatch, with Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, math_dialect
from hloforge.pipelines.framework.builders import Builder
from hloforge.pipelines.kernels.lang import loops as code


@dataclass(frozen=True)
class Real:
    """A float.

    Attributes:
        ir: its value.
    """

    ir: Any

    def __add__(self, other: Real | float) -> Real:
        return self._with(arith.addf, other)

    def __sub__(self, other: Real | float) -> Real:
        return self._with(arith.subf, other)

    def __mul__(self, other: Real | float) -> Real:
        return self._with(arith.mulf, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._with(arith.divf, other)

    def __neg__(self) -> Real:
        return Real(arith.negf(self.ir))

    def __abs__(self) -> Real:
        return Real(math_dialect.absf(self.ir))

    def sqrt(self) -> Real:
        return Real(math_dialect.sqrt(self.ir))

    def min(self, other: Real) -> Real:
        return self._with(arith.minimumf, other)

    def max(self, other: Real) -> Real:
        return self._with(arith.maximumf, other)

    def exceeds(self, other: Real | float) -> Any:
        """Whether it is greater; false for NaN."""
        return code.compare_floats("OGT", self.ir, self.like(other).ir)

    def equals(self, other: Real | float) -> Any:
        return code.compare_floats("OEQ", self.ir, self.like(other).ir)

    def like(self, value: Real | float) -> Real:
        """A constant of the same type; another Real as it is."""
        return value if isinstance(value, Real) else Real(code.float_number(value, self.ir.type))

    def _with(self, build: Builder, other: Real | float) -> Real:
        return Real(build(self.ir, self.like(other).ir))


def choose(flag: Any, one: Real, other: Real) -> Real:
    """``one`` if the flag is set, else ``other``."""
    return Real(code.choose(flag, one.ir, other.ir))


def fold(start: Any, stop: Any, init: Real, body: Callable[[Any, Real], Real]) -> Real:
    """``for i in range(start, stop): init = body(i, init)``."""
    return Real(code.for_each(stop, [init.ir], lambda i, value: [body(i, Real(value)).ir], start=start)[0])
