"""dispatch-fft: transforms of every length, kind and place of an axis are as right as XLA's, shared out or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower
from hloforge.runtime.compile.compiler import compile_program
from tests.pipelines.transforms import KINDS, SLACK, Case, check, program

Array = np.ndarray[Any, Any]


def dispatches(cases: Sequence[Case]) -> int:
    source = read(program(cases))
    lower(source.module)
    assert "stablehlo.fft" not in source.text()
    return [op.name for op in operations(source.module)].count("flow.dispatch.workgroups")


def compiled(cases: Sequence[Case], devices: Sequence[str | None] = (None,)) -> Iterator[list[Array]]:
    """The results on each device."""
    executable, operands = compile_program(read(program(cases))), [case.operand() for case in cases]
    for device in devices:
        yield [np.asarray(result) for result in executable.load(device=device)(*operands)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_as_accurate_as_xla(kind: str) -> None:
    # Rows alone and together, whole and overlapping vectors, one stage and several, a chirp of the length and its half.
    lengths = {"f32": (4, 14, 37, 96, 117), "f64": (16, 23, 74, 243, 1000)}
    cases = [Case(kind, (128 // n + 3, n), element=element) for element in lengths for n in lengths[element]]
    check(cases, *compiled(cases), SLACK)


@pytest.mark.parametrize("kind", ["FFT", "RFFT", "IRFFT"])
def test_axes_are_as_accurate_as_xla(kind: str) -> None:
    # Columns that are fewer than a vector, no whole vectors, and overlapping blocks; odd rows; one point; a chirp.
    shapes = [((5, 8, 9), 2), ((2, 6, 1, 20), 3), ((600, 38), 2), ((3, 51, 14), 2)]
    cases = [Case(kind, dims, axes) for dims, axes in shapes]
    check(cases, *compiled(cases), SLACK)


def test_workgroups_share_out_rows_and_columns() -> None:
    # Memory between stages on the stack, and in 11, 12 and 18 workgroups' own memory; the last ones transform columns.
    cases = [Case("FFT", (24, 1024)), Case("IFFT", (11, 4099)), Case("RFFT", (12, 8192)), Case("IFFT", (130, 560), 2)]
    for found in compiled(cases, ["local-sync", "local-task"]):
        check(cases, found, 1.3)


def test_one_dispatch_transforms_an_axis() -> None:
    assert dispatches([Case("FFT", (64, 1000))]) == dispatches([Case("RFFT", (4099 * 2,))]) == 1
    assert dispatches([Case("IRFFT", (4, 8, 16), 3)]) == 3


def test_small_transforms_stay_products() -> None:
    assert dispatches([Case("FFT", (16,)), Case("FFT", (64, 2)), Case("RFFT", (0, 8))]) == 0
