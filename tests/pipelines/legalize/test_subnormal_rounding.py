"""legalize-subnormal-rounding: through IREE, which flushes subnormals; numpy does not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference

NAMES = ("bf16", "f16", "f32", "f64")


def test_ceil_and_floor_of_subnormal_numbers() -> None:
    arguments = []
    for name in NAMES:
        row = element_type(name)
        info = ml_dtypes.finfo(row.dtype)
        tiny = [float(info.smallest_subnormal), float(info.smallest_normal) * 0.5, float(info.smallest_normal)]
        values = [0.0, 1.5, 2.0, np.inf, *tiny]
        arguments.append(np.array([*values, *(-value for value in values), np.nan]).astype(row.dtype))
    types = [f"tensor<15x{element_type(name).mlir}>" for name in NAMES]
    parameters = ", ".join(f"%x{n}: {type_}" for n, type_ in enumerate(types))
    lines = [f"%{op}{n} = stablehlo.{op} %x{n} : {t}" for n, t in enumerate(types) for op in ("ceil", "floor")]
    results = ", ".join(f"%{op}{n}" for n in range(len(types)) for op in ("ceil", "floor"))
    returned = ", ".join(t for t in types for _ in range(2))
    text = f"func.func @main({parameters}) -> ({returned}) {{\n" + "\n".join(lines)
    got = compile_program(read(f"{text}\nreturn {results} : {returned} }}")).load()(*arguments)
    want = [function(x.astype(np.float64)) for x in arguments for function in (np.ceil, np.floor)]
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one.astype(np.float64), other)


# With a flag for IREE a program is compiled by it, and not by code generation.
@pytest.mark.parametrize("flags", [(), ("--iree-opt-level=O2",)])
@pytest.mark.parametrize("element", ["bf16", "f32", "f64"])
def test_truncations_of_subnormal_numbers(element: str, flags: tuple[str, ...]) -> None:
    """As XLA's CPU client: a comparison that flushes chooses between ceil and floor, which others may read as well."""
    tensor = f"tensor<6x{element}>"
    program = read(f"""
func.func @main(%x: {tensor}) -> ({tensor}, {tensor}, {tensor}) {{
  %zero = stablehlo.constant dense<0.0> : {tensor}
  %p = stablehlo.compare GE, %x, %zero : ({tensor}, {tensor}) -> tensor<6xi1>
  %f = stablehlo.floor %x : {tensor}
  %c = stablehlo.ceil %x : {tensor}
  %r = stablehlo.select %p, %f, %c : tensor<6xi1>, {tensor}
  return %r, %f, %c : {tensor}, {tensor}, {tensor}
}}""")
    row = element_type(element).dtype
    tiny = float(ml_dtypes.finfo(row).smallest_normal) / 4
    x = np.array([-tiny, tiny, -1.5, 1.5, -0.5, -0.0]).astype(row)
    truncated, floor, ceil = compile_program(program, options=CompileOptions(flags=flags)).load()(x)
    np.testing.assert_array_equal(truncated, [0, 0, -1, 1, 0, 0])
    np.testing.assert_array_equal(truncated, reference("xla", isolated=False).prepare(program)(x)[0])
    np.testing.assert_array_equal(floor, np.floor(x.astype(np.float64)))
    np.testing.assert_array_equal(ceil, np.ceil(x.astype(np.float64)))
