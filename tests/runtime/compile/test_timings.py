"""What takes IREE's compiler its time, and that measuring it changes nothing of what it makes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import hloforge
from hloforge.dialect.errors import CompileError
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.timings import CompilerClock, part, recorded

ADD = "HloModule m\nENTRY e {\n  x = f32[40] parameter(0)\n  ROOT y = f32[40] add(x, x)\n}\n"
# IREE's phases, in its order.
PHASES = [
    "input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream",
    "executable-sources", "executable-configurations", "executable-targets (code generation)", "hal", "vm",
]  # fmt: skip


@pytest.mark.usefixtures("iree_codegen")
def test_phases_llvm_and_the_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server.VARIABLE, "0")
    hloforge.compile(ADD, cache=False)  # the first one of a process may be linked in another way
    start = time.perf_counter()
    with recorded() as parts:
        measured = hloforge.compile(ADD, cache=False)
    taken = time.perf_counter() - start
    assert [name for name in parts if name in PHASES] == PHASES
    shares = [name for name in parts if name.startswith("  ")]
    assert shares == ["  LLVM", "  linker"] and list(parts).index("  LLVM") == list(parts).index("hal") + 1
    assert all(seconds >= 0 for seconds in parts.values())
    # The times of files are those of the last tick of the system's clock.
    tick = 0.01
    assert 0 < parts["  LLVM"] + parts["  linker"] <= parts["hal"] + tick
    assert sum(seconds for name, seconds in parts.items() if name not in shares) <= taken + tick
    assert measured.vmfb == hloforge.compile(ADD, cache=False).vmfb


@pytest.mark.skipif(not server.is_available(), reason="the server of IREE's compiler runs on Linux alone")
@pytest.mark.usefixtures("iree_codegen")
def test_parts_of_what_the_server_compiles() -> None:
    hloforge.compile(ADD, cache=False)  # the first one of a process may be linked in another way
    hloforge.compile(ADD, cache=False)
    with recorded() as parts:
        measured = hloforge.compile(ADD, cache=False)
    steps = ["dispatches", "code generation", "LLVM and linker", "bytecode"]
    assert [name for name in parts if name in steps] == steps
    assert all(parts[step] > 0 for step in steps)
    assert measured.vmfb == hloforge.compile(ADD, cache=False).vmfb


def test_nothing_is_measured_where_nobody_asks(tmp_path: Path) -> None:
    clock = CompilerClock(tmp_path, (), is_elided=True)
    assert (clock.flags, clock.read("said"), list(tmp_path.iterdir())) == ((), "said", [])
    with recorded() as parts:
        pass
    with part("after"):
        pass
    assert parts == {}


def test_a_failure_is_reported_as_ever(tmp_path: Path) -> None:
    def message() -> str:
        with pytest.raises(CompileError) as caught:
            hloforge.compile(ADD, cache=False, flags=("--iree-no-such-flag",), reproducer_dir=tmp_path)
        return caught.value.message

    expected = message()
    with recorded():
        assert message() == expected


@pytest.mark.parametrize("others", ["", "    5.0000 ( 60.0%)"], ids=["one thread", "threads"])
def test_the_report_of_iree_is_no_part_of_what_it_says(others: str, tmp_path: Path) -> None:
    report = (
        "===------===\n           ... Execution time report ...\n===------===\n"
        "  Total Execution Time: 4.0000 seconds\n\n  ----Wall Time----  ----Name----\n"
        f"{others}    3.0000 ( 75.0%)  SerializeAllExecutablesPass\n    4.0000 (100.0%)  Total\n"
    )
    with recorded() as parts:
        clock = CompilerClock(tmp_path, ("--compile-from=executable-targets",), is_elided=False)
        assert clock.read(f"a.mlir:1:2: warning: slow\n{report}") == "a.mlir:1:2: warning: slow\n"
    assert list(parts) == ["iree-compile --compile-from=executable-targets", "  LLVM"]
    assert parts["  LLVM"] == 3.0
