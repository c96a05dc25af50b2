"""``hloforge cache``: show or clear the cache of compiled programs."""

from __future__ import annotations

import click


@click.command(short_help="Show, clear or warm the cache.")
@click.option("--clear", is_flag=True, help="Delete all compiled programs and kernels.")
@click.option(
    "--warm",
    type=click.Choice(["jax-eager"]),
    help="Compile the kernels of a list of programs: what JAX runs one by one where nothing is jitted.",
)
def command(clear: bool, warm: str | None) -> None:
    """Show where compiled programs and kernels are kept, how many and how large; delete them; or compile common ones.

    HLOFORGE_CACHE_DIR names another folder (empty: no cache), HLOFORGE_CACHE_LIMIT the bytes that it may take.

    \b
    Example:
      hloforge cache
      hloforge cache --clear
      hloforge cache --warm=jax-eager
    """
    from hloforge.dialect.errors import OptionError
    from hloforge.runtime.compile import cache
    from hloforge.runtime.data.private_folders import distrust

    folder = cache.folder()
    if folder is None and warm:
        raise OptionError(f"there is no cache: {cache.FOLDER_VARIABLE} is empty", hint="name a folder there")
    if folder is None:
        click.echo(f"no cache: {cache.FOLDER_VARIABLE} is empty")
        return
    if clear:
        cache.clear(folder)
    if warm:
        _warm(warm)
    (count, size), kernels = cache.usage(folder), cache.kernels(folder)
    held = f"{count} {'program' if count == 1 else 'programs'}, {kernels} {'kernel' if kernels == 1 else 'kernels'}"
    reason = distrust(folder)
    if reason:
        click.echo(f"note: the folder is not used: {reason}", err=True)
    click.echo(f"{folder}: {held}, {size / 1e6:.1f} of at most {cache.limit() / 1e6:.0f} MB")


def _warm(name: str) -> None:
    """Compile the programs of a list. Raises OptionError where our code generator makes none."""
    from hloforge.dialect.errors import OptionError
    from hloforge.runtime.compile.generated import unavailable
    from hloforge.tools import warming
    from hloforge.tools.progress import progress

    if reason := unavailable():
        raise OptionError(f"there are no kernels to keep: {reason}")
    with progress("warming the cache") as say:
        warming.warm(list(warming.LISTS[name]()), say)
