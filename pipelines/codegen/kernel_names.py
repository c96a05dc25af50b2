"""Names of kernels for people: what profilers and traces call a dispatch by."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.fused_rows import FusedRows
from hloforge.pipelines.codegen.steps import Nest, Single, Step

# As many kinds of operations as a name has.
_MOST = 3


def kind_of(step: Step) -> str:
    """What a step does in the end: its algorithm, what it reduces by, or the last operation of its loop."""
    if isinstance(step, Single):
        return step.operation.name
    assert isinstance(step, Nest)
    if step.reductions:
        return step.reductions[-1].name
    return step.maps[-1].op.name if step.maps and step.maps[-1].op else "copy"


def kernel_name(number: int, steps: Sequence[Step]) -> str:
    """Of a kernel by its number and its steps; algorithms first, because they take most of the time."""
    parts = [part for step in steps for part in (step.steps if isinstance(step, FusedRows) else [step])]
    ordered = sorted(parts, key=lambda step: not isinstance(step, Single))
    kinds = list(dict.fromkeys(map(kind_of, ordered))) or ["copy"]
    return "_".join([f"kernel_{number}", *(kind.replace(".", "_") for kind in kinds[:_MOST])])
