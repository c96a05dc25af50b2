"""What a vmfb knows of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hloforge.dialect.errors import LoadError
from hloforge.dialect.program import Alias, Parameter, Signature
from hloforge.dialect.shapes import Shape
from hloforge.importers.reader import read
from hloforge.runtime.artifact.manifest import FORMAT, Manifest
from hloforge.runtime.artifact.plain_vmfb import signature_of_declaration
from hloforge.runtime.codegen_fixes.bytecode import with_moves
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.session.modules import read_manifest
from hloforge.runtime.session.session import load

SIGNATURE = Signature(
    (
        Parameter('with "quotes" and \\ and ü€\n', Shape.parse("f32[4,8]{0,1:T(8,128)}")),
        Parameter("state", Shape.parse("(bf16[2,<=3]{1,0}, (s4[], token[]))")),
    ),
    Shape.parse("(f32[4,8]{1,0}, pred[])"),
    (Alias((0,), 1, (0,), "must-alias"), Alias((1,), 0)),
)


def test_json_and_back() -> None:
    manifest = Manifest("name", SIGNATURE, "cpu:host", ("--iree-x",), (("jaxlib", "1"),), 10**15, "m.hlo")
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_it_travels_inside_the_file(either_codegen: str, tmp_path: Path) -> None:
    """Hundreds of parameters with any name make kilobytes of JSON."""
    names = [f"p{i} \"'\\\\ ü 漢" for i in range(300)]
    parameters = ", ".join(f"%a{i}: tensor<2xf32>" for i in range(300))
    listed = ", ".join('"' + name.replace('"', '\\"') + '"' for name in names)
    shapes = ", ".join('"f32[2]"' for _ in names)
    text = f"""module @many attributes {{hloforge.parameter_names = [{listed}], hloforge.parameter_shapes = [{shapes}],
        hloforge.result_shape = "f32[2]", hloforge.input_output_alias = ["{{}}: (7, {{}}, may-alias)"]}} {{
      func.func @main({parameters}) -> tensor<2xf32> {{ return %a299 : tensor<2xf32> }} }}"""
    path = tmp_path / "many.vmfb"
    source = tmp_path / "many.mlir"
    source.write_text(text)
    executable = compile_program(read(source))
    executable.save(path)
    manifest = read_manifest(path)
    assert manifest == executable.manifest
    assert [parameter.name for parameter in manifest.signature.parameters] == [n.replace("\\\\", "\\") for n in names]
    assert manifest.signature.aliases == (Alias((), 7),)
    assert (manifest.name, manifest.source, manifest.target) == ("many", "many.mlir", "cpu:host")
    own = {"llvmlite"} if either_codegen == "own" else set()
    assert dict(manifest.versions).keys() == {"hloforge", "jaxlib", "iree-base-compiler", "python"} | own
    assert str(tmp_path).encode() not in path.read_bytes()


def test_newer_and_damaged_manifests() -> None:
    fields = json.loads(Manifest("name", SIGNATURE).to_json())
    with pytest.raises(LoadError, match="newer hloforge"):
        Manifest.from_json(json.dumps(fields | {"format": FORMAT + 1}))
    for damaged in ("", "{}", "[]", "null", json.dumps(fields | {"signature": 3}), json.dumps(fields | {"extra": 1})):
        with pytest.raises(LoadError, match="damaged"):
            Manifest.from_json(damaged)


@pytest.mark.usefixtures("iree_codegen")
def test_heavier_work_weighs_more(compiled: Any) -> None:
    def work(size: int) -> int:
        program = f"""HloModule m ENTRY main {{ a = f32[{size},{size}] parameter(0)
          ROOT d = f32[{size},{size}] dot(a, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"""
        work: int = compiled(program).manifest.work
        return work

    # Large products weigh by what they compute.
    assert work(256) == 2 * 256**3 // 32
    assert 0 < work(8) < work(64) < work(256)


@pytest.mark.parametrize(
    ("declaration", "signature"),
    [
        ("sync func @main(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)", "(input0: f32[4]) -> f32[4]"),
        ("sync func @main() -> (%output0: tensor<f64>, %output1: tensor<?x3xi1>)", "() -> (f64[], pred[?,3])"),
        (
            "sync func @main(%a: tensor<2xcomplex<f32>>, %b: tensor<ui8>) -> (%output0: tensor<2xbf16>)",
            "(a: c64[2], b: u8[]) -> bf16[2]",
        ),
    ],
)
def test_declarations_of_plain_files(declaration: str, signature: str) -> None:
    assert str(signature_of_declaration(declaration)) == signature


@pytest.mark.parametrize("declaration", ["", "nonsense", "sync func @main(%a: i32) -> (%b: tensor<4xf32>)"])
def test_declarations_without_a_signature(declaration: str) -> None:
    with pytest.raises(LoadError):
        signature_of_declaration(declaration)


def test_a_vmfb_for_another_processor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")
    program = read("HloModule m ENTRY main { x = f32[4] parameter(0)\n ROOT s = f32[4] add(x, x) }")
    executable = compile_program(program, "cpu:generic")
    foreign = executable.vmfb.replace(b"embedded-elf-x86_64", b"embedded-elf-ppc_64").replace(
        b"embedded-elf-arm_64", b"embedded-elf-ppc_64"
    )
    assert foreign != executable.vmfb
    with pytest.raises(LoadError, match="the vmfb cannot run here"):
        load(with_moves(foreign, {}))  # with the check sum that it should have


def test_a_manifest_that_is_no_text(add: Any) -> None:
    for damaged in (
        add.vmfb.replace(b"hloforge.manifest", b"\xff" * 17),
        add.vmfb.replace(b'"signature"', b"\xff" * 11),
        add.vmfb.replace(b'"signature"', b"x" * 11),
    ):
        assert damaged != add.vmfb
        with pytest.raises(LoadError, match="damaged") as caught:
            load(with_moves(damaged, {}))
        assert "\n" not in caught.value.message
