"""The ledger of IREE's faults is complete: no workaround without a record, no record without its workaround."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hloforge.pipelines.framework.passes import NativePass, Pass
from hloforge.pipelines.named import BORDER, DECOMPOSE, FINISH
from hloforge.runtime.codegen_fixes.block_barriers import with_block_barriers
from hloforge.runtime.codegen_fixes.exact_floats import decorated
from hloforge.runtime.codegen_fixes.idle_invocations import without_idle_invocations
from hloforge.runtime.codegen_fixes.repeated_threads import without_repeated_threads
from hloforge.runtime.codegen_fixes.workgroup_barriers import with_barriers
from hloforge.runtime.compile import by_iree
from hloforge.runtime.devices import devices
from hloforge.runtime.upstream.ledger import NO_WORKAROUNDS, OTHER_FLAGS, WORKAROUNDS, Workaround
from tests.upstream import __main__ as command, page, reproducer
from tests.upstream.reproducer import FOLDER, GONE, THERE, UNKNOWN, Outcome, Reproducer, Tools, judged

ROOT = Path(__file__).resolve().parents[2]
_ROOMS = {"legalize", "decompose", "dynamic", "library_calls", "workarounds"}
PASSES: list[Pass] = [
    stage.entry for stage in (*BORDER, *DECOMPOSE, *FINISH) if not isinstance(stage.entry, NativePass)
]
RECORDED = {name for record in WORKAROUNDS for name in record.passes}
WITH_REPRODUCER = [record for record in WORKAROUNDS if record.reproducer]


def flag_constants() -> set[str]:
    """Constants of ``runtime/compile/by_iree.py`` and ``runtime/devices/devices.py`` that are flags."""
    found = [*vars(by_iree).items(), *vars(devices).items()]
    return {name for name, value in found if isinstance(value, str) and value.startswith("--")}


def amending_files() -> set[str]:
    """Files with what amends code that IREE has written."""
    functions = [f for name, f in vars(by_iree).items() if name.startswith("_amend")]
    trees = [ast.parse(inspect.getsource(function)) for function in functions]
    attributes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    named = {node.value.id for node in attributes if isinstance(node.value, ast.Name)}
    return {f"runtime/codegen_fixes/{name}.py" for name in named if inspect.ismodule(vars(by_iree).get(name))}


def test_every_pass_is_recorded_or_no_workaround() -> None:
    asked = {entry.name for entry in PASSES if type(entry).__module__.split(".")[2] in _ROOMS}
    missing = asked - RECORDED - NO_WORKAROUNDS.keys()
    assert not missing, "add a record to runtime/upstream/in_programs.py, or a reason to NO_WORKAROUNDS"
    assert not RECORDED & NO_WORKAROUNDS.keys()


def test_what_the_ledger_names_is_there() -> None:
    names = {entry.name for entry in PASSES}
    assert names >= RECORDED
    assert names >= NO_WORKAROUNDS.keys()
    for record in WORKAROUNDS:
        assert all((ROOT / path).is_file() for path in record.where), record.name
        assert record.passes or record.flags or record.where, record.name


def test_every_flag_is_recorded_or_no_workaround() -> None:
    recorded = {name for record in WORKAROUNDS for name in record.flags}
    assert recorded | OTHER_FLAGS.keys() == flag_constants()
    assert not recorded & OTHER_FLAGS.keys()


def test_every_amendment_of_code_is_recorded() -> None:
    files = amending_files()
    assert len(files) >= 6
    assert files <= {path for record in WORKAROUNDS for path in record.where}


def test_every_file_of_legalizations_is_recorded_or_stays() -> None:
    """A file of these folders belongs to a record, or defines a pass that is no workaround."""
    recorded = {path for record in WORKAROUNDS for path in record.where}
    folders = (ROOT / "pipelines" / "legalize", ROOT / "pipelines" / "workarounds")
    files = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.glob("[!_]*.py")}
    kept = {inspect.getfile(type(entry)) for entry in PASSES if entry.name in NO_WORKAROUNDS}
    kept_files = {Path(path).relative_to(ROOT).as_posix() for path in kept}
    assert files - recorded - kept_files <= set(HELPERS)
    assert set(HELPERS) <= files


# What several passes share, and parts of passes that stay.
HELPERS = (
    "pipelines/workarounds/bf16_signs.py",
    "pipelines/legalize/buffer_layouts.py",
    "pipelines/legalize/retyping.py",
)


def test_names_and_reproducers() -> None:
    counted = Counter(record.name for record in WORKAROUNDS)
    assert max(counted.values()) == 1
    for record in WORKAROUNDS:
        assert bool(record.reproducer) != bool(record.unshown), f"{record.name}: a reproducer, or why there is none"
    for record in WITH_REPRODUCER:
        assert record.reproducer == record.name.replace("-", "_") + ".mlir"
    assert {record.reproducer for record in WITH_REPRODUCER} == {path.name for path in FOLDER.glob("*.mlir")}


@pytest.mark.parametrize("record", WITH_REPRODUCER, ids=lambda record: record.name)
def test_a_header_says_what_goes_wrong(record: Workaround) -> None:
    Reproducer.read(FOLDER / record.reproducer)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "one line"),
        ("// fault: late", "one of"),
        ("// fault: slow", "seconds"),
        ("// fault: compile-error", "part of the message"),
        ('// fault: crash "x"', "part of the message"),
        ("// fault: wrong", "expected"),
    ],
)
def test_incomplete_headers_are_refused(header: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text(f"// A fault.\n{header}\nmodule {{}}\n")
    with pytest.raises(ValueError, match=message):
        Reproducer.read(path)


_ADD = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.add %x, %x : tensor<2xf32>
  return %r : tensor<2xf32>
}
"""
_INPUT = "// input: 2xf32=1 2\n"


@pytest.mark.wide(4)
@pytest.mark.parametrize(
    ("header", "state"),
    [
        (f"// fault: wrong\n{_INPUT}// expected: 2xf32=2 4", GONE),
        (f"// fault: wrong\n{_INPUT}// expected: 2xf32=2 5", THERE),
        (f"// fault: wrong\n{_INPUT}// expected: 2xi32=2 4", UNKNOWN),
        ("// fault: crash", GONE),
        ("// flags: --iree-no-such-flag\n// fault: crash", UNKNOWN),
        ('// fault: slow "60"', GONE),
        ('// fault: slow "0"', THERE),
        ('// fault: code "llvm.fadd"', THERE),
        ('// fault: code "llvm.fmul"', GONE),
        ('// target: volta\n// fault: code "spirv.FAdd(?!.*NoContraction)"', THERE),
        ('// flags: --iree-no-such-flag\n// fault: compile-error "no such type"', UNKNOWN),
    ],
)
def test_what_is_seen_of_a_fault(header: str, state: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text(f"// A fault.\n{header}{_ADD}")
    assert judged(Reproducer.read(path), Tools.found()).state == state


@pytest.mark.parametrize(
    ("name", "amended"),
    [
        ("workgroup_barriers", with_barriers),
        ("block_barriers", with_block_barriers),
        ("idle_invocations", without_idle_invocations),
        ("repeated_threads", without_repeated_threads),
        ("exact_floats", decorated),
    ],
)
def test_a_pattern_is_not_found_in_amended_code(name: str, amended: Callable[[bytes], bytes]) -> None:
    """A code's pattern is that of the fault: where the fault is amended, it is gone."""
    shown = Reproducer.read(FOLDER / f"{name}.mlir")
    command = [str(Tools.found().compiler), str(shown.path), "-o", "-", *shown.compilation]
    code = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout
    assert re.search(shown.text, code.decode(), re.DOTALL)
    assert not re.search(shown.text, amended(code).decode(), re.DOTALL)


@pytest.mark.parametrize(("state", "status"), [(THERE, 0), (UNKNOWN, 0), (GONE, 1)])
def test_a_fault_that_is_gone_fails(
    state: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "judged", lambda *_: Outcome(state, "as in a test"))
    monkeypatch.setattr("sys.argv", ["upstream", "--only=crossed-uses"])
    assert command.main() == status
    assert ("delete their workarounds" in capsys.readouterr().out) == (state == GONE)


def test_another_version_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is installed once, beside the one that hloforge uses."""
    installed: list[list[str]] = []

    def install(command: list[str], **_: object) -> None:
        installed.append(command)
        for name in ("compiler/_mlir_libs/iree-compile", "_runtime_libs/iree-run-module"):
            path = tmp_path / "3.12.0" / "iree" / name
            path.parent.mkdir(parents=True)
            path.touch()

    asked: list[Tools] = []
    monkeypatch.setattr(reproducer, "VERSIONS", tmp_path)
    monkeypatch.setattr(reproducer.subprocess, "run", install)
    monkeypatch.setattr(command, "judged", lambda _, tools: asked.append(tools) or Outcome(THERE, "as in a test"))
    monkeypatch.setattr("sys.argv", ["upstream", "--only=crossed-uses", "--iree=3.12.0"])
    assert command.main() == command.main() == 0
    assert len(installed) == 1 and installed[0][-2:] == ["iree-base-compiler==3.12.0", "iree-base-runtime==3.12.0"]
    assert {tools.compiler.relative_to(tmp_path).parts[0] for tools in asked} == {"3.12.0"}


def test_the_page_is_current() -> None:
    assert _without_counts(page.PAGE.read_text()) == _without_counts(page.page()), "run: make tables"


def _without_counts(text: str) -> str:
    """Counts of lines change with each edit of a workaround, and say the same."""
    return re.sub(r"(?<=have )\d+(?= lines)|(?<=\| )\d+(?= \|)", "N", text)


@pytest.mark.slow
@pytest.mark.parametrize("record", WITH_REPRODUCER, ids=lambda record: record.name)
def test_the_fault_is_still_there(record: Workaround) -> None:
    # What frees memory too early shows in most calls, not in each.
    seen: list[str] = []
    for _ in range(3):
        outcome = judged(Reproducer.read(FOLDER / record.reproducer), Tools.found())
        if outcome.state == THERE:
            return
        seen.append(outcome.seen)
    pytest.fail("; ".join(seen))
