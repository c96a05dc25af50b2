"""``hloforge cache``: show or clear the cache of compiled programs."""

from __future__ import annotations

import click


@click.command(short_help="Show or clear the cache.")
@click.option("--clear", is_flag=True, help="Delete all compiled programs.")
def command(clear: bool) -> None:
    """Show where compiled programs are kept, how many and how large; or delete them.

    HLOFORGE_CACHE_DIR names another folder (empty: no cache), HLOFORGE_CACHE_LIMIT the bytes that it may take.

    \b
    Example:
      hloforge cache
      hloforge cache --clear
    """
    from hloforge.runtime.compile import cache
    from hloforge.runtime.data.private_folders import distrust

    folder = cache.folder()
    if folder is None:
        click.echo(f"no cache: {cache.FOLDER_VARIABLE} is empty")
        return
    if clear:
        cache.clear(folder)
    count, size = cache.usage(folder)
    programs = "program" if count == 1 else "programs"
    reason = distrust(folder)
    if reason:
        click.echo(f"note: the folder is not used: {reason}", err=True)
    click.echo(f"{folder}: {count} {programs}, {size / 1e6:.1f} of at most {cache.limit() / 1e6:.0f} MB")
