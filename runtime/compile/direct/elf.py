"""Link objects of machine code into the shared object that IREE's loader takes.

The loader copies each segment to its place, adds the start of the library to addresses, protects the segments, and
calls one function (``library_tables``). It needs no names but that one's. There is no other library: a symbol that
nobody defines is an error.

Source: iree-org/iree, ``runtime/src/iree/hal/local/elf/elf_module.c``; System V ABI, "Dynamic Linking".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from hloforge.runtime.compile.direct.host import DirectError
from hloforge.runtime.compile.direct.library_tables import QUERY, Export, tables
from hloforge.runtime.compile.direct.processors import HOST, Form
from hloforge.runtime.compile.direct.relocatable import Relocatable, Relocation, Section, Symbol, read
from hloforge.runtime.compile.direct.relocations import RELOCATIONS

__all__ = ["Export", "link"]

# The segment of what is written only until addresses are in it.
_FIXED = 2

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_IDENTIFICATION, _SHARED = b"\x7fELF\2\1\1".ljust(16, b"\0"), 3
_LOAD, _DYNAMIC, _STACK, _RELRO = 1, 2, 0x6474E551, 0x6474E552
_READ, _WRITE, _RUN = 4, 2, 1
# Tags of the dynamic table.
_HASH, _TEXTS, _SYMBOLS, _RELA, _RELA_SIZE, _RELA_ENTRY, _TEXTS_SIZE, _SYMBOL_SIZE = 4, 5, 6, 7, 8, 9, 10, 11
_TAG, _TAGS = struct.Struct("<QQ"), 9
# Kinds of sections.
_BITS, _SYMBOL_TABLE, _TEXT_TABLE, _RELA_TABLE, _HASH_TABLE, _DYNAMIC_TABLE = 1, 11, 3, 4, 5, 6
_IN_MEMORY = 2
_HASHES = struct.pack("<5I", 1, 2, 1, 0, 0)
_GLOBAL_FUNCTION = 1 << 4 | 2


def link(
    objects: Sequence[bytes],
    exports: Sequence[Export],
    helper: Callable[[str], bytes | None],
    name: str,
    form: Form = HOST.form,
) -> bytes:
    """The shared object.

    Args:
        objects: relocatable objects; equal ones are linked once.
        helper: the object that defines a symbol which the others lack; None if there is none.
        name: of the library, for messages.
        form: of the architecture that the objects are for.

    Raises:
        DirectError: an object of another architecture, an undefined symbol, or what this linker does not know.
    """
    units = [read(data) for data in objects]
    if any(unit.machine != form.machine for unit in units):
        raise DirectError("an object of another architecture")
    helpers = _helpers(units, helper)
    named = [(export, _defined(units[export.code], export.symbol)) for export in exports]
    query, own = tables(name, named, form.machine)
    unique = dict.fromkeys((*units, *helpers.values()))
    sections = [*own, *(section for unit in unique for section in unit.sections if section.size)]
    return _Layout(sections, helpers, query, form).file()


def _helpers(units: Iterable[Relocatable], helper: Callable[[str], bytes | None]) -> dict[str, Relocatable]:
    """The objects that define what others lack, and what these lack, by the symbols."""
    found: dict[str, Relocatable] = {}
    lacking = [name for unit in units for name in unit.lacking]
    while lacking:
        name = lacking.pop()
        if name in found:
            continue
        data = helper(name)
        if data is None:
            raise DirectError(f"machine code calls {name}, which nothing defines")
        found[name] = read(data)
        lacking += found[name].lacking
    return found


def _defined(unit: Relocatable, name: str) -> Symbol:
    if name not in unit.defined:
        raise DirectError(f"an object does not define {name}")
    return unit.defined[name]


class _Layout:
    """The library's sections at their addresses, and what is written there."""

    def __init__(self, sections: Sequence[Section], helpers: dict[str, Relocatable], query: Symbol, form: Form) -> None:
        self._helpers, self._query, self._form = helpers, query, form
        self._kinds = RELOCATIONS[form.machine]
        # The slots of the table through which code reads addresses, by what these are of.
        self._slots: dict[tuple[Section, int], int] = {}
        self._table = Section(".data.rel.ro.addresses", b"", 0, 8, is_written=True)
        for relocation in (one for section in sections for one in section.relocations):
            if relocation.kind in self._kinds.through_table:
                self._slots.setdefault(self._target(relocation), 8 * len(self._slots))
        self._table.size = 8 * len(self._slots)
        sections = [*sections, self._table] if self._slots else sections
        kinds = [one.kind for section in sections for one in section.relocations]
        pointers = len(self._slots) + kinds.count(self._kinds.absolute)
        names = b"\0" + QUERY.encode() + b"\0"
        self._symbols, self._hashes = _own(".dynsym", 2 * _SYMBOL.size), _own(".hash", len(_HASHES), _HASHES)
        self._texts = _own(".dynstr", len(names), names)
        self._rela = _own(".rela.dyn", pointers * _RELOCATION.size)
        self._dynamic = _own(".dynamic", _TAGS * _TAG.size)
        self._segments = [
            (_READ, [self._symbols, self._hashes, self._texts, self._rela, *filter(_is_constant, sections)]),
            (_READ | _RUN, [section for section in sections if section.is_code]),
            (_READ | _WRITE, [*(one for one in sections if one.is_written and one.is_fixed), self._dynamic]),
        ]
        if data := [section for section in sections if section.is_written and not section.is_fixed]:
            self._segments.append((_READ | _WRITE, data))
        self._offsets: dict[Section, int] = {}
        self._addresses: dict[Section, int] = {}
        self._heads = self._place()

    def file(self) -> bytes:
        """The library's bytes."""
        made = bytearray(max(self._offsets[section] + section.size for section in self._offsets))
        for section, offset in self._offsets.items():
            made[offset : offset + len(section.data)] = section.data
        self._relocate(made)
        assert self._query.section is not None
        number = list(self._offsets).index(self._query.section) + 1
        fields = 1, _GLOBAL_FUNCTION, 0, number, self._addresses[self._query.section] + self._query.value, 0
        _SYMBOL.pack_into(made, self._offsets[self._symbols] + _SYMBOL.size, *fields)
        for number, tag in enumerate(self._tags()):
            _TAG.pack_into(made, self._offsets[self._dynamic] + number * _TAG.size, *tag)
        listed, names = self._section_headers(len(made))
        made += names
        made += bytes(-len(made) % 8)
        _HEADER.pack_into(
            made, 0, _IDENTIFICATION, _SHARED, self._form.machine, 1, 0, _HEADER.size, len(made), 0, _HEADER.size,
            _SEGMENT.size, len(self._heads), _SECTION.size, len(listed), len(listed) - 1,
        )  # fmt: skip
        for number, head in enumerate(self._heads):
            _SEGMENT.pack_into(made, _HEADER.size + number * _SEGMENT.size, *head)
        return bytes(made) + b"".join(listed)

    def _place(self) -> list[tuple[int, ...]]:
        """Give each section its place in the file and in memory; returns the headers of segments."""
        page = self._form.page
        # Behind the segments: the dynamic table, what is protected when addresses are in it, and the stack.
        place = _HEADER.size + (len(self._segments) + 3) * _SEGMENT.size
        heads: list[tuple[int, ...]] = []
        for number, (access, sections) in enumerate(self._segments):
            # Segments share no page of memory, though they do in the file.
            shift = number * page
            start = place if number else 0
            for section in sections:
                if section.alignment > page:
                    raise DirectError(f"section {section.name} asks for an alignment of {section.alignment}")
                place += -place % section.alignment
                self._offsets[section], self._addresses[section] = place, place + shift
                place += section.size
            size = place - start
            heads.append((_LOAD, access, start, start + shift, start + shift, size, size, page))
        table, size = self._addresses[self._dynamic], self._dynamic.size
        heads.append((_DYNAMIC, _READ | _WRITE, self._offsets[self._dynamic], table, table, size, size, 8))
        heads.append((_RELRO, _READ, *heads[_FIXED][2:7], 1))
        heads.append((_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 0))
        return heads

    def _relocate(self, made: bytearray) -> None:
        """Write distances, and what the loader has to add the library's start to."""
        pointers = [(self._addresses[self._table] + place, target) for target, place in self._slots.items()]
        relative = [(place, self._addresses[section] + value) for place, (section, value) in pointers]
        for section in list(self._offsets):
            for one in section.relocations:
                offset, address = self._offsets[section] + one.place, self._addresses[section] + one.place
                target, value = self._target(one)
                if one.kind == self._kinds.absolute:
                    relative.append((address, self._addresses[target] + value + one.addend))
                    continue
                if one.kind in self._kinds.through_table:
                    value = self._addresses[self._table] + self._slots[target, value]
                else:
                    value += self._addresses[target]
                write = self._kinds.writers.get(one.kind)
                if write is None:
                    raise DirectError(f"relocation {one.kind} to {one.symbol.name or target.name}")
                write(made, offset, value + one.addend, address)
        for number, (place, value) in enumerate(relative):
            _RELOCATION.pack_into(
                made, self._offsets[self._rela] + number * _RELOCATION.size, place, self._form.relative, value
            )

    def _target(self, relocation: Relocation) -> tuple[Section, int]:
        """What a relocation refers to: a section, and a distance from its start."""
        symbol = relocation.symbol
        if symbol.section is None:
            symbol = _defined(self._helpers[symbol.name], symbol.name)
        assert symbol.section is not None
        return symbol.section, symbol.value

    def _tags(self) -> Iterable[tuple[int, int]]:
        """The dynamic table."""
        yield _RELA, self._addresses[self._rela]
        yield _RELA_SIZE, self._rela.size
        yield _RELA_ENTRY, _RELOCATION.size
        yield _SYMBOLS, self._addresses[self._symbols]
        yield _SYMBOL_SIZE, _SYMBOL.size
        yield _TEXTS, self._addresses[self._texts]
        yield _TEXTS_SIZE, self._texts.size
        yield _HASH, self._addresses[self._hashes]
        yield 0, 0

    def _section_headers(self, place: int) -> tuple[list[bytes], bytes]:
        """The headers of sections, for people's tools, and the names in them, which lie at a place of the file."""
        names, listed = bytearray(1), [bytes(_SECTION.size)]
        kinds = {  # with the numbers of the sections that they refer to
            self._symbols: (_SYMBOL_TABLE, 3, 1, _SYMBOL.size),
            self._hashes: (_HASH_TABLE, 1, 0, 4),
            self._texts: (_TEXT_TABLE, 0, 0, 0),
            self._rela: (_RELA_TABLE, 1, 0, _RELOCATION.size),
            self._dynamic: (_DYNAMIC_TABLE, 3, 0, _TAG.size),
        }
        for section, offset in self._offsets.items():
            kind, link_, info, entry = kinds.get(section, (_BITS, 0, 0, 0))
            flags = _IN_MEMORY | section.is_written * 1 | section.is_code * 4
            fields = flags, self._addresses[section], offset, section.size, link_, info, section.alignment, entry
            listed.append(_SECTION.pack(len(names), kind, *fields))
            names += section.name.encode() + b"\0"
        last = len(names)
        names += b".shstrtab\0"
        listed.append(_SECTION.pack(last, _TEXT_TABLE, 0, 0, place, len(names), 0, 0, 1, 0))
        return listed, bytes(names)


def _own(name: str, size: int, data: bytes = b"") -> Section:
    """A section of what the loader reads."""
    return Section(name, data, size, 8)


def _is_constant(section: Section) -> bool:
    return not section.is_written and not section.is_code
