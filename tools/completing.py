"""Completion on TAB: what words an option or argument offers, and how bash splits them.

Nothing here loads a compiler: a shell waits for each answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

# Bash ends words at these (COMP_WORDBREAKS): --target=cpu:generic are five.
_BREAKS = ("=", ":")


# Older versions of click have no type arguments.
if TYPE_CHECKING:
    _Type: TypeAlias = click.ParamType[str]
else:
    _Type = click.ParamType


class Words(_Type):
    """Text that completion offers words for; any other text is taken as well.

    Args:
        words: called when the shell asks.
        separator: what divides several of them in one value.
    """

    name = "text"

    def __init__(self, words: Callable[[], Iterable[str]], separator: str = "") -> None:
        self.words, self.separator = words, separator

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, separator, last = incomplete.rpartition(self.separator) if self.separator else ("", "", incomplete)
        return [CompletionItem(before + separator + word) for word in self.words() if word.startswith(last)]


class File(_Type):
    """The name of a file, or ``-``, which nothing looks at before the command does."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class Output(File):
    """Where a command writes: it is refused now, and not after a long compilation.

    Args:
        mark: what stands before the name of a file; other values name none.
    """

    def __init__(self, mark: str = "") -> None:
        self.mark = mark

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value. Raises CompileError for a file that cannot be written."""
        if value.startswith(self.mark) and not (ctx and ctx.resilient_parsing):
            from hloforge.tools.streams import check_writable

            check_writable(value.removeprefix(self.mark))
        return value


def _targets() -> Iterable[str]:
    from hloforge.runtime.compile.targets import KINDS, known_variants

    return (*KINDS, *(f"{kind}:{variant}" for kind in KINDS for variant in known_variants(kind)))


def _devices() -> Iterable[str]:
    from hloforge.runtime.devices.drivers import DRIVERS

    return DRIVERS


def _passes() -> Iterable[str]:
    from hloforge.pipelines.pass_names import NATIVE_PASSES, pass_names

    return (*pass_names(), *NATIVE_PASSES)


def _pipelines() -> Iterable[str]:
    from hloforge.pipelines.pass_names import PIPELINE_NAMES

    return (*PIPELINE_NAMES, *_passes())


FILE = File()
OUTPUT = Output()
RESULT = Output("@")
TARGET = Words(_targets, ",")
DEVICE = Words(_devices)
PASS = Words(_passes)
DUMPED = Words(lambda: ("all", *_passes()))
PIPELINE = Words(_pipelines, ",")
INPUT = Words(lambda: ("random", "plausible", "zeros", "iota"))


class _Bash(BashComplete):
    """Bash's words, joined where it has split them at ``=`` and ``:``."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ["COMP_WORDS"])
        number = int(os.environ["COMP_CWORD"])
        joined: list[str] = []
        for word in [*words[1:number], words[number] if number < len(words) else ""]:
            is_rest = joined and (word in _BREAKS or joined[-1].endswith(_BREAKS))
            if is_rest:
                joined[-1] += word
            else:
                joined.append(word)
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem) -> str:
        # What is before the last colon stands on the line as words of its own.
        before = self.get_completion_args()[1].rpartition(":")[0].rpartition("=")[2]
        value = item.value.removeprefix(f"{before}:") if before else item.value
        return f"{item.type},{value}"


def prepare() -> None:
    """Have click complete for bash as above; called only when a shell asks."""
    add_completion_class(_Bash, "bash")
