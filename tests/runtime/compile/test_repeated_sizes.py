"""Programs for all sizes with forms for sizes that calls repeat; numpy tells the results."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import ArgumentError, LoadError
from hloforge.runtime.compile.repeated_sizes import REPEATS, RepeatingSession
from hloforge.runtime.session.session import Session

SQUARES = """
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
"""
# Two arguments that meet in one operation.
SUMS = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""


def rows(count: int) -> np.ndarray[Any, Any]:
    return np.arange(3 * count, dtype=np.float32).reshape(count, 3)


def loaded(text: str = SQUARES, **options: Any) -> RepeatingSession:
    session = hloforge.load(hloforge.compile(text, **options))
    assert isinstance(session, RepeatingSession)
    return session


def test_repeated_sizes_get_a_form_and_others_none() -> None:
    session = loaded()
    for count in (4, 5, 4, 5, 4):
        np.testing.assert_array_equal(session(rows(count)), rows(count) ** 2)
    assert session.forms == ()
    for _ in range(REPEATS + 1):
        np.testing.assert_array_equal(session(rows(6)), rows(6) ** 2)
    np.testing.assert_array_equal(session(rows(2)), rows(2) ** 2)
    assert session.forms == (((6, 3),),)


def test_many_sizes_need_longer_rows_of_calls() -> None:
    session = loaded()
    for count in range(1, 6):
        for _ in range(REPEATS):
            session(rows(count))
    # The fourth form asks for three calls as well, and the fifth for four.
    assert [sizes for ((sizes, _),) in session.forms] == [1, 2, 3, 4]
    session(rows(5))
    assert len(session.forms) == 5


def test_results_on_the_device_go_from_one_form_to_another() -> None:
    session = loaded()
    x = rows(4)
    for _ in range(REPEATS + 1):
        on_device = session.call_device(x)
    np.testing.assert_array_equal(session(on_device), x**4)
    np.testing.assert_array_equal(session(session.put(x, 0)), x**2)
    assert len(session.forms) == 1


def test_the_file_holds_the_program_for_all_sizes(tmp_path: Path) -> None:
    executable = hloforge.compile(SQUARES)
    executable.save(tmp_path / "x.vmfb")
    session = hloforge.load(tmp_path / "x.vmfb")
    for count in (2, 7):
        np.testing.assert_array_equal(session(rows(count)), rows(count) ** 2)
    np.testing.assert_array_equal(executable(arg0=rows(2)), rows(2) ** 2)


@pytest.mark.parametrize("options", [{"dynamic_shapes": "keep"}, {"shapes": {"arg0": (4, 3)}}])
def test_who_names_sizes_or_asks_for_all_gets_no_forms(options: dict[str, Any]) -> None:
    session = hloforge.load(hloforge.compile(SQUARES, **options))
    assert type(session) is Session


def test_who_asks_for_one_file_runs_that_alone() -> None:
    executable = hloforge.compile(SQUARES)
    digest = hashlib.sha256(executable.vmfb).hexdigest()
    assert type(hloforge.load(executable, expect_sha256=digest)) is Session
    with pytest.raises(LoadError):
        hloforge.load(executable, expect_sha256="0" * 64)


def test_sizes_that_do_not_meet_are_refused_each_time() -> None:
    session = loaded(SUMS)
    x = np.ones(4, np.float32)
    for _ in range(2 * REPEATS):
        with pytest.raises(ArgumentError):
            session(x, x[:3])
    for _ in range(REPEATS):
        np.testing.assert_array_equal(session(x, x), x + x)
    assert session.forms == (((4,), (4,)),)


def test_closing_frees_all() -> None:
    session = loaded()
    for _ in range(REPEATS):
        session(rows(4))
    session.close()
    assert session.closed and session.forms == ()
    with pytest.raises(hloforge.ExecutionError):
        session(rows(4))


def test_each_form_shares_its_work_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first form of few elements decides nothing for those after it."""
    asked: list[str | None] = []
    load = hloforge.Executable.load

    def noted(self: Any, **options: Any) -> Session:
        asked.append(options["device"])
        return load(self, **options)

    monkeypatch.setattr(hloforge.Executable, "load", noted)
    session = hloforge.load(hloforge.compile(SQUARES, dynamic_shapes="specialize"))
    for count in (1, 2):
        np.testing.assert_array_equal(session(rows(count)), rows(count) ** 2)
    assert asked == [None, None]
