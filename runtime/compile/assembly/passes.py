"""The passes of IREE by which a program of dispatches becomes bytecode, as pipelines of their own.

They are those of IREE 3.13, in its order (``Stream/Transforms/Passes.cpp``, ``HAL/…``, ``VM/…``). IREE cleans up some
twenty times on the way, each time with patterns of all dialects that are loaded; here it does so where something is
left to clean.
"""

from __future__ import annotations


def _functions(passes: str) -> str:
    """Passes of each function and initializer."""
    return ",".join(f"{kind}({passes})" for kind in ("func.func", "util.initializer", "util.func"))


_CLEANUP = f"{_functions('canonicalize,cse,iree-util-simplify-global-accesses')},iree-util-fold-globals,iree-util-ipo"


def to_dispatches(*, strips_assertions: bool, tiles_data: bool) -> tuple[str, str]:
    """Passes from StableHLO to dispatches at O2 without hoisting of constants, before and after the device is chosen.

    Args:
        strips_assertions: as ``--iree-opt-strip-assertions``.
        tiles_data: as ``--iree-dispatch-creation-data-tiling``.
    """
    strips, tiles = (str(choice).lower() for choice in (strips_assertions, tiles_data))
    before = (
        "iree-stablehlo-input-transformation-pipeline",
        "iree-import-public",
        "iree-import-ml-program",
        "iree-sanitize-module-names",
        "iree-abi-transformation-pipeline",
    )
    after = (
        "iree-hal-materialize-target-devices{defaultDevice=}",
        "iree-global-optimization-transformation-pipeline{outer-dim-concat=true generalize-matmul=true"
        f" const-eval=false const-expr-hoisting=false strip-assertions={strips}}}",
        f"iree-dispatch-creation-pipeline{{aggressive-fusion=true const-expr-hoisting=false data-tiling={tiles}}}",
        "iree-flow-transformation-pipeline",
    )
    return ",".join(before), ",".join(after)


# Until it is known which operation runs when and in which array it writes: what the audit reads.
TO_SCHEDULE = ",".join(
    (
        "iree-stream-verify-input",
        "iree-stream-clone-to-consumers",
        "iree-stream-conversion",
        "iree-stream-verify-lowering-to-tensors",
        "inline",
        _CLEANUP,
        "iree-util-combine-initializers",
        _CLEANUP,
        "iree-stream-specialize-encodings",
        _functions("iree-stream-encode-host-tensors"),
        "stream.executable(iree-stream-encode-device-tensors)",
        "iree-stream-materialize-encodings",
        _functions("iree-stream-layout-slices"),
        _CLEANUP,
        "iree-stream-verify-lowering-to-async-resources",
        _functions("iree-stream-materialize-copy-on-write,canonicalize"),
        "iree-stream-elide-async-copies",
        _functions("canonicalize,iree-stream-emplace-allocations"),
        "iree-stream-refine-usage",
        _functions("canonicalize"),
        "iree-stream-elide-async-copies",
        _CLEANUP,
        "iree-stream-verify-async-access-ranges",
        "iree-stream-place-transfer-executions",
        _functions("iree-stream-schedule-execution,iree-stream-schedule-concurrency"),
    )
)
# Until each executable is a text of its own.
TO_EXECUTABLES = ",".join(
    (
        "iree-stream-propagate-timepoints",
        "iree-stream-materialize-builtins",
        _CLEANUP,
        "iree-stream-verify-lowering-to-async",
        "iree-stream-schedule-allocation",
        "iree-stream-emplace-transients",
        "iree-stream-materialize-transient-size-queries",
        _functions("iree-stream-pack-constants,iree-stream-layout-slices,canonicalize"),
        "iree-util-propagate-subranges",
        _CLEANUP,
        "iree-stream-automatic-reference-counting",
        "iree-stream-annotate-constant-transient-size",
        "iree-stream-verify-lowering-to-cmd",
        _functions("iree-stream-reuse-allocations,convert-scf-to-cf"),
        # One elision makes others possible.
        f"iree-util-fixed-point-iterator{{pipeline=builtin.module({_CLEANUP},iree-stream-elide-timepoints)}}",
        "iree-stream-fuse-dispatch-bindings",
        "iree-stream-annotate-dispatch-arguments",
        "iree-stream-annotate-dispatch-assumptions",
        "iree-stream-pack-dispatch-operands",
        _CLEANUP,
        "iree-stream-fold-uniform-operands",
        _functions("canonicalize,cse,iree-util-optimize-int-arithmetic"),
        "symbol-dce",
        "iree-hal-materialize-interfaces",
        "iree-hal-prune-executables",
    )
)
# Until the host calls the HAL. What executables are linked with, and their code, does not matter here.
TO_HAL = ",".join(
    (
        "iree-hal-conversion",
        "iree-hal-outline-memoize-regions",
        _CLEANUP,
        "iree-hal-prune-executables",
        "iree-hal-resolve-export-ordinals",
        "iree-hal-materialize-resource-caches",
        "iree-hal-resolve-topology-queries",
        "iree-hal-memoize-device-selection",
        "iree-hal-memoize-device-queries",
        _CLEANUP,
        _functions("iree-hal-elide-redundant-commands"),
    )
)
TO_BYTECODE = ",".join(
    (
        "iree-affine-expand-index-ops",
        "iree-lower-affine",
        _functions("convert-scf-to-cf"),
        "symbol-dce",
        _CLEANUP,
        "inline",
        "symbol-dce",
        "iree-util-combine-initializers",
        _functions("loop-invariant-code-motion,convert-scf-to-cf"),
        "iree-util-propagate-subranges",
        f"{_functions('canonicalize,cse')},iree-util-fold-globals,iree-util-fuse-globals",
        "iree-vm-conversion{f32-extension=true f64-extension=true index-bits=64 optimize-for-stack-size=false"
        " truncate-unsupported-floats=true}",
        "vm.module(iree-vm-reify-rodata-tables,iree-vm-hoist-inlined-rodata,iree-vm-deduplicate-rodata,"
        "iree-vm-drop-unused-calls)",
        "symbol-dce",
        "vm.module(iree-vm-resolve-rodata-loads)",
        "inline",
        "symbol-dce",
        "vm.module(iree-vm-drop-unused-calls)",
        "vm.module(iree-vm-global-initialization)",
        "canonicalize,cse,canonicalize",
        "vm.module(iree-vm-drop-empty-module-initializers,iree-vm-annotate-functions,"
        "iree-vm-convert-to-yieldable-calls,iree-vm-drop-optimization-barriers,iree-vm-materialize-ref-discards)",
    )
)
# From an executable's source to LLVM's dialect, at O2.
TO_CODE = (
    "hal.executable(hal.executable.variant(iree-codegen-configuration-preprocessing-pipeline,"
    "builtin.module(iree-codegen-llvmcpu-configuration-pipeline{opt-level=O2},"
    "iree-codegen-llvmcpu-lowering-pipeline{opt-level=O2}),"
    "iree-codegen-translation-postprocessing-pipeline))"
)
