"""``share-dispatches``: equal dispatches of our own code run one copy of it (``executables.py``).

Before, two of the dispatches that passes make::

    %a = dispatch(%x) { code }
    %b = dispatch(%y) { the same code }

After::

    flow.executable @hloforge_0 { code }
    %a = flow.dispatch @hloforge_0(%x)
    %b = flow.dispatch @hloforge_0(%y)

A model's layers repeat their softmax, their sums and their embeddings. Each ``flow.dispatch.workgroups`` carries its
code with it, through all of IREE's passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.marks import WORK
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.facts import NOTHING, Fact, Facts
from hloforge.pipelines.framework.passes import CPU, Pass, register
from hloforge.pipelines.kernels.lang.executables import shared


@register
@dataclass(frozen=True)
class ShareDispatches(Pass):
    """Share one executable among dispatches of equal code and types."""

    name: ClassVar[str] = "share-dispatches"
    targets: ClassVar[frozenset[str]] = CPU
    establishes: ClassVar[Facts] = frozenset({Fact.SHARED_DISPATCHES})
    # The operands of a dispatch stay as they are.
    breaks: ClassVar[Facts] = NOTHING

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            own = [op for op in operations(module, {"flow.dispatch.workgroups"}) if WORK in op.attributes]
            alike = _grouped(own, _types)
            for dispatches in [equal for group in alike for equal in _grouped(group, _text)]:
                shared(dispatches)


def _grouped(found: Iterable[ir.Operation], key: Callable[[Any], Hashable]) -> list[list[Any]]:
    """Those of equal keys together, in their order; those that are alone are left out."""
    groups: dict[Hashable, list[Any]] = {}
    for op in found:
        groups.setdefault(key(op), []).append(op)
    return [group for group in groups.values() if len(group) > 1]


def _types(op: ir.Operation) -> Hashable:
    """What differs between most dispatches, and is read soon: types, and which operands are equal."""
    places: dict[Any, int] = {}
    equal = tuple(places.setdefault(operand, number) for number, operand in enumerate(op.operands))
    return equal, tuple(value.type for value in (*op.operands, *op.results))


def _text(op: AnyOp) -> str:
    """The code, its attributes and types.

    A printer numbers all values of the function around what it prints, which is long: a copy stands in none.
    """
    copy = op.operation.clone(ip=False)
    return str(copy.operation.get_asm(use_local_scope=True, print_generic_op_form=True))
