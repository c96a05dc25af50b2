from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hloforge.runtime.compile import in_place_audit
from hloforge.runtime.compile.in_place_audit import OverwrittenError
from tests.tools.command import Call


def facts(call: Call, *arguments: object) -> dict[str, Any]:
    result = call("inspect", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_vmfb_tells_signature_sizes_target_flags_and_versions(call: Call, add_vmfb: Path) -> None:
    found = facts(call, add_vmfb)
    assert found["parameters"] == [
        {"name": "x", "shape": "f32[4]{0}", "bytes": 16},
        {"name": "y", "shape": "f32[4]{0}", "bytes": 16},
    ]
    assert (found["result"], found["target"]) == ("f32[4]{0}", "cpu:host")
    assert found["bytes"] == add_vmfb.stat().st_size
    assert (found["flags"], found["code_generator"]) == ([], "hloforge's kernels")
    assert {"hloforge", "jaxlib", "iree-base-compiler", "llvmlite"} <= found["versions"].keys()
    assert facts(call, add_vmfb) == json.loads(call("inspect", "-", "--json", input=add_vmfb.read_bytes()).stdout)


def test_a_vmfb_of_irees_compiler_tells_its_flags(call: Call, add: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.vmfb"
    assert call("compile", add, "-o", path, "--no-cache", "--iree-opt-level=O1").exit_code == 0
    found = facts(call, path)
    assert {"--iree-input-demote-f64-to-f32=false", "--iree-opt-level=O1"} <= set(found["flags"])
    assert found["code_generator"] == "IREE's compiler" and "llvmlite" not in found["versions"]
    assert "code of" in call("inspect", path).stdout


def test_a_program_tells_its_operations_before_any_compile(call: Call, pair: Path) -> None:
    found = facts(call, pair)
    assert found["operations"] == {"stablehlo.transpose": 1, "stablehlo.constant": 1, "stablehlo.add": 1}
    assert found["element_types"] == {"s32": 2, "f32": 1}
    assert [row["shape"] for row in found["parameters"]] == ["f32[2,3]{0,1}", "s32[]"]
    assert found["result"] == "(f32[3,2]{1,0}, (s32[]))"
    assert (found["decomposed"], found["refused"], found["constant_bytes"]) == ([], [], 4)


def test_what_will_be_decomposed_is_named_with_pass_and_reason(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4xi1>) -> tensor<4xi1> {\n"
        "  %0 = stablehlo.add %a, %a : tensor<4xi1>\n  return %0 : tensor<4xi1>\n}\n"
    )
    row = facts(call, path)["decomposed"][0]
    assert (row["operation"], row["count"], row["by"]) == ("stablehlo.add", 1, "decompose-pred-arithmetic")
    assert row["reason"]


def test_what_will_be_refused_is_named_with_its_line(call: Call, refused: Path) -> None:
    found = facts(call, refused)
    assert len(found["refused"]) == 1
    assert found["refused"][0]["location"].startswith(f"{refused}:4:")
    assert "@unheard_of" in found["refused"][0]["reason"]
    text = call("inspect", refused)
    assert text.exit_code == 0
    assert "refused:" in text.stdout and "nothing is refused" not in text.stdout


COSINE = """func.func @main(%x: tensor<3xcomplex<f64>>) -> tensor<3xcomplex<f64>> {
  %r = stablehlo.cosine %x : tensor<3xcomplex<f64>>
  return %r : tensor<3xcomplex<f64>>
}
"""


def test_what_a_decomposition_makes_is_refused_as_compile_refuses_it(call: Call, tmp_path: Path) -> None:
    """The table takes the cosine, but what it becomes is arithmetic of f64, which the device may lack."""
    path, page = tmp_path / "cosine.mlir", tmp_path / "page.html"
    path.write_text(COSINE)
    assert facts(call, path, "--target=vulkan:rdna3")["refused"] == []
    (row,) = facts(call, path, "--target=vulkan")["refused"]
    assert row["location"].startswith(f"{path}:2:")
    assert "of f64 is not supported" in row["reason"]
    compiled = call("compile", path, "--target=vulkan", "-o", tmp_path / "x.vmfb")
    assert compiled.exit_code != 0 and f"{row['location']}: error: {row['reason']}" in compiled.stderr
    assert call("inspect", path, "--target=vulkan", f"--html={page}").exit_code == 0
    assert row["reason"] in html.unescape(page.read_text())


def test_the_tables_name_everything(call: Call, add_vmfb: Path, pair: Path) -> None:
    vmfb, program = call("inspect", add_vmfb).stdout, call("inspect", pair).stdout
    assert "host calls:    none" in vmfb and "f32[4]{0}" in vmfb
    assert "stablehlo.transpose" in program and "nothing is refused" in program


def test_a_file_of_neither_kind_is_one_error(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"PK\x03\x04 an archive")
    result = call("inspect", path)
    assert (result.exit_code, result.stderr.startswith(f"{path}: error: ")) == (1, True)


def test_a_vmfb_tells_which_attempt_compiled_it(
    call: Call, add: Path, add_vmfb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert facts(call, add_vmfb)["compiled_at"] == "first attempt"
    assert "attempt" not in call("inspect", add_vmfb).stdout
    checks: list[object] = []

    def refuse_once(*_: Any) -> None:
        checks.append(None)
        if len(checks) == 1:
            error = OverwrittenError("IREE would overwrite what is read")
            error.in_one_operation = True
            raise error

    monkeypatch.setattr(in_place_audit, "check", refuse_once)
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    vmfb = tmp_path / "second.vmfb"
    compiled = call("compile", add, "-o", vmfb, "--timings", "--iree-opt-level=O1")
    assert compiled.exit_code == 0, compiled.stderr
    assert "compiled at the second attempt: copies of parts, because IREE would overwrite" in compiled.stderr
    assert re.search(r"^  as is \(failed\) +\d+\.\d ms", compiled.stderr, re.MULTILINE)
    assert re.search(r"^  copies of parts +\d+\.\d ms", compiled.stderr, re.MULTILINE)
    found = facts(call, vmfb)
    assert found["compiled_at"] == "second attempt: copies of parts"
    assert found["failed_attempts"] == [{"attempt": "as is", "reason": "IREE would overwrite what is read"}]
    text = call("inspect", vmfb).stdout
    assert "compiled at:   second attempt: copies of parts" in text
    assert re.search(r"failed attempts:\n +as is +IREE would overwrite what is read", text)
    # What was compiled before is found with its record, and without times.
    again = call("compile", add, "-o", vmfb, "--timings", "--iree-opt-level=O1")
    assert "compiled at the second attempt" in again.stderr and "(failed)" not in again.stderr
    profile = call("profile", vmfb, "--iterations=1", "--warmup=1", "--no-roofline")
    assert "note: compiled at the second attempt: copies of parts, because IREE would overwrite" in profile.stdout
    page = tmp_path / "page.html"
    assert call("inspect", vmfb, f"--html={page}").exit_code == 0
    assert "as is: IREE would overwrite what is read" in page.read_text()


def test_a_target_for_a_vmfb_is_refused(call: Call, add_vmfb: Path) -> None:
    done = call("inspect", add_vmfb, "--target=nonsense")
    assert (done.exit_code, "a vmfb is compiled already" in done.stderr) == (2, True)
