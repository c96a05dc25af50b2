"""``hloforge bisect``: reduce a failing program to a minimal one, and name the guilty pass or compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


@click.command(
    cls=CompilerCommand,
    short_help="Find the smallest cause of a wrong result or a failure.",
    epilog="Ctrl-C ends the search and writes the smallest program found so far.",
)
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option(
    "-o",
    "--output",
    type=completing.OUTPUT,
    help="File of the small program.  [default: PROGRAM's name with .bisected.mlir, in this folder]",
)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    type=completing.INPUT,
    help="As for hloforge run; by default generated as by verify.",
)
@click.option("--trials", type=click.IntRange(min=1), help="Number of argument sets to try.  [default: 3]")
@click.option(
    "--budget", type=click.FloatRange(min=0), default=600.0, show_default=True, help="Seconds that the search may take."
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds that one try may take.",
)
@judging_options
@click.option("--report", metavar="FILE", help="Write the report to this file too.")
@target_option
@reading_options
@compiler_options
def command(
    source: str,
    output: str | None,
    inputs: tuple[str, ...],
    trials: int | None,
    references: tuple[str, ...],
    tolerance: float | None,
    device: str | None,
    budget: float,
    deadline: float,
    plain: bool,
    without: tuple[str, ...],
    plugins: tuple[Path, ...],
    report: str | None,
    target: str,
    reading: dict[str, Any],
    **compiler: Any,
) -> None:
    """Find out what is wrong with PROGRAM: its results, or that it cannot be read, compiled or run. Writes a program of
    few operations that goes wrong in the same way, with its inputs inside, and says which pass or compiler is to blame.

    Exit status 0 if nothing is wrong, 1 if something is, 2 for a wrong command line.

    \b
    Example:
      hloforge bisect model.hlo
      hloforge bisect model.mlir --plain --budget=120 -o small.mlir
    """
    from hloforge.dialect.errors import Error
    from hloforge.tools import bisecting
    from hloforge.tools.interrupts import in_order
    from hloforge.tools.streams import write_text
    from hloforge.tools.verifying import Asked

    asked = Asked(
        inputs=inputs,
        trials=trials,
        references=references or ("xla", "interpreter"),
        tolerance=tolerance,
        seed=reading["seed"],
        deadline=deadline,
        device=device,
        plain=plain,
        without=frozenset(without),
        plugins=plugins,
    )
    # Ctrl-C ends the search, and what it has found is written.
    with in_order(), progress("bisecting") as say:
        found = bisecting.bisect(source, target, compile_options_of(**compiler), reading, asked, budget, say)
    if found is None:
        click.echo("nothing is wrong: the program compiles, and its results agree with the references")
        return
    place = output or bisecting.default_output(source, found)
    write_text(place, found.text)
    told = found.report(place)
    click.echo(told)
    if report is not None:
        write_text(report, told)
    raise Error(f"something is wrong with {source}: {found.lines[0].splitlines()[0]}", hint=f"{place} reproduces it")
