"""``hloforge inspect``: show the contents of a vmfb, or of a program before it is compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hloforge.tools import completing
from hloforge.tools.options import read_program, reading_options, target_option
from hloforge.tools.progress import progress
from hloforge.tools.streams import is_vmfb, open_source, write_text


@click.command(short_help="Show the contents of a vmfb or a program.")
@click.argument("source", metavar="FILE", type=completing.FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write the graph and the stages as one self-contained HTML page.",
)
@click.option(
    "--numerics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Show the results of hloforge verify --json on the page.",
)
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Show the results of hloforge profile --json on the page.",
)
@target_option
@reading_options
def command(
    source: str,
    as_json: bool,
    html_file: str | None,
    numerics: Path | None,
    profile: Path | None,
    target: str,
    reading: dict[str, Any],
) -> None:
    """Show FILE: of a vmfb its signature, layouts, sizes, target, flags and versions; of a program its operations, and
    which of them will be decomposed or refused, without compiling it. --html shows the program's graph, what each pass
    does to it, its memory, and what was measured, on one page.

    \b
    Example:
      hloforge inspect model.vmfb
      hloforge inspect model.hlo --json
      hloforge inspect model.hlo --html=model.html --numerics=report.json
    """
    if html_file is not None:
        write_text(html_file, _page(source, target, reading, numerics, profile))
        return
    if numerics or profile:
        raise click.UsageError("--numerics and --profile belong to --html")
    import json

    from hloforge.tools import inspection

    head, stream = open_source(source)
    if is_vmfb(head):
        _refuse_target()
        facts = inspection.vmfb_facts(stream if isinstance(stream, str) else stream.getvalue())
    else:
        facts = inspection.program_facts(read_program(stream, **reading), target)
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    inspection.show(facts)


def _refuse_target() -> None:
    """Raise UsageError if a target is asked for: a vmfb has its own."""
    ctx = click.get_current_context()
    if ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--target is for programs; a vmfb is compiled already, and says for what", ctx)


def _page(source: str, target: str, reading: dict[str, Any], numerics: Path | None, profile: Path | None) -> str:
    from hloforge.tools import inspect_page, inspection

    measured = inspect_page.Measured.read(numerics, profile)
    head, stream = open_source(source)
    if is_vmfb(head):
        _refuse_target()
        return inspect_page.vmfb_page(
            inspection.vmfb_facts(stream if isinstance(stream, str) else stream.getvalue()), measured
        )
    with progress("inspecting") as say:
        say("reading")
        program = read_program(stream, **reading)
        return inspect_page.program_page(program, target, _given(reading), measured, say)


def _given(reading: dict[str, Any]) -> list[str]:
    """The options of reading that are in the command line."""
    asked = click.get_current_context().get_parameter_source
    return [
        f"--{name.replace('_', '-')}={value}"
        for name, value in reading.items()
        if asked(name) is ParameterSource.COMMANDLINE
    ]
