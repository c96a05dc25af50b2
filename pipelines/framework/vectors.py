"""The vector registers of a processor, which decide how many numbers its code holds at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """The vector registers of a processor.

    Attributes:
        bytes: of a register.
        count: of registers.
    """

    bytes: int = 32
    count: int = 16


# What code is made for where nothing else is known: any processor runs it, by several registers for one if need be.
AVX2 = Vectors()
AVX512 = Vectors(64, 32)
NEON = Vectors(16, 32)
