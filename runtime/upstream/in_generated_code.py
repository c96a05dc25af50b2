"""Workarounds of faults in IREE's generated code: changes of that code, and flags of IREE."""

from __future__ import annotations

from hloforge.runtime.upstream.record import Workaround

CODE: tuple[Workaround, ...] = (
    Workaround(
        "wide-branch-moves",
        "orders the moves of 64-bit numbers at a branch of its VM so that one overwrites another's half",
        where=("runtime/codegen_fixes/branch_moves.py", "runtime/codegen_fixes/bytecode.py"),
        since="3.12.0",
        reproducer="wide_branch_moves.mlir",
    ),
    Workaround(
        "emptied-registers",
        "empties registers of its VM that a block goes on to read (`ref is null`)",
        where=("runtime/codegen_fixes/branch_moves.py", "runtime/codegen_fixes/bytecode.py"),
        upstream="iree-org/iree#24753",
        since="3.12.0",
        reproducer="emptied_registers.mlir",
    ),
    Workaround(
        "workgroup-barriers",
        "leaves out barriers between operations that share a workgroup's memory, in code for Vulkan",
        where=("runtime/codegen_fixes/workgroup_barriers.py",),
        since="3.12.0",
        reproducer="workgroup_barriers.mlir",
    ),
    Workaround(
        "block-barriers",
        "leaves out barriers between operations of which one reads what the other writes, in code for CUDA",
        where=(
            "runtime/codegen_fixes/block_barriers.py",
            "runtime/codegen_fixes/kernel_text.py",
            "runtime/codegen_fixes/kernel_paths.py",
            "runtime/codegen_fixes/thread_indices.py",
        ),
        since="3.12.0",
        reproducer="block_barriers.mlir",
    ),
    Workaround(
        "idle-invocations",
        "sums products once for each invocation along a dimension that no operation uses, in code for Vulkan",
        where=("runtime/codegen_fixes/idle_invocations.py",),
        since="3.12.0",
        reproducer="idle_invocations.mlir",
    ),
    Workaround(
        "repeated-threads",
        "lets each thread of a block add all updates of a scatter, in code for CUDA",
        where=("runtime/codegen_fixes/repeated_threads.py",),
        since="3.12.0",
        reproducer="repeated_threads.mlir",
    ),
    Workaround(
        "exact-floats",
        "decorates no arithmetic with NoContraction, so that drivers for Vulkan rewrite it",
        where=("runtime/codegen_fixes/exact_floats.py",),
        since="3.12.0",
        reproducer="exact_floats.mlir",
    ),
    Workaround(
        "replays",
        "runs kept recordings of command buffers before what they wait for, on Vulkan",
        flags=("_NO_REPLAYS",),
        unshown="its runtime needs a Vulkan device: on lavapipe three of four calls that sort two arrays by one "
        "of them have results that nobody wrote, do not end, or end with VK_ERROR_DEVICE_LOST",
    ),
    Workaround(
        "own-maxima",
        "calls fmax and fmin for WebAssembly, which it does not link",
        where=("runtime/codegen_fixes/wasm_maxima.py",),
        since="3.12.0",
        reproducer="own_maxima.mlir",
    ),
    Workaround(
        "hoisted-constants",
        "crashes on loops whose first values are computed from constants alone",
        flags=("_NO_HOISTING",),
        since="3.12.0",
        reproducer="hoisted_constants.mlir",
    ),
    Workaround(
        "copied-results",
        "has no machine code for dispatches that copy one of their results, unless these are one piece of work",
        flags=("_ONE_WORKER",),
        since="3.12.0",
        reproducer="copied_results.mlir",
    ),
    Workaround(
        "readers-after-updates",
        "moves a reader of an array after its update where it groups what may run at once",
        flags=("_IN_ORDER",),
        since="3.12.0",
        reproducer="readers_after_updates.mlir",
    ),
    Workaround(
        "endless-fusions",
        "compiles sums of a batch normalization for CUDA without end at O2, and fails on scatters",
        passes=("decompose-scatter",),
        flags=("_SAFE_FUSION",),
        since="3.12.0",
        reproducer="endless_fusions.mlir",
    ),
    Workaround(
        "vector-distribution",
        "fails to distribute products of some types over the threads of GPUs",
        flags=("_NO_DISTRIBUTION",),
        since="3.12.0",
        reproducer="vector_distribution.mlir",
    ),
    Workaround(
        "warp-reductions",
        "leaves out the sum over warps where two dimensions that are not neighbours are summed, on GPUs",
        flags=("_WARP_REDUCTIONS",),
        since="3.12.0",
        reproducer="warp_reductions.mlir",
    ),
    Workaround(
        "sliced-constants",
        "has no machine code for slices of what is computed with a small constant array, for NVIDIA's GPUs",
        flags=("_CONSTANTS_IN_MEMORY",),
        reproducer="sliced_constants.mlir",
    ),
    Workaround(
        "implicit-products",
        "writes zeros at most positions of convolutions of 16 bits by groups of the batch, for CUDA",
        flags=("_NO_IMPLICIT_PRODUCTS",),
        since="3.12.0",
        reproducer="implicit_products.mlir",
    ),
    Workaround(
        "grouped-images",
        "mixes up the elements of convolutions of 16 bits by groups of the batch with windows of one place, for CUDA",
        passes=("legalize-batch-groups",),
        where=("pipelines/workarounds/batch_groups.py",),
        reproducer="grouped_images.mlir",
    ),
    Workaround(
        "uneven-products",
        "reads beyond the factors of a batch of uneven products of 16 bits, for CUDA",
        flags=("_NO_PADDED_PRODUCTS",),
        where=("runtime/compile/uneven_products.py",),
        reproducer="uneven_products.mlir",
    ),
)
