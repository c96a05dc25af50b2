"""Objects of machine code in memory, linked and loaded as programs are.

LLVM's own loader for code in memory (MCJIT) ended whole runs of the tests now and then, by ``abort`` in
``finalize_object``; its memory manager that keeps sections together does so in ``add_object_file``.
"""

from __future__ import annotations

from functools import cache

from hloforge.runtime.compile.direct.elf import Export, link
from hloforge.runtime.compile.direct.helpers import helper_text
from hloforge.runtime.compile.direct.objects import text_object
from hloforge.runtime.native.library import Library


def linked(code: bytes, symbol: str) -> Library:
    """A library of one function; what it calls and does not define is taken from our helpers."""
    return Library(link([code], [Export(symbol, 0, symbol, 0)], _helper, "test"))


@cache
def _helper(name: str) -> bytes | None:
    text = helper_text(name)
    return None if text is None else text_object(text)
