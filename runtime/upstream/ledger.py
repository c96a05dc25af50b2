"""The ledger of IREE's faults: a record for every workaround, and what is none although IREE is its reason.

``make upstream`` runs the reproducers on the installed IREE. When a fault is gone, its record and its workaround go.
"""

from __future__ import annotations

from hloforge.runtime.upstream.in_generated_code import CODE
from hloforge.runtime.upstream.in_programs import PROGRAMS
from hloforge.runtime.upstream.record import Workaround

__all__ = ["NO_WORKAROUNDS", "OTHER_FLAGS", "WORKAROUNDS", "Workaround"]

WORKAROUNDS: tuple[Workaround, ...] = (*PROGRAMS, *CODE)

# Passes that would stay if IREE had no faults, and why. Those of ``pipelines/normalize`` bring XLA's
# forms to StableHLO, and are not listed.
NO_WORKAROUNDS: dict[str, str] = {
    "check-equal-sizes": "checks a caller's arrays",
    "import-host-calls": "calls functions of the host",
    "legalize-bf16": "rounds where XLA rounds",
    "legalize-dynamic-contractions": "IREE lacks these forms",
    "legalize-dynamic-shapes": "IREE lacks these operations",
    "legalize-entry-abi": "XLA's layouts and narrow types",
    "legalize-host-calls": "calls functions of the host",
    "legalize-long-loops": "short loops suit GPUs",
    "legalize-quantized": "IREE has no quantized types",
    "decompose-batch-norm": "its parts fuse with their neighbours",
    "decompose-cholesky": "IREE has no factorizations",
    "decompose-complex-hyperbolic": "CHLO's own expansion cancels",
    "decompose-dot-algorithm": "XLA's algorithms of products",
    "decompose-dynamic-windows": "IREE lacks these operations",
    "decompose-einsum": "IREE lacks some forms",
    "decompose-exponential": "IREE has no libm of f64",
    "decompose-factorizations": "IREE has no factorizations",
    "decompose-fft": "IREE lacks most transforms",
    "decompose-gamma-functions": "CHLO's own expansions cancel",
    "decompose-leading-zeros": "IREE has SPIR-V of 32 bits alone",
    "decompose-library-calls": "IREE calls no library",
    "decompose-logarithm": "SPIR-V has no logarithm of f64",
    "decompose-map": "IREE has no map with loops",
    "decompose-remainder": "IREE has no libm of f64",
    "decompose-reverse-scan": "jaxlib's expansion ignores is_reverse",
    "decompose-select-and-scatter": "IREE lacks the operation",
    "decompose-set-dimension-size": "IREE lacks the operation",
    "decompose-shape-assertions": "checks a caller's arrays",
    "decompose-single-replica": "one replica needs no communication",
    "decompose-triangular-solve": "IREE has no solvers",
    "decompose-trigonometric": "IREE has no libm of f64",
    "decompose-unsigned-division": "IREE lacks SPIR-V of some types",
    "lower-composites": "portable bodies of composites",
    "refine-dynamism": "sizes that are constants",
    "legalize-promotions": "later passes see one element type",
}

# Constants in ``runtime/compile/by_iree.py`` that hold flags of IREE for other reasons.
OTHER_FLAGS: dict[str, str] = {
    "_SERIAL": "speed of the compiler",
    "_SUMS_IN_VECTORS": "speed",
    "_NO_MASKS": "speed",
    "_DATA_TILING": "speed",
    "_KEEP_ASSERTIONS": "IREE drops assertions by design",
    "_TO_SCHEDULE": "the phase that is audited",
    "_STOP": "the phase whose code is amended",
    "_RESUME": "the phase whose code is amended",
}
