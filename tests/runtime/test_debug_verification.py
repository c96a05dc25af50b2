"""Statistics, generated arguments, judging by two engines, and the process that runs targets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import ArgumentError, Error, OptionError, ReferenceEngineError
from hloforge.importers.reader import read
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.statistics import error_statistics
from hloforge.runtime.debug.target_process import TargetError, TargetProcess
from hloforge.runtime.debug.trial_inputs import ValueRange, check_ranges, trial_arguments
from hloforge.runtime.reference.engines import ReferenceEngine, reference

ADD = """HloModule add
ENTRY e {
  x = f32[4] parameter(0)
  n = s8[64] parameter(1)
  ROOT z = f32[4] add(x, x)
}
"""


def test_statistics_of_neighbours() -> None:
    want = np.float32([1, 2, 4, 8, np.inf, np.nan])
    got = want.copy()
    got[0] = np.nextafter(want[0], np.float32(2))
    got[3] = 10
    got[4] = -np.inf
    found = error_statistics(got, want)
    assert found.worst == (3,)
    assert found.one_sided == 1
    assert found.mean_absolute == pytest.approx((2**-23 + 2) / 4)
    assert found.mean_relative == pytest.approx((2**-23 + 0.25) / 4)
    counts = {entry.label: entry.count for entry in found.histogram if entry.count}
    # 10 lies a quarter of a binade above 8.
    assert counts == {"0": 2, "1": 1, f"{2**20 + 1}–{2**21}": 1}


def test_statistics_of_integers_and_of_nothing() -> None:
    found = error_statistics(np.int8([-128, 1]), np.int8([127, 1]))
    assert (found.mean_ulp, found.worst) == (127.5, (0,))
    assert error_statistics(np.zeros((0, 3)), np.zeros((0, 3))).histogram == ()


def test_ranges_hold_for_parameters() -> None:
    program = read(ADD)
    ranges = [ValueRange.parse("5:7"), ValueRange.parse("n=-2:1.5")]
    x, n = trial_arguments(program, "special", 3, ranges)
    assert x.dtype == np.float32 and (x >= 5).all() and (x <= 7).all() and len(set(x)) > 1
    assert set(n) == {-2, -1, 0, 1}
    again, _ = trial_arguments(program, "random", 3, ranges)
    np.testing.assert_array_equal(x, again)


@pytest.mark.parametrize("text", ["1", "x=1", "a:b", "2:1", "nan:1", "0:inf"])
def test_malformed_ranges(text: str) -> None:
    with pytest.raises(OptionError, match="is no range"):
        ValueRange.parse(text)


def test_ranges_that_do_not_fit() -> None:
    program = read(ADD)
    with pytest.raises(ArgumentError, match="no parameter is called 'y'"):
        check_ranges(program.signature, [ValueRange.parse("y=0:1")])
    with pytest.raises(ArgumentError, match=r"'n' \(s8\[64\]\{0\}\) has no value in 0:300"):
        trial_arguments(program, "random", 0, [ValueRange.parse("n=0:300")])


class _Says:
    """An engine that answers what it was told to, or refuses."""

    def __init__(self, answer: list[float] | None) -> None:
        self.answer = answer

    def compile(self, module: bytes) -> Callable[[Sequence[Any]], list[Any]]:
        if self.answer is None:
            raise ReferenceEngineError("it is too large")
        return lambda arguments: [np.float32(self.answer)]


def judge(*answers: list[float] | None, tolerance: float | None = 1e-4) -> Judge:
    engines = [ReferenceEngine(f"engine{number}", _Says(answer)) for number, answer in enumerate(answers)]
    return Judge(read(ADD), engines, tolerance)


def test_one_engine_that_agrees_is_enough_element_by_element() -> None:
    arguments, actual = trial_arguments(read(ADD), "random", 0), np.float32([1, 2, 3, 4])
    assert judge([1, 2, 3, 4], None)(arguments, actual).agrees
    assert judge([1, 2, 3, 5], [1, 2, 3, 4])(arguments, actual).verdicts[0].engine == "engine1"
    mixed = judge([1, 2, 3, 5], [0, 2, 3, 4])(arguments, actual)
    assert mixed.agrees and "each element" in mixed.verdicts[0].text()
    both = judge([1, 2, 3, 5], [0, 2, 3, 5])(arguments, actual)
    assert not both.agrees and both.verdicts[0].comparison.mismatch_count == 1


def test_an_engine_that_cannot_say_is_noted() -> None:
    arguments, actual = trial_arguments(read(ADD), "random", 0), np.float32([1, 2, 3, 4])
    found = judge(None, [1, 2, 3, 4])(arguments, actual)
    assert found.agrees and found.notes == ("engine0 could not say: it is too large",)
    with pytest.raises(ReferenceEngineError, match="it is too large"):
        judge(None)(arguments, actual)


class _Wavers:
    """An engine that answers 1, then 2 …, as XLA's client does where it reads memory that nothing wrote."""

    def compile(self, module: bytes) -> Callable[[Sequence[Any]], list[Any]]:
        answers = itertools.count(1)
        return lambda arguments: [np.full(4, next(answers), np.float32)]


def test_an_engine_that_contradicts_itself_is_not_believed() -> None:
    engines = [ReferenceEngine("wavers", _Wavers()), ReferenceEngine("other", _Says([0, 0, 0, 0]))]
    arguments, actual = trial_arguments(read(ADD), "random", 0), np.zeros(4, np.float32)
    found = Judge(read(ADD), engines)(arguments, actual)
    assert found.agrees and found.notes == ("wavers could not say: wavers gives a different result each time",)
    with pytest.raises(ReferenceEngineError, match="a different result each time"):
        Judge(read(ADD), engines[:1])(arguments, actual)


# XLA's verifier refuses computations of floats of several widths.
MIXED = """func.func @main(%x: tensor<4xf32>, %h: tensor<4xf16>) -> tensor<4xf32> {
  %0 = "stablehlo.map"(%x, %h) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f16>):
      %1 = stablehlo.add %a, %a : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_an_engine_that_cannot_say_is_asked_in_float64_where_the_other_one_disagrees() -> None:
    x, h = np.float32([1, 2, 3, 4]), np.zeros(4, np.float16)
    engines = [reference("xla", isolated=False), ReferenceEngine("other", _Says([0, 0, 0, 0]))]
    judge = Judge(read(MIXED), engines)
    found = judge((x, h), x + x)
    assert found.agrees and found.verdicts[0].engine == "xla"
    assert not judge((x, h), x).agrees


PLANTED = """
from dataclasses import dataclass
from typing import ClassVar
from hloforge.pipelines import named
from hloforge.pipelines.framework.passes import Pass

@dataclass(frozen=True)
class Planted(Pass):
    name: ClassVar[str] = "planted"

    def run(self, module):
        {body}

named.FINISH = (named.Stage(Planted(), "a planted fault"), *named.FINISH)
"""


@pytest.mark.wide(2)
@pytest.mark.usefixtures("iree_codegen")
@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("import os; os.abort()", "crash", "pass planted crashed (SIGABRT)"),
        ("import time; time.sleep(600)", "hang", "pass planted did not end within 6 s"),
        ("1 / 0", "pass", "ZeroDivisionError"),
    ],
)
def test_a_pass_that_fails_is_named(tmp_path: Path, body: str, kind: str, message: str) -> None:
    plugin = tmp_path / "planted.py"
    plugin.write_text(PLANTED.format(body=body))
    with TargetProcess(plugins=[plugin]) as process:
        # The deadline is not for its start.
        with pytest.raises(TargetError, match="KeyError"):
            process.call(0, [])
        process.timeout = 6.0
        with pytest.raises(TargetError) as caught:
            process.compile(read(ADD), Recipe())
        assert (caught.value.kind, caught.value.step) == (kind, "pass planted")
        assert message in caught.value.message


@pytest.mark.usefixtures("iree_codegen")
def test_a_process_goes_on_after_a_crash(tmp_path: Path) -> None:
    plugin = tmp_path / "planted.py"
    plugin.write_text(PLANTED.format(body="import os; os.abort()"))
    with TargetProcess(plugins=[plugin]) as process:
        with pytest.raises(TargetError, match="SIGABRT"):
            process.compile(read(ADD), Recipe())
        loaded = process.compile(read(ADD), Recipe(plain=True))
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(loaded(x, np.zeros(64, np.int8)), 2 * x)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells the environment of a process")
def test_memory_of_the_process_is_filled() -> None:
    """Else a result that nobody wrote is zero by chance, and right."""
    with TargetProcess() as process:
        environment, until = Path(f"/proc/{process._live().pid}/environ"), time.monotonic() + 20
        # Empty between the fork and the end of exec.
        while not (told := environment.read_bytes().split(b"\0"))[0] and time.monotonic() < until:
            time.sleep(0.01)
    assert b"MALLOC_PERTURB_=170" in told


def test_a_process_that_does_not_start_is_no_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TargetProcess() as process, pytest.raises(Error, match=r"did not start: .*no numpy today") as caught:
        process.compile(read(ADD), Recipe())
    assert not isinstance(caught.value, TargetError)
