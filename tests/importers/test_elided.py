"""Elided constants: refused by name and line, made parameters, or filled with seeded values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import ElidedConstantError, ImporterError
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import interpret

NESTED = """HloModule m

body {
  x = f32[4] parameter(0)
  w = f32[4] constant({...})
  ROOT r = f32[4] add(x, w)
}

fused {
  x = f32[4] parameter(0)
  v = f32[4] constant( { ... } )
  ROOT r = f32[4] multiply(x, v)
}

ENTRY main {
  x = f32[4] parameter(0), metadata={op_name="constant({...})"}
  i = s32[4] constant({...})
  one = f32[4] call(x), to_apply=body
  two = f32[4] call(one), to_apply=body
  three = f32[4] fusion(two), kind=kLoop, calls=fused
  f = f32[4] convert(i)
  ROOT y = f32[4] subtract(three, f)
}
"""
LOOP = """HloModule loop

step {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[2] constant({...})
  b = f32[2] add(a, w)
  ROOT r = (s32[], f32[2]) tuple(next, b)
}

more {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  w = f32[2] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[2]) tuple(zero, w)
  l = (s32[], f32[2]) while(t), condition=more, body=step
  ROOT y = f32[2] get-tuple-element(l), index=1
}
"""


def evaluate(program: Program, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    normalize(program.module)
    return interpret(program.module, *inputs)[0]


def test_refused_with_name_place_and_the_others() -> None:
    with pytest.raises(ElidedConstantError, match="constant w ") as info:
        read(NESTED)
    assert str(info.value.location) == "<string>:5:3"
    assert [note.split(" ")[0] for note in info.value.notes] == ["<string>:11:3:", "<string>:17:3:"]
    assert "--elided=parameters" in info.value.hint
    assert "--elided=random" in info.value.hint


def test_text_in_strings_and_comments_is_not_elided() -> None:
    text = """ENTRY main { // constant({...})
      ROOT x = f32[4] parameter(0), metadata={op_name="w = f32[4] constant({...})"} }"""
    assert read(text).signature.parameters[0].name == "x"


def test_parameters_of_nested_computations() -> None:
    program = read(NESTED, elided="parameters")
    assert [str(p.shape.without_layout()) for p in program.signature.parameters] == ["f32[4]"] * 3 + ["s32[4]"]
    assert [p.name for p in program.signature.parameters] == ["x", "w", "v", "i"]
    x, w, v = (np.array(row, np.float32) for row in ([1, 2, 3, 4], [10, 0, 1, 5], [2, -1, 0.5, 4]))
    i = np.array([1, 2, 3, 4], np.int32)
    np.testing.assert_array_equal(evaluate(program, x, w, v, i), (x + w + w) * v - i)


def test_parameters_inside_a_loop_and_names_that_clash() -> None:
    program = read(LOOP, elided="parameters")
    assert [p.name for p in program.signature.parameters] == ["w", "w.1"]
    w, step = np.array([1, 2], np.float32), np.array([10, -4], np.float32)
    np.testing.assert_array_equal(evaluate(program, w, step), w + 3 * step)


def test_the_signature_travels_with_the_module() -> None:
    program = read(NESTED, elided="parameters")
    assert type(program.signature).of(program.module) == program.signature


def test_random_values_follow_the_seed_and_are_tame() -> None:
    x = np.zeros(4, np.float32)
    first, again, other = (evaluate(read(NESTED, elided="random", seed=seed), x) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    # 2w·v - i with w, v in [0.01, 0.1) and i in {0, 1}
    assert (first <= 0.02).all()
    assert (first >= -1).all()


def test_random_keeps_the_line() -> None:
    program = read(NESTED, elided="random")
    lines = {location_of(op).line for op in operations(program.module, {"stablehlo.constant"})}  # type: ignore[union-attr]
    assert lines == {5, 11, 17}


def test_a_constant_inside_of_an_operation_has_to_have_a_name() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[9] parameter(0)
  ROOT y = f32[9] add(x, f32[9] constant({...}))
}"""
    with pytest.raises(ImporterError, match="an operand of y is a constant without a name") as info:
        read(text, elided="random")
    assert str(info.value.location) == "<string>:4:8"


@pytest.mark.parametrize("values", ["dense_resource<__elided__>", "dense<__elided__>"])
def test_elided_mlir_is_refused_with_its_line(values: str) -> None:
    text = f"""func.func @main() -> tensor<4xf32> {{
  %c = stablehlo.constant {values} : tensor<4xf32>
  return %c : tensor<4xf32>
}}"""
    with pytest.raises(ElidedConstantError) as info:
        read(text)
    assert str(info.value.location) == "<string>:2:27"
