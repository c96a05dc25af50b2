"""The one border crossing: a lowered module becomes a vmfb.

IREE's compiler runs as a child process, so that its crash, its hunger for memory or its endless loop is an error here
and never the end of the user's process. Module and vmfb go through pipes: whoever is killed, no file is left behind.
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hloforge.dialect import budget
from hloforge.dialect.abi import donated_arguments
from hloforge.dialect.errors import CompileError, OptionError
from hloforge.dialect.forked import end_with_parent
from hloforge.dialect.marks import REFLECTION
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.analysis.aliasing import has_readers_beside_updates
from hloforge.pipelines.dynamic.specialize import is_dynamic
from hloforge.pipelines.host_calls import host_calls_of
from hloforge.pipelines.legalize.decide_updates import DecideUpdates
from hloforge.pipelines.loops.carries_in_place import without_links
from hloforge.pipelines.loops.fuse_loops import FuseLoops, has_fused_loops
from hloforge.pipelines.named import lower
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.pipelines.weights import weights_of
from hloforge.runtime.artifact.bundle import bundled, options_for
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import REFLECTION_KEY, Manifest, tool_versions
from hloforge.runtime.artifact.weights import place_weights
from hloforge.runtime.codegen_fixes import (
    block_barriers,
    exact_floats,
    idle_invocations,
    repeated_threads,
    wasm_maxima,
    workgroup_barriers,
)
from hloforge.runtime.codegen_fixes.branch_moves import with_ordered_moves
from hloforge.runtime.compile import in_place_audit, iree, reproducers
from hloforge.runtime.compile.cost import gains_by_data_tiling, heaviest_operation, hoists_in_vain
from hloforge.runtime.compile.diagnostics import failure
from hloforge.runtime.compile.in_place_audit import OverwrittenError
from hloforge.runtime.compile.limited import limited_form, make_executable, within
from hloforge.runtime.compile.limits import check_elements
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.compile.specialize import at_sizes, compile_dynamic
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.data.files import temporary_folder
from hloforge.runtime.host.host import with_host_functions
from hloforge.runtime.options import CompileOptions

# Rows, softmax and sorts take a half to a third of the time.
_SUMS_IN_VECTORS = "--iree-opt-level=O2"
# What O2 fuses may need more of the stack than there is: loops over complex matrices of 50 rows did.
_FEWER_FUSIONS = "--iree-opt-level=O1"
# Tiles at the edges of arrays as scalar loops of their own. IREE's default is masks in all tiles, where a masked store
# takes as long as ten others: without them adding 10,000 x 64 numbers takes a third, softmax of 500 x 1,001 a 40th.
_NO_MASKS = "--iree-llvmcpu-vector-pproc-strategy=peel"
# Large products of f32 take half the time; small ones, and those of 16 bits, take more.
_DATA_TILING = "--iree-dispatch-creation-data-tiling"
# IREE takes assertions for debugging aids, and drops them where it optimizes; ours check what a caller passes.
_KEEP_ASSERTIONS = "--iree-opt-strip-assertions=false"
# No groups of operations that may run at once: among those, IREE moves readers of an array behind its update.
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
# Convolutions of 16 bits by groups of the batch, as products of CUDA's tensor cores, were zero in most places.
_NO_IMPLICIT_PRODUCTS = "--iree-codegen-llvmgpu-use-igemm=false"
# Where IREE has decided what runs when, and what is overwritten.
_TO_SCHEDULE = "--compile-to=stream"
# Where IREE has written code in SPIR-V's or LLVM's dialect, not yet as bytes.
_STOP, _RESUME = "--compile-to=executable-targets", "--compile-from=executable-targets"
# No status of a process.
_TIMEOUT = 1 << 16
_SIGNALS = {int(number): number.name for number in signal.Signals}
# LLVM goes on without what it does not know; a misspelt feature would only show as slowness.
_UNRECOGNIZED = re.compile(r"^'([^']*)' is not a recognized (\w+) for this target", re.MULTILINE)


def compile_program(
    program: Program, target: Target | str | Sequence[Target] = "cpu", options: CompileOptions | None = None
) -> Executable:
    """Lower a copy of the program and compile it; the program itself is left as it was.

    A program of dynamic shapes may be compiled at its calls instead, as ``options.dynamic_shapes`` says. Several
    targets (``parse_targets``) stand in one file (``bundle.py``).

    Raises:
        UnsupportedError: an operation that the target cannot compile, at its line in the user's file.
        CompileError: IREE's compiler failed; the message names the reproducer.
        OptionError: a file of weights that is none, or is not the program's.
    """
    options = options or CompileOptions()
    targets = parse_targets(target)
    if len(targets) > 1:
        with within(options):
            return bundled([compile_program(program, one, options_for(one, options)) for one in targets])

    def make(program: Program | None, options: CompileOptions) -> Executable:
        assert program is not None
        return _compile_for(program, targets[0], options)

    return make_executable(make, program, options)


def _compile_for(program: Program, target: Target, options: CompileOptions) -> Executable:
    program, options = at_sizes(program, options)
    if program.template is not None:
        return compile_dynamic(program, lambda form: compile_program(form, target, options), target, options)
    program, options = place_weights(partitioned(program, options), options)
    program = for_grid(with_host_functions(program, options), options.grid, folded=options.fold_replicas)

    def compile_form(form: Program) -> Executable:
        def lowered(without: frozenset[str]) -> Program:
            copy = form.clone()
            with reproducers.of_defects(form.name, options.reproducer_dir):
                lower(
                    copy.module,
                    target=target.pipeline,
                    vectors=target.vectors,
                    without=without | options.without,
                    verify=options.verify,
                    dump_after=options.dump_after,
                    dump_to=options.dump_to,
                )
            return copy

        return compile_lowered(lowered, target, options)

    return compile_dynamic(program, limited_form(compile_form, options), target, options)


def compile_lowered(
    lowered: Callable[[frozenset[str]], Program], target: Target, options: CompileOptions
) -> Executable:
    """Hand a program to IREE's compiler, with its loops fused if IREE takes them so.

    Args:
        lowered: makes the program that has been through the target's pipeline, without the passes of these names.

    Raises:
        CompileError: as ``compile_program``; of the program without fused loops.
    """
    fused = lowered(frozenset())
    check_elements(fused.module, target)
    if not has_fused_loops(fused.module):
        return compile_module(fused, target, options)
    # IREE's code generator takes a loop's body as it is, or not at all: outside of a dispatch it takes more.
    first, *others = _optimizations(fused.module, target)
    # Without O2's fusions rather than without fused loops: those of complex matrices came out wrong, besides slow.
    safe = () if is_dynamic(fused.module) else ((_FEWER_FUSIONS, *first[1:]),)
    for flags in (first, *(flags for flags in others if _SUMS_IN_VECTORS in flags), *safe):
        with suppress(CompileError), reproducers.tentative():
            return _compile_with(flags, fused, target, options)
    return compile_module(lowered(frozenset({FuseLoops.name})), target, options)


def compile_module(lowered: Program, target: Target, options: CompileOptions) -> Executable:
    """Hand a program that has been through the target's pipeline to IREE's compiler.

    Raises:
        CompileError: as ``compile_program``.
    """
    *attempts, last = _optimizations(lowered.module, target)
    for flags in attempts:
        # A slower program is better than none: IREE's optimizations fail on some that it compiles without them.
        with suppress(CompileError), reproducers.tentative():
            return _compile_with(flags, lowered, target, options)
    return _compile_with(last, lowered, target, options)


def compile_unoptimized(lowered: Program, target: Target, options: CompileOptions, *, last: bool = False) -> Executable:
    """Hand a module to IREE's compiler once, with the target's flags and the user's alone.

    Args:
        last: with the flags of the last attempt of ``compile_module`` too.

    Raises:
        CompileError: as ``compile_program``.
    """
    flags = _optimizations(lowered.module, target)[-1] if last else ()
    return _compile_with(flags, lowered, target, options)


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
            raise CompileError("no temporary folder can be made", hint="TMPDIR names another place")
        printing = ("--mlir-print-debuginfo", "--mlir-elide-elementsattrs-if-larger=16")
        until = (f"--compile-to={names[-1]}", f"--dump-compilation-phases-to={folder}")
        text = lowered.text(locations=True).encode()
        _compile_in_child(text, (*flags, *until, *printing), lowered.name, options)
        files = {path.stem.rpartition(".")[2]: path for path in folder.iterdir()}
        return {name: files[name].read_text() for name in names}


def _optimizations(module: Any, target: Target) -> tuple[tuple[str, ...], ...]:
    """IREE's flags, those for speed first and those for its errors last. A user's own flags come after them."""
    if target.kind != "cpu":
        return _optimizations_for_gpus(module, target)
    if is_dynamic(module):
        # Its fusions at O2 take a loop's carry of dynamic size for a scalar: a generator drew one number for all.
        return ((_NO_MASKS,), (), (_NO_HOISTING,), (_NO_HOISTING, _ONE_WORKER))
    # One search for constant expressions may take minutes.
    kept = (_NO_HOISTING,) if hoists_in_vain(module) else ()
    fast = (_SUMS_IN_VECTORS, _NO_MASKS, *kept)
    tiled = [(*fast, _DATA_TILING)] if gains_by_data_tiling(module) else []
    hoisted = fast[:2]
    slower = ((_NO_MASKS, *kept), kept, (_NO_HOISTING,), (_NO_HOISTING, _ONE_WORKER))
    return tuple(dict.fromkeys((*tiled, fast, hoisted, *slower)))


def _optimizations_for_gpus(module: Any, target: Target) -> tuple[tuple[str, ...], ...]:
    on_cuda = target.pipeline == "cuda"
    # On Vulkan its fusions repeat the first part of a result: the gradient of a batch normalization was wrong.
    fast = (_SAFE_FUSION,) if on_cuda and not is_dynamic(module) else ()
    if not on_cuda:
        return ((), (_NO_HOISTING,))
    exact = (_NO_IMPLICIT_PRODUCTS,) if target.kind == "cuda" and _has_narrow_convolutions(module) else ()
    safe = (*exact, _WARP_REDUCTIONS)
    fewer = ((*fast, *safe), (*fast, *safe, _NO_DISTRIBUTION), (*safe, _NO_DISTRIBUTION))
    return tuple(dict.fromkeys((*fewer, (*fewer[-1], _NO_HOISTING))))


def _has_narrow_convolutions(module: Any) -> bool:
    found = operations(module, ["stablehlo.convolution"])
    return any(str(operation.operands[0].type.element_type) in ("bf16", "f16") for operation in found)


def _compile_with(
    optimization: tuple[str, ...], lowered: Program, target: Target, options: CompileOptions
) -> Executable:
    """One attempt, and others with more copies where IREE would overwrite what is still read."""
    try:
        return _compile_once(optimization, lowered, target, options)
    except OverwrittenError as error:
        in_one_operation = error.in_one_operation
    with suppress(OverwrittenError):
        if in_one_operation:
            # IREE places what is written where it belongs, also if the dispatch that computes it reads the array.
            DecideUpdates(copied="parts").run(lowered.module)
            return _compile_once(optimization, lowered, target, options)
        if without_links(lowered.module):
            return _compile_once(optimization, lowered, target, options)
    without_links(lowered.module)
    DecideUpdates(copied="all").run(lowered.module)
    try:
        return _compile_once(optimization, lowered, target, options)
    except OverwrittenError as error:
        text = lowered.text(locations=True).encode()
        flags = (*target.flags(), *optimization, *options.flags)
        error.notes = reproducers.of_compiler(text, flags, lowered.name, options.reproducer_dir)
        raise


def _compile_once(
    optimization: tuple[str, ...], lowered: Program, target: Target, options: CompileOptions
) -> Executable:
    kept = (_KEEP_ASSERTIONS,) if operations(lowered.module, ["cf.assert"]) else ()
    ordered = (_IN_ORDER,) if has_readers_beside_updates(lowered.module) else ()
    flags = (*target.flags(), *optimization, *kept, *ordered, *options.flags)
    manifest = Manifest(
        name=lowered.name,
        signature=lowered.signature,
        target=str(target),
        flags=flags,
        versions=tool_versions(),
        work=heaviest_operation(lowered.module),
        device=options.device,
        threads=options.threads,
        source=Path(lowered.source).name,
        weights=tuple(weights_of(lowered.module).items()),
        host_calls=host_calls_of(lowered.module),
        weights_file=options.weights.name if options.weights else "",
        sharded=Sharded.of(lowered.module),
    )
    _attach(lowered.module, manifest)
    text = lowered.text(locations=True).encode()
    if amend := _amendment(target):
        # The audit's flags change how IREE prints, and what it prints here is compiled further.
        _compile_audited(text, (*flags, _TO_SCHEDULE), lowered, options)
        code = _compile_in_child(text, (*flags, _STOP), lowered.name, options)
        vmfb = _compile_in_child(amend(code), (*flags, _RESUME), lowered.name, options)
    elif options.isolation == "none" and (made := iree.compile_in_process(text, flags)):
        _compile_audited(text, (*flags, _TO_SCHEDULE), lowered, options)
        vmfb = made
    else:
        # A child repeats what failed in this process: only there can the compiler's diagnostics be read.
        vmfb = _compile_audited(text, flags, lowered, options)
    vmfb = with_ordered_moves(vmfb)
    return Executable(vmfb, manifest, weights=options.weights, libraries=options.libraries)


def _compile_audited(text: bytes, flags: tuple[str, ...], lowered: Program, options: CompileOptions) -> bytes:
    """As ``_compile_in_child``, with proof that nothing is overwritten that is still read.

    Raises:
        OverwrittenError: there is no such proof.
    """
    with temporary_folder() as folder:
        if folder is None:
            raise CompileError("no temporary folder can be made", hint="TMPDIR names another place")
        made = _compile_in_child(text, flags, lowered.name, options, in_place_audit.flags(folder))
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


def _attach(module: Any, manifest: Manifest) -> None:
    with in_context(module):
        entry = entry_function(module).operation
        reflection = ir.DictAttr.get({REFLECTION_KEY: ir.StringAttr.get(manifest.to_json())})
        entry.attributes[REFLECTION] = reflection


def _compile_in_child(
    text: bytes, flags: tuple[str, ...], name: str, options: CompileOptions, silent: tuple[str, ...] = ()
) -> bytes:
    """IREE's output; ``silent`` are flags that change nothing of it, which a reproducer does not need."""
    command = [iree.compiler_binary(), "-", "-o", "-", *flags, *silent]
    with within(options):
        budget.enter("IREE's compiler")
        status, vmfb, stderr = _run(command, text, options)
        if status == _TIMEOUT and (running := budget.budget()) is not None:
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


def _run(command: list[str], data: bytes, options: CompileOptions) -> tuple[int, bytes, str]:
    """Exit status (``_TIMEOUT`` when it ran out of time), standard output and standard error of a command."""
    with temporary_folder() as folder:
        # IREE's linker leaves its files if it is killed.
        environment = os.environ | {"TMPDIR": str(folder)} if folder else None
        return _run_in(environment, command, data, options)


def _run_in(
    environment: dict[str, str] | None, command: list[str], data: bytes, options: CompileOptions
) -> tuple[int, bytes, str]:
    pipe, tie = subprocess.PIPE, _tied_to_this_process()
    # Where util-linux is missing the child asks for it itself, which makes a slower fork of it.
    ask = None if tie else functools.partial(end_with_parent, os.getpid())
    try:
        child = subprocess.Popen(
            [*tie, *command], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, preexec_fn=ask
        )
    except OSError as error:
        raise CompileError(f"IREE's compiler cannot be started: {error.strerror}", hint="reinstall it") from None
    with child:
        try:
            if options.memory_limit is not None:
                resource.prlimit(child.pid, resource.RLIMIT_AS, (options.memory_limit, options.memory_limit))
            output, errors = child.communicate(data, budget.remaining())
            return child.returncode, output, errors.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return _TIMEOUT, b"", ""
        finally:
            # Also on Ctrl-C: no compiler outlives the call.
            child.kill()


@functools.cache
def _tied_to_this_process() -> tuple[str, ...]:
    """A prefix that lets the kernel kill the compiler when this process is killed, where util-linux has it."""
    tool = shutil.which("setpriv")
    if tool is None:
        return ()
    prefix = (tool, "--pdeathsig", "KILL", "--")
    works = subprocess.run([*prefix, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return prefix if works.returncode == 0 else ()


def _summary(status: int) -> str:
    if status < 0:
        return f"crashed ({_SIGNALS.get(-status, f'signal {-status}')})"
    return "failed"
