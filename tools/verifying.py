"""Run ``hloforge verify``: from programs and arguments of the command line to a ``Verification``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import ArgumentError, OptionError
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Program
from hloforge.importers.source import NamedBytes, load
from hloforge.pipelines.dynamic.specialize import is_dynamic, size_parameters
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.compile.partition import is_to_cut
from hloforge.runtime.compile.specialize import for_sizes
from hloforge.runtime.data.inputs import parse_input
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.debug.reproducer import recorded_inputs
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.target_process import TargetProcess, TargetProgram
from hloforge.runtime.debug.trial_inputs import KINDS, ValueRange, check_ranges, kind_of_trial, trial_arguments
from hloforge.runtime.debug.verification import Trial, Verification, run_trial
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference
from hloforge.tools import calling
from hloforge.tools.building import build
from hloforge.tools.options import read_program
from hloforge.tools.progress import Say, Stopwatch
from hloforge.tools.streams import STDIO

TRIALS = 3

_FEEDS = frozenset({"stablehlo.infeed", "stablehlo.outfeed"})
_CHANNELS = frozenset({"stablehlo.send", "stablehlo.recv"})


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, as its options say."""

    inputs: tuple[str, ...] = ()
    trials: int | None = None
    values: tuple[str, ...] = ()
    ranges: tuple[ValueRange, ...] = ()
    references: tuple[str, ...] = ("xla", "interpreter")
    tolerance: float | None = None
    seed: int = 0
    device: str | None = None
    threads: int | None = None
    deadline: float | None = None
    plain: bool = False
    without: frozenset[str] = frozenset()
    plugins: tuple[Path, ...] = ()


def verify(
    source: str, target: str, options: CompileOptions, reading: dict[str, Any], asked: Asked, say: Say
) -> Verification:
    """Compile a program, and compare its results with the references' over the trials that are asked for.

    Raises:
        Error: the program cannot be read or compiled, no reference can evaluate it, or options do not fit it.
    """
    say("reading")
    named = NamedBytes(*load(PurePath(source) if source != STDIO else source))
    program = read_program(named, **reading)
    refuse_feeds(program, options)
    inputs = asked.inputs or recorded_inputs(named.getvalue(), named.name)
    program, options = at_sizes(program, options, inputs, asked.seed)
    judged = judged_program(program, options)
    check_ranges(judged.signature, asked.ranges)
    with ExitStack() as stack:
        process = stack.enter_context(TargetProcess(asked.deadline, asked.plugins))
        say("compiling")
        loaded = _loaded(process, NamedBytes(named.getvalue(), named.name), program, target, options, reading, asked)
        # The deadline is for calls; options.timeout for IREE's compiler.
        engines = [reference(name) for name in asked.references]
        for engine in engines:
            stack.callback(engine.close)
        judge = Judge(judged, engines, asked.tolerance)
        trials = tuple(_trials(loaded, judge, inputs, asked, say))
    return Verification(program.source, str(loaded.signature), target, asked.references, trials)


def refuse_feeds(program: Program, options: CompileOptions) -> None:
    """Raises OptionError, located, for a program that exchanges items with its host: no engine can play the host."""
    names = _FEEDS if options.grid.devices > 1 else _FEEDS | _CHANNELS
    found = operations(program.module, names)
    if found:
        raise OptionError(
            f"{found[0].name} exchanges items with the host, which reference engines do not support",
            location=location_of(found[0]),
            hint="compare with hloforge run --infeed=… --expected-output=…",
        )


def judged_program(program: Program, options: CompileOptions) -> Program:
    """What reference engines evaluate: they run one device, so of several the folded program."""
    if (options.fold_replicas or options.grid.devices > 1) and not is_to_cut(program, options):
        return for_grid(program, options.grid, folded=True)
    return program


def at_sizes(
    program: Program, options: CompileOptions, inputs: Sequence[str], seed: int
) -> tuple[Program, CompileOptions]:
    """A program of dynamic shapes for the sizes that ``--shape`` or the inputs say; others as they are.

    Raises:
        ArgumentError: nobody says the sizes.
    """
    leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
    if program.template is None and not is_dynamic(program.module):
        return program, options
    sizes: dict[str, tuple[int, ...]] = dict(options.shapes)
    if not sizes and len(inputs) == len(leaves):
        arrays = [parse_input(calling.seeded(spec, seed), leaf) for spec, leaf in zip(inputs, leaves, strict=True)]
        sizes = {leaf.name: array.shape for leaf, array in zip(leaves, arrays, strict=True)}
    if not sizes and any(not leaf.shape.is_static for leaf in leaves):
        raise ArgumentError(
            "the sizes of the program's arguments are dynamic",
            hint=f"name them: --shape NAME=8x4, or give --input=8x4xf32=random …; signature: {program.signature}",
        )
    fixed = for_sizes(program, sizes)
    if is_dynamic(fixed.module) and size_parameters(fixed):
        raise ArgumentError(
            "shapes depend on the values of arguments, which reference engines do not support",
            hint="make constants of those arguments in the program",
        )
    return fixed, replace(options, shapes=sizes)


def _loaded(
    process: TargetProcess,
    source: NamedBytes,
    program: Program,
    target: str,
    options: CompileOptions,
    reading: dict[str, Any],
    asked: Asked,
) -> TargetProgram:
    """The program in the child process; what IREE alone or passes of the user make of it is not kept in the cache."""
    near: dict[str, Any] = {"device": asked.device, "threads": asked.threads}
    if asked.plain or asked.without or asked.plugins:
        chosen = Recipe(target, replace(options, shapes={}), without=asked.without, plain=asked.plain)
        return process.compile(program, chosen, **near)
    executable = build(source, target, options, Stopwatch(), **reading)
    return process.load(executable.vmfb, replace(options, weights=executable.weights), **near)


def _trials(loaded: TargetProgram, judge: Judge, inputs: Sequence[str], asked: Asked, say: Say) -> Iterator[Trial]:
    given = list(inputs)
    generated = not given or any(spec.strip().partition(":")[0] in ("random", "plausible") for spec in given)
    count = asked.trials or (1 if given else TRIALS)
    for number in range(count if generated else 1):
        seed = asked.seed + number
        kind = "given" if given else kind_of_trial(number, asked.values or KINDS)
        say(f"trial {number}: {kind} values")
        if given:
            arguments = calling.arguments(loaded.signature, given, seed, judge.program)
        else:
            arguments = trial_arguments(judge.program, kind, seed, asked.ranges)
        yield run_trial(loaded, judge, arguments, number=number, kind=kind, seed=seed)
