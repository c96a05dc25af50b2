"""Workarounds that rewrite programs, so that IREE does not meet what it compiles wrong, or not at all."""

from __future__ import annotations

from hloforge.runtime.workarounds_record import Workaround

PROGRAMS: tuple[Workaround, ...] = (
    # Who may overwrite what.
    Workaround(
        "overwritten-arguments",
        "writes into a caller's array at its last use, also where the array is returned",
        passes=("decide-updates",),
        where=("pipelines/legalize/decide_updates.py",),
        upstream="iree-org/iree#16168",
    ),
    Workaround(
        "overwritten-operands",
        "overwrites arrays that are still read, through views of them",
        passes=("decide-updates",),
        where=("pipelines/legalize/decide_updates.py", "runtime/in_place_audit.py", "runtime/buffer_flow.py"),
    ),
    Workaround(
        "concatenations",
        "writes concatenations that begin alike in each other's place",
        passes=("legalize-concatenations",),
        where=("pipelines/legalize/concatenations.py",),
    ),
    Workaround(
        "loop-buffers",
        "frees arrays that loops and conditionals take and return too early",
        passes=("keep-loop-buffers",),
        where=("pipelines/legalize/loop_buffers.py",),
        upstream="iree-org/iree#24885, iree-org/iree#24841",
    ),
    # What one dispatch computes.
    Workaround(
        "crossed-uses",
        "reads rows of a fused reduction that another tile has not computed yet",
        passes=("legalize-crossed-uses",),
        where=("pipelines/legalize/crossed_uses.py",),
        reproducer="crossed_uses.mlir",
    ),
    Workaround(
        "equal-results",
        "gives the readers of a dispatch's result that equals another one the dispatch's first result",
        passes=("legalize-equal-results",),
        where=("pipelines/legalize/equal_results.py",),
    ),
    Workaround(
        "independent-reductions",
        "reduces positions beside an array that does not look at them to the initial value",
        passes=("legalize-independent-reductions",),
        where=("pipelines/legalize/independent_reductions.py",),
    ),
    Workaround(
        "constant-reductions",
        "adds what it finds to be one number once instead of once an element",
        passes=("legalize-constant-reductions",),
        where=("pipelines/legalize/constant_reductions.py", "pipelines/legalize/constant_folds.py"),
        reproducer="constant_reductions.mlir",
    ),
    Workaround(
        "transposed-reductions",
        "transposes one of several results of a reduction with the initial value of that one alone",
        passes=("legalize-transposed-reductions",),
        where=("pipelines/legalize/transposed_reductions.py",),
    ),
    Workaround(
        "rearranged-operands",
        "computes functions before a reshape or transposition of their operand, and mixes up the types",
        passes=("legalize-rearranged-operands",),
        where=("pipelines/legalize/rearranged_operands.py",),
    ),
    Workaround(
        "sliced-operands",
        "has no machine code for what reads a slice with steps by index",
        passes=("legalize-sliced-operands",),
        where=("pipelines/legalize/sliced_operands.py",),
    ),
    Workaround(
        "many-arguments",
        "binds more than 32 arrays to a dispatch, and refuses it when the module is loaded",
        passes=("legalize-many-arguments",),
        where=("pipelines/legalize/many_arguments.py",),
    ),
    Workaround(
        "long-chains",
        "fuses elementwise operations in a row in a time that is quadratic in their number",
        passes=("legalize-long-chains",),
        where=("pipelines/legalize/long_chains.py",),
    ),
    Workaround(
        "one-gathered-place",
        "computes a whole array at the one place that a gather of equal indices reads, where both are returned",
        passes=("clamp-gather-indices",),
        where=("pipelines/legalize/clamp_gather_indices.py",),
    ),
    Workaround(
        "reversed-windows",
        "leaves out the reversal of a window in convolutions by channels",
        passes=("unfold-convolutions",),
    ),
    Workaround(
        "equal-operations",
        "takes a dispatch's result for its first one where both are written by equal operations",
        passes=("fuse-loops",),
    ),
    # Indices and windows.
    Workaround(
        "gather-out-of-bounds",
        "reads wherever an index of a gather points",
        passes=("clamp-gather-indices",),
        where=("pipelines/legalize/clamp_gather_indices.py",),
        reproducer="gather_out_of_bounds.mlir",
    ),
    Workaround(
        "scatter-out-of-bounds",
        "writes wherever an index of a scatter points",
        passes=("decompose-scatter",),
    ),
    Workaround(
        "slice-starts",
        "takes negative starts of slices of 8 and 16 bits for large ones",
        passes=("legalize-slice-starts",),
        where=("pipelines/legalize/slice_starts.py",),
        reproducer="slice_starts.mlir",
    ),
    Workaround(
        "unsigned-windows",
        "refuses windows over padded unsigned integers",
        passes=("legalize-window-padding",),
        where=("pipelines/legalize/window_padding.py",),
    ),
    Workaround(
        "scanned-windows",
        "makes a scan of windows as long as their dimension, and leaves out the initial value",
        passes=("legalize-window-padding",),
        where=("pipelines/legalize/window_padding.py",),
    ),
    Workaround(
        "unread-edges",
        "fails on a convolution whose one window does not reach the end of the padded image",
        passes=("legalize-window-padding",),
        where=("pipelines/legalize/window_padding.py",),
    ),
    Workaround(
        "unsigned-reverse",
        "refuses reversals of unsigned integers",
        passes=("legalize-unsigned-reverse",),
        where=("pipelines/legalize/unsigned_reverse.py",),
    ),
    # Numbers.
    Workaround(
        "pred-arithmetic",
        "adds booleans modulo 2",
        passes=("decompose-pred-arithmetic",),
        where=("pipelines/decompose/pred_arithmetic.py",),
    ),
    Workaround(
        "product-factors",
        "multiplies by booleans and unsigned numbers as if they were signed",
        passes=("legalize-product-factors",),
        where=("pipelines/legalize/product_factors.py",),
    ),
    Workaround(
        "empty-products",
        "crashes on products of booleans over no elements",
        passes=("legalize-empty-products",),
        where=("pipelines/legalize/empty_products.py",),
        reproducer="empty_products.mlir",
    ),
    Workaround(
        "float-to-integer",
        "converts floats beyond the integer's range to any number",
        passes=("legalize-float-to-integer",),
        where=("pipelines/legalize/float_to_integer.py",),
    ),
    Workaround(
        "sign-conversions",
        "folds a change of sign into invalid IR",
        passes=("legalize-sign-conversions",),
        where=("pipelines/legalize/sign_conversions.py",),
    ),
    Workaround(
        "narrow-integers",
        "refuses odd counts and constants of packed integers",
        passes=("legalize-narrow-integers",),
        where=("pipelines/legalize/narrow_integers.py",),
    ),
    Workaround(
        "narrow-floats",
        "refuses or misreads floats of 4 and 8 bits",
        passes=("legalize-narrow-floats",),
        where=("pipelines/legalize/narrow_floats.py", "pipelines/legalize/narrow_float_formats.py"),
    ),
    Workaround(
        "accumulation",
        "rounds partial sums of 16-bit floats to 16 bits",
        passes=("legalize-accumulation",),
        where=("pipelines/legalize/accumulation.py",),
    ),
    Workaround(
        "folded-roundings",
        "folds a conversion to bf16 and back",
        passes=("keep-roundings",),
        where=("pipelines/legalize/keep_roundings.py",),
    ),
    Workaround(
        "reduce-precision",
        "makes NaN of infinity where no bit of the mantissa is left",
        passes=("decompose-reduce-precision",),
        where=("pipelines/decompose/reduce_precision.py",),
    ),
    Workaround(
        "subnormal-rounding",
        "flushes subnormal numbers, whose floor may be -1",
        passes=("legalize-subnormal-rounding",),
        where=("pipelines/legalize/subnormal_rounding.py",),
    ),
    Workaround(
        "small-erf",
        "flushes products of 1e-37 and less in erf",
        passes=("legalize-small-erf",),
        where=("pipelines/legalize/small_erf.py",),
    ),
    Workaround(
        "power",
        "computes NaN for powers of negative bases",
        passes=("decompose-power",),
        where=("pipelines/decompose/power.py",),
    ),
    Workaround(
        "arctangent",
        "computes atan2 wrong at zeros and infinities",
        passes=("decompose-arctangent",),
        where=("pipelines/decompose/arctangent.py",),
    ),
    Workaround(
        "cube-root",
        "computes NaN for the cube root of infinity",
        passes=("decompose-cube-root",),
        where=("pipelines/decompose/cube_root.py",),
    ),
    Workaround(
        "complex-elementwise",
        "loses digits and special values of complex functions",
        passes=("decompose-complex-elementwise",),
    ),
    Workaround(
        "random-numbers",
        "makes evenly spaced numbers of rng",
        passes=("decompose-rng",),
    ),
    Workaround(
        "unstable-sort",
        "ignores is_stable",
        passes=("decompose-sort",),
    ),
    # Complex numbers.
    Workaround(
        "complex-constants",
        "crashes on constants of 128 bits",
        passes=("legalize-complex-constants",),
        where=("pipelines/legalize/complex_constants.py",),
    ),
    Workaround(
        "complex-parts",
        "crashes on bitcasts of complex numbers",
        passes=("legalize-complex-parts",),
        where=("pipelines/legalize/complex_parts.py",),
    ),
    Workaround(
        "complex-products",
        "has no SPIR-V for complex numbers whose parts are products",
        passes=("legalize-complex-products",),
        where=("pipelines/legalize/complex_products.py",),
    ),
    # Loops.
    Workaround(
        "loop-carries",
        "loses count of a loop's carries where one is fixed, or overwritten unread",
        passes=("legalize-loop-carries",),
        where=("pipelines/legalize/loop_carries.py",),
    ),
    Workaround(
        "whole-slices",
        "folds updates of whole arrays after it has looked at what a loop carries",
        passes=("legalize-whole-slices",),
        where=("pipelines/legalize/whole_slices.py",),
    ),
    Workaround(
        "host-scalars",
        "computes on the host what follows from a loop's counter, and knows no f64 and f16 there",
        passes=("legalize-host-scalars",),
        where=("pipelines/legalize/host_scalars.py",),
    ),
    # Dynamic sizes.
    Workaround(
        "equal-operands",
        "folds differences of a dynamic array and itself into an invalid constant",
        passes=("legalize-equal-operands",),
        where=("pipelines/legalize/equal_operands.py",),
    ),
    Workaround(
        "dynamic-barriers",
        "cannot ask for the sizes of what an optimization barrier passes on",
        passes=("legalize-dynamic-barriers",),
        where=("pipelines/legalize/dynamic_barriers.py",),
    ),
    # Vulkan.
    Workaround(
        "bf16-constants",
        "has no SPIR-V for constants of bf16",
        passes=("legalize-bf16-constants",),
        where=("pipelines/legalize/bf16_constants.py",),
    ),
    Workaround(
        "bf16-products",
        "has no SPIR-V for products that read or write bf16",
        passes=("legalize-bf16-products",),
        where=("pipelines/legalize/bf16_products.py",),
    ),
    Workaround(
        "bf16-reductions",
        "has no SPIR-V for the least and greatest bf16",
        passes=("legalize-bf16-reductions",),
        where=("pipelines/legalize/bf16_reductions.py",),
    ),
    Workaround(
        "grouped-convolutions",
        "writes wrong SPIR-V for convolutions by groups",
        passes=("decompose-convolution",),
    ),
)
