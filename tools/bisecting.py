"""Run ``hloforge bisect``: from a program file to a minimal program and a report."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error, ImporterError, OptionError
from hloforge.dialect.program import Program
from hloforge.importers.source import NamedBytes, load
from hloforge.pipelines.delta_debugging.search import minimized
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.debug.bisection import Bisection, flattened
from hloforge.runtime.debug.blame import IREE, Blame, blame
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.debug.oracle import DIFFERS, Candidate, Oracle, OutOfBudgetError, Symptom, difference, outlined
from hloforge.runtime.debug.reproducer import recorded_inputs, self_contained
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.target_process import TargetError, TargetProcess
from hloforge.runtime.debug.trial_inputs import KINDS, kind_of_trial, trial_arguments
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference
from hloforge.runtime.session.convention import leaf_values
from hloforge.tools import calling
from hloforge.tools.options import read_program
from hloforge.tools.progress import Say
from hloforge.tools.streams import STDIO
from hloforge.tools.verifying import TRIALS, Asked, at_sizes, refuse_feeds

# Tries of a smaller text of what cannot be read; each takes milliseconds.
_TEXT_TRIES = 2000


@dataclass(frozen=True)
class Finding:
    """What a search found.

    Attributes:
        text: the small program, with its inputs.
        suffix: of its file.
        lines: the report without the lines on files.
        commands: each shows the fault; ``{}`` represents the name of the file.
    """

    text: str
    suffix: str
    lines: tuple[str, ...]
    commands: tuple[str, ...]

    def report(self, place: str) -> str:
        """What is wrong, where, who is to blame, and the command that shows it."""
        shown = [f"shown by: {command.replace('{}', shlex.quote(place))}" for command in self.commands]
        return "\n".join([*self.lines, f"program: {place}", *shown])


def default_output(source: str, found: Finding) -> str:
    """The program's name with ``.bisected`` in the current folder."""
    return f"{'program' if source == STDIO else Path(source).stem}.bisected{found.suffix}"


def bisect(
    source: str,
    target: str,
    options: CompileOptions,
    reading: dict[str, Any],
    asked: Asked,
    budget: float,
    say: Say,
) -> Finding | None:
    """Look for something wrong, and make the program small; None if nothing is wrong.

    Raises:
        Error: options do not fit the program, or nobody can say what is right.
    """
    started = time.monotonic()
    if options.grid.devices > 1:
        raise OptionError(
            "bisect supports programs for one device only", hint="--fold-replicas folds the devices into one program"
        )
    named = NamedBytes(*load(PurePath(source) if source != STDIO else source))
    say("reading")
    try:
        program = read_program(NamedBytes(named.getvalue(), named.name), **reading)
    except ImporterError as error:
        return _of_text(named, reading, error, source)
    refuse_feeds(program, options)
    inputs = asked.inputs or recorded_inputs(named.getvalue(), named.name)
    program, options = at_sizes(program, options, inputs, asked.seed)
    chosen = replace(options, shapes={}, cache=False)
    if chosen.timeout is None and asked.deadline:
        # IREE's compiler first, so that its own time is told from that of passes.
        chosen = replace(chosen, timeout=asked.deadline / 2)
    recipe = Recipe(target, chosen, without=asked.without, plain=asked.plain)
    with ExitStack() as stack:
        process = stack.enter_context(TargetProcess(asked.deadline, asked.plugins))
        engines = [reference(name, timeout=asked.deadline) for name in asked.references]
        for engine in engines:
            stack.callback(engine.close)
        oracle = Oracle(
            process, recipe, engines, tolerance=asked.tolerance, until=started + budget, device=asked.device
        )
        try:
            return _searched(program, oracle, inputs, asked, say, started)
        except OutOfBudgetError:
            raise OptionError(
                f"the program fails, but the budget of {budget:g} s ended before the search began",
                hint="--budget=SECONDS allows more time",
            ) from None


def _searched(
    program: Program, oracle: Oracle, inputs: Sequence[str], asked: Asked, say: Say, started: float
) -> Finding | None:
    say("looking for what is wrong")
    found = _symptom(program, oracle, inputs, asked, say)
    if found is None:
        return None
    symptom, arguments = found
    first = symptom
    start = _start(program, oracle, symptom, arguments)
    if start is None:
        text = self_contained(program, _leaves(program, arguments), [str(symptom)])
        lines = [_headline(symptom), "It shows with the layouts, tuples or donation of the program's border alone."]
        return Finding(text, ".mlir", tuple(lines), (_command(oracle.recipe, asked, symptom),))
    candidate, symptom = start
    search = Bisection(oracle, symptom, candidate, say)
    before = search.count
    search.run()
    search.confirm()
    say("looking for who is to blame")
    guilty = _blamed(oracle, search)
    spent = f"{oracle.tried} programs tried in {time.monotonic() - started:.0f} s"
    lines = [_headline(first), *_told(search, before, guilty, _short(search.best.program)), spent]
    commands = [_command(oracle.recipe, asked, symptom)]
    if guilty.who == IREE and not symptom.needs_values:
        flags = (*Target.parse(oracle.recipe.target).flags(), *oracle.recipe.options.flags)
        commands.append(f"iree-compile {{}} -o out.vmfb {shlex.join(flags)}")
    shown = [f"shown by: {command.replace('{}', 'THIS-FILE')}" for command in commands]
    # A listing would leave constants out, and what leaves constants out is refused when it is read.
    remarks = [_headline(first), *_told(search, before, guilty), spent, *shown]
    text = self_contained(search.best.program, search.best.arguments or (), remarks)
    return Finding(text, ".mlir", tuple(lines), tuple(commands))


def _symptom(
    program: Program, oracle: Oracle, inputs: Sequence[str], asked: Asked, say: Say
) -> tuple[Symptom, tuple[Any, ...] | None] | None:
    """What goes wrong first: the compilation, or a call with some arguments."""
    try:
        loaded = oracle.process.compile(program, oracle.recipe, device=oracle.device)
    except TargetError as error:
        return Symptom(error.kind, error.step, error.message), None
    judge = Judge(program, oracle.engines, oracle.tolerance)
    for number, arguments in enumerate(_arguments(program, inputs, asked)):
        say(f"looking for what is wrong: trial {number}")
        try:
            actual = loaded(*arguments)
        except TargetError as error:
            return Symptom(error.kind, error.step, error.message), arguments
        bad = [verdict for verdict in judge(arguments, actual).verdicts if not verdict.agrees]
        if bad:
            return difference(bad), arguments
    return None


def _arguments(program: Program, inputs: Sequence[str], asked: Asked) -> Iterator[tuple[Any, ...]]:
    count = asked.trials or (1 if inputs else TRIALS)
    for number in range(count):
        if inputs:
            yield calling.arguments(program.signature, inputs, asked.seed + number, program)
        else:
            yield trial_arguments(program, kind_of_trial(number, asked.values or KINDS), asked.seed + number)


def _start(
    program: Program, oracle: Oracle, symptom: Symptom, arguments: tuple[Any, ...] | None
) -> tuple[Candidate, Symptom] | None:
    """The program that the search begins with, and how it goes wrong; None if it then goes wrong no more."""
    try:
        candidate = flattened(program, arguments)
    except Error:
        return None
    if symptom.kind != DIFFERS and not symptom.needs_values and not oracle.recipe.plain:
        # One attempt at compiling instead of several, if it fails too.
        quick = replace(oracle.recipe, quick=True)
        found = oracle.symptom(candidate, quick)
        if found is not None and found.kind == symptom.kind:
            oracle.recipe = quick
            return candidate, found
    found = oracle.symptom(candidate)
    return (candidate, found) if found is not None and found.kind == symptom.kind else None


def _blamed(oracle: Oracle, search: Bisection) -> Blame:
    if search.interrupted:
        return Blame("unknown", "", "The search was stopped.")
    # Looking for the guilty takes few programs, and a report without them says little.
    oracle.until = max(oracle.until, time.monotonic() + (oracle.process.timeout or 60))
    try:
        return blame(oracle, search.best, search.symptom)
    except KeyboardInterrupt:
        return Blame("unknown", "", "The search was stopped.")


def _headline(symptom: Symptom) -> str:
    titles = {
        DIFFERS: "wrong results",
        "refused": "the program is refused",
        "pass": "a pass fails",
        "compiler": "IREE's compiler fails",
        "crash": f"a crash ({symptom.step})",
        "hang": f"no end ({symptom.step})",
        "load": "the compiled program cannot be loaded",
        "run": "the compiled program fails",
    }
    return f"{titles[symptom.kind]}: {symptom.message}"


def _told(search: Bisection, before: int, guilty: Blame, listing: Sequence[str] = ()) -> list[str]:
    lines = [f"{search.count} of {before} operations left" + ":" * bool(listing)]
    lines += [f"  {line}" for line in listing]
    for suspect in search.suspects[:3]:
        where = f"{suspect.location}: " if suspect.location else ""
        lines.append(f"first wrong value: {where}{suspect.op}")
    lines.append(f"to blame: {guilty.who}{', ' + guilty.stage if guilty.stage else ''}. {guilty.reason}")
    return lines + list(search.notes)


def _short(program: Program) -> list[str]:
    return [
        line for line in program.text(elide=8).splitlines() if line.strip() and not line.startswith(("module", "}"))
    ]


def _command(recipe: Recipe, asked: Asked, symptom: Symptom) -> str:
    """The command that repeats what is wrong with ``{}``."""
    verb = "verify" if symptom.needs_values else "compile"
    if symptom.needs_values or recipe.plain or asked.without or asked.plugins:
        verb = "verify"
    words = ["hloforge", verb, "{}"]
    if recipe.target != "cpu":
        words.append(f"--target={recipe.target}")
    words += [f"--device={asked.device}"] if asked.device and verb == "verify" else []
    words += ["--plain"] * asked.plain
    words += [f"--without={name}" for name in sorted(asked.without)]
    words += [shlex.quote(f"--plugin={path}") for path in asked.plugins]
    words += [f"--tolerance={asked.tolerance:g}"] if asked.tolerance is not None else []
    if verb == "verify" and asked.references != ("xla", "interpreter"):
        words += [f"--reference={name}" for name in asked.references]
    if symptom.kind == "hang":
        words.append(f"--deadline={asked.deadline:g}" if verb == "verify" else f"--timeout={recipe.options.timeout:g}")
    words += map(shlex.quote, recipe.options.flags)
    return " ".join(words)


def _leaves(program: Program, arguments: tuple[Any, ...] | None) -> list[np.ndarray[Any, Any]]:
    return [] if arguments is None else [np.asarray(leaf) for leaf in leaf_values(program.signature, arguments)]


def _of_text(named: NamedBytes, reading: dict[str, Any], error: ImporterError, source: str) -> Finding:
    """Of a program that cannot be read: the lines of its text that cannot be read for the same reason.

    Raises:
        ImporterError: it is no text, or there is no such file.
    """
    try:
        lines = named.getvalue().decode().splitlines()
    except UnicodeDecodeError:
        raise error from None
    if len(lines) < 2:
        raise error
    tries = 0

    def holds(part: list[str]) -> bool:
        nonlocal tries
        tries += 1
        if tries > _TEXT_TRIES:
            return False
        try:
            read_program(NamedBytes("\n".join(part).encode() + b"\n", named.name), **reading)
        except Error as other:
            return type(other) is type(error) and _kind(other) == _kind(error)
        return False

    kept = minimized(lines, holds) if holds(lines) else lines
    where = f"{error.location}: " if error.location else ""
    told = [f"the program cannot be read: {where}{error.message}", *error.notes]
    told += [error.hint] if error.hint else []
    told += [f"{len(kept)} of {len(lines)} lines left:", *(f"  {line[:160]}" for line in kept)]
    told += ["to blame: the file, which no pass or compiler has seen yet"]
    form = f" --format={reading['format']}" if reading.get("format") else ""
    return Finding("\n".join(kept), PurePath(source).suffix or ".txt", tuple(told), (f"hloforge compile {{}}{form}",))


def _kind(error: Error) -> str:
    """What an error says, names and numbers left out."""
    return outlined(re.sub(r"\S*[%@.]\S*|constant \S+", "#", error.message))
