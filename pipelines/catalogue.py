"""All passes of hloforge: importing this module fills the registry."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from hloforge import pipelines
from hloforge.pipelines.framework.passes import Pass, registered


@cache
def passes_by_name() -> dict[str, type[Pass]]:
    """All passes that textual pipelines may name; every file of the folder is imported once."""
    for module in pkgutil.walk_packages(pipelines.__path__, f"{pipelines.__name__}."):
        importlib.import_module(module.name)
    return registered()


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
