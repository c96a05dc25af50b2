"""``strip-attributes``: attributes that other compilers left and that IREE refuses or would carry along.

Before::

    %r = stablehlo.dot %x, %y {mhlo.frontend_attributes = {...}, result_layout = ..., xla_shape = "f32[4]{0}"} : ...

After::

    %r = stablehlo.dot %x, %y : ...

The configuration of a custom call that JAX keeps in ``mhlo.backend_config`` becomes its ``backend_config``.
Likewise the pairs of devices that XLA keeps beside a transfer become its ``source_target_pairs``.
Shardy's meshes, which only sharding attributes name, go with them. The entry layouts and donation have moved to
``hloforge.*`` attributes at import. Source: XLA (hlo_module_importer), JAX (lowering), Shardy "SDY dialect".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import i32, i64_matrix
from hloforge.dialect.marks import is_foreign
from hloforge.dialect.mlir import AnyOp, entries, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.passes import Pass, register

_PER_VALUE = ("arg_attrs", "res_attrs")
_TRANSFERS = frozenset({"stablehlo.send", "stablehlo.recv"})
_FRONTEND, _PAIRS = "mhlo.frontend_attributes", "_xla_send_recv_source_target_pairs"
_CONFIGURATION, _TYPED_FFI = "mhlo.backend_config", 4


@register
@dataclass(frozen=True)
class StripAttributes(Pass):
    """Delete the discardable attributes of XLA, JAX and Shardy from operations, arguments and results."""

    name: ClassVar[str] = "strip-attributes"
    removes: ClassVar[frozenset[str]] = frozenset({"sdy.mesh"})

    def run(self, module: ir.Module) -> None:
        def visit(op: ir.Operation) -> Any:
            _strip(op)
            return ir.WalkResult.ADVANCE

        with in_context(module):
            module.operation.walk(visit)
        for mesh in operations(module, self.removes):
            mesh.erase()


def _strip(op: ir.Operation) -> None:
    if op.name == "stablehlo.custom_call" and _CONFIGURATION in op.attributes:
        op.attributes["backend_config"] = op.attributes[_CONFIGURATION]
        op.attributes["api_version"] = i32(_TYPED_FFI)
    if op.name in _TRANSFERS and _FRONTEND in op.attributes:
        _keep_pairs(op, ir.DictAttr(op.attributes[_FRONTEND]))
    for name in list(op.attributes):
        if is_foreign(name):
            del op.attributes[name]
    for name in _PER_VALUE:
        if name in op.attributes:
            _strip_values(op, name)


def _keep_pairs(op: AnyOp, beside: Any) -> None:
    """``_xla_send_recv_source_target_pairs = "{{0,1},{1,2}}"`` as an attribute of StableHLO."""
    if _PAIRS in beside and "source_target_pairs" not in op.attributes:
        numbers = [int(number) for number in re.findall(r"\d+", beside[_PAIRS].value)]
        op.attributes["source_target_pairs"] = i64_matrix(list(zip(numbers[::2], numbers[1::2], strict=True)), 2)


def _strip_values(op: AnyOp, name: str) -> None:
    kept = [{key: entry[key] for key in entry if not is_foreign(key)} for entry in _dictionaries(op, name)]
    if any(kept):
        op.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])
    else:
        del op.attributes[name]


def _dictionaries(op: Any, name: str) -> list[dict[str, Any]]:
    return [entries(entry) for entry in op.attributes[name]]
