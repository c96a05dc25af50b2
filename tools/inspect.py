"""``hloforge inspect``: what is in a vmfb, or in a program before it is compiled."""

from __future__ import annotations

import json

import click

from hloforge.tools.options import import_options, read_program, signature_of, signature_option, target_option
from hloforge.tools.streams import is_vmfb, open_source


@click.command(short_help="Show what a vmfb or a program holds.")
@click.argument("source", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_option
@import_options
@signature_option
def command(
    source: str,
    as_json: bool,
    target: str,
    format: str | None,
    elided: str,
    seed: int,
    drop_unknown_attributes: bool,
    signature: str | None,
) -> None:
    """Show FILE: of a vmfb its signature, layouts, sizes, target, flags and versions; of a program its operations, and
    which of them will be decomposed or refused, without compiling it.

    \b
    Example:
      hloforge inspect model.vmfb
      hloforge inspect model.hlo --json
    """
    from hloforge.tools import inspection

    head, stream = open_source(source)
    if is_vmfb(head):
        facts = inspection.vmfb_facts(stream if isinstance(stream, str) else stream.getvalue())
    else:
        reading = {"drop_unknown_attributes": drop_unknown_attributes, **signature_of(signature)}
        program = read_program(stream, format=format, elided=elided, seed=seed, **reading)
        facts = inspection.program_facts(program, target)
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    inspection.show(facts)
