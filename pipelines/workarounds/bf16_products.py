"""``legalize-bf16-products``: products read and write no bf16 themselves.

Before::

    %p = stablehlo.dot_general %a, %b, ... : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
    %r = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>

After::

    %x = stablehlo.optimization_barrier (stablehlo.convert %a)
    %y = stablehlo.optimization_barrier (stablehlo.convert %b)
    %p = stablehlo.dot_general %x, %y, ... : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %h = stablehlo.optimization_barrier %p
    %r = stablehlo.convert %h

IREE 3.13 loads and stores four bf16 at a time as two f32 where a product's sizes allow it, and has no SPIR-V for that
("failed to legalize operation 'vector.bitcast'"): only small and odd sizes compiled. Devices compute in f32 anyway.
Source: XLA "OptimizationBarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import VULKAN, Pass, register
from hloforge.pipelines.legalize.retyping import correct_operands, correct_result

_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
# What IREE computes in the dispatch of a product.
_FUSED = ELEMENTWISE | {f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "slice", "transpose")}


@register
@dataclass(frozen=True)
class LegalizeBf16Products(Pass):
    """Put barriers between products or convolutions and the conversions from and to bf16 around them."""

    name: ClassVar[str] = "legalize-bf16-products"
    targets: ClassVar[frozenset[str]] = VULKAN

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, _PRODUCTS):
                for number, operand in enumerate(op.operands):
                    if _reaches(operand, _sources):
                        correct_operands(op, [number], _held)
                if _reaches(op.results[0], _readers):
                    _hold_result(op)


def _is_bf16(value: SSAValue) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and isinstance(value.type.element_type, ir.BF16Type)


def _sources(value: Any) -> Iterable[Any]:
    owner = value.owner
    return owner.operands if not isinstance(owner, ir.Block) and owner.name in _FUSED else ()


def _readers(value: SSAValue) -> Iterable[SSAValue]:
    return [result for use in value.uses if use.owner.name in _FUSED for result in use.owner.results]


def _reaches(value: SSAValue, following: Callable[[Any], Iterable[Any]]) -> bool:
    """Whether a value, or one that is made from it in the same dispatch, is of bf16."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if _is_bf16(one):
            return True
        waiting += following(one)
    return False


def _held(value: Value) -> Value:
    """A value after a barrier, in f32 if it is of bf16."""
    if _is_bf16(value.ir):
        value = ops.convert_element_type(value, "f32")
    return emit("stablehlo.optimization_barrier", [value], value.ir.type)


def _hold_result(op: ir.Operation) -> None:
    """A result of f32 after a barrier, ahead of what makes bf16 of it."""
    result = op.results[0]
    if not _is_bf16(result):
        correct_result(op, _held)
        return
    result.set_type(ir.RankedTensorType.get(result.type.shape, ir.F32Type.get()))
    correct_result(op, lambda value: ops.convert_element_type(_held(value), "bf16"))
