"""Runs kernels' texts in this process, compiled by LLVM as they are, without IREE."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
import pytest

from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.products import tile_registers
from hloforge.pipelines.framework.machine import AVX2, AVX512, Machine
from hloforge.runtime.native.library import Library
from tests.pipelines.codegen.linked import linked

from .emulated_tiles import emulated

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.initialize_native_asmparser()

# Of this processor, by LLVM's names; and the width of the vectors that instructions of its own have.
EXTENSIONS = frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
HOST = AVX512 if "avx512bw" in EXTENSIONS else AVX2
# With registers for tiles, which are emulated where the processor has none.
WITH_TILES = EXTENSIONS | tile_registers.EXTENSIONS


def machine_of(extensions: frozenset[str]) -> Machine:
    """A kernel's processor: whichever has registers for tiles has vectors of 64 bytes, of which LLVM makes two here."""
    return AVX512 if tile_registers.EXTENSIONS & extensions else HOST


TILED = machine_of(WITH_TILES)


def skip_unless_made(machine: Machine, kind: str) -> None:
    """Skip a test of bytes by wider vectors than this processor has: LLVM has no code for those instructions."""
    if kind == "i8" and machine.vector_bytes > HOST.vector_bytes:
        pytest.skip("this processor lacks AVX-512, whose products of bytes the kernel has")


@dataclass(frozen=True)
class Compiled:
    """A kernel in memory.

    Attributes:
        seconds: that LLVM took.
        assembly: its machine code as text, if it was asked for.
    """

    library: Library
    call: ctypes._FuncPointer
    seconds: float
    assembly: str

    def run(self, arrays: Sequence[np.ndarray], workgroups: int = 1) -> None:
        """One call of each workgroup, in order."""
        runner = self.bind([array.ctypes.data for array in arrays])
        for number in range(workgroups):
            runner(number)

    def bind(self, addresses: Sequence[int]) -> Callable[..., None]:
        """A function of a workgroup's number, while the arrays at these addresses live."""
        table = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        state = (ctypes.c_uint64 * 8)()
        state[4] = ctypes.addressof(table)
        group = (ctypes.c_uint32 * 8)()
        call = self.call

        def runner(number: int = 0) -> None:
            group[0] = number
            # Named here, the table lives as long as this function.
            if call(None, ctypes.addressof(state), ctypes.addressof(group)) or not table:
                raise RuntimeError("a kernel failed")

        return runner


def compiled(text: str, *, cpu: str = "", features: str = "", level: int = 2, assembly: bool = False) -> Compiled:
    """A kernel's text as machine code for a processor: this machine's unless it is named."""
    target = llvm.Target.from_default_triple()
    if not cpu:
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default")
    if not tile_registers.EXTENSIONS <= EXTENSIONS:
        text = emulated(text)
    started = time.perf_counter()
    module = llvm.parse_assembly(text)
    code = machine.emit_object(module)
    seconds = time.perf_counter() - started
    listing = machine.emit_assembly(llvm.parse_assembly(text)) if assembly else ""
    library = linked(code, ENTRY)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return Compiled(library, kind(library.kernels[0]), seconds, listing)
