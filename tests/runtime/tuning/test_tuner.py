"""Profiles, and the search that finds them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.cache import CODEGEN
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.generated import IREE
from hloforge.runtime.devices import devices, drivers
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.tuning import tuner
from hloforge.runtime.tuning.timing import interleaved
from hloforge.runtime.tuning.tuned_profile import FLAGS, Profile

TEXT = """func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<10> : tensor<i32>
  %last:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i32>, tensor<64xf32>
   cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.add %v, %x : tensor<64xf32>
    stablehlo.return %next, %w : tensor<i32>, tensor<64xf32>
  }
  return %last#1 : tensor<64xf32>
}
"""
X = np.linspace(3, -2, 64, dtype=np.float32)
BROKEN, WRONG = "--iree-no-such-flag", "--iree-opt-level=O0"


def test_a_profile_is_read_back(tmp_path: Path) -> None:
    profile = Profile(("--iree-opt-level=O3",), "local-task", 2, ("l2-bytes=1048576",))
    profile.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == profile
    options = profile.applied(CompileOptions(flags=("--iree-opt-level=O1",), device="local-sync"))
    assert options.flags == ("--iree-opt-level=O3", "--iree-opt-level=O1")  # the user's flag comes last, and wins
    assert (options.device, options.threads, options.machine) == ("local-sync", 2, ("l2-bytes=1048576",))


@pytest.mark.parametrize("more", [{}, {"machine": ["dispatch-work=16384", "l2-bytes=1048576"]}], ids=["0.1", "0.2"])
def test_what_former_profiles_say_of_passes_means_nothing(more: dict[str, Any], tmp_path: Path) -> None:
    fields = {"kind": "hloforge.profile", "flags": [], "without": ["fuse-loops"], "device": "", "threads": 2}
    (tmp_path / "p.json").write_text(json.dumps(fields | more))
    assert Profile.load(tmp_path / "p.json") == Profile(threads=2, machine=("l2-bytes=1048576",) if more else ())


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "other"}', '{"kind": "hloforge.profile", "flags": 3}'])
def test_what_is_no_profile_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(hloforge.OptionError, match="profile"):
        Profile.load(tmp_path / "p.json")
    with pytest.raises(hloforge.OptionError, match="cannot read"):
        Profile.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flags": ["--iree-llvmcpu-system-linker-path=evil.sh"]}, "the flag --iree-llvmcpu-system-linker-path"),
        ({"flags": ["--iree-hal-dump-executable-files-to=/etc"]}, "the flag --iree-hal-dump-executable-files-to"),
        ({"flags": ["--iree-opt-level=O3", "-o=/etc/passwd"]}, "the flag -o"),
        ({"flags": ["--iree-opt-level"]}, "set --iree-opt-level to ''"),
        ({"flags": ["--iree-opt-level=O3 --iree-x=y"]}, "set --iree-opt-level to 'O3 --iree-x=y'"),
        ({"flags": ["--iree-dispatch-creation-data-tiling="]}, "set --iree-dispatch-creation-data-tiling to ''"),
        ({"flags": ["--iree-llvmcpu-distribution-size=-1"]}, "set --iree-llvmcpu-distribution-size to '-1'"),
        ({"flags": [["--iree-opt-level=O3"]]}, "may not have the flag"),
        ({"machine": ["vector-bytes=64"]}, "'vector-bytes' is no number of a machine to set"),
        ({"machine": ["l2-bytes=0"]}, "l2-bytes may not be '0'"),
        ({"machine": ["l2-bytes=0524288"]}, "l2-bytes may not be '0524288'"),
        ({"machine": [["l2-bytes=524288"]]}, "is no number of a machine to set"),
        ({"device": "dlopen://evil.so"}, "unknown device 'dlopen://evil.so'"),
        ({"threads": -1}, "-1 threads"),
        ({"threads": 10**9}, "1000000000 threads"),
        ({"threads": True}, "True threads"),
    ],
)
def test_a_profile_is_options_and_no_flags(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    fields = {"kind": "hloforge.profile", "flags": [], "device": "", "threads": 0}
    path.write_text(json.dumps(fields | changes))
    with pytest.raises(hloforge.OptionError, match=re.escape(message)) as caught:
        Profile.load(path)
    assert str(caught.value.location) == str(path)


def test_what_tune_asks_about_may_stand_in_a_profile(tmp_path: Path) -> None:
    for flag in tuner._FLAGS:
        Profile((flag,), "vulkan", 2).save(tmp_path / "p.json")
        assert Profile.load(tmp_path / "p.json").flags == (flag,)
    assert {flag.partition("=")[0] for flag in tuner._FLAGS} == set(FLAGS)


def test_a_profile_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(hloforge.OptionError, match="more than 1048576 bytes"):
        Profile.load("/dev/zero")


def test_a_vmfb_remembers_its_device() -> None:
    executable = hloforge.compile(TEXT, device="local-task", threads=1)
    assert executable.load().device == "local-task"
    assert executable.load(device="local-sync").device == "local-sync"
    np.testing.assert_allclose(executable(X), 11 * X, rtol=1e-6)


def test_what_measures_slower_at_the_end_is_no_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form wins its own comparison, and the last one says otherwise."""
    ratios = iter([0.5] * 2 + [1.25])
    monkeypatch.setattr(tuner, "_FLAGS", ())
    monkeypatch.setattr(tuner, "TUNABLE", {})
    monkeypatch.setattr(tuner, "_devices", lambda _: [("local-sync", 0), ("local-task", 0)])
    monkeypatch.setattr(tuner._Search, "_ratio", lambda *_: next(ratios))
    found = tuner.tune(hloforge.read(TEXT), [X], budget=60)
    assert [trial.accepted for trial in found.trials] == [True, True]
    assert (found.profile, found.speedup) == (tuner.Profile(), 1.0)


def test_without_time_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner._Search, "_distinct", lambda *_: pytest.fail("asked"))
    assert tuner.tune(hloforge.read(TEXT), [X], budget=0).trials == ()


def test_latencies_tell_slow_from_fast() -> None:
    found = interleaved({"fast": lambda: None, "slow": lambda: sum(range(20000))}, 0.05)
    assert found["fast"].median < found["slow"].median
    assert found["slow"].low <= found["slow"].median <= found["slow"].high


def _compile(program: Any, target: Any, options: CompileOptions) -> hloforge.Executable:
    """One flag makes another program of it."""
    other = TEXT.replace("stablehlo.add %v", "stablehlo.multiply %v")
    return compile_program(hloforge.read(other) if WRONG in options.flags else program, target, options)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CODEGEN, IREE)
    monkeypatch.setattr(tuner, "_FLAGS", (BROKEN, WRONG))
    monkeypatch.setattr(tuner, "compile_program", _compile)


@pytest.mark.slow
@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize("engine", ["xla", pytest.param(None, marks=pytest.mark.slow)])
def test_wrong_and_broken_forms_never_win(engine: str | None) -> None:
    reference = hloforge.reference(engine) if engine else None
    seen: list[tuner.Trial] = []
    found = tuner.tune(hloforge.read(TEXT), [X], reference=reference, budget=60, on_trial=seen.append)
    assert found.trials == tuple(seen)
    problems = {trial.profile.flags[-1]: trial.problem for trial in seen if trial.profile.flags}
    assert "no-such-flag" in problems[BROKEN]
    assert problems[WRONG] == "its results differ"
    assert not {BROKEN, WRONG} & set(found.profile.flags)
    np.testing.assert_allclose(found.executable(X), 11 * X, rtol=1e-6)
    assert found.executable.load().device == (found.profile.device or "local-sync")


@pytest.mark.usefixtures("questions")
def test_a_program_that_is_wrong_before_is_not_tuned() -> None:
    with pytest.raises(hloforge.MismatchError, match="before any tuning"):
        tuner.tune(
            hloforge.read(TEXT),
            [X],
            options=CompileOptions(flags=(WRONG,)),
            reference=hloforge.reference("xla"),
            budget=0,
        )


def test_a_gpu_is_asked_what_its_code_generator_reads() -> None:
    """Neither pools of threads nor flags of another one's code."""
    for target, strange in (("vulkan:llvmpipe", ("llvmcpu", "llvmgpu")), ("cuda:sm_90", ("llvmcpu",))):
        parsed = tuner.Target.parse(target)
        assert tuner._devices(parsed) == []
        flags = tuner._flags(parsed)
        assert "--iree-opt-level=O3" in flags
        assert not [flag for flag in flags for part in strange if part in flag]
    assert "--iree-llvmcpu-distribution-size=32" in tuner._flags(tuner.Target.parse("cpu"))


def test_without_a_device_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = drivers.Driver("cuda", (), "NVIDIA's driver is not installed", "install it")
    monkeypatch.setattr(drivers, "driver", lambda name: missing)
    monkeypatch.setattr(devices._devices, "made", {})
    monkeypatch.setattr(tuner, "compile_program", lambda *_: pytest.fail("compiled"))
    with pytest.raises(hloforge.LoadError, match="NVIDIA's driver is not installed"):
        tuner.tune(hloforge.read(TEXT), [X], "cuda:sm_90")


_PRODUCT = """func.func @main(%x: tensor<300x2048xf32>, %y: tensor<2048x600xf32>) -> tensor<300x600xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<300x2048xf32>, tensor<2048x600xf32>) -> tensor<300x600xf32>
  return %0 : tensor<300x600xf32>
}
"""


@pytest.mark.slow
def test_numbers_of_the_machine_that_change_a_program_are_asked_about() -> None:
    arguments = [np.ones((300, 2048), np.float32), np.ones((2048, 600), np.float32)]
    found = tuner.tune(hloforge.read(_PRODUCT), arguments, "cpu:x86-64-v3", budget=60)
    asked = [trial.profile for trial in found.trials if trial.profile.machine]
    assert asked
    usual = hloforge.compile(_PRODUCT, "cpu:x86-64-v3").vmfb
    assert all(hloforge.compile(_PRODUCT, "cpu:x86-64-v3", machine=each.machine).vmfb != usual for each in asked)
    assert not [trial.problem for trial in found.trials if trial.problem or trial.profile.flags]


def test_the_cache_tells_machines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path))
    places = {
        cache.entry(b"", {}, tuner.Target(), CompileOptions(machine=machine)).path
        for machine in ((), ("l2-bytes=1048576",))
    }
    assert len(places) == 2
