"""What a compilation says that it does, and that saying it changes nothing of what it makes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import hloforge
from hloforge.dialect.budget import Budget
from hloforge.importers.reader import read
from hloforge.runtime.compile import cache, iree
from hloforge.runtime.compile.direct import objects
from hloforge.runtime.compile.progress import INTERVAL, CompilerWatch, told
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.debug.stages import options_json, options_of
from hloforge.runtime.options import CompileOptions

# Sums over one dimension and the other, which no compiler fuses: several dispatches, which take longer than a look.
STEPS = 8
PROGRAM = "\n".join(
    (
        "HloModule sums",
        "plus { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }",
        "ENTRY main {",
        "  zero = f32[] constant(0)",
        "  x0 = f32[40,50] parameter(0)",
        *(
            f"  sum.{n} = f32[{50 - n % 2 * 10}] reduce(x{n}, zero), dimensions={{{n % 2}}}, to_apply=plus\n"
            f"  b{n} = f32[40,50] broadcast(sum.{n}), dimensions={{{1 - n % 2}}}\n"
            f"  e{n} = f32[40,50] exponential(b{n})\n"
            f"  x{n + 1} = f32[40,50] multiply(x{n}, e{n})"
            for n in range(STEPS)
        ),
        f"  ROOT r = f32[40,50] tanh(x{STEPS})",
        "}",
    )
)


@pytest.mark.parametrize("limits", [{}, {"timeout": 300.0}], ids=["in this process", "in a forked child"])
@pytest.mark.usefixtures("iree_codegen")
def test_phases_are_told_in_order(limits: dict[str, Any]) -> None:
    said: list[str] = []
    alone = hloforge.compile(PROGRAM, cache=False)
    alone = hloforge.compile(PROGRAM, cache=False)  # the first one of a process may be linked in another way
    watched = hloforge.compile(PROGRAM, cache=False, progress=said.append, **limits)
    assert watched.vmfb == alone.vmfb
    assert said[-1].startswith("IREE's compiler: ")
    dispatches = [match for phase in said if (match := re.search(r"dispatch (\d+) of (\d+)", phase))]
    assert dispatches
    assert {int(match[2]) for match in dispatches} == {max(int(match[2]) for match in dispatches)}
    counts = [int(match[1]) for match in dispatches]
    # Equal steps share their code.
    assert counts == sorted(counts) and counts[-1] <= int(dispatches[0][2]) and int(dispatches[0][2]) > 2


def test_a_listener_does_not_decide_what_is_compiled() -> None:
    listening, alone = CompileOptions(progress=print), CompileOptions()
    target = Target.parse("cpu:generic")
    assert cache.entry(b"x", {}, target, listening) == cache.entry(b"x", {}, target, alone)
    assert listening == alone
    assert options_of(options_json(listening)) == alone


@pytest.mark.parametrize("limits", [{}, {"timeout": 300.0}], ids=["in this process", "in a forked child"])
def test_steps_and_kernels_of_code_generation_are_told(limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = objects.Compiler.compile
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())
    monkeypatch.setattr(objects.Compiler, "compile", lambda self, text: time.sleep(3 * INTERVAL) or made(self, text))
    said: list[str] = []
    watched = hloforge.compile(PROGRAM, cache=False, progress=said.append, **limits)
    assert watched.vmfb == hloforge.compile(PROGRAM, cache=False).vmfb
    assert re.fullmatch(r"machine code: kernel (\d+) of \1", said[-1])


@pytest.mark.usefixtures("either_codegen")
def test_an_error_of_the_listener_is_not_one_of_the_compilation() -> None:
    def fails(_: str) -> None:
        raise ValueError("no terminal")

    executable = hloforge.compile(PROGRAM, cache=False, progress=fails)
    assert executable.vmfb


def test_a_listener_hears_each_phase_once() -> None:
    running, said = Budget(None, None, is_watched=True), list[str]()
    with told(said.append, running):
        for phase in ("reading", "reading", "IREE's compiler"):
            running.enter(phase)
            time.sleep(3 * INTERVAL)
    assert said == ["reading", "IREE's compiler"]


def test_phases_of_iree_follow_its_files(tmp_path: Path) -> None:
    """As IREE leaves them: constants are computed by a module inside the program's."""
    printed, temporary = tmp_path / "printed", tmp_path / "temporary"
    outer = printed / "builtin_module_m"
    inner = outer / "builtin_module_no-symbol-name"
    temporary.mkdir()
    (temporary / "support.o").touch()
    watch = CompilerWatch(temporary, printed)
    assert watch.phase() == "IREE's compiler: forming dispatches"

    def prints(module: Path, name: str, text: str) -> None:
        path = module / name
        path.parent.mkdir(parents=True)
        path.write_text(text)

    def begins(module: Path, name: str) -> None:
        prints(module, f"hal_executable_{name}/0_0_iree-hal-translate-all-executables.mlir", "")

    prints(inner, "util_func_jit_eval/0_0_iree-stream-schedule-concurrency.mlir", "@jit_0::@jit_0_f")
    begins(inner, "jit_0")
    assert watch.phase() == "IREE's compiler: dispatch 1 of 1, then LLVM"
    text = '@d_0::@f @d_1::@g @d_0::@f @"d 2"::@h'
    prints(outer, "util_func_main/0_0_iree-stream-schedule-concurrency.mlir", text)
    begins(outer, "d_0")
    assert watch.phase() == "IREE's compiler: dispatch 1 of 3"
    left = temporary / "jit_linked-5678.o"  # of the constants
    left.touch()
    os.utime(left, (1, 1))
    assert watch.phase() == "IREE's compiler: dispatch 1 of 3"
    begins(outer, "d_1")
    assert watch.phase() == "IREE's compiler: dispatch 2 of 3"
    (temporary / "m_linked-1234.o").touch()
    assert watch.phase() == "IREE's compiler: linking"


def test_the_flags_are_those_of_the_compiler(tmp_path: Path) -> None:
    """IREE prints each dispatch where the watch looks for it."""
    (tmp_path / "t").mkdir()
    watch = CompilerWatch(tmp_path / "t", None)
    text = read(PROGRAM).text()
    flags = ("--iree-input-type=stablehlo", "--iree-hal-target-device=local", "--mlir-disable-threading")
    backend = "--iree-hal-local-target-device-backends=llvm-cpu"
    command = [iree.compiler_binary(), "-", "-o", "/dev/null", *flags, backend, *watch.flags]
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)
    assert re.fullmatch(r"IREE's compiler: dispatch \d+", watch.phase())
