"""``drop-tokens``: remove tokens, which carry no data.

Before::

    %t = stablehlo.after_all : !stablehlo.token
    %r:2 = stablehlo.while(%a = %x, %b = %t) : tensor<3xf32>, !stablehlo.token cond { ... } do { ... }

After::

    %r = stablehlo.while(%a = %x) : tensor<3xf32> cond { ... } do { ... }

A token orders effects. What has none may run in any order on one device, and what has some (feeds, transfers, custom
calls that take tokens) is refused here, where the reason is still in sight. ``main`` loses its tokens before, in
``legalize-entry-abi``; the signature keeps them. Source: XLA "AfterAll", "CreateToken"; StableHLO spec "after_all".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import blocks, location_of, operations, types_of
from hloforge.pipelines.capability.audit import Finding, describe, refusal
from hloforge.pipelines.capability.capabilities import capability
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.manager import op_text
from hloforge.pipelines.framework.passes import Pass, register

_MAKERS = frozenset({"stablehlo.after_all", "stablehlo.create_token"})
_FUNCTION = "func.func"
_CARRIERS = frozenset(
    {
        *(_FUNCTION, "func.call", "func.return"),
        *(f"stablehlo.{name}" for name in ("case", "composite", "if", "optimization_barrier", "return", "while")),
    }
)


@register
@dataclass(frozen=True)
class DropTokens(Pass):
    """Remove tokens from operands, results, regions and functions.

    Raises (on run):
        UnsupportedError: an operation that exchanges data with the host, or a custom call with a token.
    """

    name: ClassVar[str] = "drop-tokens"
    removes: ClassVar[frozenset[str]] = _MAKERS
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.HOST_CALLS, Fact.PHYSICAL_BORDER})
    establishes: ClassVar[Facts] = frozenset({Fact.NO_TOKENS})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            if not any(map(_is_token, types_of(module))):
                return
            holders = [op for op in operations(module) if op.name not in _MAKERS and _holds_token(op)]
            for op in holders:
                if op.name not in _CARRIERS:
                    raise _unsupported(op)
            for op in holders:
                for block in blocks(op):
                    _drop_arguments(block)
                if op.name == _FUNCTION:
                    _retype(op)
                else:
                    _drop_operands_and_results(op)
            for op in reversed(operations(module, _MAKERS)):
                op.erase()


def _unsupported(op: AnyOp) -> UnsupportedError:
    if op.name == "stablehlo.custom_call":
        # What the host has went through legalize-host-calls.
        return refusal(Finding(op, capability(op, "cpu")), "cpu")
    return UnsupportedError(
        f"{describe(op)} is not supported: there is no runtime for what a program exchanges with its host as it runs",
        location=location_of(op),
        op=op_text(op),
        hint="pass what it reads as arguments of the program, and return what it writes",
    )


def _holds_token(op: ir.Operation) -> bool:
    if op.name == _FUNCTION:
        type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        return any(map(_is_token, (*type_.inputs, *type_.results)))
    arguments = [argument for block in blocks(op) for argument in block.arguments]
    return any(_is_token(value.type) for value in (*op.operands, *op.results, *arguments))


def _is_token(type_: ir.Type) -> bool:
    return bool(stablehlo.TokenType.isinstance(type_))


def _stand_in(value: SSAValue) -> None:
    """Give the users of a token one of their own, until they lose theirs in turn."""
    value.replace_all_uses_with(ir.Operation.create("stablehlo.after_all", results=[value.type]).results[0])


def _drop_arguments(block: ir.Block) -> None:
    with ir.InsertionPoint.at_block_begin(block):
        for number in reversed(range(len(block.arguments))):
            if _is_token(block.arguments[number].type):
                _stand_in(block.arguments[number])
                block.erase_argument(number)


def _drop_operands_and_results(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        kept = [result for result in op.results if not _is_token(result.type)]
        created = ir.Operation.create(
            op.name,
            results=[result.type for result in kept],
            operands=[operand for operand in op.operands if not _is_token(operand.type)],
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=len(op.regions),
        )
        for region, emptied in zip(created.regions, op.regions, strict=True):
            for block in list(emptied.blocks):
                block.append_to(region)
        for old, new in zip(kept, created.results, strict=True):
            old.replace_all_uses_with(new)
        for result in op.results:
            if _is_token(result.type):
                _stand_in(result)
    op.erase()


def _retype(function: Any) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for name, types in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
        if name in function.attributes:
            entries = zip(ir.ArrayAttr(function.attributes[name]), types, strict=True)
            function.attributes[name] = ir.ArrayAttr.get([entry for entry, one in entries if not _is_token(one)])
    kept = ir.FunctionType.get(_arrays(type_.inputs), _arrays(type_.results))
    function.attributes["function_type"] = ir.TypeAttr.get(kept)


def _arrays(types: Sequence[Any]) -> list[Any]:
    return [type_ for type_ in types if not _is_token(type_)]
