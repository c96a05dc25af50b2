"""Which custom calls of a module are calls of host functions.

Whoever compiles a program writes the names of the functions that the host has onto the module, where they survive
printing and parsing::

    module attributes {hloforge.host_functions = ["myfunc", "other"]}
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hloforge.dialect.host_calls import INTERNAL, HostCall
from hloforge.dialect.marks import HOST_CALL, HOST_FUNCTIONS
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.pipelines.library_calls.registry import is_registered

# Targets that other passes than decompose-library-calls replace.
_DECOMPOSED = frozenset({"shape_assertion", "stablehlo.dynamic_reduce_window"})


def declare_host_functions(module: ir.Module, names: Iterable[str]) -> None:
    """Write the names of the host's functions onto a module."""
    with in_context(module):
        texts = [ir.StringAttr.get(name) for name in sorted(set(names))]
        module.operation.attributes[HOST_FUNCTIONS] = ir.ArrayAttr.get(texts)


def host_functions(module: ir.Operation) -> tuple[str, ...]:
    """The names on a module."""
    attributes = module.operation.attributes
    if HOST_FUNCTIONS not in attributes:
        return ()
    return tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(attributes[HOST_FUNCTIONS]))


def is_host_call(op: ir.Operation) -> bool:
    """Whether a custom call has no decomposition, and names a function that the host has or one of hloforge's own."""
    target = string_attribute(op, "call_target_name")
    if target.startswith(INTERNAL) and not is_registered(op):
        return True
    return target in host_functions(_module_of(op)) and not is_registered(op) and target not in _DECOMPOSED


def similar_host_functions(op: ir.Operation) -> list[str]:
    """Names of host functions that are close to the target of a custom call, the closest first."""
    return get_close_matches(string_attribute(op, "call_target_name"), host_functions(_module_of(op)), cutoff=0.6)


def custom_call_targets(module: ir.Module) -> set[str]:
    """The targets of all custom calls of a module."""
    return {string_attribute(op, "call_target_name") for op in operations(module, {"stablehlo.custom_call"})}


def host_calls_of(module: ir.Module) -> tuple[HostCall, ...]:
    """The records of the functions that a lowered module imports, by their numbers."""
    functions = [op.operation for op in module.body.operations if HOST_CALL in op.operation.attributes]
    return tuple(HostCall.from_json(string_attribute(function, HOST_CALL)) for function in functions)


def _module_of(op: ir.Operation) -> ir.Operation:
    while op.parent is not None:
        op = op.parent.operation
    return op
