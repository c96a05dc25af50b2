"""What the table says it builds is valid LLVM IR, for single elements and vectors."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from hloforge.dialect.traits import TABLE, Kind
from hloforge.pipelines.codegen.elements.memory import load, store
from hloforge.pipelines.codegen.elements.table import apply, supports
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import POINTER, Value
from tests.pipelines.codegen.elements.xla_reference import COMPLEX, FLOATS, INTEGERS

_EVERY = ("i1", *INTEGERS, *FLOATS, *COMPLEX)
_ARITY = {name.removeprefix("stablehlo."): row.arity for name, row in TABLE.items() if row.kind is Kind.ELEMENTWISE}
_ARITY |= dict.fromkeys(("cosh", "erf", "erfc", "erf_inv", "sinh", "square"), 1)
_ATTRIBUTES = {"comparison_direction": "LT", "compare_type": "TOTALORDER", "exponent_bits": 5, "mantissa_bits": 3}
# The rest is taken apart by passes (``pipelines/decompose``), or not in use.
_REFUSED = {"uniform_dequantize", "uniform_quantize"}


def _types(op: str, element: str) -> tuple[list[str], list[str]]:
    """Operands, and the result's types to try."""
    operands = ["i1", element, element] if op == "select" else [element] * _ARITY[op]
    part = element[8:-1] if element in COMPLEX else element
    if op in ("convert", "bitcast_convert"):
        return operands, list(_EVERY)
    if op == "complex":
        return operands, [f"complex<{element}>"] if element in ("f32", "f64") else []
    if op in ("compare", "is_finite"):
        return operands, ["i1"]
    return operands, [part if op in ("abs", "imag", "real") else element]


@pytest.mark.parametrize("op", sorted(set(_ARITY) - _REFUSED))
def test_every_supported_type_is_valid(op: str) -> None:
    built = 0
    for element in _EVERY:
        operands, results = _types(op, element)
        for result in results:
            if not supports(op, operands, result):
                continue
            for lanes in (0, 8):
                llvm.parse_assembly(_text(op, operands, result, lanes)).verify()
                built += 1
    assert built


def _text(op: str, operands: list[str], result: str, lanes: int) -> str:
    function = Function()
    pointers = [Value(function, POINTER, f"%p{place}") for place in range(len(operands) + 1)]
    values = [load(function, p, t, 3, lanes) for p, t in zip(pointers, operands, strict=False)]
    store(function, apply(op, values, operands, result, _ATTRIBUTES), pointers[-1], result, 3)
    function.do("ret void")
    text = function.text(f"define void @kernel({', '.join(f'ptr {p.text}' for p in pointers)})")[0]
    return "\n".join((*function.definitions.values(), text, "attributes #0 = { nounwind }\n"))


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        ("sine", ["complex<f64>"], "complex<f64>"),
        ("tanh", ["complex<f32>"], "complex<f32>"),
        ("add", ["f8E4M3FN"] * 2, "f8E4M3FN"),
        ("uniform_quantize", ["f32"], "i8"),
        ("bitcast_convert", ["f32"], "i64"),
        ("no_such", ["f32"], "f32"),
    ],
)
def test_refusals(op: str, operands: list[str], result: str) -> None:
    assert not supports(op, operands, result)


def test_apply_refuses_what_it_has_no_function_for() -> None:
    value = Function().constant(1.0, "double")
    with pytest.raises(ValueError, match="no_such of f64"):
        apply("no_such", [value], ["f64"], "f64", {})
