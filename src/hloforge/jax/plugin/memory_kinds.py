"""The memory kinds that JAX wants for the arguments and results of a program (``pinned_host`` …)."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import ir, parse_module
from hloforge.dialect.program import entry_function
from hloforge.importers.native import portable_artifact_to_bytecode

# As devices.c counts them: all are names for the memory of this process.
KINDS = ("device", "pinned_host", "unpinned_host")
_ATTRIBUTE = "mhlo.memory_kind"


def memory_kinds(code: bytes, parameters: int, results: int) -> tuple[list[int], list[int]]:
    """The numbers of the kinds of all parameters and of all results.

    Args:
        code: the program, as a portable artifact.
    """
    # Most programs do not speak of memory; the strings of an artifact are in it as they are.
    if _ATTRIBUTE.encode() not in code:
        return [0] * parameters, [0] * results
    module = parse_module(portable_artifact_to_bytecode(code, "<memory kinds>"))
    function = entry_function(module)
    return _numbers(function, "arg_attrs", parameters), _numbers(function, "res_attrs", results)


def _numbers(function: Any, name: str, count: int) -> list[int]:
    attributes = function.operation.attributes
    if name not in attributes:
        return [0] * count
    return [_number(ir.DictAttr(entry)) for entry in attributes[name]]


def _number(entry: Any) -> int:
    kind = ir.StringAttr(entry[_ATTRIBUTE]).value if _ATTRIBUTE in entry else KINDS[0]
    return KINDS.index(kind) if kind in KINDS else 0
