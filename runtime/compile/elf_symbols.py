"""Let other objects call the local functions of an ELF object of 64 bits.

A table of symbols has those that are local to the object first, and its header says how many. So functions that become
global move to the table's end, and the numbers of symbols in all relocations follow.

Source: System V ABI, "Symbol Table" and "Relocation"; LLVM writes such objects, with RELA relocations alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC_64_LITTLE = b"\x7fELF\x02\x01"
# Offset, size and number of section headers in the file's header.
_TABLE = struct.Struct("<40xQ10xHH2x")
# Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMTAB, _RELA = 2, 4
# Name, binding and type, visibility, section, value, size.
_SYMBOL = struct.Struct("<IBBHQQ")
# Offset, type and symbol (the upper half), addend.
_RELOCATION = struct.Struct("<QQq")
_LOCAL, _GLOBAL, _FUNCTION, _HIDDEN = 0, 1, 2, 2
_INFO = 44  # where a section's header has its information


class ElfError(ValueError):
    """No ELF object that this knows."""


@dataclass(frozen=True)
class _Section:
    header: int
    kind: int
    offset: int
    size: int
    link: int
    info: int


def with_global_functions(data: bytes) -> bytes:
    """The object with all local functions global, but hidden: files that it is linked into do not export them.

    Raises:
        ElfError: it is no object of 64 bits with one table of symbols.
    """
    try:
        return _rewritten(data)
    except struct.error:
        raise ElfError("the object ends too early") from None


def _rewritten(data: bytes) -> bytes:
    if not data.startswith(_MAGIC_64_LITTLE):
        raise ElfError("no ELF object of 64 bits, the lowest byte first")
    sections = list(_sections(data))
    tables = [(number, section) for number, section in enumerate(sections) if section.kind == _SYMTAB]
    if len(tables) != 1:
        raise ElfError(f"{len(tables)} tables of symbols")
    (number, table), made = tables[0], bytearray(data)
    symbols = list(_SYMBOL.iter_unpack(data[table.offset : table.offset + table.size]))
    moved = {place for place, (_, info, *_) in enumerate(symbols) if info == _LOCAL << 4 | _FUNCTION}
    order = [place for place in range(table.info) if place not in moved]
    local = len(order)
    order += [place for place in range(len(symbols)) if place in moved or place >= table.info]
    for new, old in enumerate(order):
        name, info, visibility, section, value, size = symbols[old]
        if old in moved:
            info, visibility = _GLOBAL << 4 | _FUNCTION, _HIDDEN
        _SYMBOL.pack_into(made, table.offset + new * _SYMBOL.size, name, info, visibility, section, value, size)
    struct.pack_into("<I", made, table.header + _INFO, local)
    place_of = {old: new for new, old in enumerate(order)}
    for section in sections:
        if section.kind == _RELA and section.link == number:
            _renumber(made, section, place_of)
    return bytes(made)


def _renumber(made: bytearray, section: _Section, place_of: dict[int, int]) -> None:
    for place in range(section.offset, section.offset + section.size, _RELOCATION.size):
        offset, info, addend = _RELOCATION.unpack_from(made, place)
        symbol = place_of[info >> 32]
        _RELOCATION.pack_into(made, place, offset, symbol << 32 | info & 0xFFFFFFFF, addend)


def _sections(data: bytes) -> Iterator[_Section]:
    start, size, count = _TABLE.unpack_from(data)
    for number in range(count):
        header = start + number * size
        _, kind, _, _, offset, length, link, info, _, _ = _SECTION.unpack_from(data, header)
        yield _Section(header, kind, offset, length, link, info)
