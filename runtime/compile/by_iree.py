"""The one border crossing: a program becomes a vmfb by IREE's compiler.

IREE's compiler runs as a child process, so that its crash, its hunger for memory or its endless loop is an error here
and never the end of the user's process. Module and vmfb go through pipes: whoever is killed, no file is left behind.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hloforge.dialect import budget
from hloforge.dialect.abi import donated_arguments
from hloforge.dialect.errors import CompileError, OptionError
from hloforge.dialect.marks import REFLECTION
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.analysis.aliasing import has_readers_beside_updates
from hloforge.pipelines.dynamic.specialize import is_dynamic
from hloforge.pipelines.host_calls import host_calls_of
from hloforge.pipelines.named import lower
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.pipelines.weights import weights_of
from hloforge.runtime.artifact.attempts import AS_IS, Attempts
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import REFLECTION_KEY, Manifest, tool_versions
from hloforge.runtime.codegen_fixes import (
    block_barriers,
    exact_floats,
    idle_invocations,
    repeated_threads,
    wasm_maxima,
    workgroup_barriers,
)
from hloforge.runtime.codegen_fixes.branch_moves import with_ordered_moves
from hloforge.runtime.compile import bindings, in_place_audit, iree, reproducers, timings
from hloforge.runtime.compile.compiler_process import TIMEOUT, run_compiler
from hloforge.runtime.compile.cost import gains_by_data_tiling, heaviest_operation, hoists_in_vain
from hloforge.runtime.compile.diagnostics import failure
from hloforge.runtime.compile.in_place_audit import OverwrittenError
from hloforge.runtime.compile.ladder import Attempt, InProcessError, Rung, Step, climb, in_order, steps
from hloforge.runtime.compile.limited import within
from hloforge.runtime.compile.limits import check_elements
from hloforge.runtime.compile.progress import COMPILER
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.compile.uneven_products import has_uneven_narrow_products
from hloforge.runtime.data.files import temporary_folder
from hloforge.runtime.options import CompileOptions

# Rows, softmax and sorts take a half to a third of the time.
_SUMS_IN_VECTORS = "--iree-opt-level=O2"
# Tiles at the edges of arrays as scalar loops of their own. IREE's default is masks in all tiles, where a masked store
# takes as long as ten others: without them adding 10,000 x 64 numbers takes a third, softmax of 500 x 1,001 a 40th.
_NO_MASKS = "--iree-llvmcpu-vector-pproc-strategy=peel"
# Large products of f32 take half the time; small ones, and those of 16 bits, take more.
_DATA_TILING = "--iree-dispatch-creation-data-tiling"
# IREE takes assertions for debugging aids, and drops them where it optimizes; ours check what a caller passes.
_KEEP_ASSERTIONS = "--iree-opt-strip-assertions=false"
# No groups of operations that may run at once: among those, IREE moves readers of an array after its update.
_IN_ORDER = "--iree-stream-partitioning-favor=debug"
# Loops whose first values are computed from constants alone crash IREE: sizes of hoisted arrays are known too late.
_NO_HOISTING = "--iree-opt-const-expr-hoisting=false"
# Every dispatch as one piece of work. IREE fails on dispatches that copy one of their results ("write affecting
# operations on global resources are restricted to workgroup distributed contexts") unless nothing is shared out.
_ONE_WORKER = "--iree-llvmcpu-disable-distribution"
# O2's further fusions make IREE run for ever on the sums of a batch normalization for CUDA, and fail on scatters.
_SAFE_FUSION = "--iree-opt-level=O1"
# On GPUs of CUDA and ROCm, products of some types (bf16) "failed to distribute" over their threads otherwise.
_NO_DISTRIBUTION = "--iree-codegen-llvmgpu-use-vector-distribution=false"
# IREE's distribution of reductions leaves out the sum over warps where two dimensions that do not lie one after the
# other are summed, the inner one short: (x * w).sum() of 32x7 numbers. Sums of what was widened to 64 bits fail.
_WARP_REDUCTIONS = "--iree-codegen-llvmgpu-use-reduction-vector-distribution=false"
# Convolutions of 16 bits by groups of the batch, as products of CUDA's tensor cores, were zero in most positions.
_NO_IMPLICIT_PRODUCTS = "--iree-codegen-llvmgpu-use-igemm=false"
# Batches of uneven products of 16 bits, padded for tensor cores, read beyond their factors; others keep tensor cores.
_NO_PADDED_PRODUCTS = "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false"
# Constant arrays in memory, not inside of kernels: there a slice of one, or of what is computed with one, moves behind
# the arithmetic, where it is given to no worker ("write affecting operations on global resources are restricted …").
_CONSTANTS_IN_MEMORY = "--iree-flow-inline-constants-max-byte-length=0"
# Where IREE has decided what runs when, and what is overwritten.
_TO_SCHEDULE = "--compile-to=stream"
# Where IREE has written code in SPIR-V's or LLVM's dialect, not yet as bytes.
_STOP, _RESUME = "--compile-to=executable-targets", "--compile-from=executable-targets"
# Threads share the dispatches of a program. With one or two of these they only prepare IREE's passes once more. IREE's
# checks after each pass stay: see "Compilation" in docs/status.md.
_SERIAL = "--mlir-disable-threading"
# Lines of a program of several dispatches; a third of them are locations.
_SEVERAL_DISPATCHES = 100
_SIGNALS = {int(number): number.name for number in signal.Signals}
# LLVM goes on without what it does not know; a misspelt feature would only show as slowness.
_UNRECOGNIZED = re.compile(r"^'([^']*)' is not a recognized (\w+) for this target", re.MULTILINE)


def compile_by_iree(form: Program, target: Target, options: CompileOptions) -> Executable:
    """Lower a copy of a program and hand it to IREE's compiler.

    Raises:
        UnsupportedError, CompileError: as ``compile_program``.
    """

    lowered = form.clone()
    with reproducers.of_defects(form.name, options.reproducer_dir):
        lower(
            lowered.module,
            target=target.pipeline,
            verify=options.verify,
            dump_after=options.dump_after,
            dump_to=options.dump_to,
        )
    return compile_module(lowered, target, options)


def compile_module(
    lowered: Program,
    target: Target,
    options: CompileOptions,
    on_attempt: Callable[[Attempt], None] = lambda _: None,
) -> Executable:
    """Hand a program that has been through the target's pipeline to IREE's compiler.

    Args:
        on_attempt: told of each attempt, of which only the last succeeds.

    Raises:
        CompileError: as ``compile_program``.
    """
    check_elements(lowered.module, target)
    return _climb(steps(_optimizations(lowered.module, target), lowered), target, options, on_attempt)


def compile_unoptimized(lowered: Program, target: Target, options: CompileOptions, *, last: bool = False) -> Executable:
    """Hand a module to IREE's compiler once, with the target's flags and the user's alone.

    Args:
        last: with the flags of the last attempt of ``compile_module`` too.

    Raises:
        CompileError: as ``compile_program``.
    """
    chosen = _optimizations(lowered.module, target)[-1] if last else Rung("plain", flags=())
    return _climb(steps(in_order([chosen]), lowered), target, options)


def phases_of(lowered: Program, flags: Sequence[str], names: Sequence[str], options: CompileOptions) -> dict[str, str]:
    """IREE's text of a program after some phases of its compilation, the last one named last, with locations.

    Args:
        lowered: what has been through the target's pipeline.
        flags: of the manifest of what was compiled.

    Raises:
        CompileError: as ``compile_program``.
    """
    with temporary_folder() as folder:
        if folder is None:
            raise CompileError("no temporary folder can be made", hint="set TMPDIR to another folder")
        printing = ("--mlir-print-debuginfo", "--mlir-elide-elementsattrs-if-larger=16")
        until = (f"--compile-to={names[-1]}", f"--dump-compilation-phases-to={folder}")
        text = lowered.text(locations=True).encode()
        _compile_in_child(text, (*flags, *until, *printing), lowered.name, options)
        files = {path.stem.rpartition(".")[2]: path for path in folder.iterdir()}
        return {name: files[name].read_text() for name in names}


def _optimizations(module: ir.Module, target: Target) -> tuple[Rung, ...]:
    """IREE's flags, those for speed first and those for its errors last. A user's own flags come after them.

    A slower program is better than none: IREE's optimizations fail on some that it compiles without them.
    """
    if target.kind != "cpu":
        return _optimizations_for_gpus(module, target)
    without_hoisting = Rung("without hoisting", flags=(_NO_HOISTING,), workaround="hoisted-constants")
    one_worker = Rung("as one piece of work", flags=(_NO_HOISTING, _ONE_WORKER), workaround="copied-results")
    if is_dynamic(module):
        # Its fusions at O2 take a loop's carry of dynamic size for a scalar: a generator drew one number for all.
        usual, masked = Rung(AS_IS, flags=(_NO_MASKS,)), Rung("with masks", flags=())
        return in_order((usual, masked, without_hoisting, one_worker))
    # One search for constant expressions may take minutes.
    kept = (_NO_HOISTING,) if hoists_in_vain(module) else ()
    fast = (_SUMS_IN_VECTORS, _NO_MASKS, *kept)
    tiled = [Rung(AS_IS, flags=(*fast, _DATA_TILING))] if gains_by_data_tiling(module) else []
    return in_order(
        (
            *tiled,
            Rung("without data tiling", flags=fast),
            Rung("with hoisting", flags=fast[:2]),
            Rung("without O2", flags=(_NO_MASKS, *kept)),
            Rung("with masks", flags=kept),
            without_hoisting,
            one_worker,
        )
    )


def _optimizations_for_gpus(module: ir.Module, target: Target) -> tuple[Rung, ...]:
    if target.pipeline != "cuda":
        # On Vulkan O2's fusions repeat the first part of a result: the gradient of a batch normalization was wrong.
        without_hoisting = Rung("without hoisting", flags=(_NO_HOISTING,), workaround="hoisted-constants")
        return (Rung(AS_IS, flags=()), without_hoisting)
    fast = () if is_dynamic(module) else (_SAFE_FUSION,)
    exact = _for_tensor_cores(module) if target.kind == "cuda" else ()
    safe = (*exact, _WARP_REDUCTIONS, _CONSTANTS_IN_MEMORY)
    apart = (*safe, _NO_DISTRIBUTION)
    return in_order(
        (
            Rung(AS_IS, flags=(*fast, *safe)),
            Rung("without vector distribution", flags=(*fast, *apart), workaround="vector-distribution"),
            Rung("with the usual fusions", flags=apart),
            Rung("without hoisting", flags=(*apart, _NO_HOISTING), workaround="hoisted-constants"),
        )
    )


def _for_tensor_cores(module: ir.Module) -> tuple[str, ...]:
    """The flags that keep what IREE gets wrong from CUDA's tensor cores."""
    convolutions = (_NO_IMPLICIT_PRODUCTS,) if _has_narrow_convolutions(module) else ()
    return (*convolutions, _NO_PADDED_PRODUCTS) if has_uneven_narrow_products(module) else convolutions


def _has_narrow_convolutions(module: ir.Module) -> bool:
    found = operations(module, ["stablehlo.convolution"])
    return any(str(operation.operands[0].type.element_type) in ("bf16", "f16") for operation in found)


def _climb(
    ladder: Iterable[Step],
    target: Target,
    options: CompileOptions,
    on_attempt: Callable[[Attempt], None] = lambda _: None,
) -> Executable:
    tried: list[Step] = []

    def compile_step(step: Step, attempts: Attempts) -> Executable:
        tried[:] = [step]
        in_process = options.isolation == "none" and step.rung.in_process
        return _compile_once(step.flags, step.program, target, options, attempts, in_process)

    try:
        return climb(ladder, compile_step, on_attempt)
    except OverwrittenError as error:
        program = tried[0].program
        text = program.text(locations=True).encode()
        flags = (*target.flags(), *tried[0].flags, *options.flags)
        error.notes = reproducers.of_compiler(text, flags, program.name, options.reproducer_dir)
        raise


def _compile_once(
    optimization: tuple[str, ...],
    lowered: Program,
    target: Target,
    options: CompileOptions,
    attempts: Attempts,
    in_process: bool,
) -> Executable:
    """One attempt.

    Args:
        attempts: the record of those before, and the name of this one.
        in_process: whether IREE's compiler runs in this process.

    Raises:
        InProcessError: it does, and refuses the program.
        OverwrittenError: IREE would overwrite what is still read.
        CompileError: IREE's compiler failed.
    """
    kept = (_KEEP_ASSERTIONS,) if operations(lowered.module, ["cf.assert"]) else ()
    ordered = (_IN_ORDER,) if has_readers_beside_updates(lowered.module) else ()
    flags = (*target.flags(), *optimization, *kept, *ordered, *options.flags)
    manifest = Manifest(
        name=lowered.name,
        signature=lowered.signature,
        target=str(target),
        flags=flags,
        versions=tool_versions(),
        work=heaviest_operation(lowered.module, target.machine),
        device=options.device,
        threads=options.threads,
        source=Path(lowered.source).name,
        weights=tuple(weights_of(lowered.module).items()),
        host_calls=host_calls_of(lowered.module),
        weights_file=options.weights.name if options.weights else "",
        sharded=Sharded.of(lowered.module),
        attempts=attempts,
        instructions=target.instructions,
    )
    _attach(lowered.module, manifest)
    text = lowered.text(locations=True).encode()
    if amend := _amendment(target):
        # The audit's flags change how IREE prints, and what it prints here is compiled further.
        _compile_audited(text, (*flags, _TO_SCHEDULE), lowered, options)
        code = _compile_in_child(text, (*flags, _STOP), lowered.name, options)
        if target.pipeline == "cuda":
            bindings.check(code, lowered)
        vmfb = _compile_in_child(amend(code), (*flags, _RESUME), lowered.name, options)
    elif in_process:
        made = iree.compile_in_process(text, flags)
        if not made:
            raise InProcessError("IREE's compiler refused the program in this process")
        _compile_audited(text, (*flags, _TO_SCHEDULE), lowered, options)
        vmfb = made
    else:
        vmfb = _compile_audited(text, flags, lowered, options)
    with timings.part("correction of branches"):
        vmfb = with_ordered_moves(vmfb)
    return Executable(vmfb, manifest, weights=options.weights, libraries=options.libraries)


def _compile_audited(text: bytes, flags: tuple[str, ...], lowered: Program, options: CompileOptions) -> bytes:
    """As ``_compile_in_child``, with proof that nothing is overwritten that is still read.

    Raises:
        OverwrittenError: there is no such proof.
    """
    with temporary_folder() as folder:
        if folder is None:
            raise CompileError("no temporary folder can be made", hint="set TMPDIR to another folder")
        made = _compile_in_child(text, flags, lowered.name, options, folder)
        with timings.part("proof of updates in place"):
            in_place_audit.check(folder, donated_arguments(lowered.signature))
        return made


def _amendment(target: Target) -> Callable[[bytes], bytes] | None:
    """What is done to the code that IREE writes for a target, as text; None if nothing is."""
    if target.kind == "vulkan":
        return _amended_for_vulkan
    if target.kind == "cuda":
        return _amended_for_cuda
    return wasm_maxima.with_own_maxima if target.variant == "wasm32" else None


def _amended_for_vulkan(code: bytes) -> bytes:
    code = idle_invocations.without_idle_invocations(exact_floats.decorated(code))
    return workgroup_barriers.with_barriers(code)


def _amended_for_cuda(code: bytes) -> bytes:
    return block_barriers.with_block_barriers(repeated_threads.without_repeated_threads(code))


def _attach(module: ir.Module, manifest: Manifest) -> None:
    with in_context(module):
        entry = entry_function(module).operation
        reflection = ir.DictAttr.get({REFLECTION_KEY: ir.StringAttr.get(manifest.to_json())})
        entry.attributes[REFLECTION] = reflection


def _compile_in_child(
    text: bytes, flags: tuple[str, ...], name: str, options: CompileOptions, audited: Path | None = None
) -> bytes:
    """IREE's output; it also prints into the folder, if any, what ``in_place_audit`` reads."""
    silent = in_place_audit.flags(audited) if audited else ()  # a reproducer does not need them
    is_chosen = any(flag.lstrip("-").startswith(_SERIAL.lstrip("-")) for flag in flags)
    serial = () if is_chosen or text.count(b"\n") >= _SEVERAL_DISPATCHES else (_SERIAL,)
    with within(options):
        budget.enter(COMPILER)
        status, vmfb, stderr = run_compiler((*flags, *serial, *silent), text, options, audited)
        if status == TIMEOUT and (running := budget.budget()) is not None:
            error = running.out_of_time()
            error.notes = reproducers.of_compiler(text, flags, name, options.reproducer_dir)
            raise error
    unknown = _UNRECOGNIZED.search(stderr)
    if unknown is not None:
        raise OptionError(f"the code generator knows no {unknown[2]} {unknown[1]}", hint="see llc -mattr=help of LLVM")
    if status == 0 and vmfb:
        return vmfb
    notes = reproducers.of_compiler(text, flags, name, options.reproducer_dir)
    raise failure(stderr.replace("<stdin>", f"{name}.mlir"), _summary(status), notes)


def _summary(status: int) -> str:
    if status < 0:
        return f"crashed ({_SIGNALS.get(-status, f'signal {-status}')})"
    return "failed"
