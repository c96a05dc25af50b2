"""``hloforge bisect`` on planted faults: wrong passes, a crash of IREE's compiler, constants without values."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from tests.tools.command import Call

# Faults are planted in passes, which programs of our code generator do not go through.
pytestmark = pytest.mark.usefixtures("iree_codegen")

COMMAND = [sys.executable, "-m", "hloforge.tools.main"]

# A pass of the user's own that replaces an operation: {op} by what {body} makes of its operands.
PLUGIN = """
from dataclasses import dataclass
from typing import Any, ClassVar
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines import named
from hloforge.pipelines.framework.passes import Pass

@dataclass(frozen=True)
class Planted(Pass):
    name: ClassVar[str] = "planted"

    def run(self, module: Any) -> None:
        with in_context(module):
            for op in operations(module, ["{op}"]):
                with ir.InsertionPoint(op), op.location:
                    {body}

def emit(name, op, *operands):
    return ir.Operation.create(name, results=[op.results[0].type], operands=list(operands)).results[0]

def replace(op, value):
    op.results[0].replace_all_uses_with(value)
    op.erase()

named.FINISH = (named.Stage(Planted(), "a planted fault"), *named.FINISH)
"""

# Eight layers of a network, one of which has another activation, between a sort and a reduction.
NETWORK = """
!m = tensor<16x16xf32>
func.func @main(%x: !m, %w: !m) -> (tensor<16xf32>, !m) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : !m
  %v0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!m, !m) -> !m
  %a0 = stablehlo.maximum %v0, %zeros : !m
  %v1 = stablehlo.dot_general %a0, %w, contracting_dims = [1] x [0] : (!m, !m) -> !m
  %a1 = stablehlo.add %v1, %x : !m
  %t = stablehlo.transpose %a1, dims = [1, 0] : (!m) -> !m
  %a2 = stablehlo.tanh %t : !m
  %v3 = stablehlo.subtract %a2, %w : !m
  %e = stablehlo.exponential %v3 : !m
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (!m, tensor<f32>) -> tensor<16xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<16xf32>) -> !m
  %d = stablehlo.divide %e, %b : !m
  %o = "stablehlo.sort"(%d) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %c = stablehlo.compare LT, %l, %r, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (!m) -> !m
  %m = stablehlo.multiply %o, %x : !m
  return %s, %m : tensor<16xf32>, !m
}
"""

# IREE's compiler crashes on the conversion, of complex numbers to complex numbers.
CRASHES = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  %z = stablehlo.complex %x, %y : tensor<4x8xcomplex<f32>>
  %n = stablehlo.negate %z : tensor<4x8xcomplex<f32>>
  %b = stablehlo.bitcast_convert %n : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  %r = stablehlo.real %b : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
  %i = stablehlo.imag %b : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
  %s = stablehlo.multiply %r, %i : tensor<4x8xf32>
  %e = stablehlo.exponential %s : tensor<4x8xf32>
  %t = stablehlo.transpose %e, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %s, %t : tensor<4x8xf32>, tensor<8x4xf32>
}
"""

ELIDED = """HloModule elided
ENTRY e {
  x = f32[64] parameter(0)
  a = f32[64] add(x, x)
  c = f32[64] constant({...})
  b = f32[64] multiply(a, c)
  ROOT r = f32[64] tanh(b)
}
"""


def planted(folder: Path, op: str, body: str) -> Path:
    path = folder / "planted.py"
    path.write_text(PLUGIN.replace("{op}", op).replace("{body}", body))
    return path


def written(folder: Path, text: str) -> Path:
    path = folder / "program.mlir"
    path.write_text(text)
    return path


def names(path: Path) -> list[str]:
    """The operations of a program without its structure, constants and terminators included as what they are."""
    program = read(path)
    found = [op.name for op in operations(program.module)]
    return [name for name in found if name not in ("func.func", "func.return", "stablehlo.return")]


@pytest.mark.slow
def test_a_wrong_decomposition_is_found_and_blamed(call: Call, tmp_path: Path) -> None:
    plugin = planted(tmp_path, "stablehlo.tanh", 'replace(op, emit("stablehlo.logistic", op, op.operands[0]))')
    small = tmp_path / "small.mlir"
    result = call("bisect", written(tmp_path, NETWORK), f"--plugin={plugin}", "-o", small)
    assert result.exit_code == 1, result.stderr
    assert names(small) == ["stablehlo.tanh"]
    assert "to blame: hloforge, planted." in result.stdout
    assert re.search(r"first wrong value: .*program.mlir:11:\d+: .*stablehlo.tanh", result.stdout)
    # The small program has its inputs inside: it shows the fault, and is right without it.
    assert call("verify", small, f"--plugin={plugin}").exit_code == 1
    assert call("verify", small).exit_code == 0


@pytest.mark.slow
def test_wrong_code_of_our_own_is_blamed(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CODEGEN", "own")
    plugin, small = tmp_path / "planted.py", tmp_path / "small.mlir"
    plugin.write_text(
        "from hloforge.pipelines.codegen.elements import table\n"
        "right = table.apply\n"
        "table.apply = lambda op, *others: right('logistic' if op == 'tanh' else op, *others)\n"
    )
    result = call("bisect", written(tmp_path, NETWORK), f"--plugin={plugin}", "-o", small)
    assert result.exit_code == 1, result.stderr
    assert names(small) == ["stablehlo.tanh"]
    assert "to blame: hloforge, code generation." in result.stdout
    assert call("verify", small, f"--plugin={plugin}").exit_code == 1
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")
    assert call("verify", small, f"--plugin={plugin}").exit_code == 0


@pytest.mark.slow
def test_a_wrong_comparator_is_found_inside_of_a_region(call: Call, tmp_path: Path) -> None:
    body = 'op.attributes["comparison_direction"] = ir.Attribute.parse("#stablehlo<comparison_direction GT>")'
    plugin = planted(tmp_path, "stablehlo.compare", body)
    small = tmp_path / "small.mlir"
    result = call("bisect", written(tmp_path, NETWORK), f"--plugin={plugin}", "-o", small)
    assert result.exit_code == 1, result.stderr
    assert names(small) == ["stablehlo.compare", "stablehlo.sort"]
    assert "to blame: hloforge, planted." in result.stdout


@pytest.mark.slow
def test_a_constant_that_a_pass_loses_is_found(call: Call, tmp_path: Path) -> None:
    # As where a pass prints the module without large constants: those of one number alone are safe.
    zeros = "ir.DenseElementsAttr.get_splat(op.results[0].type, ir.FloatAttr.get_f32(0.0))"
    values = "ir.DenseElementsAttr(op.attributes['value'])"
    body = f"op.attributes['value'] = {values} if {values}.is_splat else {zeros}"
    plugin = planted(tmp_path, "stablehlo.constant", body)
    numbers = ", ".join(f"{number}.5" for number in range(32))
    text = f"""
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {{
  %c = stablehlo.constant dense<[{numbers}]> : tensor<32xf32>
  %a = stablehlo.add %x, %x : tensor<32xf32>
  %b = stablehlo.tanh %a : tensor<32xf32>
  %m = stablehlo.multiply %b, %c : tensor<32xf32>
  %r = stablehlo.sine %m : tensor<32xf32>
  return %r : tensor<32xf32>
}}
"""
    small = tmp_path / "small.mlir"
    result = call("bisect", written(tmp_path, text), f"--plugin={plugin}", "-o", small)
    assert result.exit_code == 1, result.stderr
    found = names(small)
    assert "stablehlo.constant" in found and len(found) <= 3
    assert "to blame: hloforge, planted." in result.stdout


def test_a_crash_of_irees_compiler_is_found_without_our_passes(call: Call, tmp_path: Path) -> None:
    small = tmp_path / "small.mlir"
    program = written(tmp_path, CRASHES)
    result = call("bisect", program, "--plain", "-o", small)
    assert result.exit_code == 1, result.stderr
    assert names(small) == ["stablehlo.bitcast_convert"]
    assert "a crash (iree-compile): IREE's compiler crashed (SIG" in result.stdout
    assert "to blame: IREE." in result.stdout


@pytest.mark.slow
def test_a_text_without_values_is_cut_to_the_lines_that_matter(call: Call, tmp_path: Path) -> None:
    program, small = tmp_path / "elided.hlo", tmp_path / "small.hlo"
    program.write_text(ELIDED)
    result = call("bisect", program, "-o", small)
    assert result.exit_code == 1
    assert small.read_text().strip() == "c = f32[64] constant({...})" or len(small.read_text().splitlines()) <= 4
    assert "elided.hlo:5:3: the values of constant c were dropped" in result.stdout
    # With values it is a program like others.
    assert call("bisect", program, "--elided=random", "--trials=1").exit_code == 0


@pytest.mark.slow
def test_a_pass_that_crashes_is_named_with_its_operation(call: Call, tmp_path: Path) -> None:
    plugin = planted(tmp_path, "stablehlo.exponential", "import os; os.abort()")
    small = tmp_path / "small.mlir"
    result = call("bisect", written(tmp_path, NETWORK), f"--plugin={plugin}", "-o", small)
    assert result.exit_code == 1
    assert names(small) == ["stablehlo.exponential"]
    assert "a crash (pass planted): pass planted crashed (SIGABRT)" in result.stdout
    assert "to blame: hloforge, planted." in result.stdout
    assert "tensor<1x1xf32>" in small.read_text()


def test_a_budget_that_is_over_at_once_is_told(call: Call, tmp_path: Path) -> None:
    plugin = planted(tmp_path, "stablehlo.tanh", 'raise ValueError("planted")')
    result = call("bisect", written(tmp_path, NETWORK), f"--plugin={plugin}", "--budget=0.001")
    assert (result.exit_code, "ended before the search began" in result.stderr) == (1, True), result.stderr


@pytest.mark.slow
def test_the_element_that_differs_is_kept(call: Call, tmp_path: Path) -> None:
    # Without its tanh the program is right where x is 0: everywhere but at one place.
    plugin = planted(tmp_path, "stablehlo.tanh", "replace(op, op.operands[0])")
    body = "%a = stablehlo.tanh %x : tensor<6x7xf32>\n return %a : tensor<6x7xf32>"
    program = written(tmp_path, f"func.func @main(%x: tensor<6x7xf32>) -> tensor<6x7xf32> {{\n {body}\n}}")
    x, small = np.zeros((6, 7), np.float32), tmp_path / "small.mlir"
    x[4, 2] = 1
    np.save(tmp_path / "x.npy", x)
    call("bisect", program, f"--plugin={plugin}", f"--input=@{tmp_path}/x.npy", "-o", small)
    assert "// hloforge-input: 1x1xf32=[1]" in small.read_text()


@pytest.mark.slow
def test_a_fault_inside_of_a_loop_comes_out_of_it(call: Call, tmp_path: Path) -> None:
    plugin = planted(tmp_path, "stablehlo.tanh", "import os; os.abort()")
    loop = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.tanh %v : tensor<3xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<3xf32>
    }
  return %r#1 : tensor<3xf32>
}
"""
    small = tmp_path / "small.mlir"
    assert call("bisect", written(tmp_path, loop), f"--plugin={plugin}", "-o", small).exit_code == 1
    assert names(small) == ["stablehlo.tanh"]


@pytest.mark.slow
def test_ctrl_c_leaves_the_smallest_program_so_far(tmp_path: Path) -> None:
    # The pass counts its runs in a file and takes its time from the third one on.
    body = (
        f"open({str(tmp_path / 'runs')!r}, 'a').write('x'); import os, time\n"
        f"                    if len(open({str(tmp_path / 'runs')!r}).read()) > 2: time.sleep(60)\n"
        "                    os.abort()"
    )
    plugin, small = planted(tmp_path, "stablehlo.exponential", body), tmp_path / "small.mlir"
    words = ["bisect", str(written(tmp_path, NETWORK)), f"--plugin={plugin}", "-o", str(small)]
    child = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while child.poll() is None and (not (tmp_path / "runs").exists() or len((tmp_path / "runs").read_text()) < 3):
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 1, errors
    assert "stopped by Ctrl-C" in output
    assert "stablehlo.exponential" in names(small)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--budget=-1"], 2, "--budget"),
        (["--replicas=2"], 1, "bisect supports programs for one device only"),
        (["--without=unknown"], 1, "no pass is called 'unknown'"),
        (["--plugin=missing.py"], 1, "the plugin missing.py failed: FileNotFoundError"),
    ],
)
def test_bad_options(call: Call, add: Path, options: list[str], status: int, message: str) -> None:
    result = call("bisect", add, *options)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
