"""What a misspelt name was perhaps meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A question for a hint: ``did you mean add or abs?``.

    Args:
        otherwise: what to say where nothing is near.
    """
    close = difflib.get_close_matches(word.lower(), list(dict.fromkeys(known)), _MOST)
    return f"did you mean {' or '.join(close)}?" if close else otherwise
