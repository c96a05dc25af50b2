from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.element_types import TABLE, ElementType, Kind
from hloforge.runtime.data.random_inputs import special_values
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.tolerances import Tolerance, tolerance_of


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_special_values_agree_with_themselves(row: ElementType) -> None:
    values = special_values(row)
    assert compare(values, values.copy())
    (result,) = compare(values, values.copy()).results
    assert result.max_ulp == 0 and result.count == len(values)


@pytest.mark.parametrize("row", [row for row in TABLE if not row.is_complex], ids=str)
def test_a_changed_extreme_is_found(row: ElementType) -> None:
    values = special_values(row)
    if row.name == "f8e8m0fnu":
        values = values[-3:]
    changed = values.copy()
    changed[-1] = values[1] if row.kind is Kind.UNSIGNED else values[0]
    (result,) = compare(changed, values).results
    assert not result.agrees and result.mismatch_count == 1
    assert result.mismatches[0].index == (len(values) - 1,)


@pytest.mark.parametrize(
    ("got", "want"),
    [(np.inf, -np.inf), (np.inf, 3e38), (3e38, np.inf), (np.nan, 1.0), (1.0, np.nan), (np.nan, np.inf)],
)
def test_what_is_not_finite_must_match(got: float, want: float) -> None:
    assert not compare(np.float32(got), np.float32(want), tolerance=1e6)


def test_zeros_of_either_sign_agree() -> None:
    assert compare(np.array([-0.0, 0.0]), np.array([0.0, -0.0]), tolerance=Tolerance(0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_table_decides(dtype: type) -> None:
    row = tolerance_of(np.dtype(dtype))
    want = np.array([1.0, 2.0, 4.0]).astype(dtype)
    below, above = (want.astype(np.float64) * (1 + share * row.relative) for share in (0.5, 4.0))
    assert compare(below.astype(dtype), want)
    assert not compare(above.astype(dtype), want)


def test_cancellation_near_zero_is_measured_against_the_scale() -> None:
    want = np.array([1000.0, 0.0], np.float32)
    assert compare(np.array([1000.0, 5e-4], np.float32), want)
    assert not compare(np.array([1000.0, 5e-2], np.float32), want)


def test_integers_stay_exact_whatever_the_tolerance() -> None:
    big = np.array([2**63, 2**64 - 1], np.uint64)
    assert not compare(big - np.uint64(1), big, tolerance=1.0)
    assert not compare(np.array([True]), np.array([False]), tolerance=1.0)
    assert not compare(np.array([-8]).astype(ml_dtypes.int4), np.array([7]).astype(ml_dtypes.int4), tolerance=1.0)


@pytest.mark.parametrize("value", [1.0, 1e300, 5e-324, -1.0])
def test_one_unit_in_the_last_place_counts_as_one(value: float) -> None:
    (result,) = compare(np.nextafter(value, np.inf), np.float64(value)).results
    assert result.max_ulp == 1


def test_units_in_the_last_place_cross_zero() -> None:
    tiny = np.float32(1e-45)
    (result,) = compare(np.array([tiny]), np.array([-tiny])).results
    assert result.max_ulp == 2


def test_complex_parts_count_separately() -> None:
    want = np.array([complex(np.inf, 1), complex(0, np.nan)])
    assert compare(want.copy(), want)
    assert not compare(np.array([complex(np.inf, 2), complex(0, np.nan)]), want)


def test_the_report_says_which_result_where_and_by_how_much() -> None:
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = want.copy()
    got[1, 2] = 7
    got[0, 1] = np.nan
    report = compare((want, (got,)), (want, (want,)))
    assert [result.agrees for result in report.results] == [True, False]
    text = report.text()
    assert "result{0} 2x3xf32: agrees" in text
    assert "result{1,0} 2x3xf32: 2 of 6 elements differ (33.3 %)" in text
    assert "at [1, 2]: got 7, want 5" in text and "at [0, 1]: got nan, want 1" in text
    assert "NaN: got 1, want 0" in text and "max abs 2" in text


def test_only_the_first_of_many_mismatches_are_shown() -> None:
    text = compare(np.ones(1000), np.zeros(1000)).text()
    assert "… and 995 more" in text and len(text.splitlines()) == 8


@pytest.mark.parametrize(
    ("actual", "expected", "problem"),
    [
        (np.zeros((3, 1)), np.zeros(3), "got 3x1xf64, want 3xf64"),
        (np.zeros(3, np.float32), np.zeros(3), "got 3xf32, want 3xf64"),
        ((np.zeros(3),), np.zeros(3), "nested as"),
        ((np.zeros(3), np.zeros(3)), (np.zeros(3),), "nested as"),
        (np.zeros(3, np.int32), np.zeros(3, np.uint32), "got 3xs32, want 3xu32"),
    ],
)
def test_arrays_of_another_kind_do_not_agree(actual: object, expected: object, problem: str) -> None:
    report = compare(actual, expected)
    assert not report and problem in report.text()


def test_names_and_tokens() -> None:
    report = compare((np.float32(1), None), (np.float32(2), None), names=["loss"])
    assert report.text().startswith("loss f32: 1 of 1 elements differ")


def test_empty_arrays_agree() -> None:
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))) and compare((), ())


def test_a_number_next_to_overflow_does_not_hide_the_others() -> None:
    want = np.array([3.4e38, 1.0], np.float32)
    assert not compare(np.array([3.4e38, 2.0], np.float32), want)
