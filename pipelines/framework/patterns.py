"""Rewrite patterns: functions from an operation to the values that replace it.

::

    @pattern("stablehlo.cbrt")
    def cbrt_by_newton(op):
        if op.results[0].type.has_rank ...:
            return NoMatch("dynamic size")        # guards first: nothing is built before the last guard
        return ...                                # Value or sequence of Values, one per result

A pattern that changes the operation itself, such as one of its operands, returns ``REWRITTEN``; it must not match what
it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from hloforge.dialect import budget
from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class NoMatch:
    """A pattern's refusal and its reason, which the audit shows if the operation is still there at the end."""

    reason: str


@dataclass(frozen=True)
class Rewritten:
    """The outcome of a pattern that has changed the operation in place, and keeps its results."""


REWRITTEN: Final = Rewritten()

Replacement: TypeAlias = Value | Sequence[Value] | NoMatch | Rewritten
# Quoted: what runs vmfbs loads no jaxlib.
Rewrite: TypeAlias = "Callable[[ir.Operation], Replacement]"


@dataclass(frozen=True)
class Pattern:
    """A rewrite of the operations called ``root``."""

    root: str
    rewrite: Rewrite
    name: str


def pattern(*roots: str) -> Callable[[Rewrite], tuple[Pattern, ...]]:
    """Decorator: the function rewrites operations of each of these names.

    The function is called with the ``ir.Operation``; it builds at the operation, with the operation's location.
    """

    def decorate(rewrite: Rewrite) -> tuple[Pattern, ...]:
        return tuple(Pattern(root, rewrite, getattr(rewrite, "__name__", root)) for root in roots)

    return decorate


@dataclass
class Outcome:
    """How a run of patterns went.

    Attributes:
        rewritten: how many operations were replaced, or changed in place.
        refused: the reasons, by operation name, of the refusals in the last sweep.
    """

    rewritten: int = 0
    refused: dict[str, list[str]] = field(default_factory=dict)


# A pattern set that still finds work after this many sweeps rewrites its own output.
_SWEEPS = 32


def apply_patterns(root: ir.Module, patterns: Iterable[Pattern]) -> Outcome:
    """Rewrite in sweeps, inner operations first, until no pattern matches.

    Patterns of one root are tried in order, until one rewrites the operation. What a rewrite builds or changes is
    matched in the next sweep.

    Raises:
        Error: a pattern's own error, located at the operation.
        RuntimeError: the patterns do not converge.
    """
    by_root: dict[str, list[Pattern]] = {}
    for entry in patterns:
        by_root.setdefault(entry.root, []).append(entry)
    outcome = Outcome()
    with in_context(root):
        for _ in range(_SWEEPS):
            outcome.refused = {}
            rewritten = sum(_rewrite(op, by_root[op.name], outcome) for op in operations(root, by_root))
            outcome.rewritten += rewritten
            if not rewritten:
                return outcome
    raise RuntimeError(f"patterns for {sorted(by_root)} still match after {_SWEEPS} sweeps")


def _rewrite(op: ir.Operation, candidates: list[Pattern], outcome: Outcome) -> bool:
    for candidate in candidates:
        budget.check()
        try:
            with ir.InsertionPoint(op), op.location:
                replacement = candidate.rewrite(op)
        except Error as error:
            error.location = error.location or location_of(op)
            raise
        if isinstance(replacement, NoMatch):
            outcome.refused.setdefault(op.name, []).append(replacement.reason)
            continue
        if not isinstance(replacement, Rewritten):
            replace(op, [replacement] if isinstance(replacement, Value) else replacement)
        return True
    return False


def replace(op: AnyOp, values: Sequence[Value]) -> None:
    """Put ``values`` in the place of the operation's results and erase it."""
    if len(values) != len(op.results):
        raise ValueError(f"{op.name} has {len(op.results)} results, the rewrite returned {len(values)}")
    for old, new in zip(op.results, values, strict=True):
        if old.type != new.ir.type:
            raise ValueError(f"{op.name}: a result of type {old.type} cannot be replaced by {new.ir.type}")
        old.replace_all_uses_with(new.ir)
    op.erase()
