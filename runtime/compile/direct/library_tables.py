"""What IREE's loader asks a library of machine code for: a function that returns tables of what it exports.

Source: iree-org/iree, ``runtime/src/iree/hal/local/executable_library.h``, version 6.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.runtime.compile.direct.host import DirectError
from hloforge.runtime.compile.direct.processors import AARCH64, FORMS, X86_64
from hloforge.runtime.compile.direct.relocatable import Relocation, Section, Symbol
from hloforge.runtime.compile.direct.relocations import RELOCATIONS

QUERY = "iree_hal_executable_library_query"
_VERSION = 6
_MOST_BINDINGS = 255
# By ELF's numbers of architectures: code that returns an address if this version is asked for, else nothing; and the
# relocations of that address, each a place, a number and an addend.
_QUERIES = {
    FORMS[X86_64].machine: (
        b"\x31\xc0\x48\x8d\x0d\0\0\0\0\x83\xff" + bytes([_VERSION]) + b"\x48\x0f\x44\xc1\xc3",
        ((5, 2, -4),),
    ),
    # adrp x8; add x8, x8; cmp w0; csel x0, x8, xzr, eq; ret
    FORMS[AARCH64].machine: (
        struct.pack("<5I", 0x90000008, 0x91000108, 0x7100001F | _VERSION << 10, 0x9A9F0100, 0xD65F03C0),
        ((0, 275, 0), (4, 277, 0)),
    ),
}
# Flags, pages of local memory, numbers of constants and arrays, sizes of a workgroup, number of parameters.
_ATTRIBUTES = struct.Struct("<QHBBIIHH40x")
# Version, name, features, sanitizer.
_HEADER = struct.Struct("<I4xQII")
# Header; imports; exports: their number, functions, attributes, parameters, occupancy, names and four more; constants;
# sources.
_LIBRARY = struct.Struct("<Q I4xQ I4x9Q I4x I4xQ")
_AT_HEADER, _AT_FUNCTIONS, _AT_ATTRIBUTES, _AT_NAMES = 0, 32, 40, 64


@dataclass(frozen=True)
class Export:
    """A function that the library exports.

    Attributes:
        code: the number of its object.
        symbol: its name there.
        bindings: how many arrays it binds.
    """

    name: str
    code: int
    symbol: str
    bindings: int


def tables(name: str, exports: Sequence[tuple[Export, Symbol]], machine: int) -> tuple[Symbol, list[Section]]:
    """The function that returns the tables, and the sections of all of them.

    Args:
        machine: ELF's number of the architecture.

    Raises:
        DirectError: an export binds more arrays than its table can say.
    """
    if any(export.bindings > _MOST_BINDINGS for export, _ in exports):
        raise DirectError(f"a kernel binds more than {_MOST_BINDINGS} arrays")
    count = len(exports)
    attributes = b"".join(_ATTRIBUTES.pack(0, 0, 0, export.bindings, 1, 1, 1, 0) for export, _ in exports)
    texts, places = bytearray(), []
    for text in (name, *(export.name for export, _ in exports)):
        places.append(len(attributes) + len(texts))
        texts += text.encode(errors="replace") + b"\0"
    constant = _section(".rodata.tables", attributes + bytes(texts), 64)
    at_functions = _LIBRARY.size + _HEADER.size
    at_names = at_functions + 8 * count
    library = _LIBRARY.pack(0, 0, 0, count, *[0] * 9, 0, 0, 0)
    header = _HEADER.pack(_VERSION, 0, 0, 0)
    pointers = _section(".data.rel.ro.tables", library + header + bytes(16 * count), 64, is_written=True)
    links = [
        (_AT_HEADER, Symbol("", pointers, _LIBRARY.size)),
        (_AT_FUNCTIONS, Symbol("", pointers, at_functions)),
        (_AT_ATTRIBUTES, Symbol("", constant, 0)),
        (_AT_NAMES, Symbol("", pointers, at_names)),
        (_LIBRARY.size + 8, Symbol("", constant, places[0])),
        *((at_functions + 8 * number, symbol) for number, (_, symbol) in enumerate(exports)),
        *((at_names + 8 * number, Symbol("", constant, place)) for number, place in enumerate(places[1:])),
    ]
    absolute = RELOCATIONS[machine].absolute
    pointers.relocations += [Relocation(place, absolute, symbol, 0) for place, symbol in links]
    code, places_of_address = _QUERIES[machine]
    query = _section(".text.query", code, 16, is_code=True)
    address = Symbol("", pointers, 0)
    query.relocations += [Relocation(place, kind, address, addend) for place, kind, addend in places_of_address]
    return Symbol(QUERY, query), [constant, pointers, query]


def _section(name: str, data: bytes, alignment: int, *, is_code: bool = False, is_written: bool = False) -> Section:
    return Section(name, data, len(data), alignment, is_code, is_written)
