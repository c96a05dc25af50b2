"""``hloforge completion``: shell code for completion on TAB."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the shell code that completes hloforge's commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell code that completes hloforge's commands and options.

    \b
    Example:
      eval "$(hloforge completion bash)"       # in ~/.bashrc; zsh likewise
      hloforge completion fish > ~/.config/fish/completions/hloforge.fish
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}", ctx)
    root = ctx.find_root().command
    # The template alone: click's source() would run bash to look at its version.
    instance = completion(root, {}, "hloforge", "_HLOFORGE_COMPLETE")
    click.echo(instance.source_template % instance.source_vars())
