"""Loops that do not depend on each other run at once, a workgroup each: directions of a recurrent layer, some rows.

A loop is a chain of turns, of which threads can share single steps only, and have to meet after each. Loops that are
equally long and read nothing of each other need not meet at all. What a later loop waits for runs before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.graph import Array, Block
from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.outlining import Cut, outline
from hloforge.pipelines.codegen.loop_sharing import product_ns
from hloforge.pipelines.codegen.steps import Single, Step
from hloforge.pipelines.codegen.turns import turns_of

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import BlockWriter, Generator

# Nanoseconds of a turn from which on many threads do more in its steps than a few loops at once, and of a loop from
# which on it is worth to be handed over; how much longer than another one a loop may take.
_LONG_TURN, _LEAST, _BALANCE = 200_000, 20_000, 1.5
# Steps after a loop that are looked at, and turns of a loop where nobody knows them.
_MOST_SEEN, _SOME_TURNS = 64, 16


def together(
    generator: Generator, steps: Sequence[Step], reads: Callable[[Step], Iterable[Array]]
) -> tuple[list[Step], list[list[Step]]]:
    """The steps of a program with loops that may run at once behind each other, and these loops.

    Args:
        reads: arrays in memory that a step reads.
    """
    order, groups, place = list(steps), list[list[Step]](), 0
    while place < len(order):
        group, needed = _with(generator, order, place, reads)
        if len(group) > 1:
            moved = {*needed, *group}
            rest = [step for step in order[place:] if step not in moved]
            order[place:] = [*needed, *group, *rest]
            groups.append(group)
            place += len(needed) + len(group)
        else:
            place += 1
    return order, groups


def _with(
    generator: Generator, order: Sequence[Step], place: int, reads: Callable[[Step], Iterable[Array]]
) -> tuple[list[Step], list[Step]]:
    """The loops that may run with the one at a place, itself first, and steps that these wait for."""
    first = order[place]
    group, between, needed = [first], list[Step](), set[Step]()
    ns = _loop_ns(generator, first)
    if ns is None:
        return group, []
    behind = set(first.makes)
    for step in order[place + 1 : place + 1 + _MOST_SEEN]:
        if len(group) == generator.machine.workers:
            break
        if not behind.isdisjoint(reads(step)) or _has_effects(step):
            behind |= set(step.makes)
            continue
        own = _loop_ns(generator, step)
        if own is not None and max(own, ns) <= _BALANCE * min(own, ns):
            group.append(step)
            behind |= set(step.makes)
            needed |= _before(step, between, reads)
        else:
            between.append(step)
    return group, [step for step in between if step in needed]


def _before(step: Step, others: Sequence[Step], reads: Callable[[Step], Iterable[Array]]) -> set[Step]:
    """Those of other steps that a step waits for."""
    maker = {array: one for one in others for array in one.makes}
    found: set[Step] = set()
    waiting = [step]
    while waiting:
        more = {maker[array] for array in reads(waiting.pop()) if array in maker} - found
        found |= more
        waiting += more
    return found


def _has_effects(step: Step) -> bool:
    return isinstance(step, Single) and step.operation.has_effects


def _loop_ns(generator: Generator, step: Step) -> float | None:
    """What a loop of products takes; None for what is none, is short, or whose turns many threads share."""
    if not isinstance(step, Single) or step.operation.name != "while" or _has_effects(step):
        return None
    turns = turns_of(step.operation) or _SOME_TURNS
    turn = _turn_ns(generator, step.operation.inner[1])
    if turn is None or turn * turns < _LEAST:
        return None
    return None if turn > _LONG_TURN and generator.machine.workers > 2 else turn * turns


def _turn_ns(generator: Generator, body: Block) -> float | None:
    """What products of a loop's body take; None if there are none, or it has loops and branches."""
    if any(op.inner for op in body.ops if op.name in ("while", "if", "case")):
        return None
    return sum(product_ns(generator, op) for op in body.ops if op.name == "dot_general") or None


def keep(
    group: Sequence[Step], steps: Sequence[Step], reads: Callable[[Step], Iterable[Array]], last: dict[Array, int]
) -> None:
    """Let what several of some loops read be read until all have ended, so that none changes it in place.

    Args:
        last: the number of the step that reads an array last.
    """
    found = [set(reads(step)) for step in group]
    for array in set().union(*found):
        if sum(array in one for one in found) > 1:
            last[array] = max(last.get(array, -1), steps.index(group[-1]) + 1)


def may_run(generator: Generator, writer: BlockWriter, group: Sequence[Step]) -> bool:
    """Whether none of some loops writes where another one reads."""
    for step in group:
        targets = {writer.target(array) for array in step.makes} - {None}
        others = (array for other in group if other is not step for array in writer.reads(other))
        if not targets.isdisjoint(generator.slots.get(array) for array in others):
            return False
    return True


def write(generator: Generator, writer: BlockWriter, group: Sequence[Step]) -> None:
    """Write loops as a kernel of a workgroup each."""
    function = generator.writer.function
    labels, after = [function.label() for _ in group], function.label()
    cases = " ".join(f"i64 {number}, label %{label}" for number, label in enumerate(labels[:-1]))
    function.do(f"switch i64 {generator.writer.workgroup().text}, label %{labels[-1]} [ {cases} ]")
    for label, step in zip(labels, group, strict=True):
        function.begin(label)
        begin = Cut(len(function.lines), function.block)
        generator.is_shared = True
        writer.write_step(writer.steps.index(step), step, None)
        generator.is_shared = False
        # Equal loops are one function.
        outline(function, [begin], ENTRY)
        function.do(f"br label %{after}")
    function.begin(after)
