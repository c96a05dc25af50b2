"""What IREE 3.13's vulkan-spirv target does with StableHLO, measured on Mesa's lavapipe; see docs/vulkan.md."""

from __future__ import annotations

from hloforge.pipelines import cpu_table
from hloforge.pipelines.verdicts import Capability

# Code of our own for processors.
_FOR_PROCESSORS = frozenset({"keep-factorizations"})

ROWS: tuple[Capability, ...] = tuple(row for row in cpu_table.ROWS if row.by not in _FOR_PROCESSORS)
