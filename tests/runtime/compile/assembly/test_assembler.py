"""Programs compiled by parts give what ``iree-compile`` gives, and share what they compute alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.assembly import assembler, libraries, server
from hloforge.runtime.compile.assembly.library_cache import LibraryCache

pytestmark = [
    pytest.mark.wide(2),
    pytest.mark.skipif(not server.is_available(), reason="forked children are Linux's alone"),
    pytest.mark.usefixtures("iree_codegen"),
]

PROGRAMS = {
    "elementwise": """
func.func @main(%a: tensor<33x65xf32>, %b: tensor<33x65xf32>) -> tensor<33x65xf32> {
  %0 = stablehlo.tanh %a : tensor<33x65xf32>
  %1 = stablehlo.multiply %0, %b : tensor<33x65xf32>
  return %1 : tensor<33x65xf32>
}""",
    "product and sum": """
func.func @main(%a: tensor<70x60xf32>, %b: tensor<60x50xf32>) -> tensor<70xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<70x60xf32>, tensor<60x50xf32>)
    -> tensor<70x50xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] :
    (tensor<70x50xf32>, tensor<f32>) -> tensor<70xf32>
  return %1 : tensor<70xf32>
}""",
    "loop": """
func.func @main(%a: tensor<300x40xf32>, %n: tensor<i32>) -> tensor<300x40xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%x = %a, %i = %zero) : tensor<300x40xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 40] :
      (tensor<300x40xf32>, tensor<i32>, tensor<i32>) -> tensor<1x40xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %sine = stablehlo.sine %row : tensor<1x40xf32>
    %2 = stablehlo.dynamic_update_slice %x, %sine, %next, %zero :
      (tensor<300x40xf32>, tensor<1x40xf32>, tensor<i32>, tensor<i32>) -> tensor<300x40xf32>
    stablehlo.return %2, %next : tensor<300x40xf32>, tensor<i32>
  }
  return %0#0 : tensor<300x40xf32>
}""",
    "dynamic": """
func.func @main(%a: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.exponential %a : tensor<?x8xf32>
  %1 = stablehlo.add %0, %a : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}""",
    "constants": """
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<64xf32>
  %1 = stablehlo.cosine %0 : tensor<64xf32>
  %2 = stablehlo.reverse %1, dims = [0] : tensor<64xf32>
  %3 = stablehlo.add %a, %2 : tensor<64xf32>
  return %3 : tensor<64xf32>
}""",
    "nothing": "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n  return %a : tensor<3xf32>\n}",
    "several results": """
func.func @main(%a: tensor<40x50xf64>) -> (tensor<50x40xf64>, tensor<40x50xi32>, tensor<f64>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<40x50xf64>) -> tensor<50x40xf64>
  %1 = stablehlo.convert %a : (tensor<40x50xf64>) -> tensor<40x50xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %2 = stablehlo.reduce(%a init: %zero) applies stablehlo.maximum across dimensions = [0, 1] :
    (tensor<40x50xf64>, tensor<f64>) -> tensor<f64>
  return %0, %1, %2 : tensor<50x40xf64>, tensor<40x50xi32>, tensor<f64>
}""",
}
ARGUMENTS: dict[str, list[Any]] = {
    "elementwise": [np.linspace(-3, 3, 33 * 65, dtype=np.float32).reshape(33, 65)] * 2,
    "product and sum": [
        np.linspace(-1, 1, 4200, dtype=np.float32).reshape(70, 60),
        np.linspace(-1, 1, 3000, dtype=np.float32).reshape(60, 50),
    ],
    "loop": [np.linspace(-3, 3, 12000, dtype=np.float32).reshape(300, 40), np.int32(7)],
    "dynamic": [np.linspace(-3, 3, 40, dtype=np.float32).reshape(5, 8)],
    "constants": [np.linspace(-3, 3, 64, dtype=np.float32)],
    "nothing": [np.arange(3, dtype=np.float32)],
    "several results": [np.linspace(-30, 30, 2000).reshape(40, 50)],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Kinds of requests that succeeded or not; the library for this processor is there already."""
    for _ in range(2):
        hloforge.compile(PROGRAMS["nothing"], cache=False)
    kinds: list[str] = []
    request = server.Server.request
    monkeypatch.setattr(
        server.Server, "request", lambda self, kind, *rest: kinds.append(kind) or request(self, kind, *rest)
    )
    yield kinds


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_answer_is_that_of_iree_compile(name: str, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes | None] = []
    assembled = assembler.assembled
    monkeypatch.setattr(
        "hloforge.runtime.compile.compiler_process.assembled", lambda *rest: made.append(assembled(*rest)) or made[-1]
    )
    by_parts = hloforge.compile(PROGRAMS[name], cache=False)
    assert made[0] is not None and not by_parts.manifest.attempts.failed
    assert by_parts.vmfb == hloforge.compile(PROGRAMS[name], cache=False).vmfb
    assert ("library" in asked) == (name != "nothing")
    monkeypatch.setenv(server.VARIABLE, "0")
    whole = hloforge.compile(PROGRAMS[name], cache=False)
    assert len(made) == 3 and made[2] is None
    first, second = (executable.load()(*ARGUMENTS[name]) for executable in (by_parts, whole))
    results, expected = (value if isinstance(value, tuple) else (value,) for value in (first, second))
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_known_kernels_are_not_compiled_again(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    hloforge.compile(PROGRAMS["elementwise"], cache=False)  # the library for this processor is made anew
    text = PROGRAMS["elementwise"]
    monkeypatch.setattr(libraries, "known", LibraryCache())
    asked.clear()
    hloforge.compile(text, cache=True)
    assert asked == ["program", "library"]
    # Another program with the same kernel: other names, and an argument that it only returns.
    other = text.replace("%b: tensor<33x65xf32>)", "%b: tensor<33x65xf32>, %c: tensor<2xf32>)").replace(
        "-> tensor<33x65xf32> {", "-> (tensor<33x65xf32>, tensor<2xf32>) {"
    )
    other = other.replace("return %1 : tensor<33x65xf32>", "return %1, %c : tensor<33x65xf32>, tensor<2xf32>")
    for known in (libraries.known, LibraryCache()):  # in this process, and on disk
        monkeypatch.setattr(libraries, "known", known)
        asked.clear()
        executable = hloforge.compile(other, name="other", cache=True)
        assert asked == ["program"]
        for path in (tmp_path / "cache").glob("*.cached"):
            path.unlink()
    a, b = ARGUMENTS["elementwise"]
    result = executable.load()(a, b, np.ones(2, np.float32))
    np.testing.assert_allclose(np.asarray(result[0]), np.tanh(a) * b, rtol=1e-5)
    asked.clear()
    hloforge.compile(other, name="other", cache=False)
    assert asked == ["program", "library"]


COMPARE = """
import json, sys
from hloforge.runtime.compile.assembly import passes
from hloforge.runtime.compile.assembly.library import Compiler, Invocation
from hloforge.runtime.compile.assembly import server, worker

compiler = Compiler(str(server.library()))
flags = [
    "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-opt-level=O2",
    "--iree-llvmcpu-target-cpu=host", "--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false",
    "--iree-opt-const-expr-hoisting=false", "--mlir-disable-threading",
]
compiler.choose(flags)
for name, source in json.load(sys.stdin).items():
    program = Invocation(compiler, source.encode())
    program.compile("flow")
    expected = str(compiler.parse(program.output("IRBytecode", -1)).operation.get_asm(use_local_scope=True))
    device = next(line for line in expected.splitlines() if "util.global private @__device_0 = " in line)
    before, after = passes.to_dispatches(strips_assertions=True, tiles_data=False)
    module = compiler.parse(source)
    compiler.run(module, before)
    compiler.set_attribute(module, "hal.device.targets", f"[{device.partition(' = ')[2]}]")
    compiler.run(module, after)
    print(name, str(module.operation.get_asm(use_local_scope=True)) == expected, len(expected))
    _, _, executables = worker.apart(compiler, module)
    for name, executable in executables.items():
        source = "module {" + executable + "}"
        program = Invocation(compiler, source.encode())
        program.compile("executable-targets", since="executable-sources")
        expected = str(compiler.parse(program.output("IRBytecode", -1)).operation.get_asm(use_local_scope=True))
        code = compiler.parse(source)
        compiler.run(code, passes.TO_CODE)
        made = str(code.operation.get_asm(use_local_scope=True))
        # The session adds its device to the module.
        made, expected = (text[text.index("  hal.executable ") :] for text in (made, expected))
        print(name, made == expected, len(expected))
"""


def test_dispatches_and_their_code_are_those_of_iree_compile() -> None:
    """IREE's own phases print the same text, but for those that the server leaves out, which change nothing."""
    programs = {name.replace(" ", "-"): text for name, text in PROGRAMS.items()}
    command = [sys.executable, "-c", COMPARE]
    done = subprocess.run(command, input=json.dumps(programs), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    compared = [line.split() for line in done.stdout.splitlines()]
    assert set(programs) < {name for name, _, _ in compared} and len(compared) > 12
    assert all(int(length) > 500 for _, _, length in compared)
    assert not [name for name, equal, _ in compared if equal != "True"]
