"""Expected results in a pack: some elements of each, and how far a result may be from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.gpu.kernels import Array
from benchmarks.gpu.rows import Row

# Of one result; more are every so manieth.
_MOST = 65536
# As runtime/reference/correctness.py: times the reference's own distance from the float64 result.
_MEAN_SLACK, _LARGEST_SLACK = 2.0, 3.0
# As runtime/reference/tolerances.py: the share of the largest number that cancellation leaves.
_SCALE_SHARE = 1e-2


def step_of(size: int) -> int:
    """Every so manieth element is kept; odd, so that no column of a power of two is met alone."""
    return 1 if size <= _MOST else (size // _MOST) | 1


@dataclass(frozen=True)
class Sampled:
    """Elements of a result.

    Attributes:
        dtype: of the result in memory.
        step: every so manieth of its elements is compared.
        expected: by each engine that answered; agreeing with one is enough.
        truth: in f64 where the first engine could be widened; None elsewhere.
        relative: the tolerance; 0 for equality.
    """

    dtype: np.dtype[Any]
    step: int
    expected: Sequence[Array]
    truth: Array | None
    relative: float

    @classmethod
    def of(cls, said: Row, array: Callable[[Row], Array]) -> Sampled:
        truth = array(said["truth"]) if said["truth"] else None
        kind = np.dtype(getattr(ml_dtypes, said["dtype"], said["dtype"]))
        return cls(kind, said["step"], [array(one) for one in said["expected"]], truth, said["relative"])

    def difference(self, data: bytes) -> str:
        """What is wrong with a result's bytes; nothing if they are right."""
        whole = np.frombuffer(data, self.dtype)
        got = whole[:: self.step]
        if got.size != self.expected[0].size:
            return f"{whole.size} elements"
        with np.errstate(all="ignore"):
            wrong = [self._wrong(got, want) for want in self.expected]
            if not all(mask.any() for mask in wrong) or self._is_near(got):
                return ""
        first = int(np.argmax(wrong[0]))
        return f"{int(wrong[0].sum())} of {got.size} differ, first {got[first]} for {self.expected[0][first]}"

    def _wrong(self, got: Array, want: Array) -> Array:
        if not self.relative:
            mask: Array = got != want
            return mask
        wide, right = _wide(got), _wide(want)
        same = (wide == right) | (np.isnan(wide) & np.isnan(right))
        finite = np.abs(right[np.isfinite(right)])
        scale = finite.max() if finite.size else 0.0
        near = np.abs(wide - right) <= self.relative * (np.abs(right) + _SCALE_SHARE * scale)
        return ~(same | (near & np.isfinite(right)))

    def _is_near(self, got: Array) -> bool:
        """Whether a result is about as near to the float64 one as the first engine's."""
        if self.truth is None:
            return False
        ours, theirs = (np.abs(_wide(one) - self.truth) for one in (got, self.expected[0]))
        if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
            return False
        mean, allowed = (float(np.sqrt(np.mean(one**2))) for one in (ours, theirs))
        return mean <= _MEAN_SLACK * allowed and bool(ours.max() <= _LARGEST_SLACK * theirs.max())


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
