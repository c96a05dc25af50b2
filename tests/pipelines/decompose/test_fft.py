"""decompose-fft, the portable form: no further from the truth than XLA, by a slack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.importers.reader import read
from hloforge.pipelines.decompose import fft_plan
from hloforge.pipelines.decompose.fft import DecomposeFft
from hloforge.pipelines.framework.manager import PassManager
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference
from tests.pipelines.transforms import KINDS, Case, check, program

Array = np.ndarray[Any, Any]


def decomposed(cases: Sequence[Case]) -> list[Array]:
    """The results of the portable decomposition, by the interpreter."""
    source = read(program(cases))
    PassManager([DecomposeFft()]).run(source.module)
    assert "stablehlo.fft" not in source.text()
    results = reference("interpreter", isolated=False).prepare(source)(*(case.operand() for case in cases))
    return [np.asarray(result) for result in (results if len(cases) > 1 else [results])]


@pytest.mark.wide(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_short_lengths_are_as_accurate_as_xla(kind: str, element: str) -> None:
    cases = [Case(kind, (2, length), element=element) for length in (*range(1, 34), 49, 61, 64, 67, 100, 127)]
    check(cases, decomposed(cases))


@pytest.mark.parametrize("kind", ["FFT", "IRFFT"])
def test_long_lengths_are_as_accurate_as_xla(kind: str) -> None:
    cases = [Case(kind, (length,)) for length in (384, 1000, 1023, 1024, 1031)]
    check(cases, decomposed(cases), slack=1.3)


@pytest.mark.parametrize("kind", KINDS)
def test_axes_and_batches(kind: str) -> None:
    shapes = [((4, 6), 2), ((2, 3, 5, 7), 2), ((2, 3, 4, 5), 3), ((1, 1, 1), 3), ((3, 67, 2), 2), ((2, 1, 3, 18), 1)]
    cases = [Case(kind, dims, axes, "f64") for dims, axes in shapes]
    check(cases, decomposed(cases))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_transform(kind: str) -> None:
    cases = [Case(kind, dims, axes) for dims, axes in (((3, 0), 1), ((0, 4), 1), ((0, 2, 4), 2))]
    for case, found in zip(cases, decomposed(cases), strict=True):
        assert found.shape == case.sizes("RFFT") and found.size == 0


def test_the_target_computes_what_numpy_does() -> None:
    cases = [
        Case("FFT", (3, 60)),
        Case("IFFT", (2, 67), element="f64"),
        Case("RFFT", (2, 3, 4), 3, "f64"),
        Case("IRFFT", (2, 3, 8), 2),
        Case("FFT", (0, 4)),
    ]
    results = compile_program(read(program(cases))).load()(*(case.operand() for case in cases))
    for case, found in zip(cases, results, strict=True):
        np.testing.assert_allclose(found, case.truth(), atol=3e-6 if case.element == "f32" else 1e-14)


def test_quarter_turns_are_exact() -> None:
    source = read(program([Case("FFT", (4,))]))
    PassManager([DecomposeFft()]).run(source.module)
    x = np.array([1 + 2j, 3, 5j, 1 << 20], np.complex64)
    result = reference("interpreter", isolated=False).prepare(source)(x)
    np.testing.assert_array_equal(result, np.fft.fft(x.astype(np.complex128)))


def test_a_dynamic_size_is_refused_at_its_line() -> None:
    source = read(program([Case("FFT", (8,))]).replace("<8x", "<?x8x"))
    with pytest.raises(UnsupportedError, match="sizes are known at run time only") as caught:
        compile_program(source, options=CompileOptions(dynamic_shapes="keep"))
    assert caught.value.location is not None and caught.value.location.line == 2


class TestPlan:
    @pytest.mark.parametrize("length", [*range(1, 130), 1000, 1024, 4096, 2**20, 3**9])
    def test_factors_multiply_to_the_length(self, length: int) -> None:
        factors = fft_plan.factors(length)
        if factors is None:
            assert any(length % prime == 0 for prime in (67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127))
        else:
            assert np.prod(factors, dtype=int) == length

    @pytest.mark.parametrize("least", [1, 2, 9, 133, 8197, 100_003])
    def test_a_convolution_is_little_longer_than_needed_and_factors(self, least: int) -> None:
        length = fft_plan.convolution_length(least)
        assert least <= length <= max(8, 1.2 * least) and fft_plan.factors(length) is not None

    def test_roots_are_right_far_around_the_circle(self) -> None:
        length = 1_000_003
        numbers = np.array([0, 1, length // 4, length // 2, length - 1, 7 * length + 5, 123_456_789_012])
        cosines, sines = fft_plan.roots(numbers, length, -1)
        angle = (numbers % length).astype(np.longdouble) * (8 * np.arctan(np.longdouble(1)) / length)
        np.testing.assert_allclose(cosines.astype(np.float64), np.cos(angle), rtol=0, atol=2e-16)
        np.testing.assert_allclose(sines.astype(np.float64), -np.sin(angle), rtol=0, atol=2e-16)
