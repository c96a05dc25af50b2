"""``hloforge join``: several vmfbs as one, whose functions have names."""

from __future__ import annotations

from pathlib import Path

import click

from hloforge.tools import completing


@click.command(short_help="Put several compiled programs into one file, as functions with names.")
@click.argument("files", metavar="[NAME=]VMFB…", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=completing.OUTPUT, help="File of the vmfb.")
def command(files: tuple[str, ...], output: str) -> None:
    """Put each VMFB into one file as a function: NAME, or the file's name without .vmfb.

    The first one is what is loaded without a name, and what IREE's tools run. Programs with weights have one file of
    weights, which lies beside the vmfb (compile each with the same --weights) and is in memory once.

    \b
    Example:
      hloforge join prefill.vmfb decode.vmfb -o llm.vmfb
      hloforge run llm.vmfb --function=decode --input=random
    """
    import hloforge
    from hloforge.dialect.errors import OptionError

    found: dict[str, Path] = {}
    for one in files:
        name, equals, path = one.partition("=")
        place = Path(path if equals else one)
        name = name if equals else place.stem
        if name in found:
            raise OptionError(f"two functions are called {name!r}", hint="name them: NAME=FILE.vmfb")
        found[name] = place
    hloforge.join(found, output=output)
