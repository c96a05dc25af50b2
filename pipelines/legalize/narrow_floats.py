"""``legalize-narrow-floats``: floats of 4, 6 and 8 bits, kept as codes and computed in f32.

Before::

    %r = stablehlo.add %x, %y : tensor<3xf8E4M3FN>

After, ``decode`` and ``encode`` being a few integer operations each::

    %r = encode(stablehlo.add(decode %x, decode %y)) : tensor<3xui8>

f32 has more than twice the precision of these types, so rounding twice gives what rounding once would. Codes of 4 bits
are ui4, those of 6 bits ui8, for ``legalize-narrow-integers`` to widen. The total order, in which every code has a
place, is that of the codes as sign and magnitude, as with XLA; the one NaN of a format without -0 comes first. IREE
3.13 refuses six of the eleven types and reads the NaN of f8E4M3FN as -480. Source: StableHLO spec "Types", "convert";
XLA computes them in a wider type on the CPU as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, mlir_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.legalize.narrow_float_formats import decode, encode, from_order, in_order, small_scale
from hloforge.pipelines.legalize.retyping import Retyped, correct_operands, correct_result, retype

# Operations that move elements without looking at them, or hold regions whose operations are corrected themselves.
MOVING = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("after_all", "all_gather", "all_reduce", "all_to_all", "broadcast_in_dim", "case", "collective_broadcast"),
        *("collective_permute", "concatenate", "custom_call", "dynamic_broadcast_in_dim", "dynamic_gather"),
        *("dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather"),
        *("get_dimension_size", "if", "infeed", "map", "optimization_barrier", "outfeed", "pad"),
        *("real_dynamic_slice", "recv", "reduce", "reduce_scatter", "reduce_window", "reshape", "return"),
        *("reverse", "scatter"),
        *("select", "select_and_scatter", "send", "slice", "sort", "transpose", "while"),
    )
)


def _storage(row: ElementType) -> str | None:
    return ("u4" if row.bits == 4 else "u8") if row.is_float and row.bits <= 8 else None


def _is_narrow(row: ElementType | None) -> bool:
    return row is not None and _storage(row) is not None


def _decoded(codes: Value, row: ElementType) -> Value:
    return decode(ops.convert_element_type(codes, "u8"), row)


def _encoded(values: Value, row: ElementType) -> Value:
    codes = encode(to_f32(values), row)
    if row.name == "f8e8m0fnu" and values.element_type.name == "f64":
        codes = small_scale(values, codes)
    return ops.convert_element_type(codes, _storage(row))


def to_f32(values: Value) -> Value:
    """The values in f32; f64 is rounded to odd, so that the next rounding is as if it were the first."""
    if values.element_type.name != "f64":
        return ops.convert_element_type(values, "f32")
    near = ops.convert_element_type(values, "f32")
    back = ops.convert_element_type(near, "f64")
    bits = ops.bitcast_convert_type(near, "u32")
    towards_zero = ops.select(ops.abs(back) > ops.abs(values), bits - 1, bits)
    return ops.bitcast_convert_type(ops.select(back.ne(values) & back.eq(back), towards_zero | 1, bits), "f32")


def _compute_wide(entry: Retyped) -> None:
    """Decode the operands, let the operation compute in f32, encode its results."""
    op = entry.op
    for position, row in enumerate(entry.operands):
        if row is not None and _is_narrow(row):
            correct_operands(op, [position], lambda codes, row=row: _decoded(codes, row))  # type: ignore[misc]
    for number, row in enumerate(entry.results):
        if row is not None and _is_narrow(row):
            op.results[number].set_type(ir.RankedTensorType.get(op.results[number].type.shape, mlir_type("f32")))
            correct_result(op, lambda values, row=row: _encoded(values, row), number)  # type: ignore[misc]


def _convert(entry: Retyped) -> None:
    source, target = entry.operands[0], entry.results[0]
    assert source is not None and target is not None
    value = Value(entry.op.operands[0])
    with entry.op.location, ir.InsertionPoint(entry.op):
        wide = _decoded(value, source) if _is_narrow(source) else value
        result = _encoded(wide, target) if _is_narrow(target) else ops.convert_element_type(wide, target)
    replace(entry.op, [result])


def _bitcast(entry: Retyped) -> None:
    """The codes are the bits; two types of equal code need no operation."""
    op = entry.op
    source, target = entry.operands[0], entry.results[0]
    assert source is not None and target is not None
    if source.bits != target.bits and 6 in (source.bits, target.bits) and op.name == "stablehlo.bitcast_convert":
        raise UnsupportedError(
            f"the bits of {source} cannot be taken as {target}: no byte holds a whole number of 6 bits",
            location=location_of(op),
            hint="convert the values to a type of 8 bits first",
        )
    if op.operands[0].type == op.results[0].type:
        replace(op, [Value(op.operands[0])])


def _product(entry: Retyped) -> None:
    """dot_general, dot, convolution: f32 operands give an f32 result, whatever its type is to be."""
    op, target = entry.op, entry.results[0]
    assert target is not None
    if not _is_narrow(target) and target.name not in ("f32", "f64"):
        op.results[0].set_type(ir.RankedTensorType.get(op.results[0].type.shape, mlir_type("f32")))
        correct_result(op, lambda values: ops.convert_element_type(values, target))
    _compute_wide(entry)
    for position, row in enumerate(entry.operands):
        if not _is_narrow(row):
            correct_operands(op, [position], lambda values: ops.convert_element_type(values, "f32"))


def _compare(entry: Retyped) -> None:
    """Numbers as f32, the total order by integers."""
    op, row = entry.op, entry.operands[0]
    assert row is not None
    if "TOTALORDER" not in str(op.attributes.get("compare_type", "")):
        _compute_wide(entry)
        return
    correct_operands(op, [0, 1], lambda codes: in_order(ops.convert_element_type(codes, "u8"), row))
    op.attributes["compare_type"] = ir.Attribute.parse("#stablehlo<comparison_type SIGNED>")


def _top_k(entry: Retyped) -> None:
    """The first in the total order are the greatest integers."""
    op, row = entry.op, entry.operands[0]
    assert row is not None
    correct_operands(op, [0], lambda codes: in_order(ops.convert_element_type(codes, "u8"), row))
    op.results[0].set_type(ir.RankedTensorType.get(op.results[0].type.shape, mlir_type("s8")))
    correct_result(op, lambda keys: ops.convert_element_type(from_order(keys, row), _storage(row)))


_CORRECTIONS = {
    "bitcast_convert": _bitcast,
    "builtin.unrealized_conversion_cast": _bitcast,
    "chlo.top_k": _top_k,
    "compare": _compare,
    "convert": _convert,
    "convolution": _product,
    "dot": _product,
    "dot_general": _product,
}


@register
@dataclass(frozen=True)
class LegalizeNarrowFloats(Pass):
    """Store floats of at most 8 bits as integer codes and compute in f32, in the whole module."""

    name: ClassVar[str] = "legalize-narrow-floats"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_LIBRARY_CALLS})
    establishes: ClassVar[Facts] = frozenset({Fact.NO_NARROW_FLOATS})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for entry in retype(module, _storage):
                if entry.name in _CORRECTIONS:
                    _CORRECTIONS[entry.name](entry)
                elif entry.op.name.startswith(("stablehlo.", "chlo.")) and entry.op.name not in MOVING:
                    _compute_wide(entry)
