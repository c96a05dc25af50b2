"""Read relocatable ELF objects of 64 bits, as LLVM writes them: what of them goes into memory.

Source: System V ABI, "Object Files".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache

from hloforge.runtime.compile.direct.host import DirectError

_MAGIC = b"\x7fELF\2\1\1"
_RELOCATABLE = 1
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_COMMON = 0xFFF2
# How frames are left, which nothing here needs.
_UNWINDING = ".eh_frame"
# Objects that are kept as they were read.
_KEPT = 256


@dataclass(eq=False)
class Section:
    """Bytes that go into memory.

    Attributes:
        data: fewer than ``size`` where zeros follow.
        relocations: places in it that depend on where something is.
    """

    name: str
    data: bytes
    size: int
    alignment: int
    is_code: bool = False
    is_written: bool = False
    relocations: list[Relocation] = field(default_factory=list)

    @property
    def is_fixed(self) -> bool:
        """Whether nobody writes it once addresses are in it."""
        return self.name.startswith(".data.rel.ro")


@dataclass(frozen=True)
class Symbol:
    """What a relocation refers to.

    Attributes:
        name: empty for a section's own.
        section: where it is; None if the object does not define it.
        value: its distance from the section's start.
    """

    name: str
    section: Section | None
    value: int = 0


@dataclass(frozen=True)
class Relocation:
    """A place in a section that depends on where something is.

    Attributes:
        place: its distance from the section's start.
        kind: as the psABI of the architecture numbers it.
    """

    place: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True, eq=False)
class Relocatable:
    """An object.

    Attributes:
        sections: what goes into memory.
        defined: symbols that others may refer to, by name.
        lacking: the names of symbols that others have to define.
        machine: ELF's number of the architecture.
    """

    sections: tuple[Section, ...]
    defined: dict[str, Symbol]
    lacking: tuple[str, ...]
    machine: int


@lru_cache(maxsize=_KEPT)
def read(data: bytes) -> Relocatable:
    """What an object puts into memory; the same for equal objects.

    Raises:
        DirectError: it is no such object, or has what this does not know.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise DirectError(f"an object of machine code is damaged: {error}") from None


def _read(data: bytes) -> Relocatable:
    kind, machine = struct.unpack_from("<HH", data, 16)
    if not data.startswith(_MAGIC) or kind != _RELOCATABLE:
        raise DirectError("no relocatable object of 64 bits")
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [_SECTION.unpack_from(data, start + number * size) for number in range(count)]
    name_of = _Texts(data, headers[names])
    sections: dict[int, Section] = {}
    for number, (name, kind, flags, _, offset, length, _, _, alignment, _) in enumerate(headers):
        if not flags & _ALLOC or (text := name_of(name)) == _UNWINDING:
            continue
        if kind not in (_PROGBITS, _NOBITS) or flags & _TLS:
            raise DirectError(f"section {text} of an object is of an unknown kind")
        content = b"" if kind == _NOBITS else data[offset : offset + length]
        is_code, is_written = bool(flags & _EXECUTE), bool(flags & _WRITE)
        sections[number] = Section(text, content, length, max(alignment, 1), is_code, is_written)
    symbols, first = _symbols(data, headers, sections)
    used = set()
    for _, kind, _, _, offset, length, _, target, _, _ in headers:
        if kind not in (_RELA, _REL) or target not in sections:
            continue
        if kind == _REL:
            raise DirectError("an object has relocations without addends")
        for place, info, addend in _RELOCATION.iter_unpack(data[offset : offset + length]):
            symbol = symbols[info >> 32]
            used.add(symbol.name if symbol.section is None else "")
            sections[target].relocations.append(Relocation(place, info & 0xFFFFFFFF, symbol, addend))
    defined = {symbol.name: symbol for symbol in symbols[first:] if symbol.section is not None}
    return Relocatable(tuple(sections.values()), defined, tuple(sorted(used - {""})), machine)


def _symbols(data: bytes, headers: list[tuple[int, ...]], sections: dict[int, Section]) -> tuple[list[Symbol], int]:
    """All symbols, and the number of the first that others may refer to."""
    table = next((header for header in headers if header[1] == _SYMTAB), None)
    if table is None:
        return [], 0
    name_of = _Texts(data, headers[table[6]])
    symbols = []
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(data[table[4] : table[4] + table[5]]):
        if section == _COMMON:
            raise DirectError(f"symbol {name_of(name)} of an object is in no section")
        symbols.append(Symbol(name_of(name), sections.get(section), value))
    return symbols, table[7]


class _Texts:
    """A table of texts that end with zeros."""

    def __init__(self, data: bytes, header: tuple[int, ...]) -> None:
        self._data = data[header[4] : header[4] + header[5]]

    def __call__(self, place: int) -> str:
        return self._data[place : self._data.index(b"\0", place)].decode()
