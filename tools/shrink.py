"""``hloforge shrink``: a program at smaller sizes."""

from __future__ import annotations

import click

from hloforge.tools import completing
from hloforge.tools.options import import_options, read_program
from hloforge.tools.streams import STDIO, write_bytes

_FORMS = ("stablehlo", "hlo", "hlo-proto", "portable", "bytecode", "mlir-generic")


@click.command(short_help="Write a program with smaller dimensions.")
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option(
    "--dims",
    multiple=True,
    required=True,
    metavar="OLD=NEW,…",
    help="New sizes: of all dimensions of a size (4096=64), or of one of a parameter ('x[1]=64', from 0). Repeatable.",
)
@click.option("--to", "form", type=click.Choice(_FORMS), default="stablehlo", show_default=True, help="Form to write.")
@click.option("-o", "--output", default=STDIO, type=completing.OUTPUT, help="Output file.  [default: standard output]")
@import_options
def command(
    source: str,
    dims: tuple[str, ...],
    form: str,
    output: str,
    format: str | None,
    elided: str,
    seed: int,
    drop_unknown_attributes: bool,
) -> None:
    """Write PROGRAM (- for standard input) with other sizes, so that a model larger than the memory can be checked.

    What belongs to a dimension follows it, through all operations and attributes that hold sizes. Where that leaves a
    choice, or does not fit, the error names the operation.

    \b
    Example:
      hloforge shrink model.hlo --dims=3=2 -o small.mlir
      hloforge shrink model.hlo --dims='x[1]=2' --to=hlo -o small.hlo
      hloforge verify small.mlir --trials=1
    """
    from hloforge.dialect.program import Program
    from hloforge.tools.forms import translate
    from hloforge.tools.quantities import bytes_text
    from hloforge.tools.shrinking import Dims, shrink

    wanted = Dims.parse(dims)
    program = read_program(
        source, format=format, elided=elided, seed=seed, drop_unknown_attributes=drop_unknown_attributes
    )
    smaller = shrink(program, wanted)

    def size(one: Program) -> str:
        leaves = [leaf.shape for leaf in one.signature.flat_parameters]
        return bytes_text(sum(shape.byte_size for shape in leaves)) if all(s.is_static for s in leaves) else "dynamic"

    click.echo(f"parameters: {size(program)} → {size(smaller)}", err=True)
    data = translate(smaller, form)
    write_bytes(
        output, data if data.endswith(b"\n") or form not in ("stablehlo", "hlo", "mlir-generic") else data + b"\n"
    )
