from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hloforge
from tests.tools.command import Call


def test_the_default_output_lies_in_the_current_folder(
    call: Call, add: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    result = call("compile", add)
    assert result.exit_code == 0, result.stderr
    assert (result.output, [path.name for path in work.iterdir()]) == ("", ["add.vmfb"])
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(hloforge.load(work / "add.vmfb")(x, x), 2 * x)


def test_standard_input_to_standard_output(call: Call, add: Path) -> None:
    result = call("compile", "-", input=add.read_bytes())
    assert result.exit_code == 0, result.stderr
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(hloforge.load(result.stdout_bytes)(x, x), 2 * x)


def test_iree_flags_and_target_reach_the_manifest(call: Call, add: Path, tmp_path: Path) -> None:
    vmfb = tmp_path / "a.vmfb"
    result = call("compile", "--iree-opt-level=O1", add, "--target=cpu:generic", "-o", vmfb, "--isolation=none")
    assert result.exit_code == 0, result.stderr
    manifest = hloforge.load(vmfb).manifest
    assert manifest.target == "cpu:generic"
    assert manifest.flags[-1] == "--iree-opt-level=O1"
    assert manifest.source == "add.hlo"


def test_timings_and_dumps(call: Call, add: Path, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    result = call("compile", add, "-o", tmp_path / "a.vmfb", "--timings", "--dump-after=all", f"--dump-to={dumps}")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^iree-compile +\d+\.\d ms", result.stderr, re.MULTILINE)
    assert re.search(r"^total .* 100\.0 %", result.stderr, re.MULTILINE)
    texts = [path.read_text() for path in sorted(dumps.iterdir())]
    assert len(texts) > 5
    assert all("func.func @main" in text for text in texts)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\0\1\2\3" * 100, "binary data"),
        (b"HloModule m\nENTRY e { x = f32[4] parame", "1|2"),
        (b"\x93NUMPY\1\0v\0", "NumPy array"),
        (b"once upon a time", "neither HLO nor MLIR"),
    ],
    ids=["empty", "garbage", "truncated", "array", "prose"],
)
def test_bad_input_is_one_located_error_and_leaves_no_file(
    call: Call, tmp_path: Path, content: bytes, reason: str
) -> None:
    bad, vmfb = tmp_path / "bad.hlo", tmp_path / "out" / "bad.vmfb"
    vmfb.parent.mkdir()
    bad.write_bytes(content)
    result = call("compile", bad, "-o", vmfb)
    assert result.exit_code == 1
    first, *rest = result.stderr.splitlines()
    assert first.startswith(str(bad)) and "error: " in first
    assert re.search(reason, first)
    assert all(line.startswith("note: ") or line.strip() == "^" for line in rest)
    assert list(vmfb.parent.iterdir()) == []


def test_an_unsupported_operation_is_named_at_its_line(call: Call, refused: Path, tmp_path: Path) -> None:
    result = call("compile", refused, "-o", tmp_path / "a.vmfb")
    assert result.exit_code == 1
    assert re.match(rf"{re.escape(str(refused))}:4:\d+: error: custom_call @unheard_of", result.stderr)
    assert not (tmp_path / "a.vmfb").exists()


def test_a_failing_compiler_leaves_a_reproducer(call: Call, add: Path, tmp_path: Path) -> None:
    folder = tmp_path / "repro"
    result = call("compile", add, "-o", tmp_path / "a.vmfb", "--iree-no-such-flag", f"--reproducer-dir={folder}")
    assert result.exit_code == 1
    assert "IREE's compiler does not know this flag" in result.stderr
    assert "note: reproduce with: iree-compile" in result.stderr
    assert "func.func @main" in next(folder.iterdir()).read_text()


def test_an_unwritable_output_is_an_error(call: Call, add: Path, tmp_path: Path) -> None:
    result = call("compile", add, "-o", tmp_path / "no" / "such" / "a.vmfb")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--taget=cpu"], "No such option"),
        (["--memory-limit=lots"], "not a size"),
        (["--timeout=-1"], "Invalid value"),
        (["second.hlo"], "unexpected extra argument"),
    ],
)
def test_a_wrong_command_line_is_status_2(call: Call, add: Path, arguments: list[str], message: str) -> None:
    result = call("compile", add, *arguments)
    assert result.exit_code == 2
    assert message.lower() in result.stderr.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target=tpu"], "unknown target 'tpu'"),
        (["--target=cpu:pentium"], "unknown processor"),
        (["--dump-after=no-such-pass"], "no pass is called"),
        (["--isolation=none", "--timeout=3"], "isolation"),
    ],
)
def test_a_wrong_option_value_is_one_error(call: Call, add: Path, arguments: list[str], message: str) -> None:
    result = call("compile", add, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_memory_sizes() -> None:
    from hloforge.tools.options import _byte_count

    assert [_byte_count(None, None, text) for text in ("512", "4k", "500M", "2GiB", "1 tb")] == [
        512,
        4 * 2**10,
        500 * 2**20,
        2 * 2**30,
        2**40,
    ]


def test_elided_constants_are_refused_or_replaced(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "elided.hlo"
    path.write_text("HloModule m\nENTRY e {\n  ROOT weights.1 = f32[64] constant({...})\n}\n")
    refused = call("compile", path, "-o", tmp_path / "a.vmfb")
    assert (refused.exit_code, "weights.1" in refused.stderr) == (1, True)
    replaced = call("compile", path, "-o", tmp_path / "a.vmfb", "--elided=parameters")
    assert replaced.exit_code == 0, replaced.stderr
    assert [p.name for p in hloforge.load(tmp_path / "a.vmfb").signature.parameters] == ["weights.1"]


def test_an_output_is_refused_before_the_program_is_read(call: Call, tmp_path: Path) -> None:
    done = call("compile", tmp_path / "no.hlo", "-o", tmp_path / "no" / "model.vmfb")
    assert (done.exit_code, "cannot write" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.hlo",
            "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] multiplyy(x, x)\n}\n",
            "multiply",
        ),
        (
            "a.mlir",
            "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = stablehlo.tanhh %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n",
            "stablehlo.tanh",
        ),
        (
            "b.mlir",
            "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>\n"
            "  return %0 : tensor<4xf32>\n}\n",
            "iree-compile takes dialects such as linalg",
        ),
    ],
)
def test_a_way_out_of_unknown_operations(call: Call, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    done = call("compile", tmp_path / name, "-o", tmp_path / "out.vmfb")
    assert done.exit_code == 1
    assert said in done.stderr.splitlines()[-1]
    assert "Available dialects" not in done.stderr
