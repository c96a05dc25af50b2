"""Decode instructions of IREE's virtual machine, as far as needed to find branches and the registers they move.

A vmfb is a flatbuffer, alone or as the first file of a stored zip archive. Its functions are sequences of instructions:
an opcode and fields of known kinds, of which each opcode has its own. A branch moves registers to those in which its
target block takes its arguments: pairs of source and destination, one after the other, 32 bits each.

Source: iree-org/iree, ``runtime/src/iree/schemas/bytecode_module_def.fbs`` and ``runtime/src/iree/vm/bytecode/isa``,
bytecode version 17.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

VERSION = 17
# Bits of a register's number: it refers to an object; a move empties it.
REFERENCE, MOVED = 0x8000, 0x4000
_ARCHIVE, _DIRECTORY_END = b"PK\x03\x04", b"PK\x06\x06"
_IDENTIFIER = b"IREE"
# Fields of the root table, and the bytes of a descriptor of a function.
_DESCRIPTORS, _VERSION, _CODE = 12, 13, 14
_DESCRIPTOR = struct.Struct("<iiIhhhh")

# Kinds of fields: r register, w 4 bytes, q 8 bytes, s string, v list of registers, n list of numbers, m moves of a
# branch, t table of branches, - no field. A branch's target is a w. Opcodes are given from the first on.
_CORE = """
    wr wr rr rr wr wr rr rr wwr wwr rwr rwr r wr r qr
    r wr wrr rr rr rr rrr rrr rrr rrr rrwr rrr rrrr rrrr rwrrr rrvr
    rrvr rwrvr rrr rrr rrr rrr rrr rrr rrr rrrr rrr rrr rrr rrr rrr rrr
    rrr rrrr rr rrr rrr rrr rr rrr rrr rrr rrr rrr rrr rrr rrr rrr
    rr rr rr rr rr rr rr rr rr rrr rrr rrr rrr rr rrr rrr
    rrr rrr rr rrr rrr rr wm rwmwm wvv wnvv v rs wr wm sv sv
    rwm wm rrr rrr rrr rrr rrr rrr rrr rrr rrr rrr rrr rrrrr rr rrrrr
    rrrrrr rrrr rrrr rrrr rrrr rr rr rr rr - rrr rrr rrr rrr rrr rrr
    rrr rrr rwr rwmt rrrr v rr wvwv wnvwv
"""
_FLOATS = """
    wr wr rr rr r {c}r rrr rrr rrrr rrvr rrr rrr rrr rrr rrr rrrr
"""
_F32 = (
    _FLOATS.format(c="w")
    + """
    rr rr rr rr rr rr rr rr rr rr rr rrr rr rr rr rr
    rr rr rr rr rr rrr rr rr rr rr rrr rrr rrr rrr rrr rrr
    rrr rrr rr rrr rrr rrrr rr rrr rrr rr rr rr rr rr
"""
)
_F64 = (
    _FLOATS.format(c="q")
    + """
    rr rr rr rr rr rr rr rr rr rr rr rr rr rr rr rr
    rr rrr rr rr rr rr rr rr rr rr rr rrr rr rr rr rr
    rrr rrr rrr rrr rrr rrr rrr rrr rr rrr rrr rrrr rr rrr rrr rr
"""
)
_FORMS = _CORE.split()
_EXTENSIONS = {0xE0: _F32.split(), 0xE1: _F64.split()}


class UnknownFormError(ValueError):
    """The bytes are not what this reader knows."""


@dataclass
class Function:
    """A function's moves.

    Attributes:
        used: the registers that its instructions name elsewhere than in moves.
        moves: for each branch that moves registers, where its pairs start in the vmfb, and the pairs.
    """

    used: set[int] = field(default_factory=set)
    moves: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)


def functions(vmfb: bytes | bytearray) -> Iterator[Function]:
    """The functions of a vmfb that branch; none of other files, and of bytecode of another version.

    Raises:
        UnknownFormError: an instruction is not known, or does not end where it should.
    """
    start = bytes(vmfb[:4096]).find(_IDENTIFIER) - 4
    if start < 0:
        return
    # Four bytes before the identifier point to the root table.
    root = start + _u32(vmfb, start)
    if _u32(vmfb, _field(vmfb, root, _VERSION)) >> 16 != VERSION:
        return
    table, code = (_target(vmfb, _field(vmfb, root, number)) for number in (_DESCRIPTORS, _CODE))
    for number in range(_u32(vmfb, table)):
        offset, length, _, _, blocks, *_ = _DESCRIPTOR.unpack_from(vmfb, table + 4 + number * _DESCRIPTOR.size)
        if blocks > 1:
            yield _function(vmfb, code + 4 + offset, length)


def with_moves(vmfb: bytes, changes: dict[int, list[tuple[int, int]]]) -> bytes:
    """A vmfb with other pairs of registers at these positions; an archive's check sum follows."""
    changed = bytearray(vmfb)
    for place, pairs in changes.items():
        struct.pack_into(f"<{2 * len(pairs)}H", changed, place, *(register for pair in pairs for register in pair))
    if changed.startswith(_ARCHIVE):
        _refresh_check_sum(changed)
    return bytes(changed)


def _function(vmfb: bytes | bytearray, start: int, length: int) -> Function:
    found, place = Function(), start
    end = start + length
    try:
        while place < end:
            opcode, place = vmfb[place], place + 1
            forms = _EXTENSIONS.get(opcode)
            if forms is not None:
                opcode, place = vmfb[place], place + 1
            place = _instruction(vmfb, start, place, (forms or _FORMS)[opcode], found)
    except (IndexError, struct.error):
        place = -1
    if place != end:
        raise UnknownFormError(f"an instruction of IREE's bytecode before {place - start} of {length}")
    return found


def _instruction(vmfb: bytes | bytearray, start: int, place: int, form: str, found: Function) -> int:
    """Read the fields of an instruction; returns where it ends."""
    for kind in form:
        if kind == "r":
            found.used.add(_u16(vmfb, place))
            place += 2
        elif kind in "wq":
            place += 4 if kind == "w" else 8
        elif kind == "s":
            place += 2 + _u16(vmfb, place)
        elif kind in "vn":
            place, registers = _list(vmfb, start, place, 1)
            if kind == "v":
                found.used.update(registers)
        elif kind == "m":
            place = _moves(vmfb, start, place, found)
        elif kind == "t":
            count, place = _u16(vmfb, place), place + 2
            for _ in range(count):
                place = _moves(vmfb, start, place + 4, found)
    return place


def _moves(vmfb: bytes | bytearray, start: int, place: int, found: Function) -> int:
    end, registers = _list(vmfb, start, place, 2)
    if registers:
        pairs = list(zip(registers[::2], registers[1::2], strict=True))
        found.moves.append((end - 2 * len(registers), pairs))
    return end


def _list(vmfb: bytes | bytearray, start: int, place: int, width: int) -> tuple[int, tuple[int, ...]]:
    """The end and the numbers of a list, whose count is at an even distance from the function's start."""
    place += (place - start) % 2
    count = _u16(vmfb, place) * width
    return place + 2 + 2 * count, struct.unpack_from(f"<{count}H", vmfb, place + 2)


def _field(data: bytes | bytearray, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    offset = _u16(data, layout + 4 + 2 * number) if 4 + 2 * number < _u16(data, layout) else 0
    if not offset:
        raise UnknownFormError(f"no field {number} in IREE's module")
    return table + offset


def _target(data: bytes | bytearray, place: int) -> int:
    return place + _u32(data, place)


def _refresh_check_sum(archive: bytearray) -> None:
    """Set the check sum of an archive's first file, which is before it and in the list of files at the end."""
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        size = files.infolist()[0].file_size
    end = archive.rfind(_DIRECTORY_END)
    entry = struct.unpack_from("<Q", archive, end + 48)[0]
    name_length, extra_length = struct.unpack_from("<HH", archive, 26)
    start = 30 + name_length + extra_length
    check_sum = zlib.crc32(archive[start : start + size])
    struct.pack_into("<I", archive, 14, check_sum)
    struct.pack_into("<I", archive, entry + 16, check_sum)


def _u16(data: bytes | bytearray, place: int) -> int:
    return data[place] | data[place + 1] << 8


def _u32(data: bytes | bytearray, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])
