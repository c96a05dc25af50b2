"""Orders in which steps can run, by what waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.refusal import RefusedError

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.steps import Step

# Steps that are looked at for an order that forbids to join two: the time of planning stays linear.
MOST_SEEN = 256


def reaches(start: Step, goal: Step, before: dict[Step, set[Step]]) -> bool:
    """Whether ``start`` has to run after ``goal``, or so many steps come before it that nobody looks."""
    seen, waiting = {start}, [start]
    while waiting:
        if len(seen) > MOST_SEEN:
            return True
        for needed in before.get(waiting.pop(), ()):
            if needed is goal:
                return True
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return False


def prerequisites(steps: set[Step], before: dict[Step, set[Step]]) -> set[Step] | None:
    """What has to run before some of these steps; None if that are so many that nobody looks."""
    found: set[Step] = set()
    waiting = list(steps)
    while waiting:
        if len(found) > MOST_SEEN:
            return None
        more = before.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def sorted_steps(steps: list[Step], before: dict[Step, set[Step]]) -> list[Step]:
    """In an order that respects what has to run before what, near to the given one."""
    place = {step: number for number, step in enumerate(steps)}
    done: set[Step] = set()
    begun: set[Step] = set()
    order: list[Step] = []

    def visit(step: Step) -> None:
        waiting = [step]
        while waiting:
            top = waiting[-1]
            # The order of a set differs from one process to the next: the last of the list is the first to run.
            missing = sorted(
                (needed for needed in before[top] if needed not in done), key=place.__getitem__, reverse=True
            )
            if top in done:
                waiting.pop()
            elif missing:
                if top in begun:
                    raise RefusedError("steps that wait for each other")
                begun.add(top)
                waiting.extend(missing)
            else:
                done.add(top)
                order.append(top)
                waiting.pop()

    for step in steps:
        visit(step)
    return order
