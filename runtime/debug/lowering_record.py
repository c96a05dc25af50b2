"""Record what each pass did to a program: operations removed and added, and the IR after it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloforge.dialect.errors import Error
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.capability.audit import describe
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.framework.stage import Stage
from hloforge.runtime.debug.tracked_text import Line, TextTracker

if TYPE_CHECKING:
    from hloforge.dialect.mlir import ir

# Larger constants print as their type.
ELIDED = 16
# Operations that carry the others and compute nothing.
STRUCTURE = frozenset({"func.func", "func.return", "stablehlo.return"})


@dataclass(frozen=True)
class Snapshot:
    """The program as it was read, or as a pass that changed it has left it.

    Attributes:
        name: of the pass, in the grammar of textual pipelines; ``as read`` of the first one.
        reason: why the pass is in the pipeline.
        summary: the first sentence of its documentation.
        seconds: how long it took.
        operations: how many there are of each kind.
        removed, added: how many more there were before, or are now, of each kind.
        lines: the beginning of the IR; matching lines of all snapshots have equal ``track``.
        line_count: of the whole IR.
    """

    name: str
    reason: str
    summary: str
    seconds: float
    operations: dict[str, int]
    removed: dict[str, int]
    added: dict[str, int]
    lines: tuple[Line, ...]
    line_count: int


@dataclass(frozen=True)
class LoweringRecord:
    """A program on its way through a target's pipeline.

    Attributes:
        snapshots: the program as read, then one for each pass that changed it.
        passes: how many passes ran.
        error: what stopped it; None if all passes ran, and nothing was found in what they made.
    """

    snapshots: tuple[Snapshot, ...]
    passes: int
    error: Error | None = None


def record_lowering(
    program: Program,
    stages: Sequence[Stage],
    *,
    most_lines: int,
    on_pass: Callable[[str], None] = lambda _: None,
    check: Callable[[ir.Module], None] = lambda _: None,
) -> LoweringRecord:
    """Run passes on a copy of the program.

    Args:
        stages: as of ``pipelines.named.stages``, or those before code generation.
        most_lines: how many lines of the IR a snapshot keeps.
        on_pass: told of each pass before it runs.
        check: raises an error of hloforge if the target cannot compile what the passes made.
    """
    module = program.clone().module
    tracker = TextTracker(most_lines)
    found = [_snapshot(module, tracker, "as read", "", "", 0.0, Counter())]
    before = _plain_text(module)
    ran = 0
    for stage in stages:
        on_pass(str(stage.entry))
        manager = PassManager([stage.entry])
        try:
            manager.run(module)
        except Error as error:
            return LoweringRecord(tuple(found), ran, error)
        ran += 1
        after = _plain_text(module)
        if after != before:
            about = (str(stage.entry), stage.reason, _summary(stage))
            counts = Counter(found[-1].operations)
            found.append(_snapshot(module, tracker, *about, manager.timings[0].seconds, counts))
        before = after
    try:
        check(module)
    except Error as error:
        return LoweringRecord(tuple(found), ran, error)
    return LoweringRecord(tuple(found), ran)


def _snapshot(
    module: ir.Module, tracker: TextTracker, name: str, reason: str, summary: str, seconds: float, before: Counter[str]
) -> Snapshot:
    counts = count_operations(module)
    text = str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=ELIDED))
    lines, line_count = tracker.follow(text)
    removed, added = dict((before - counts).most_common()), dict((counts - before).most_common())
    kinds = dict(counts.most_common())
    return Snapshot(name, reason, summary, seconds, kinds, removed, added, lines, line_count)


def _plain_text(module: Any) -> bytes:
    asm: bytes = module.operation.get_asm(large_elements_limit=ELIDED, binary=True)
    return asm


def _summary(stage: Stage) -> str:
    if isinstance(stage.entry, NativePass):
        return ""
    return (inspect.getdoc(type(stage.entry)) or "").partition("\n")[0].replace("``", "")


def computing(module: ir.Module) -> Sequence[Any]:
    """The operations of a module that compute something."""
    return [op for op in operations(module) if op.name not in STRUCTURE]


def count_operations(module: ir.Module) -> Counter[str]:
    """How many operations there are of each kind; custom calls by their targets."""
    return Counter(describe(op) for op in computing(module))
