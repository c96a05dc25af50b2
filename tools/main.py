"""The ``hloforge`` command. Sub-commands are imported when they are called, so that help and completion are instant."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from hloforge._version import __version__
from hloforge.tools.interrupts import end_on_signals
from hloforge.tools.report import run_guarded
from hloforge.tools.terminal import guarded_streams

# Sub-command: what it does; the module of the same name holds the command ``command``.
COMMANDS: dict[str, str] = {
    "compile": "Compile a program to an IREE module (.vmfb).",
    "run": "Run a vmfb or a program; optionally check its results against expected or reference values.",
    "verify": "Compare a program's results with those of reference engines, on generated inputs.",
    "bisect": "Reduce a failing program to a minimal one and name the guilty pass or compiler.",
    "profile": "Measure the time of a program's calls, by operation and source line.",
    "opt": "Run passes over a program and print the IR.",
    "translate": "Convert a program between HLO and StableHLO forms.",
    "shrink": "Write a program with smaller dimensions, for models larger than the memory.",
    "inspect": "Show the contents of a vmfb or a program, and how it will be compiled.",
    "devices": "List the devices of this machine, and why a driver is not usable.",
    "join": "Put several compiled programs into one file, as functions with names.",
    "sign": "Sign a vmfb with an Ed25519 key, for `hloforge run --require-signature`.",
    "tune": "Search for the fastest way to compile a program for this machine.",
    "cache": "Show or clear the cache of compiled programs.",
    "completion": "Print the shell code that completes hloforge's commands.",
}

_DEBUG = "--debug"
# The variable by which a shell asks for completions.
_COMPLETION = "_HLOFORGE_COMPLETE"


class Hloforge(click.Group):
    """A group whose commands are imported by name and whose errors are reported in one style."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hloforge.tools.{cmd_name}").command
        command.name = cmd_name  # all functions are called ``command``; what lists commands shows their names
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from hloforge.dialect.suggestions import did_you_mean

            question = did_you_mean(name, COMMANDS)
            raise click.UsageError(
                f"no command {name!r}; {question + ' ' if question else ''}commands: {', '.join(COMMANDS)}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(  # type: ignore[override]  # never returns, whatever standalone_mode says
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        # --debug applies to every sub-command, so it may be anywhere on the line.
        rest = [word for word in words if word != _DEBUG]
        if _COMPLETION in os.environ:
            from hloforge.tools.completing import prepare

            prepare()
        with guarded_streams():
            status = run_guarded(lambda: super(Hloforge, self).main(rest, "hloforge", **extra), debug=rest != words)
        sys.exit(status)


@click.group(cls=Hloforge, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="hloforge")
@click.option(_DEBUG, is_flag=True, help="Show Python's traceback of an error.")
def cli(debug: bool) -> None:
    """Compile XLA programs (HLO, StableHLO) to IREE modules and run them with XLA's answers.

    \b
    Example:
      hloforge compile model.hlo -o model.vmfb
      hloforge run model.vmfb --input=random
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command; always ends in SystemExit."""
    end_on_signals()
    cli.main(arguments)


if __name__ == "__main__":
    main()
