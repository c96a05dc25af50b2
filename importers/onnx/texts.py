"""Strings in a program: numbers of entries in a table, which the signature tells.

A tensor of strings becomes one of s64. What is no entry of the table of an input is -1. Operators that only move
elements take such numbers like any others; those that look strings up know the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array

# Operators that move elements and look at none of them.
MOVES = frozenset(
    {
        *("ArrayFeatureExtractor", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"),
        *("Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"),
    }
)
# Operators that make something else of strings, of which their numbers tell enough.
_READS = frozenset({"Equal", "Shape", "Size"})
# Operators whose functions take strings, or sequences and branches with them, themselves.
TAKE_TEXT = frozenset(
    {
        *("CategoryMapper", "Cast", "DictVectorizer", "LabelEncoder", "OneHotEncoder", "If", "Loop", "Scan"),
        *("Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
    }
)
TEXT_HINT = "handle text outside of the program"


@dataclass(eq=False)
class Table:
    """The strings that numbers stand for; it grows while operators name what they look for.

    Attributes:
        open: whether a number may be -1, for what is none of them.
    """

    entries: list[str] = field(default_factory=list)
    open: bool = False

    def numbers(self, texts: Iterable[str]) -> Array:
        """The numbers of strings, which are added where they are not there."""
        known = {text: number for number, text in enumerate(self.entries)}
        found = []
        for text in texts:
            if text not in known:
                known[text] = len(self.entries)
                self.entries.append(text)
            found.append(known[text])
        return np.array(found, np.int64)


@dataclass(eq=False)
class Text:
    """A tensor of strings.

    Attributes:
        numbers: s64, in the table.
    """

    numbers: Value
    table: Table

    @property
    def dims(self) -> tuple[int, ...]:
        return self.numbers.dims


def is_text(tensor: Any) -> bool:
    """Whether a tensor, known or not, has strings."""
    return isinstance(tensor, Text) or (isinstance(tensor, np.ndarray) and tensor.dtype.kind in "OSU")


def strings_of(array: Array | Sequence[Any]) -> list[str]:
    """Known strings as Python's."""
    flat = np.asarray(array, object).reshape(-1)
    return [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in flat]


def as_text(tensor: Any) -> Text:
    """A tensor of strings, a known one as a constant with a table of its own."""
    if isinstance(tensor, Text):
        return tensor
    table = Table()
    numbers = table.numbers(strings_of(tensor))
    return Text(constant(numbers.reshape(np.shape(tensor))), table)


def refusal_of(operator: str) -> str:
    """Why an operator on strings is refused."""
    return f"strings are numbers of a table in a program, and {operator} needs their characters"


def moved(operator: str, tensors: Sequence[Any], move: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """An operator on strings that moves elements: on their numbers, in one table.

    Args:
        move: from the inputs, numbers in the place of strings, to the outputs.

    Raises:
        UnsupportedError: it does more than move them.
    """
    if operator not in MOVES | _READS:
        raise UnsupportedError(refusal_of(operator), hint=TEXT_HINT)
    texts = [as_text(tensor) for tensor in tensors if is_text(tensor)]
    # Strings of the model go into the table of an input, which grows.
    table = next((text.table for text in texts if text.table.open), texts[0].table)
    if any(text.table.open and text.table is not table for text in texts):
        raise UnsupportedError(
            f"{operator} of strings of several inputs, which have tables of their own", hint=TEXT_HINT
        )
    given = []
    for tensor in tensors:
        if not is_text(tensor):
            given.append(tensor)
            continue
        text = as_text(tensor)
        given.append(text.numbers if text.table is table else renumbered(text, table))
    if operator in _READS:
        if operator == "Equal" and sum(text.table.open for text in texts) > 1:
            raise UnsupportedError(
                "strings of an input are compared with each other, and unknown ones are alike", hint=TEXT_HINT
            )
        return move(given)
    return [Text(made, table) for made in move(given)]


def renumbered(text: Text, table: Table) -> Value:
    """The numbers of the strings in another table."""
    numbers = table.numbers(text.table.entries)
    dimensions = ops.GatherDimensionNumbers([], [0], [0], text.numbers.rank)
    return ops.gather(constant(numbers), ops.reshape(text.numbers, [*text.dims, 1]), dimensions, [1])
