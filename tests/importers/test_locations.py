"""Every operation knows its line of the file, and the framework's metadata behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hloforge.dialect.mlir import _hlo
from hloforge.dialect.operations import location_of, operations
from hloforge.importers.reader import read

# Equal names in several computations, metadata, several instructions on a line, a wrapped instruction.
HLO = """HloModule jit_f, entry_computation_layout={(f32[4,4]{1,0})->f32[4]{0}}

add { x = f32[] parameter(0)  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y) }

%fused (p: f32[4,4]) -> f32[4] {
  %p = f32[4,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %red = f32[4]{0} reduce(%p, %zero), dimensions={1}, to_apply=add,
    metadata={op_name="jit(f)/reduce_sum" source_file="model/f.py" source_line=12}
}

ENTRY main {
  p = f32[4,4]{1,0} parameter(0), metadata={op_name="state"}
  neg = f32[4,4]{1,0} negate(p), metadata={op_name="jit(f)/neg"}
  f = f32[4]{0} fusion(neg), kind=kLoop, calls=%fused
  zero = f32[] constant(1)
  b = f32[4]{0} broadcast(zero), dimensions={}
  ROOT r = f32[4]{0} add(f, b)
}
"""


def places(program: Any, name: str) -> set[tuple[int, int]]:
    found = [location_of(op) for op in operations(program.module, {name})]
    assert all(place is not None for place in found)
    return {(place.line, place.column) for place in found if place is not None}


def test_lines_and_columns_of_hlo_text(tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(HLO)
    program = read(path)
    assert places(program, "stablehlo.negate") == {(15, 3)}
    assert places(program, "stablehlo.reduce") == {(9, 8)}
    assert places(program, "mhlo.fusion") == {(16, 3)}
    assert places(program, "stablehlo.constant") == {(8, 3), (17, 3)}
    assert places(program, "stablehlo.broadcast_in_dim") <= {(18, 3)}
    assert places(program, "stablehlo.add") == {(4, 8), (19, 8)}
    assert all(location_of(op).file == str(path) for op in operations(program.module))  # type: ignore[union-attr]


def test_instructions_without_a_shape_have_places() -> None:
    program = read("""HloModule m
ENTRY main {
  p = f32[4] parameter(0)
  n = negate(p), metadata={op_name="f(x)"}
  b = f32[4] custom-call(n), custom_call_target="f", operand_layout_constraints={f32[4]{0}}
  ROOT r = add(n, b)
}""")
    assert places(program, "stablehlo.negate") == {(4, 3)}
    assert places(program, "stablehlo.add") == {(6, 8)}


def test_metadata_follows_the_line() -> None:
    (reduce, *_) = operations(read(HLO).module, {"stablehlo.reduce"})
    text = str(reduce.location)
    assert text == 'loc(fused["red"("<string>":9:8), "jit(f)/reduce_sum"("model/f.py":12:0)])'


def test_parameters_have_a_place() -> None:
    program = read(HLO)
    (main,) = [op for op in operations(program.module, {"func.func"}) if "main" in str(op.attributes["sym_name"])]
    assert str(main.regions[0].blocks[0].arguments[0].location) == 'loc(fused["p"("<string>":14:3), "state"])'


def test_a_proto_has_names_only() -> None:
    program = read(_hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto())
    (negate,) = operations(program.module, {"stablehlo.negate"})
    assert str(negate.location) == 'loc(fused["neg", "jit(f)/neg"])'


def test_lines_of_mlir_text(tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text("""func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32> loc("user.py":7:1)
  return %1 : tensor<f32>
}
""")
    program = read(path)
    assert str(location_of(operations(program.module, {"stablehlo.sine"})[0])) == f"{path}:2:8"
    assert str(location_of(operations(program.module, {"stablehlo.cosine"})[0])) == "user.py:7:1"


def test_instructions_that_the_parser_adds_do_not_shift_the_others() -> None:
    text = """ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) negate-start(x)
  d = f32[4] negate-done(s)
  ROOT r = f32[4] sine(d)
}"""
    assert places(read(text), "stablehlo.sine") == {(5, 8)}
