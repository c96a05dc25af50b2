"""``hloforge translate``: convert a program between HLO and StableHLO forms."""

from __future__ import annotations

import click

from hloforge.tools import completing
from hloforge.tools.options import import_options, read_program
from hloforge.tools.streams import STDIO, write_bytes

_FORMS = ("stablehlo", "hlo", "hlo-proto", "portable", "bytecode", "mlir-generic")


@click.command(short_help="Convert a program between HLO and StableHLO forms.")
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option("--to", "form", type=click.Choice(_FORMS), required=True, help="Form to write.")
@click.option("-o", "--output", default=STDIO, type=completing.OUTPUT, help="Output file.  [default: standard output]")
@click.option(
    "--signature/--no-signature",
    default=None,
    help="Keep the hloforge.* attributes with XLA's names and layouts (default in MLIR's forms).",
)
@import_options
def command(
    source: str,
    form: str,
    output: str,
    signature: bool | None,
    format: str | None,
    elided: str,
    seed: int,
    drop_unknown_attributes: bool,
) -> None:
    """Write PROGRAM (- for standard input) in another form: HLO's fusions are inlined, mhlo becomes StableHLO.

    \b
    Example:
      hloforge translate model.hlo --to=stablehlo -o model.mlir
      hloforge translate model.mlir --to=hlo
    """
    from hloforge.tools.forms import translate

    program = read_program(
        source, format=format, elided=elided, seed=seed, drop_unknown_attributes=drop_unknown_attributes
    )
    data = translate(program, form, signature=signature)
    if not data.endswith(b"\n") and form in ("stablehlo", "hlo", "mlir-generic"):
        data += b"\n"
    write_bytes(output, data)
