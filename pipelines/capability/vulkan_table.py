"""What IREE 3.13's vulkan-spirv target does with StableHLO, measured on Mesa's lavapipe; see docs/vulkan.md.

Most of what IREE lacks or gets wrong it does before it generates code for any target: those rows are the CPU's.
"""

from __future__ import annotations

from hloforge.pipelines.capability import cpu_table
from hloforge.pipelines.capability.verdicts import Capability, Verdict, decompose, reject
from hloforge.pipelines.decompose.convolution import LIMIT, is_unfolded, lacks_kernel
from hloforge.pipelines.decompose.logarithm import is_unsafe
from hloforge.pipelines.legalize import long_loops
from hloforge.pipelines.workarounds.complex_constants import is_complex_array
from hloforge.pipelines.workarounds.complex_products import is_complex_row, joins_products
from hloforge.pipelines.workarounds.whole_windows import is_only_window

_TURNS = "an invocation of a shader takes the elements one by one, and lavapipe ends it after 65,535 iterations"


ROWS: tuple[Capability, ...] = (
    *decompose("legalize-long-loops", _TURNS, "stablehlo.reduce", form=long_loops.reduces_many),
    *decompose("legalize-long-loops", _TURNS, "stablehlo.dot_general", form=long_loops.sums_many_products),
    *decompose("legalize-long-loops", _TURNS, "stablehlo.reduce_window", form=long_loops.has_wide_windows),
    *decompose(
        "legalize-whole-windows",
        "IREE has no SPIR-V for some windows of one place",
        "stablehlo.reduce_window",
        form=is_only_window,
    ),
    *decompose(
        "decompose-convolution",
        "IREE leaves parts of the result unwritten on Vulkan, and lavapipe sums 65,535 products at most",
        "stablehlo.convolution",
        form=is_unfolded,
    ),
    *decompose(
        "legalize-complex-products",
        "IREE has no SPIR-V for the complex results of two products in one dispatch",
        "stablehlo.complex",
        form=joins_products,
    ),
    *decompose(
        "legalize-complex-products",
        "IREE has no SPIR-V for complex products with a vector",
        "stablehlo.dot_general",
        form=is_complex_row,
    ),
    *decompose(
        "legalize-complex-constants",
        "IREE has no SPIR-V for complex constants of unequal numbers",
        "stablehlo.constant",
        form=is_complex_array,
    ),
    *decompose(
        "decompose-leading-zeros",
        "IREE has SPIR-V for leading zeros of 32 bits alone",
        "stablehlo.count_leading_zeros",
        elements=("s8", "u8", "s16", "u16", "s64", "u64"),
    ),
    *decompose("decompose-logarithm", "SPIR-V has no logarithm of f64", "stablehlo.log", elements=("f64",)),
    *decompose(
        "decompose-logarithm",
        "a device's may take subnormal numbers for the least normal one",
        "stablehlo.log",
        elements=("bf16", "f32"),
        form=is_unsafe,
    ),
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
    *(row for row in cpu_table.ROWS if row.verdict is not Verdict.NATIVE),
    *reject(
        f"the windows of one place of its result, or a 64th of all, take more than the {LIMIT} that Vulkan promises a "
        "shader of one array, or their sizes are known to the call alone; IREE's own kernel leaves results unwritten "
        "on Vulkan, or sums more than 65,535 products, where lavapipe ends",
        "stablehlo.convolution",
        form=lacks_kernel,
        hint="convolve fewer images, or parts of the kernel, at a time, name the sizes, or compile for the CPU",
    ),
    *(row for row in cpu_table.ROWS if row.verdict is Verdict.NATIVE),
)
