"""Kernels for 64-bit Arm in an emulator: the library of a vmfb in memory, its dispatches one after the other.

It is not IREE's runtime. It loads the library as IREE's loader does, and calls kernels with the structures of
``executable_library.h``, in the order of the vmfb's schedule.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import unicorn  # type: ignore[import-not-found,unused-ignore]
from unicorn import arm64_const as registers

from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.native.calls import CONSTANTS, LIBRARY
from hloforge.runtime.native.schedule_file import NAME, read
from hloforge.runtime.session.arrays import Codec
from hloforge.runtime.session.convention import leaf_values, nest_results

_LIBRARY_AT, _STACK_AT, _STATE_AT, _DATA_AT, _END_AT = 0x10000000, 0x20000000, 0x30000000, 0x40000000, 0x0F000000
_STACK_BYTES, _PAGE = 1 << 22, 1 << 16
_LOAD, _DYNAMIC = 1, 2
_SYMBOLS, _RELA, _RELA_SIZE, _RELATIVE = 6, 7, 8, 1027
_VERSION, _COUNT, _FUNCTIONS = 6, 24, 32
# Of the state of a dispatch; subnormal numbers are zero (FPCR.FZ), vectors are allowed (CPACR_EL1.FPEN).
_GROUPS, _POINTERS, _FLUSHING, _VECTORS = 12, 32, 1 << 24, 3 << 20
# Instructions of a kernel.
_MOST = 2_000_000_000


class EmulatedError(Exception):
    """A kernel reads or writes outside of its arrays, fails, or does not end."""


class Machine:
    """An emulated processor with a library in its memory.

    Attributes:
        kernels: their addresses.
    """

    def __init__(self, library: bytes) -> None:
        self._core = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._core.ctl_set_cpu_model(registers.UC_CPU_ARM64_MAX)
        self._core.reg_write(registers.UC_ARM64_REG_CPACR_EL1, _VECTORS)
        for place, size in ((_STACK_AT, _STACK_BYTES), (_STATE_AT, _PAGE), (_END_AT, _PAGE)):
            self._core.mem_map(place, size)
        self._load(library)
        tables = self.call(_LIBRARY_AT + self._query, _VERSION, 0)
        count = self._word(tables + _COUNT, "<I")
        functions = self._word(tables + _FUNCTIONS)
        self.kernels = [self._word(functions + 8 * number) for number in range(count)]
        self._free = _DATA_AT

    def _load(self, data: bytes) -> None:
        header = struct.unpack_from("<16sHHIQQQIHHHHHH", data)
        assert header[2] == 183, "no library for 64-bit Arm"
        heads = [struct.unpack_from("<IIQQQQQQ", data, header[5] + 56 * number) for number in range(header[10])]
        loaded = [head for head in heads if head[0] == _LOAD]
        end = max(head[3] + head[6] for head in loaded)
        self._core.mem_map(_LIBRARY_AT, -(-end // _PAGE) * _PAGE)
        for _, _, offset, address, _, size, _, _ in loaded:
            self._core.mem_write(_LIBRARY_AT + address, data[offset : offset + size])
        dynamic = next(head for head in heads if head[0] == _DYNAMIC)
        tags = dict(struct.iter_unpack("<QQ", data[dynamic[2] : dynamic[2] + dynamic[5]]))
        for number in range(tags[_RELA_SIZE] // 24):
            place, kind, value = struct.unpack("<QQq", self._core.mem_read(_LIBRARY_AT + tags[_RELA] + 24 * number, 24))
            assert kind == _RELATIVE
            self._core.mem_write(_LIBRARY_AT + place, struct.pack("<Q", _LIBRARY_AT + value))
        self._query = self._word(_LIBRARY_AT + tags[_SYMBOLS] + 24 + 8)

    def _word(self, place: int, form: str = "<Q") -> int:
        (found,) = struct.unpack(form, self._core.mem_read(place, struct.calcsize(form)))
        return int(found)

    def call(self, function: int, *arguments: int) -> int:
        """A function of the C calling convention with integers."""
        for number, argument in enumerate(arguments):
            self._core.reg_write(registers.UC_ARM64_REG_X0 + number, argument)
        self._core.reg_write(registers.UC_ARM64_REG_SP, _STACK_AT + _STACK_BYTES - 256)
        self._core.reg_write(registers.UC_ARM64_REG_FPCR, _FLUSHING)
        self._core.reg_write(registers.UC_ARM64_REG_LR, _END_AT)
        try:
            self._core.emu_start(function, _END_AT, count=_MOST)
        except unicorn.UcError as error:
            at = self._core.reg_read(registers.UC_ARM64_REG_PC) - _LIBRARY_AT
            raise EmulatedError(f"{error}, at {at:#x} of the library") from None
        if self._core.reg_read(registers.UC_ARM64_REG_PC) != _END_AT:
            raise EmulatedError("a kernel does not end")
        return int(self._core.reg_read(registers.UC_ARM64_REG_X0))

    def place(self, data: bytes) -> int:
        """The address of a copy of these bytes, with a gap to the next one that nobody may touch."""
        size = -(-max(len(data), 1) // _PAGE) * _PAGE
        self._core.mem_map(self._free, size)
        self._core.mem_write(self._free, data)
        found, self._free = self._free, self._free + size + _PAGE
        return found

    def data(self, place: int, size: int) -> bytes:
        return bytes(self._core.mem_read(place, size))

    def run(self, kernel: int, arrays: Sequence[int], groups: int) -> None:
        """A dispatch."""
        pointers = self.place(struct.pack(f"<{len(arrays)}Q", *arrays))
        state = bytearray(64)
        struct.pack_into("<IH", state, _GROUPS, groups, 1)
        struct.pack_into("<Q", state, _POINTERS, pointers)
        self._core.mem_write(_STATE_AT, bytes(state))
        for group in range(groups):
            self._core.mem_write(_STATE_AT + 64, struct.pack("<16I", group, *[0] * 15))
            if self.call(self.kernels[kernel], 0, _STATE_AT, _STATE_AT + 64) & 0xFFFFFFFF:
                raise EmulatedError("a kernel fails")


def emulated(executable: Executable, *arguments: Any) -> Any:
    """The results of a call of a program that code generation made for 64-bit Arm."""
    with zipfile.ZipFile(io.BytesIO(executable.vmfb)) as archive:
        files = {name: archive.read(name) for name in (NAME, LIBRARY, CONSTANTS) if name in archive.namelist()}
    signature = executable.manifest.signature
    shapes = [leaf.shape for leaf in signature.flat_parameters]
    flat = leaf_values(signature, arguments)
    given = [Codec("x", shape)._to_physical(np.asarray(value)) for shape, value in zip(shapes, flat, strict=True)]
    results = [Codec("r", shape) for shape in signature.flat_results]
    if NAME not in files:
        if LIBRARY in files:
            raise EmulatedError("its kernels keep numbers from call to call, so that it has no schedule")
        # A program without kernels makes arrays without elements.
        empty = [codec.logical(np.empty(codec._physical_dimensions, codec._physical_dtype)) for codec in results]
        return empty[0] if signature.result.is_array else nest_results(signature.result, empty)
    machine, schedule = Machine(files[LIBRARY]), read(files[NAME])
    assert schedule is not None
    buffers = [machine.place(np.ascontiguousarray(array).tobytes()) for array in given]
    buffers += [machine.place(bytes(codec.byte_count)) for codec in results]
    buffers += [machine.place(bytes(schedule.transient)), machine.place(files.get(CONSTANTS, b""))]
    for part in schedule.parts:
        arrays = [buffers[buffer] + offset for buffer, offset in part.bindings]
        machine.run(part.kernel, arrays, part.workgroups)
    made = []
    for number, codec in enumerate(results):
        data = machine.data(buffers[len(given) + number], codec.byte_count)
        physical = np.frombuffer(data, codec._physical_dtype).reshape(codec._physical_dimensions)
        made.append(codec.logical(physical))
    return made[0] if signature.result.is_array else nest_results(signature.result, made)
