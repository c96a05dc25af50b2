"""What IREE 3.13's vulkan-spirv target does with StableHLO, measured on Mesa's lavapipe; see docs/vulkan.md.

Most of what IREE lacks or gets wrong it does before it generates code for any target: those rows are the CPU's.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines import cpu_table
from hloforge.pipelines.legalize import long_loops
from hloforge.pipelines.verdicts import Capability, Verdict, decompose, reject

# Code of our own for processors.
_FOR_PROCESSORS = frozenset({"keep-factorizations"})

_SHARED = tuple(row for row in cpu_table.ROWS if row.by not in _FOR_PROCESSORS)
_TURNS = "an invocation of a shader takes the elements one by one, and lavapipe ends it after 65,535 turns"


def has_no_kernel(op: Any) -> bool:
    """Whether a ``convolution`` has groups of several channels or of images, or more than three dimensions of space."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    channels = int(op.operands[1].type.shape[numbers.kernel_input_feature_dimension])
    groups, batches = (op.attributes[f"{name}_group_count"].value for name in ("feature", "batch"))
    return (groups > 1 and channels > 1) or batches > 1 or len(numbers.input_spatial_dimensions) > 3


ROWS: tuple[Capability, ...] = (
    *decompose("legalize-long-loops", _TURNS, "stablehlo.reduce", form=long_loops.reduces_many),
    *decompose("legalize-long-loops", _TURNS, "stablehlo.dot_general", form=long_loops.sums_many_products),
    *decompose("legalize-long-loops", _TURNS, "stablehlo.reduce_window", form=long_loops.has_wide_windows),
    *decompose("decompose-logarithm", "SPIR-V has no logarithm of f64", "stablehlo.log", elements=("f64",)),
    *decompose(
        "decompose-remainder",
        "Vulkan's is NaN where a quotient overflows",
        "stablehlo.remainder",
        elements=("bf16", "f16", "f32"),
    ),
    *decompose(
        "decompose-unsigned-division",
        "IREE has no SPIR-V for unsigned divisions in vectors of one element",
        "stablehlo.divide",
        "stablehlo.remainder",
        elements=("u8", "u16", "u32", "u64"),
    ),
    *(row for row in _SHARED if row.verdict is not Verdict.NATIVE),
    *reject(
        _TURNS,
        "stablehlo.convolution",
        form=long_loops.convolves_many,
        hint="cut its kernel or its input features into parts, and add the results",
    ),
    *reject(
        "IREE 3.13 leaves parts of the result unwritten on Vulkan",
        "stablehlo.convolution",
        form=has_no_kernel,
        hint="convolve each group by itself, or compile for the CPU",
    ),
    *(row for row in _SHARED if row.verdict is Verdict.NATIVE),
)
