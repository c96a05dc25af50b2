"""How code refers to addresses, by architecture: what a linker writes into it.

Source: System V psABI for x86-64, "Relocation"; ELF for the Arm 64-bit Architecture, "Relocation".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hloforge.runtime.compile.direct.processors import AARCH64, FORMS, X86_64

# Writes a distance at a place of a file. Arguments: the file, the place, the target's address, the place's address.
Write = Callable[[bytearray, int, int, int], None]


@dataclass(frozen=True)
class Relocations:
    """The relocations of an architecture.

    Attributes:
        absolute: the number of an address of 64 bits, which the loader completes.
        through_table: those of code that reads an address from a table.
        writers: for each other number, and these, what it writes.
    """

    absolute: int
    through_table: frozenset[int]
    writers: Mapping[int, Write]


def _distance(form: str) -> Write:
    """A number of the file's own, from the place on."""

    def write(file: bytearray, at: int, target: int, place: int) -> None:
        struct.pack_into(form, file, at, target - place)

    return write


def _branch(bits: int, first: int) -> Write:
    """A distance in instructions, in the bits of one."""

    def write(file: bytearray, at: int, target: int, place: int) -> None:
        steps = (target - place) >> 2
        if not -(1 << (bits - 1)) <= steps < 1 << (bits - 1):
            raise ValueError("a branch that is too long")
        _set(file, at, (steps & ((1 << bits) - 1)) << first)

    return write


def _address(unit: int) -> Write:
    """A distance in bytes or pages, in the bits of ``adr`` or ``adrp``."""

    def write(file: bytearray, at: int, target: int, place: int) -> None:
        steps = (target >> unit) - (place >> unit)
        _set(file, at, (steps & 3) << 29 | ((steps >> 2) & 0x7FFFF) << 5)

    return write


def _within_page(unit: int) -> Write:
    """A place in its page of 4 KiB, in units of so many bits, in the bits of an addition, a load or a store."""

    def write(file: bytearray, at: int, target: int, place: int) -> None:
        _set(file, at, (target & 0xFFF) >> unit << 10)

    return write


def _set(file: bytearray, at: int, bits: int) -> None:
    struct.pack_into("<I", file, at, struct.unpack_from("<I", file, at)[0] | bits)


# GOTPCREL, and what linkers may simplify of it.
_THROUGH_TABLE = frozenset((9, 41, 42))
_OF_X86_64 = Relocations(
    absolute=1,
    through_table=_THROUGH_TABLE,
    writers=dict.fromkeys((2, 4, *_THROUGH_TABLE), _distance("<i")) | {24: _distance("<q")},
)
_OF_AARCH64 = Relocations(
    absolute=257,
    # ADR_GOT_PAGE, LD64_GOT_LO12_NC.
    through_table=frozenset((311, 312)),
    writers={
        260: _distance("<q"),
        261: _distance("<i"),
        274: _address(0),
        **dict.fromkeys((275, 311), _address(12)),
        **dict.fromkeys((277, 278), _within_page(0)),
        279: _branch(14, 5),
        280: _branch(19, 5),
        **dict.fromkeys((282, 283), _branch(26, 0)),
        284: _within_page(1),
        285: _within_page(2),
        **dict.fromkeys((286, 312), _within_page(3)),
        299: _within_page(4),
    },
)
# By ELF's numbers of the architectures.
RELOCATIONS = {FORMS[X86_64].machine: _OF_X86_64, FORMS[AARCH64].machine: _OF_AARCH64}
