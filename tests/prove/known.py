"""Findings whose causes are known: what is no fault of hloforge's, and what is open."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A finding that is not counted again.

    Attributes:
        generator: whose.
        kind: the verdict that is expected; another one is a finding.
        seeds: of the programs; empty where ``words`` tell.
        words: an expression that the message of a finding has.
        cause: in a sentence.
    """

    generator: str
    kind: str
    cause: str
    seeds: tuple[int, ...] = ()
    words: str = ""


# What XLA makes of the leading zeros of a negative number that it knows: the number of bits, negated.
_LEADING_ZEROS = r"got 0, want -(8|16|32|64)\b"

KNOWN: tuple[Known, ...] = (
    Known("builder", "differs", "XLA adds the starts of a slice of a slice before it clamps them", seeds=(41020,)),
    Known("builder", "differs", "XLA leaves out the absolute value of a square that overflows", seeds=(1860017,)),
    Known("builder", "differs", "XLA counts the bits of a 4-bit number that it knows in a byte", seeds=(1990116,)),
    Known("jax", "differs", "XLA makes a choice of infinity times a converted flag", seeds=(1100637,)),
    *(
        Known(name, "differs", "XLA folds leading zeros of known negative numbers wrongly", words=_LEADING_ZEROS)
        for name in ("calls", "habits", "hlo", "jax", "short")
    ),
)


def cause_of(generator: str, seed: int, kind: str, message: str) -> str:
    """The cause of a known finding; empty if it is a new one."""
    for known in KNOWN:
        fits = seed in known.seeds or (known.words and re.search(known.words, message))
        if (known.generator, known.kind) == (generator, kind) and fits:
            return known.cause
    return ""
