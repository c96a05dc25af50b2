"""The only module that writes to a terminal: it escapes control characters in all text of others.

Names in a program (of parameters, operations, files, locations, custom calls) are whatever the file says: escape codes
that clear the screen, carriage returns that overwrite a line, marks that turn the direction of writing. Every command
prints through ``guarded_streams``, which escape such characters as JSON does (``\\u001b``), so that JSON that was
printed still means the same. Styles come from ``console`` alone.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Controls but line breaks and tabs, also those of 8 bits; separators of lines and marks of direction; invisible ones;
# bytes of file names that are no text (surrogates).
_COMMANDS = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """The text with every character escaped that would command a terminal instead of being shown."""
    return _COMMANDS.sub(_escaped, text)


def one_line(text: str) -> str:
    """``clean``, on one line: what is beside other text in a table cannot look like further rows."""
    return clean(text.replace("\n", "\\n"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


class GuardedStream(io.TextIOBase):
    """A text stream that escapes what it is given to write; bytes that a command writes to its ``buffer`` are data."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        encoding = self.stream.encoding or "utf-8"
        shown = clean(text).encode(encoding, "backslashreplace").decode(encoding)
        self.stream.write(shown)
        return len(text)

    # As of the stream; except that whoever finds it fit for any text need not go around this object.
    encoding = "utf-8"
    errors = "backslashreplace"

    @property
    def buffer(self) -> Any:
        return self.stream.buffer

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def close(self) -> None:
        """The stream is another's to close, also where this object is collected."""


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let everything that is printed meanwhile go through ``clean``."""
    before = sys.stdout, sys.stderr
    # Where Python runs without a console they are None.
    sys.stdout, sys.stderr = (one and GuardedStream(_behind(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _behind(stream: TextIO) -> TextIO:
    return stream.stream if isinstance(stream, GuardedStream) else stream


def console(*, stderr: bool = False, **options: Any) -> Console:
    """A console of rich's that styles what it prints, and escapes what it is given."""
    from rich.console import Console, RenderHook
    from rich.segment import Segment

    class Clean:
        """A renderable whose segments are clean."""

        def __init__(self, renderable: Any) -> None:
            self.renderable = renderable

        def __rich_console__(self, console: Console, options: Any) -> Iterator[Segment]:
            for text, style, control in console.render(self.renderable, options):
                yield Segment(text if control else clean(text), style, control)

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[Any]) -> list[Any]:
            return [Clean(one) for one in renderables]

    made = Console(file=_behind(sys.stderr if stderr else sys.stdout), **options)
    made.push_render_hook(Hook())
    return made
