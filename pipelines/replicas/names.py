"""What the passes for several devices and the runtime that connects these call things."""

from __future__ import annotations

from hloforge.dialect.marks import PARTITION_ID, REPLICA_ID

ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER = "all_gather", "all_reduce", "all_to_all", "reduce_scatter"
# The host functions that say where a program runs, by operation.
NUMBERS = {"stablehlo.replica_id": REPLICA_ID, "stablehlo.partition_id": PARTITION_ID}
# In the sources of a move: nobody, so that the device receives zeros.
NOBODY = -1
