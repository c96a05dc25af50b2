"""``hloforge.profile``: measure the time of a program's calls, by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from hloforge.api import ProgramLike, as_program, compile
from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Program
from hloforge.pipelines.dynamic.specialize import is_dynamic
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.partition import is_to_cut
from hloforge.runtime.compile.specialize import for_sizes
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.data.random_inputs import random_inputs
from hloforge.runtime.options import CommonFields, CompileOptions
from hloforge.runtime.profiling.profiler import SECONDS, WARMUP, Plan, check_profilable, time_profile
from hloforge.runtime.profiling.result import Roofline, TimeProfile
from hloforge.runtime.profiling.subject import is_vmfb, subject_of
from hloforge.runtime.session.convention import flatten_arguments


class ProfileFields(CommonFields, total=False):
    """Further arguments of ``profile``, which are fields of ``CompileOptions``."""

    timeout: float | None


def profile(
    source: ProgramLike | Executable,
    arguments: Sequence[Any] | None = None,
    *,
    target: str = "cpu",
    device: str | None = None,
    threads: int | Sequence[int] | None = None,
    iterations: int | None = None,
    seconds: float = SECONDS,
    warmup: int = WARMUP,
    roofline: Roofline | bool = True,
    deadline: float | None = None,
    options: CompileOptions | None = None,
    **fields: Unpack[ProfileFields],
) -> TimeProfile:
    """Measure where the time of a program's calls goes: by dispatch, operation and line of the source.

    Args:
        source: a program in any form that ``compile`` takes; or a vmfb (its path, its bytes, an ``Executable``), whose
            dispatches are named but not put down to operations.
        arguments: one a parameter; None for plausible random ones.
        target, options, fields: as of ``compile``; one target.
        device, threads: as of ``load``.
        iterations: how many calls to measure; None for as many as fit into ``seconds``, 3 at least.
        warmup: calls before them.
        roofline: what the device can do; True to measure that once in a process, False to leave it out.
        deadline: seconds that the measured calls may take together; None for any time.

    Returns:
        the profile: ``rows`` with the dispatches that take longest first, ``to_json()`` with all numbers.

    Raises:
        OptionError: the program needs several devices or functions of its host.
        ArgumentError: arguments that do not fit, or none where sizes are dynamic.
        ExecutionError: the program failed, or did not end in time.
        Errors as of ``compile`` and ``load``.
    """
    given = roofline if isinstance(roofline, Roofline) else None
    plan = Plan(iterations, seconds, warmup, given, roofline is not False, deadline)
    options = (options or CompileOptions()).changed(fields)
    check_profilable(options)
    near: dict[str, Any] = {"device": device, "threads": threads, "weights": options.weights, "deadline": deadline}
    if isinstance(source, Executable) or is_vmfb(source):
        compiled: Any = source
        subject = subject_of(compiled, **near)
        chosen = random_inputs(subject.session.signature) if arguments is None else tuple(arguments)
        return time_profile(subject, chosen, plan)
    program, options = _at_sizes(as_program(source), options, arguments)
    # What JAX lowered has functions of the host beside it, which the program alone does not have.
    executable = compile(source if hasattr(source, "compiler_ir") else program, target, options=options)
    subject = subject_of(executable, **near | {"weights": executable.weights})
    chosen = plausible_inputs(_of_one_device(program, options)) if arguments is None else tuple(arguments)
    return time_profile(subject, chosen, plan, program=program, options=options)


def _of_one_device(program: Program, options: CompileOptions) -> Program:
    """The program whose arguments are passed: of several devices the folded one."""
    if options.fold_replicas and not is_to_cut(program, options):
        return for_grid(program, options.grid, folded=True)
    return program


def _at_sizes(
    program: Program, options: CompileOptions, arguments: Sequence[Any] | None
) -> tuple[Program, CompileOptions]:
    """A program of dynamic shapes for the sizes of its arguments; others as they are."""
    if program.template is None and not is_dynamic(program.module):
        return program, options
    sizes: dict[str, tuple[int, ...]] = dict(options.shapes)
    if not sizes and arguments is not None:
        leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
        arrays = flatten_arguments(program.signature, arguments)
        sizes = {leaf.name: array.shape for leaf, array in zip(leaves, arrays, strict=True)}
    if not sizes and any(not leaf.shape.is_static for leaf in program.signature.flat_parameters):
        raise ArgumentError("the sizes of the program's arguments are dynamic", hint="give arguments, or shapes={…}")
    return for_sizes(program, sizes), replace(options, shapes={})
