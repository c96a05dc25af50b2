"""``jax.debug.inspect_array_sharding`` in programs of several devices.

JAX writes the address of a function into the program, for a partitioner in its own process. Ours is in another one, so
the program has the function's number, and what was asked is answered when JAX's backend compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hloforge.dialect.mlir import _hlo, ir
from hloforge.importers.reader import read
from hloforge.jax.callbacks import functions_of, number
from hloforge.runtime.compile.partition import inspections
from hloforge.runtime.options import CompileOptions

_TARGET = "InspectSharding"


def adopting(rule: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's lowering rule, which addresses a function of this process, with a number for it."""

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        block = ir.InsertionPoint.current.block
        before, kept = len(block.operations), len(context.module_context.keepalives)
        results = rule(context, *operands, **parameters)
        _adopt(context.module_context, kept, list(block.operations)[before:])
        return results

    return lower


def _adopt(module_context: Any, before: int, operations: Any) -> None:
    """Number the function that JAX's rule has added to what a module keeps alive, in the call that the rule wrote.

    Args:
        before: how much was kept alive before the rule.
        operations: what the rule wrote: nothing for one device.
    """
    for op, function in zip(operations, module_context.keepalives[before:], strict=True):
        op.attributes["backend_config"] = ir.StringAttr.get(str(number(module_context, function)))


def answer(code: bytes, options: CompileOptions) -> None:
    """Call the functions of a program with how its arrays lie."""
    if options.partitions == 1 or _TARGET.encode() not in code:
        return
    for config, serialized in inspections(read(code), options):
        sharding = _hlo.OpSharding()
        sharding.ParseFromString(serialized)
        functions_of([int(config)])[-1](_hlo.HloSharding.from_proto(sharding))
