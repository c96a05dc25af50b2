"""The vocabulary of the capability tables."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from hloforge.dialect.mlir import AnyOp

Form: TypeAlias = Callable[[Any], bool]


class Verdict(enum.Enum):
    """How a target handles an operation."""

    NATIVE = "native"
    DECOMPOSE = "decompose"
    REJECT = "reject"


@dataclass(frozen=True)
class Capability:
    """One row of a target's table.

    Attributes:
        op: the operation's name; ``custom_call``s may be named with their target
            (``stablehlo.custom_call@Sharding``); ``chlo.*`` is a whole dialect, ``*`` any operation.
        verdict: what happens to it.
        elements: the row holds only if an operand or result has one of these element types (XLA's names); None: any.
        form: the row holds only for operations in this form (a predicate of pipelines/analysis/forms.py); None: any.
        by: for ``DECOMPOSE``, the pass that replaces the operation, as pipelines spell it.
        reason: why it is not native: what the target lacks or gets wrong.
        hint: for the user, the way out.
    """

    op: str
    verdict: Verdict
    elements: frozenset[str] | None = None
    form: Form | None = None
    by: str = ""
    reason: str = ""
    hint: str = ""

    def fits(self, op: AnyOp, elements: frozenset[str]) -> bool:
        """Whether the row speaks of this operation, whose operands and results have these element types."""
        return (self.elements is None or not self.elements.isdisjoint(elements)) and (
            self.form is None or self.form(op)
        )


def native(*ops: str) -> tuple[Capability, ...]:
    """Rows for operations that the target compiles and gets right."""
    return tuple(Capability(op, Verdict.NATIVE) for op in ops)


def decompose(
    by: str, reason: str, *ops: str, elements: tuple[str, ...] = (), form: Form | None = None
) -> tuple[Capability, ...]:
    """Rows for operations that a pass of ours replaces before the target sees them."""
    kinds = frozenset(elements) or None
    return tuple(Capability(op, Verdict.DECOMPOSE, kinds, form, by, reason) for op in ops)


def reject(
    reason: str, *ops: str, elements: tuple[str, ...] = (), form: Form | None = None, hint: str = ""
) -> tuple[Capability, ...]:
    """Rows for operations that nothing supports on the target today."""
    return tuple(Capability(op, Verdict.REJECT, frozenset(elements) or None, form, "", reason, hint) for op in ops)
