"""``hloforge verify``: compare a program on a target with reference engines, on generated arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloforge.tools import completing
from hloforge.tools.options import (
    CompilerCommand,
    compile_options_of,
    compiler_options,
    judging_options,
    reading_options,
    target_option,
)
from hloforge.tools.progress import progress

if TYPE_CHECKING:
    from hloforge.runtime.debug.trial_inputs import ValueRange
    from hloforge.runtime.debug.verification import Verification


def _ranges(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[ValueRange, ...]:
    if not values:
        return ()
    from hloforge.dialect.errors import OptionError
    from hloforge.runtime.debug.trial_inputs import ValueRange

    try:
        return tuple(map(ValueRange.parse, values))
    except OptionError as error:
        raise click.BadParameter(f"{error.message}; {error.hint}", ctx, param) from None


@click.command(
    cls=CompilerCommand,
    short_help="Check a program's results against reference engines.",
    epilog="Inputs have the syntax of hloforge run. A program that hloforge bisect wrote contains its own.",
)
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    type=completing.INPUT,
    help="As for hloforge run; replaces the generated trials.",
)
@click.option("--trials", type=click.IntRange(min=1), help="Number of argument sets to try.  [default: 3]")
@click.option(
    "--values",
    multiple=True,
    type=click.Choice(["plausible", "random", "special"]),
    help="Kinds of argument values, one per trial in turn; special: NaN, infinities, -0, subnormals, extremes.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    callback=_ranges,
    metavar="[NAME=]LOW:HIGH",
    help="Uniformly distributed values in [LOW, HIGH], for one parameter or for all.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of local-task.  [default: one per core]")
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds that a call may take.  [default: unlimited]",
)
@judging_options
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write the comparison as JSON; - for standard output.",
)
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write the comparison as one self-contained HTML page.",
)
@target_option
@reading_options
@compiler_options
def command(
    source: str,
    inputs: tuple[str, ...],
    trials: int | None,
    values: tuple[str, ...],
    ranges: tuple[ValueRange, ...],
    references: tuple[str, ...],
    tolerance: float | None,
    device: str | None,
    threads: int | None,
    deadline: float | None,
    plain: bool,
    without: tuple[str, ...],
    plugins: tuple[Path, ...],
    json_file: str | None,
    html_file: str | None,
    target: str,
    reading: dict[str, Any],
    **compiler: Any,
) -> None:
    """Run PROGRAM on a target, on XLA's CPU client and on StableHLO's interpreter, with several sets of arguments, and
    compare the results.

    The exit status is 0 if all agree, 1 if some differ or an error occurs, and 2 for a wrong command line.

    \b
    Example:
      hloforge verify model.hlo
      hloforge verify model.mlir --trials=20 --range=x=0:1 --json=report.json --html=report.html
    """
    from hloforge.dialect.errors import MismatchError
    from hloforge.runtime.debug.verification import first_difference
    from hloforge.tools import verifying

    asked = verifying.Asked(
        inputs=inputs,
        trials=trials,
        values=values,
        ranges=ranges,
        references=references or ("xla", "interpreter"),
        tolerance=tolerance,
        seed=reading["seed"],
        device=device,
        threads=threads,
        deadline=deadline,
        plain=plain,
        without=frozenset(without),
        plugins=plugins,
    )
    with progress("verifying") as say:
        found = verifying.verify(source, target, compile_options_of(**compiler), reading, asked, say)
    _write(found, json_file, html_file)
    if json_file != "-" and html_file != "-":
        for trial in found.trials:
            click.echo(trial.text())
    if not found.agrees:
        raise MismatchError(first_difference(found.trials), hint="hloforge bisect finds the operation or pass to blame")


def _write(found: Verification, json_file: str | None, html_file: str | None) -> None:
    import json

    from hloforge.tools.streams import write_text
    from hloforge.tools.verify_page import verification_page

    if json_file is not None:
        write_text(json_file, json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    if html_file is not None:
        write_text(html_file, verification_page(found))
