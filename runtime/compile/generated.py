"""Programs of processors whose code is our own: from a program to a vmfb without IREE's compiler.

``pipelines/codegen`` writes the kernels, ``direct/`` makes the vmfb. What either refuses is left to IREE's compiler.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import metadata
from pathlib import Path

from hloforge.dialect import budget
from hloforge.dialect.abi import aliased_results
from hloforge.dialect.budget import OverBudgetError
from hloforge.dialect.errors import Error, OperationError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.program import Program
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.dynamic.specialize import is_dynamic
from hloforge.pipelines.framework.defects import DefectError
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.pipelines.weights import weights_of
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import LLVM, Manifest, tool_versions
from hloforge.runtime.compile import timings
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.cache import CODEGEN
from hloforge.runtime.compile.cost import heaviest_operation
from hloforge.runtime.compile.cpu_targets import extensions_of
from hloforge.runtime.compile.direct import host
from hloforge.runtime.compile.direct.assemble import vmfb
from hloforge.runtime.compile.direct.host import DirectError
from hloforge.runtime.compile.direct.processors import processor_of
from hloforge.runtime.compile.limited import within
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions

# Values of the variable; the last one raises what is wrong with our code generator.
OWN, IREE, LOUD = "own", "iree", "loud"


def generated(program: Program, target: Target, options: CompileOptions) -> Executable | None:
    """The compiled program; None if IREE's compiler has to make it."""
    made = _tried(program, target, options) if is_asked(target, options) else None
    if made is None and options.isolation == "process":
        # It gets ready while the program is lowered.
        server.prepare()
    return made[0] if made else None


def generated_apart(
    program: Program, target: Target, options: CompileOptions
) -> tuple[Executable, KernelProgram] | None:
    """The program with a dispatch for each step, and these dispatches with their origins; None as ``generated``."""
    return _tried(program, target, options, apart=True) if is_asked(target, options) else None


def unavailable() -> str:
    """Why our code generator makes no program here; empty if it does."""
    if os.environ.get(CODEGEN, OWN) == IREE:
        return f"{CODEGEN} is {IREE}"
    return host.unavailable()


def _tried(
    program: Program, target: Target, options: CompileOptions, *, apart: bool = False
) -> tuple[Executable, KernelProgram] | None:
    try:
        with within(options):
            return _made(program, target, options, apart=apart)
    except (RefusedError, DirectError):
        return None
    except (OverBudgetError, MemoryError):
        raise
    except Exception as error:
        is_failed = isinstance(error, OperationError | DefectError)
        if isinstance(error, Error) and (not is_failed or is_dynamic(program.module)):
            # The passes before IREE's code generator take more, or say what is wrong.
            return None
        # A pass that fails on known sizes, or builds an invalid operation of them, has a defect as well.
        if os.environ.get(CODEGEN) == LOUD:
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(
            f"{program.name or 'the program'} is left to IREE's compiler, as code generation has a defect ({what}); "
            f"report it, {CODEGEN}={LOUD} shows where it is",
            stacklevel=1,
        )
        return None


def is_asked(target: Target, options: CompileOptions) -> bool:
    """Whether our code generator is asked to make programs of a target."""
    if unavailable() or processor_of(target) is None:
        return False
    return not (options.flags or options.dump_after)


def makes(program: Program, target: Target) -> bool:
    """Whether our code generator makes a program of a target, as far as its kernels; nothing is compiled."""
    processor = processor_of(target)
    if processor is None or unavailable():
        return False
    copy = program.clone()
    try:
        inline_dense_resources(copy.module)
        lower(copy.module)
        generate(copy.module, target.machine, architecture=processor.architecture)
    except Exception:  # also a defect of ours leaves the program to IREE's compiler
        return False
    return True


def _made(
    program: Program, target: Target, options: CompileOptions, *, apart: bool
) -> tuple[Executable, KernelProgram]:
    processor = processor_of(target)
    assert processor is not None  # is_asked said so
    copy, signature = program.clone(), program.signature
    inline_dense_resources(copy.module)
    machine = target.machine.with_settings(options.machine)
    with timings.part("lowering"):
        passes = lower(copy.module)
    for one in passes:
        timings.took(f"  {one.name}", one.seconds)
    budget.enter("kernels")
    with timings.part("kernels"):
        kernels = generate(
            copy.module,
            machine,
            extensions=extensions_of(target.variant, target.features),
            architecture=processor.architecture,
            apart=apart,
            aliases=aliased_results(signature),
        )
    # Threads have nothing to share in kernels of one workgroup.
    is_shared = any(dispatch.workgroups > 1 for dispatch in kernels.dispatches)
    manifest = Manifest(
        name=copy.name,
        signature=signature,
        target=str(target),
        versions=tuple(sorted({**dict(tool_versions()), LLVM: _version()}.items())),
        work=heaviest_operation(copy.module, machine) if is_shared else 0,
        device=options.device,
        threads=options.threads,
        source=Path(copy.source).name,
        weights=tuple(weights_of(copy.module).items()),
        weights_file=options.weights.name if options.weights else "",
        host_calls=tuple(map(HostCall.from_json, kernels.host_calls)),
        sharded=Sharded.of(copy.module),
        instructions=target.instructions,
    )
    budget.enter("machine code")
    with timings.part("machine code"):
        code = vmfb(kernels, manifest.to_json(), copy.name, caching=options.cache, processor=processor)
    return Executable(code, manifest, weights=options.weights, libraries=options.libraries), kernels


@cache
def _version() -> str:
    """LLVM's bindings', which takes two milliseconds to find."""
    return metadata.version(LLVM)
