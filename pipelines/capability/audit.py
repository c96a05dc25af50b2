"""The audit before IREE: every operation left compiles for the target, or the user is told why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import UnregisteredError, UnsupportedError
from hloforge.dialect.host_calls import JAX_CALLBACKS
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import location_of, operations
from hloforge.pipelines.capability.capabilities import Capability, Verdict, capability
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, Fact, Facts
from hloforge.pipelines.framework.manager import op_text
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.host_calls import similar_host_functions
from hloforge.pipelines.library_calls.limits import what_is_known
from hloforge.pipelines.library_calls.registry import similar_targets, target_of

# Further findings are shown as notes, one a kind of operation, so that a user sees the whole task at once.
_NOTES = 8
# What holds the arrays of a call that is refused for itself.
_PACKING = frozenset({"stablehlo.get_tuple_element", "stablehlo.tuple"})


@dataclass(frozen=True)
class Finding:
    """An operation that the target does not compile as it is, and what the table says of it."""

    op: Any
    row: Capability

    @property
    def text(self) -> str:
        name = describe(self.op)
        if self.row.verdict is Verdict.REJECT:
            return f"{name} is not supported: {self.row.reason}"
        return f"{name} is not supported in this form: {self.row.by} left it ({self.row.reason})"


def describe(op: Any) -> str:
    """``stablehlo.sort``, or ``custom_call @target`` with the target's name."""
    if op.name == "stablehlo.custom_call":
        return f"custom_call @{op.attributes['call_target_name'].value}"
    return str(op.name)


def _way_out(finding: Finding) -> str:
    """The row's hint; for a call of an unknown function the names that it may have meant, too."""
    is_call = finding.op.name == "stablehlo.custom_call"
    if is_call and target_of(finding.op) in JAX_CALLBACKS:
        return "compile what jax.jit(f).lower(x) returns, and not its text: only the object holds the Python functions"
    similar = [*similar_host_functions(finding.op), *similar_targets(target_of(finding.op))] if is_call else []
    names = f"; targets with similar names: {', '.join(similar)}" if similar else ""
    known = what_is_known(target_of(finding.op)) if is_call else ""
    return finding.row.hint + (f"; {known}" if known else names)


def findings(module: ir.Module, target: str) -> Iterable[Finding]:
    """Every operation of the module that is not native on the target, with the row that says so."""
    for op in operations(module):
        row = capability(op, target)
        if row.verdict is not Verdict.NATIVE:
            yield Finding(op, row)


def refusal(finding: Finding, target: str, notes: tuple[str, ...] = ()) -> UnsupportedError:
    """The error for an operation that a target does not compile."""
    is_call = finding.op.name == "stablehlo.custom_call" and finding.row.verdict is Verdict.REJECT
    kind = UnregisteredError if is_call else UnsupportedError
    return kind(
        f"{finding.text} [target {target}]",
        location=location_of(finding.op),
        op=op_text(finding.op),
        hint=_way_out(finding),
        notes=notes,
    )


@register
@dataclass(frozen=True)
class Audit(Pass):
    """Refuse what the target cannot compile, located at the user's instruction.

    Raises (on run):
        UnsupportedError: names the first such operation, its types, the target and the way out; others are notes.
    """

    name: ClassVar[str] = "audit"
    requires: ClassVar[Facts] = NORMALIZED | frozenset(
        {
            Fact.HOST_CALLS,
            Fact.NO_CHLO,
            Fact.NO_FACTORIZATIONS,
            Fact.NO_LIBRARY_CALLS,
            Fact.NO_NARROW_FLOATS,
            Fact.NO_QUANTIZED,
            Fact.NO_TOKENS,
            Fact.PHYSICAL_BORDER,
            Fact.SAFE_GATHERS,
            Fact.SAFE_PRODUCTS,
            Fact.SAFE_SCATTERS,
            Fact.UPDATES_DECIDED,
            Fact.WIDE_SUMS,
        }
    )
    breaks: ClassVar[Facts] = NOTHING
    target: str = "cpu"

    def run(self, module: ir.Module) -> None:
        found = sorted(findings(module, self.target), key=lambda one: one.op.name in _PACKING)
        if not found:
            return
        first, kinds = found[0], {finding.text: finding for finding in found[1:]}
        kinds.pop(first.text, None)
        notes = [f"{location_of(other.op) or ''}: {text}" for text, other in list(kinds.items())[:_NOTES]]
        more = len(found) - 1 - len(notes)
        if more > 0:
            notes.append(f"and {more} more of these")
        raise refusal(first, self.target, tuple(notes))
