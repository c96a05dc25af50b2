"""read: every form from every kind of source, judged by running the program; bad input in one located line."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import ImporterError, OptionError
from hloforge.dialect.mlir import _hlo, _jax, context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.protobuf import encode
from hloforge.importers.reader import read
from tests.engines import interpret

HLO = """HloModule scale

ENTRY main {
  x = f32[3]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[3]{0} broadcast(two), dimensions={}
  ROOT y = f32[3]{0} multiply(x, twos)
}
"""
MLIR = """module @scale {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = stablehlo.add %x, %x : tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
"""
X = np.array([1.0, -0.0, np.inf], np.float32)


def proto() -> bytes:
    result: bytes = _hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto()
    return result


def bytecode() -> bytes:
    buffer = io.BytesIO()
    with context():
        ir.Module.parse(MLIR).operation.write_bytecode(buffer)
    return buffer.getvalue()


def portable_artifact() -> bytes:
    with context():
        result: bytes = _jax.mlir.serialize_portable_artifact(ir.Module.parse(MLIR), "1.9.0")
    return result


def check(source: Any) -> None:
    program = read(source)
    assert [parameter.shape.dimensions for parameter in program.signature.parameters] == [(3,)]
    np.testing.assert_array_equal(interpret(program.module, X)[0], 2 * X)


class TestForms:
    @pytest.mark.parametrize(
        "prefix",
        ["", "// RUN: x | FileCheck\n// CHECK: func.func\n", "/* a\n * module @m { */\n", "\ufeff", "\n\n  "],
        ids=["plain", "line-comments", "block-comment", "byte-order-mark", "blank-lines"],
    )
    def test_hlo_text(self, prefix: str) -> None:
        check((prefix + HLO).encode())

    def test_hlo_text_with_windows_line_ends(self) -> None:
        check(HLO.replace("\n", "\r\n").encode())

    def test_hlo_text_without_a_module_line(self) -> None:
        check(HLO.split("\n", 2)[2])

    def test_a_computation_called_module_is_hlo(self) -> None:
        check("module {\n  x = f32[3] parameter(0)\n  ROOT y = f32[3] add(x, x)\n}\n")

    def test_hlo_proto(self) -> None:
        check(proto())

    @pytest.mark.parametrize("depth", [1, 2], ids=["HloProto", "HloSnapshot"])
    def test_wrapped_proto(self, depth: int) -> None:
        data = proto()
        for _ in range(depth):
            data = encode(1, data)
        check(data + encode(4, b"Host") if depth == 2 else data)

    def test_mlir_text(self) -> None:
        check(MLIR)

    def test_generic_mlir_text(self) -> None:
        with context():
            check(ir.Module.parse(MLIR).operation.get_asm(print_generic_op_form=True))

    def test_mlir_bytecode(self) -> None:
        check(bytecode())

    def test_portable_artifact(self) -> None:
        check(portable_artifact())

    def test_a_single_function_of_another_name_is_the_entry(self) -> None:
        check(MLIR.replace("@main", "@forward"))


class TestSources:
    def test_path_object_and_text(self, tmp_path: Path) -> None:
        path = tmp_path / "model.data"  # the suffix says nothing
        path.write_text(HLO)
        check(path)
        check(str(path))

    def test_streams(self) -> None:
        check(io.BytesIO(proto()))
        check(io.StringIO(HLO))

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytecode())))
        check("-")

    def test_names(self, tmp_path: Path) -> None:
        path = tmp_path / "model.mlir"
        path.write_text(MLIR.replace("@scale ", ""))
        assert read(path).name == "model"
        assert read(HLO).name == "scale"
        assert read(HLO, name="other").name == "other"

    def test_another_type_is_a_programming_error(self) -> None:
        with pytest.raises(TypeError, match="int"):
            read(3)  # type: ignore[arg-type]


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t", "is empty"),
    "prose": (b"Dear reader, this is {no} program.\n", "neither HLO nor MLIR"),
    "json": (b'{"a": [1, 2]}', "neither HLO nor MLIR"),
    "npy": (b"\x93NUMPY\x01\x00v\x00{}", "NumPy array"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", "zip archive"),
    "vmfb": (b"PK\x03\x04-\x00" + b"\0" * 24 + b"module.fb" + b"\0" * 20, "IREE module"),
    "elf": (b"\x7fELF\x02\x01\x01", "ELF"),
    "gzip": (b"\x1f\x8b\x08\x00", "gzip"),
    "noise": (bytes(range(200, 256)) * 3, "binary data of no known form"),
    "magic-only": (b"ML\xef", "cut off"),
}


class TestBadInput:
    @pytest.mark.parametrize("name", BAD)
    def test_one_located_line_says_what_it_looks_like(self, name: str, tmp_path: Path) -> None:
        data, message = BAD[name]
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ImporterError, match=message) as info:
            read(path)
        assert str(info.value).startswith(f"{path}: error: ")
        assert "\n" not in info.value.message

    @pytest.mark.parametrize("make", [proto, bytecode, portable_artifact])
    @pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
    def test_truncated(self, make: Any, part: float) -> None:
        data = make()
        with pytest.raises(ImporterError):
            read(data[: int(len(data) * part)])

    def test_truncated_text_names_the_line(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.hlo"
        path.write_text(HLO[: HLO.index("ROOT")])
        with pytest.raises(ImporterError, match="expects name") as info:
            read(path)
        assert str(info.value).startswith(f"{path}:7:")

    def test_missing_file(self) -> None:
        with pytest.raises(ImporterError, match="no such file") as info:
            read("there/is/none.hlo")
        assert str(info.value.location) == "there/is/none.hlo"

    def test_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ImporterError, match="is a directory"):
            read(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
    def test_unreadable_file(self, tmp_path: Path) -> None:
        path = tmp_path / "secret.hlo"
        path.write_text(HLO)
        path.chmod(stat.S_IWUSR)
        with pytest.raises(ImporterError, match="permission denied"):
            read(path)

    def test_a_check_failure_of_xla_is_an_error(self) -> None:
        text = "ENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[3] reshape(x)\n}\n"
        with pytest.raises(ImporterError, match=r"Check failed.*f32\[3\]"):
            read(text)

    def test_invalid_output_of_the_converter_names_the_instruction(self) -> None:
        text = "ENTRY main {\n  x = s1[4] parameter(0)\n  ROOT y = s1[4] negate(x)\n}\n"
        with pytest.raises(ImporterError, match="invalid StableHLO") as info:
            read(text)
        assert (info.value.location.line, info.value.location.column) == (3, 8)  # type: ignore[union-attr]

    def test_mlir_errors_have_line_and_column(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.mlir"
        path.write_text(MLIR.replace("stablehlo.add %x, %x", "stablehlo.add %x, %z"))
        with pytest.raises(ImporterError, match="undeclared SSA value") as info:
            read(path)
        assert str(info.value.location) == f"{path}:3:28"

    def test_a_module_without_entry(self) -> None:
        two = "module {\n" + "".join(
            f"func.func @{name}(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}\n" for name in "ab"
        )
        with pytest.raises(ImporterError, match="no function @main"):
            read(two + "}")

    def test_options(self) -> None:
        with pytest.raises(OptionError, match="elided='no'"):
            read(HLO, elided="no")
        with pytest.raises(OptionError, match="format='pb'"):
            read(HLO, format="pb")
        with pytest.raises(ImporterError):
            read(HLO, format="mlir")


UNKNOWN = """HloModule newer, novel_header={a=1, b="},"}

ENTRY main {
  x = f32[8]{0} parameter(0)
  top = (f32[2]{0}, s32[2]{0}) topk(x), k=2, largest=true, ties=true
  ROOT y = f32[2]{0} get-tuple-element(top), index=0, novel={1,2}
}
"""


class TestUnknownAttributes:
    def test_the_message_of_xla_with_its_place_and_a_way_out(self) -> None:
        with pytest.raises(ImporterError, match='unexpected attribute "ties"') as info:
            read(UNKNOWN.replace(', novel_header={a=1, b="},"}', ""))
        assert info.value.location.line == 5  # type: ignore[union-attr]
        assert "ties=true" in info.value.op
        assert "--drop-unknown-attributes" in info.value.hint

    def test_they_are_dropped_on_request_and_listed(self) -> None:
        program = read(UNKNOWN.replace(', novel_header={a=1, b="},"}', ""), drop_unknown_attributes=True)
        dropped = [
            ir.StringAttr(entry).value for entry in program.module.operation.attributes["hloforge.dropped_attributes"]
        ]
        assert [entry.split(" (")[0] for entry in dropped] == ["ties=true", "novel={1,2}"]
        assert [location_of(op).line for op in operations(program.module, {"mhlo.topk"})] == [5]  # type: ignore[union-attr]

    def test_a_stable_topk_is_what_topk_is(self) -> None:
        text = UNKNOWN.replace(', novel_header={a=1, b="},"}', "").replace(", novel={1,2}", "")
        program = read(text.replace("ties=true", "is_stable=true"))
        assert "hloforge.dropped_attributes" not in program.module.operation.attributes
        assert len(list(operations(program.module, {"mhlo.topk"}))) == 1

    def test_of_metadata_nobody_has_to_ask(self) -> None:
        """Fields of older and newer versions, which change no result, whatever their values look like."""
        metadata = """metadata={op_name="a{novel=1}" preserve_layout=true, novel={x={1,2} y="}"}
            novel="q\\"}" source_line=7}"""
        program = read(HLO.replace("multiply(x, twos)", f"multiply(x, twos), {metadata}"))
        np.testing.assert_array_equal(interpret(program.module, X)[0], 2 * X)
        (product,) = operations(program.module, {"stablehlo.multiply"})
        assert "a{novel=1}" in str(product.location)
        with pytest.raises(ImporterError, match="novel"):
            read(HLO.replace("multiply(x, twos)", f"multiply(x, twos), {metadata}, novel=3"))

    def test_other_errors_stay(self) -> None:
        with pytest.raises(ImporterError, match="nonsense"):
            read(HLO.replace("multiply", "nonsense"), drop_unknown_attributes=True)


@pytest.mark.parametrize("head", ["", "y = ", "%y.1 = "])
@pytest.mark.parametrize("shape", ["f32[3]{0}", "(f32[3]{0:T(8)}, f32[3]{0})"])
def test_single_instructions(head: str, shape: str) -> None:
    """XLA's parser makes parameters of their operands."""
    opcode = "tuple" if "(" in shape else "add"
    program = read(f"{head}{shape} {opcode}(f32[3]{{0}} %a, f32[3]{{0}} %b)\n")
    results = interpret(program.module, X, X)
    np.testing.assert_array_equal(results[0], X if opcode == "tuple" else X + X)


def test_a_text_that_is_no_program_says_what_it_was_read_as() -> None:
    with pytest.raises(ImporterError) as caught:
        read("# Notes\n`stablehlo.add` adds {numbers}.\n")
    assert "it looks like MLIR text" in caught.value.hint
    assert "--format" in caught.value.hint
    with pytest.raises(ImporterError, match="neither HLO nor MLIR"):
        read("# Notes\nThese {words} are none.\n")


def test_an_empty_constant_outside_of_the_text_is_refused() -> None:
    """MLIR writes its alignment as a number that it does not read."""
    constant = "%c = stablehlo.constant dense_resource<blob> : tensor<4xf32> return %c : tensor<4xf32>"
    resources = '{-# dialect_resources: { builtin: { blob: "0x04000000" } } #-}'
    with pytest.raises(ImporterError, match="expected alignment"):
        read(f"func.func @main() -> tensor<4xf32> {{ {constant} }}\n{resources}")
