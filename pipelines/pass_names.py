"""The names of all passes without loading them: completion on TAB has a tenth of a second, and loading takes more.

A pass states its name as a constant of its class (``framework/passes.py``), so the sources tell them.
"""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r'^    name: ClassVar\[str\] = "([\w-]+)"', re.MULTILINE)

# The same as ``named.PIPELINES``; a test compares them.
PIPELINE_NAMES: tuple[str, ...] = ("normalize", "cpu", "vulkan", "cuda")

# The passes of MLIR and StableHLO in jaxlib 0.10 that take a StableHLO module; bindings cannot list them.
NATIVE_PASSES: tuple[str, ...] = (
    "canonicalize",
    "chlo-legalize-to-stablehlo",
    "cse",
    "hlo-legalize-to-stablehlo",
    "inline",
    "loop-invariant-code-motion",
    "mhlo-flatten-tuple",
    "mhlo-test-unfuse-batch-norm",
    "remove-dead-values",
    "sccp",
    "shape-legalize-to-stablehlo",
    "stablehlo-canonicalize-dynamism",
    "stablehlo-check-shape-assertions",
    "stablehlo-compatibility-expander",
    "stablehlo-complex-math-expander",
    "stablehlo-convert-to-signless",
    "stablehlo-legalize-composite-to-call",
    "stablehlo-legalize-deprecated-ops",
    "stablehlo-legalize-qdq-to-quantized-op",
    "stablehlo-legalize-quant-to-math",
    "stablehlo-refine-arguments",
    "stablehlo-refine-shapes",
    "stablehlo-wrap-in-composite",
    "symbol-dce",
    "vhlo-legalize-to-stablehlo",
)


def pass_names() -> tuple[str, ...]:
    """The names of hloforge's own passes, sorted: those of ``catalogue.passes_by_name()``."""
    found: set[str] = set()
    for path in Path(__file__).parent.rglob("*.py"):
        found.update(_NAME.findall(path.read_text(encoding="utf-8")))
    return tuple(sorted(found))
