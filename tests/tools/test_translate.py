from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloforge.importers.detect import Form, detect
from hloforge.importers.reader import read
from tests.tools.command import Call, values

FORMS = {
    "stablehlo": Form.MLIR_TEXT,
    "mlir-generic": Form.MLIR_TEXT,
    "bytecode": Form.MLIR_BYTECODE,
    "portable": Form.PORTABLE_ARTIFACT,
    "hlo": Form.HLO_TEXT,
    "hlo-proto": Form.HLO_PROTO,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_back_as_the_same_program(call: Call, pair: Path, tmp_path: Path, form: str) -> None:
    path = tmp_path / "out"
    result = call("translate", pair, f"--to={form}", "-o", path)
    assert result.exit_code == 0, result.stderr
    assert detect(path.read_bytes()) is FORMS[form]
    before, after = (call("run", source, "--input=2x3xf32=1 2 3 4 5 6", "--input=7") for source in (pair, path))
    assert after.exit_code == 0, after.stderr
    assert values(after) == values(before) == ["3x2xf32=[1 4][2 5][3 6]", "s32=8"]


@pytest.mark.parametrize("form", ["stablehlo", "mlir-generic", "bytecode"])
def test_mlir_forms_keep_the_signature(call: Call, pair: Path, form: str) -> None:
    written = call("translate", pair, f"--to={form}").stdout_bytes
    assert read(written).signature == read(pair).signature
    assert b"hloforge." not in call("translate", pair, f"--to={form}", "--no-signature").stdout_bytes


def test_hlo_keeps_layouts_tuples_and_names(call: Call, pair: Path) -> None:
    written = call("translate", pair, "--to=hlo").stdout
    assert "entry_computation_layout={(f32[2,3]{0,1}, s32[])->(f32[3,2]{1,0}, (s32[]))}" in written
    assert re.search(r"^ +x\.1 = .* parameter\(0\)", written, re.MULTILINE)


def test_constants_are_written_in_full(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "c.hlo"
    path.write_text(f"HloModule m\nENTRY e {{ ROOT c = s32[64] constant({{{', '.join(map(str, range(64)))}}}) }}\n")
    written = call("translate", path, "--to=hlo").stdout
    assert "{...}" not in written and "63" in written


def test_what_has_no_hlo_is_one_error(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func @main(%a: tensor<?xf32>, %n: tensor<1xindex>) -> tensor<?xf32> {\n"
        "  %0 = stablehlo.dynamic_reshape %a, %n : (tensor<?xf32>, tensor<1xindex>) -> tensor<?xf32>\n"
        "  return %0 : tensor<?xf32>\n}\n"
    )
    result = call("translate", path, "--to=hlo", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "error: " in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_form_is_required(call: Call, add: Path) -> None:
    assert call("translate", add).exit_code == 2
