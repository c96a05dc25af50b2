"""Fourier transforms that tests compare: numpy's longest float is the truth, XLA's CPU client the measure of errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.importers.reader import read
from hloforge.runtime.reference.engines import reference

Array = np.ndarray[Any, Any]
KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
# XLA's error may be exceeded by this factor, mostly by products with the matrix of a prime, and by a rounding.
SLACK = 1.9


@dataclass(frozen=True)
class Case:
    """A transform of the last ``axes`` dimensions; ``dims`` are the sizes before or after it, whichever are whole."""

    kind: str
    dims: tuple[int, ...]
    axes: int = 1
    element: str = "f32"

    @property
    def lengths(self) -> list[int]:
        return list(self.dims[len(self.dims) - self.axes :])

    def sizes(self, halved: str) -> tuple[int, ...]:
        *outer, last = self.dims
        return (*outer, last // 2 + 1 if last else 0) if self.kind == halved else self.dims

    def type(self, halved: str, real: str) -> str:
        element = self.element if self.kind == real else f"complex<{self.element}>"
        return f"tensor<{'x'.join([*map(str, self.sizes(halved)), element])}>"

    @property
    def types(self) -> tuple[str, str]:
        """Of the operand and of the result."""
        return self.type("IRFFT", "RFFT"), self.type("RFFT", "IRFFT")

    def operand(self) -> Array:
        random, sizes = np.random.default_rng(self.dims), self.sizes("IRFFT")
        if self.kind == "RFFT":
            return random.normal(size=sizes).astype(np.float32 if self.element == "f32" else np.float64)
        x = random.normal(size=sizes) + 1j * random.normal(size=sizes)
        return x.astype(np.complex64 if self.element == "f32" else np.complex128)

    def truth(self) -> Array:
        x, over = self.operand(), tuple(range(-self.axes, 0))
        if self.kind == "RFFT":
            return np.fft.rfftn(x.astype(np.longdouble), axes=over)
        wide = x.astype(np.clongdouble)
        if self.kind == "IRFFT":
            return np.fft.irfftn(wide, s=self.lengths, axes=over)
        return np.fft.fftn(wide, axes=over) if self.kind == "FFT" else np.fft.ifftn(wide, axes=over)


def program(cases: Sequence[Case]) -> str:
    """Each case as one parameter and one result."""
    lines = [
        f"%y{number} = stablehlo.fft %x{number}, type = {case.kind}, length = {case.lengths} "
        f": ({case.types[0]}) -> {case.types[1]}"
        for number, case in enumerate(cases)
    ]
    arguments = ", ".join(f"%x{number}: {case.types[0]}" for number, case in enumerate(cases))
    results = ", ".join(case.types[1] for case in cases)
    values = ", ".join(f"%y{number}" for number in range(len(cases)))
    return "\n".join([f"func.func @main({arguments}) -> ({results}) {{", *lines, f"return {values} : {results} }}"])


def expected(cases: Sequence[Case]) -> list[Array]:
    """XLA's results."""
    results = reference("xla", isolated=False).prepare(read(program(cases)))(*(case.operand() for case in cases))
    return [np.asarray(result) for result in (results if len(cases) > 1 else [results])]


def distance(found: Array, truth: Array) -> float:
    return float(np.linalg.norm((found - truth).ravel()) / np.linalg.norm(truth.ravel()))


def check(cases: Sequence[Case], found: Sequence[Array], slack: float = SLACK) -> None:
    for case, ours, xla in zip(cases, found, expected(cases), strict=True):
        rounding = np.finfo(ours.dtype).eps / 2
        allowed = slack * distance(xla, case.truth()) + rounding
        assert ours.shape == xla.shape and distance(ours, case.truth()) <= allowed, case
