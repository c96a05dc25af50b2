"""legalize-subnormal-rounding: through IREE, which flushes subnormals; numpy does not."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program
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


def test_truncations_of_subnormal_numbers() -> None:
    """As XLA's CPU client: a comparison that flushes chooses between ceil and floor."""
    text = "func.func @main(%x: tensor<6xf32>, %y: tensor<6xf64>) -> (tensor<6xf32>, tensor<6xf64>) {\n"
    for name, element in (("x", "f32"), ("y", "f64")):
        text += f"""%{name}z = stablehlo.constant dense<0.0> : tensor<6x{element}>
          %{name}p = stablehlo.compare GE, %{name}, %{name}z
            : (tensor<6x{element}>, tensor<6x{element}>) -> tensor<6xi1>
          %{name}f = stablehlo.floor %{name} : tensor<6x{element}>
          %{name}c = stablehlo.ceil %{name} : tensor<6x{element}>
          %{name}r = stablehlo.select %{name}p, %{name}f, %{name}c : tensor<6xi1>, tensor<6x{element}>\n"""
    program = read(text + "return %xr, %yr : tensor<6xf32>, tensor<6xf64> }")
    arguments = [np.array([-1e-40, 1e-40, -1.5, 1.5, -0.5, -0.0], np.float32)]
    arguments.append(np.array([-1e-310, 1e-310, -1.5, 1.5, -0.5, -0.0]))
    got = compile_program(program).load()(*arguments)
    for one, other in zip(got, reference("xla", isolated=False).prepare(program)(*arguments), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.trunc(other), [0, 0, -1, 1, 0, 0])
