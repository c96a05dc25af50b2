"""``hloforge tune``: search for the fastest form of a program on this machine, and save it as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloforge.tools import completing
from hloforge.tools.options import (
    CompilerCommand,
    compile_options_of,
    compiler_options,
    import_options,
    read_program,
    target_option,
)
from hloforge.tools.progress import progress

if TYPE_CHECKING:
    from hloforge.runtime.reference.engines import ReferenceEngine
    from hloforge.runtime.tuning.tuner import Trial, Tuned


@click.command(
    cls=CompilerCommand,
    short_help="Search for the fastest way to compile a program for this machine.",
    epilog="Options that begin with --iree- apply to every form that is tried.",
)
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option("-o", "--output", type=completing.OUTPUT, help="File of the fastest vmfb, which records its device.")
@click.option(
    "-s",
    "--save-tuning",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write how the fastest form is made, for --tuning of compile and run.",
)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    type=completing.INPUT,
    help="As for hloforge run; by default plausible values.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    help="Seconds after which no new form is tried.",
)
@click.option(
    "--reference",
    type=click.Choice(["xla", "interpreter", "none"]),
    default="xla",
    show_default=True,
    help="Engine that every form must agree with; none: compare with the untuned form.",
)
@target_option
@import_options
@compiler_options
def command(
    source: str,
    output: str | None,
    save_tuning: str | None,
    inputs: tuple[str, ...],
    budget: float,
    reference: str,
    target: str,
    format: str | None,
    elided: str,
    seed: int,
    drop_unknown_attributes: bool,
    **compiler: Any,
) -> None:
    """Compile PROGRAM in many forms (device, numbers, flags), time those with the right results, and keep the fastest.

    \b
    Example:
      hloforge tune model.hlo -o model.vmfb --save-tuning=model.tuning.json
      hloforge compile other.hlo --tuning=model.tuning.json
    """
    from hloforge.runtime.compile.weight_placement import place_weights
    from hloforge.runtime.tuning.tuner import tune
    from hloforge.tools import calling

    options = compile_options_of(**compiler)
    read = read_program(
        source, format=format, elided=elided, seed=seed, drop_unknown_attributes=drop_unknown_attributes
    )
    arguments = calling.arguments(place_weights(read, options)[0].signature, inputs or ("plausible",), seed, read)
    click.echo("time / best so far, * if kept; form", err=True)
    with progress("tuning") as say:

        def on_trial(trial: Trial) -> None:
            say(str(trial.profile))
            click.echo(_line(trial), err=True)

        found = tune(read, arguments, target, options, reference=_engine(reference), budget=budget, on_trial=on_trial)
    click.echo(_conclusion(found))
    if output is not None:
        found.executable.save(Path(output))
    if save_tuning is not None:
        found.profile.save(save_tuning)


def _conclusion(found: Tuned) -> str:
    trials = f"{len(found.trials)} {'form' if len(found.trials) == 1 else 'forms'} tried"
    if found.profile == type(found.profile)():
        return f"nothing is faster than the untuned form ({trials})"
    return f"{found.profile}: {found.speedup:.2f} times as fast as the untuned form ({trials})"


def _engine(name: str) -> ReferenceEngine | None:
    from hloforge.runtime.reference.engines import reference

    return None if name == "none" else reference(name)


def _line(trial: Trial) -> str:
    if trial.problem:
        return f"  –     {trial.profile}: {trial.problem.splitlines()[0]}"
    return f"{trial.ratio:5.2f} {'*' if trial.accepted else ' '} {trial.profile}"
