from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tools.command import Call

STEP = """module attributes {
    hloforge.parameter_names = ["count", "sums", "x"], hloforge.parameter_shapes = ["s32[]", "f32[2]", "f32[2]"],
    hloforge.result_names = ["count", "sums"], hloforge.result_shape = "(s32[], f32[2])",
    hloforge.input_output_alias = []} {
  func.func @main(%count: tensor<i32>, %sums: tensor<2xf32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %count, %one : tensor<i32>
    %all = stablehlo.add %sums, %x : tensor<2xf32>
    return %next, %all : tensor<i32>, tensor<2xf32>
  }
}
"""


def test_literals_in_and_out(call: Call, add: Path) -> None:
    result = call("run", add, "--input=4xf32=1 2 3 4", "--input=10")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "4xf32=[11 12 13 14]\n"


def test_a_vmfb_runs_from_a_file_and_from_a_pipe(call: Call, add_vmfb: Path) -> None:
    from_file = call("run", add_vmfb, "--input=iota", "--device=local-task", "--threads=2")
    from_pipe = call("run", "-", "--input=iota", input=add_vmfb.read_bytes())
    assert from_file.stdout == from_pipe.stdout == "4xf32=[0 2 4 6]\n"


def test_files_in_and_out_with_layouts_and_nested_tuples(call: Call, pair: Path, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    y, n = tmp_path / "y.npy", tmp_path / "n.npy"
    result = call(
        "run", pair, f"--input=2x3xf32=@{tmp_path}/x.npy", "--input=s32=41", f"--output=@{y}", f"--output=@{n}"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    np.testing.assert_array_equal(np.load(y), x.T)
    assert np.load(n) == 42


def test_archives_hold_arguments_and_results_by_name(call: Call, pair: Path, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "both.npz", x=x, n=np.int32(1), other=x)
    np.savez(tmp_path / "n.npz", n=np.int32(41))
    done = call("run", pair, f"--input=@{tmp_path}/both.npz", f"--output=@{tmp_path}/r.npz")
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    with np.load(tmp_path / "r.npz") as results:
        np.testing.assert_array_equal(results["result{0}"], x.T)
        assert results["result{1,0}"] == 2
    assert "s32=1" in call("run", pair, "--input=zeros").stdout


def test_the_last_archive_with_a_name_counts(call: Call, tmp_path: Path) -> None:
    program = tmp_path / "three.mlir"
    program.write_text(STEP)
    np.savez(tmp_path / "state.npz", count=np.int32(1), sums=np.ones(2, np.float32), x=np.zeros(2, np.float32))
    np.savez(tmp_path / "batch.npz", x=np.array([1, 2], np.float32))
    state = tmp_path / "state.npz"
    for _ in range(2):
        done = call("run", program, f"--input=@{state}", f"--input=@{tmp_path}/batch.npz", f"--output=@{state}")
        assert done.exit_code == 0, done.stderr
    with np.load(state) as results:
        assert sorted(results) == ["count", "sums"]
        assert results["count"] == 3
        np.testing.assert_array_equal(results["sums"], [3, 5])
    refused = call("run", program, f"--input=@{state}")
    assert refused.exit_code == 1
    assert "argument 'x' (f32[2]): " in refused.stderr and "they hold count, sums" in refused.stderr
    shown = call("inspect", program).stdout
    assert re.search(r"results:\n +count +s32\[\] +4 B *\n +sums +f32\[2\] +8 B", shown), shown
    printed = call("run", program, f"--input=@{state}", f"--input=@{tmp_path}/batch.npz").stdout
    assert "result{0} (count):\ns32=4\n" in printed


def test_random_inputs_depend_on_the_seed_alone(call: Call, add_vmfb: Path) -> None:
    outputs = [call("run", add_vmfb, "--input=random", f"--seed={seed}").stdout for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]
    assert call("run", add_vmfb, "--input=random:1").stdout == outputs[0]


def test_plausible_inputs_need_the_program(call: Call, add: Path, add_vmfb: Path) -> None:
    program, vmfb = (call("run", source, "--input=plausible") for source in (add, add_vmfb))
    assert program.exit_code == 0 and program.stdout.startswith("4xf32=[")
    assert vmfb.exit_code == 1 and "--input=plausible needs the program" in vmfb.stderr


@pytest.mark.parametrize("engine", ["xla", "interpreter"])
def test_references_agree(call: Call, pair: Path, engine: str) -> None:
    result = call("run", pair, "--input=random", f"--reference={engine}")
    assert result.exit_code == 0, result.stderr
    assert re.search(rf"against reference {engine}:\nresult\{{0\}} 3x2xf32: agrees", result.stdout)


def test_a_mismatch_is_reported_and_status_1(call: Call, add: Path) -> None:
    result = call("run", add, "--input=1 2 3 4", "--input=0", "--expected-output=1 2 3 5")
    assert result.exit_code == 1
    assert "1 of 4 elements differ" in result.stdout
    assert "at [3]: got 4, want 5" in result.stdout
    assert result.stderr == "error: 1 of 1 results differ from the expected output: result\n"


def test_a_tolerance_of_the_users(call: Call, add: Path) -> None:
    arguments = ("run", add, "--input=1", "--input=1", "--expected-output=2.01")
    assert call(*arguments).exit_code == 1
    assert call(*arguments, "--tolerance=0.1").exit_code == 0


def test_latency(call: Call, add_vmfb: Path) -> None:
    result = call("run", add_vmfb, "--input=zeros", "--time", "--repeat=3")
    assert re.search(r"latency: median \d.* 3 calls on local-sync", result.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "takes 2 inputs, got 0"),
        (["--input=1 2 3", "--input=zeros"], "'x'"),
        (["--input=random", "--input=@no.npy"], "no.npy"),
        (["--input=random", "--output=-", "--output=-"], "2 outputs for 1 results"),
        (["--input=random", "--expected-output=1", "--expected-output=1"], "2 expected outputs for 1 results"),
        (["--input=random", "--reference=xla"], "which a vmfb does not contain"),
    ],
)
def test_wrong_arguments_are_one_error(call: Call, add_vmfb: Path, arguments: list[str], message: str) -> None:
    result = call("run", add_vmfb, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_damaged_vmfb_is_one_error(call: Call, add_vmfb: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.vmfb"
    path.write_bytes(add_vmfb.read_bytes()[:-500])
    result = call("run", path, "--input=random")
    assert (result.exit_code, "error: " in result.stderr, "Traceback" in result.stderr) == (1, True, False)


def test_a_missing_file_is_one_error(call: Call, tmp_path: Path) -> None:
    result = call("run", tmp_path / "no.hlo")
    assert result.exit_code == 1
    assert result.stderr == f"{tmp_path}/no.hlo: error: cannot read the file: no such file or directory\n"


def test_a_reference_alone_takes_random_inputs(call: Call, pair: Path) -> None:
    done = call("run", pair, "--reference=xla")
    assert done.exit_code == 0, done.stderr
    assert "result{0}" in done.stdout and "agrees" in done.stdout


def test_results_without_expected_output_are_named(call: Call, pair: Path) -> None:
    done = call("run", pair, "--input=zeros", "--expected-output=3x2xf32=0")
    assert done.exit_code == 0, done.stderr
    assert "not compared, for want of --expected-output: result{1,0}" in done.stdout


def test_headings_are_where_the_values_are(call: Call, pair: Path) -> None:
    assert call("run", pair, "--input=zeros").stdout == "result{0}:\n3x2xf32=[0 0][0 0][0 0]\nresult{1,0}:\ns32=1\n"


def test_an_output_is_refused_before_anything_is_compiled(call: Call, tmp_path: Path) -> None:
    done = call("run", tmp_path / "no.hlo", "--output=@" + str(tmp_path / "no" / "y.npy"))
    assert (done.exit_code, "y.npy: No such file or directory" in done.stderr) == (1, True)
