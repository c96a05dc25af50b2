"""What IREE 3.13's cuda target does with StableHLO, measured by compiling alone; see docs/targets.md.

Most of what IREE lacks or gets wrong it does before it generates code for any target: those rows are the CPU's.
"""

from __future__ import annotations

from hloforge.pipelines.capability import cpu_table
from hloforge.pipelines.capability.verdicts import Capability, decompose, native
from hloforge.pipelines.decompose.logarithm import is_unsafe
from hloforge.pipelines.replicas.combine import COLLECTIVES
from hloforge.pipelines.workarounds.batch_groups import has_groups_of_images
from hloforge.pipelines.workarounds.whole_windows import is_only_window

ROWS: tuple[Capability, ...] = (
    # IREE connects these devices itself (NCCL), and tells each its number.
    *native("stablehlo.replica_id", *sorted(COLLECTIVES)),
    *decompose(
        "decompose-logarithm",
        "IREE's own takes subnormal numbers for the least normal one",
        "stablehlo.log",
        elements=("bf16",),
        form=is_unsafe,
    ),
    *decompose(
        "legalize-batch-groups",
        "IREE mixes up rows and columns of such products of tensor cores",
        "stablehlo.convolution",
        form=has_groups_of_images,
    ),
    *decompose(
        "legalize-whole-windows",
        "IREE lets windows of one place share the array of their initial values",
        "stablehlo.reduce_window",
        form=is_only_window,
    ),
    *cpu_table.ROWS,
)
