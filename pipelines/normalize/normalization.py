"""The pipeline ``normalize``, with which every other one begins: an imported module as pure StableHLO.

It is apart from ``named.py`` because code generation and whoever reads programs need it, and none of IREE's passes.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.framework.manager import PassManager, Timing
from hloforge.pipelines.framework.stage import Stage
from hloforge.pipelines.normalize.choose_branches import ChooseBranches
from hloforge.pipelines.normalize.drop_bounds import DropBounds
from hloforge.pipelines.normalize.drop_copies import DropCopies
from hloforge.pipelines.normalize.drop_dead_loops import DropDeadLoops
from hloforge.pipelines.normalize.drop_identity_calls import DropIdentityCalls
from hloforge.pipelines.normalize.fill_empty_parts import FillEmptyParts
from hloforge.pipelines.normalize.flatten_computations import FlattenComputations
from hloforge.pipelines.normalize.flatten_tuples import FlattenTuples
from hloforge.pipelines.normalize.inline_calls import InlineCalls
from hloforge.pipelines.normalize.inline_fusions import InlineFusions
from hloforge.pipelines.normalize.lower_bitcast import LowerBitcast
from hloforge.pipelines.normalize.lower_mhlo import LowerMhlo
from hloforge.pipelines.normalize.lower_sdy import LowerSdy
from hloforge.pipelines.normalize.merge_branches import MergeBranches
from hloforge.pipelines.normalize.strip_attributes import StripAttributes
from hloforge.pipelines.normalize.unwrap_async import UnwrapAsync

NORMALIZE: tuple[Stage, ...] = (
    Stage(InlineFusions(), "a fusion is XLA's decision for XLA's backends; IREE makes its own"),
    Stage(UnwrapAsync(), "start and done are a schedule; leaves calls for the next inlining"),
    Stage(LowerSdy(), "the program of one device has no mesh; leaves calls as well"),
    Stage(InlineCalls(), "calls in HLO are a naming device: one function lets every later pass see the whole"),
    Stage(ChooseBranches(), "branches never taken have other sizes in programs of TensorFlow; constants are inlined"),
    Stage(MergeBranches(), "every later pass, and the code generator, has half of the work; functions are inlined"),
    Stage(FlattenTuples(), "IREE has no tuples; calls are gone, and every later pass sees arrays alone"),
    Stage(FlattenComputations(), "no later pass has to know branches and loops of scalars; calls and tuples are gone"),
    Stage(LowerBitcast(), "the only operation whose meaning depends on layouts, which no later pass knows"),
    Stage(DropCopies(), "a copy decides about buffers, and IREE's bufferization decides anew"),
    Stage(DropIdentityCalls(), "annotations for XLA's partitioner and memory spaces"),
    Stage(LowerMhlo(), "StableHLO and CHLO have an equivalent of every operation that is left of XLA's dialect"),
    Stage(DropDeadLoops(), "some never end, and XLA does not run them; operations have their effects in one dialect"),
    Stage(FillEmptyParts(), "whoever computes them reads outside of the operand"),
    Stage(StripAttributes(), "IREE refuses attributes of dialects that it does not know"),
    Stage(DropBounds(), "IREE knows no bounds, and later passes would take a bound for the size"),
)


def normalize(module: ir.Module, **options: Any) -> list[Timing]:
    """Rewrite an imported module in place to pure StableHLO: no fusions, copies, ``mhlo`` or ``sdy`` are left.

    Args:
        options: fields of PassManager (``verify``, ``dump_after``, ``dump_to``).
    """
    manager = PassManager([stage.entry for stage in NORMALIZE], **options)
    manager.run(module)
    return manager.timings
