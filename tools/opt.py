"""``hloforge opt``: run passes over a program and print the IR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hloforge.tools import completing
from hloforge.tools.options import dump_names, import_options, read_program
from hloforge.tools.progress import Stopwatch
from hloforge.tools.streams import STDIO, write_text

if TYPE_CHECKING:
    from hloforge.pipelines.framework.passes import Pass


@click.command(short_help="Run passes over a program and print the IR.")
@click.argument("source", metavar="PROGRAM", required=False, type=completing.FILE)
@click.option(
    "-p",
    "--pipeline",
    "pipelines",
    multiple=True,
    metavar="TEXT",
    type=completing.PIPELINE,
    help="Passes in MLIR's grammar, or the name of a pipeline (normalize, cpu); repeatable, run in order.",
)
@click.option(
    "--pass",
    "passes",
    multiple=True,
    metavar="NAME",
    type=completing.PIPELINE,
    help="A single pass; repeatable, run in order.",
)
@click.option(
    "-o", "--output", default=STDIO, type=completing.OUTPUT, help="Where to write the IR.  [default: standard output]"
)
@click.option("--locations", is_flag=True, help="Print the source location of each operation.")
@click.option("--elide", type=click.IntRange(min=1), metavar="N", help="Elide constants of more than N elements.")
@click.option("--verify/--no-verify", default=True, help="Verify the IR between passes (default).")
@click.option(
    "--dump-after",
    multiple=True,
    metavar="PASS",
    type=completing.DUMPED,
    help="Write the IR after this pass, or after all; repeatable.",
)
@click.option("--dump-to", type=click.Path(path_type=Path), help="Folder for these dumps.  [default: standard error]")
@click.option("--timings", is_flag=True, help="Print the time of each pass on standard error.")
@click.option(
    "--keep-marks",
    is_flag=True,
    help="Keep the marks that passes write for each other; only for output of hloforge opt.",
)
@click.option("--list-passes", is_flag=True, help="Print every pass with its options and purpose.")
@click.option("--list-pipelines", is_flag=True, help="Print the named pipelines with a reason for each pass.")
@import_options
def command(
    source: str | None,
    pipelines: tuple[str, ...],
    passes: tuple[str, ...],
    output: str,
    locations: bool,
    elide: int | None,
    verify: bool,
    dump_after: tuple[str, ...],
    dump_to: Path | None,
    timings: bool,
    keep_marks: bool,
    list_passes: bool,
    list_pipelines: bool,
    format: str | None,
    elided: str,
    seed: int,
    drop_unknown_attributes: bool,
) -> None:
    """Read PROGRAM (- for standard input), run passes over it, and print the IR.

    \b
    Example:
      hloforge opt model.hlo --pipeline=normalize
      hloforge opt model.mlir --pipeline='decompose-scatter,func.func(canonicalize,cse)'
    """
    if list_passes or list_pipelines:
        from hloforge.tools import catalogue

        click.echo(catalogue.passes_text() if list_passes else catalogue.pipelines_text())
        return
    if source is None:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    from hloforge.pipelines.framework.manager import PassManager

    chosen = [entry for text in (*pipelines, *passes) for entry in _passes(text)]
    program = read_program(
        source,
        format=format,
        elided=elided,
        seed=seed,
        drop_unknown_attributes=drop_unknown_attributes,
        keep_marks=keep_marks,
    )
    manager = PassManager(chosen, verify=verify, dump_after=dump_names(dump_after), dump_to=dump_to)
    manager.run(program.module)
    write_text(output, program.text(locations=locations, elide=elide))
    if timings:
        Stopwatch([(timing.name, timing.seconds) for timing in manager.timings]).report()


def _passes(text: str) -> list[Pass]:
    """The passes of a named pipeline, or of one in MLIR's grammar. Raises PipelineError."""
    from hloforge.pipelines.named import PIPELINES, pipeline
    from hloforge.pipelines.textual import parse_pipeline

    return pipeline(text) if text in PIPELINES else parse_pipeline(text)
