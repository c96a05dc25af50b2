"""Layer norm and RMS norm of rows, and their gradients, which several libraries' calls share.

The gradient takes the means and the reciprocals of the deviations that the norm has found.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class Norm:
    """A norm of f32 ``[m, n]``.

    Attributes:
        factors: f32 ``[n]``.
        has_mean: whether the mean is subtracted: a layer norm, not an RMS norm.
    """

    factors: Value
    has_mean: bool

    def rows(self, x: Value) -> Value:
        """f32 ``[m, n]`` of an array."""
        count = self.factors.dims[0]
        return _wide(ops.reshape(x, [prod(x.dims) // max(count, 1), count]))

    def forward(self, x: Value, shifts: Value | None, epsilon: float) -> tuple[Value, Value, Value]:
        """The normed rows, the means and the reciprocals of the deviations, ``[m]``."""
        means = _mean(x) if self.has_mean else full(_mean(x), 0)
        centred = x - _down(means, x) if self.has_mean else x
        squares = _mean(centred * centred)
        inverses = ops.rsqrt(squares + full(squares, epsilon))
        found = centred * _down(inverses, x) * _along(self.factors, x)
        if shifts is not None:
            found = found + _along(_wide(ops.reshape(shifts, self.factors.dims)), x)
        return found, means, inverses

    def backward(self, given: Value, x: Value, means: Value | None, inverses: Value) -> tuple[Value, Value, Value]:
        """The gradients of the rows, of the factors and of the shifts."""
        flat = [_wide(ops.reshape(one, x.dims[:1])) for one in (means, inverses) if one is not None]
        centred = x - _down(flat[0], x) if means is not None else x
        normed = centred * _down(flat[-1], x)
        scaled = given * _along(self.factors, x)
        found = scaled - normed * _down(_mean(scaled * normed), x)
        if self.has_mean:
            found = found - _down(_mean(scaled), x)
        return found * _down(flat[-1], x), _sum(given * normed), _sum(given)


def _mean(x: Value) -> Value:
    total = ops.reduce(x, constant(0, "f32"), ops.add, [1])
    return total / full(total, float(x.dims[1]))


def _sum(x: Value) -> Value:
    return ops.reduce(x, constant(0, "f32"), ops.add, [0])


def _down(rows: Value, like: Value) -> Value:
    """One number for each row."""
    return ops.broadcast_in_dim(rows, like.dims, [0])


def _along(columns: Value, like: Value) -> Value:
    """One number for each column."""
    return ops.broadcast_in_dim(columns, like.dims, [1])


def _wide(value: Value) -> Value:
    return ops.convert_element_type(value, "f32")
