"""LLVM's text as an object of machine code, by llvmlite's LLVM in this process.

llvmlite takes one lock for whatever it calls. Passes and code generation are nearly all of the time, and compilations
share nothing if each has a context and a target machine of its own. So these two functions of llvmlite's library are
called without the lock, and several texts are compiled at the same time.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from hloforge.pipelines.codegen.kernel_program import FEW_PASSES, NO_PASSES
from hloforge.runtime.compile.direct.host import DirectError
from hloforge.runtime.compile.direct.processors import HOST, X86_64, Processor

# LLVM's levels: of all passes and of the few, where there is nothing to make vectors of (``kernel_program``).
_SPEED, _FEW = 2, 1
# What decides the object of a text, beside the processor and llvmlite's version. The number is raised when something
# else here does.
SETTINGS = (_SPEED, _FEW, "loops as vectors", "unrolled if asked", "pic", "small", "plain addresses", 3)


# The version of LLVM whose options are known.
_KNOWN = 22
# AMD's processors read the lanes of a gather one by one, in more cycles than loads and insertions, which also share the
# places that are read: a table of 154 numbers interpolated at 96,088 places takes 0.65 of the time (a Zen 5).
_SLOW_GATHERS, _NO_GATHERS = "znver", "+prefer-no-gather,+prefer-no-scatter"


@cache
def named(processor: Processor) -> tuple[str, str]:
    """LLVM's name of a processor, and its features, each with its sign."""
    name, known = processor.name, ""
    if not name:
        llvm = _llvm()
        name, known = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    tuning = _NO_GATHERS if name.startswith(_SLOW_GATHERS) else ""
    return name, ",".join(filter(None, (known, tuning, processor.features)))


class Compiler:
    """One compilation at a time; another thread needs another one."""

    def __init__(self, processor: Processor = HOST) -> None:
        llvm, (name, features) = _llvm(), named(processor)
        if processor.architecture != HOST.architecture:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        self._triple = processor.form.triple
        self._has_indices = processor.architecture == X86_64
        form = {"cpu": name, "features": features, "reloc": "pic", "codemodel": "small"}
        self._machine = llvm.Target.from_triple(self._triple).create_target_machine(opt=_SPEED, **form)
        self._layout = str(self._machine.target_data)
        self._builder, self._few = self._passes(_SPEED), self._passes(_FEW)

    def _passes(self, level: int) -> Any:
        llvm = _llvm()
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.loop_interleaving = True
        # Only loops that ask for it (``llvm.loop.unroll.full``) are unrolled. LLVM's own choice takes a third to four
        # fifths of a compilation, and made sums over 16 columns three times slower.
        options.loop_unrolling = options.slp_vectorization = False
        return llvm.create_pass_builder(self._machine, options)

    def compile(self, text: str) -> bytes:
        """The object of a text.

        Raises:
            DirectError: LLVM refuses it.
        """
        llvm = _llvm()
        try:
            with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
                module.triple, module.data_layout = self._triple, self._layout
                module.verify()
                if text.startswith(FEW_PASSES):
                    self._simplify(module)
                elif not text.startswith(NO_PASSES):
                    self._optimize(module)
                return self._emit(module)
        except RuntimeError as error:
            raise DirectError(f"LLVM refuses a kernel: {error}") from None

    def _optimize(self, module: Any) -> None:
        # A pass manager is empty after its run.
        with self._builder.getModulePassManager() as passes:
            _library().LLVMPY_RunNewModulePassManager(passes, module, self._builder)

    def _simplify(self, module: Any) -> None:
        """LLVM's passes over a function alone, which take half of the time of all."""
        with self._few.getFunctionPassManager() as passes:
            for function in module.functions:
                if not function.is_declaration:
                    _library().LLVMPY_RunNewFunctionPassManager(passes, function, self._few)

    def _emit(self, module: Any) -> bytes:
        library, error = _library(), ctypes.c_char_p()
        with _PLAIN_ADDRESSES.kept() if self._has_indices else nullcontext():
            buffer = library.LLVMPY_TargetMachineEmitToMemory(self._machine, module, 1, ctypes.byref(error))
        if not buffer:
            raise DirectError(f"LLVM makes no code of a kernel: {(error.value or b'').decode(errors='replace')}")
        try:
            return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
        finally:
            library.LLVMPY_DisposeMemoryBuffer(buffer)


class _PlainAddresses:
    """Keeps LLVM from its loop strength reduction, which is an option of the whole process, while code is made.

    That takes a third of the time that code takes, to find fewer numbers that loops count. But addresses of x86-64 are
    sums of two numbers and a constant, and loops count what these need (``lang/addresses.py``). Other users of llvmlite
    in this process have the option as it was.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Go on in a forked child, where no other thread makes code."""
        self._lock, self._users = threading.Lock(), 0

    @contextmanager
    def kept(self) -> Iterator[None]:
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, by: int) -> None:
        llvm = _llvm()
        with self._lock:
            was, self._users = self._users, self._users + by
            # LLVM ends the process at an option that it does not know.
            if llvm.llvm_version_info[0] == _KNOWN and 0 in (was, self._users):
                llvm.set_option("hloforge", f"--disable-lsr={'true' if by > 0 else 'false'}")


_PLAIN_ADDRESSES = _PlainAddresses()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PLAIN_ADDRESSES.forget)


@cache
def _llvm() -> Any:
    """LLVM, which takes 30 to 100 ms to load."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Kernels with a system call (``products/tile_registers.py``) have a line of assembly.
    llvm.initialize_native_asmparser()
    return llvm


@cache
def _library() -> ctypes.CDLL:
    """llvmlite's library without its lock."""
    from llvmlite.utils import get_library_name

    library = ctypes.CDLL(str(Path(_llvm().__file__).parent / get_library_name()))
    pointer = ctypes.c_void_p
    library.LLVMPY_RunNewModulePassManager.restype = library.LLVMPY_RunNewFunctionPassManager.restype = None
    library.LLVMPY_TargetMachineEmitToMemory.restype = pointer
    library.LLVMPY_GetBufferStart.argtypes, library.LLVMPY_GetBufferStart.restype = [pointer], pointer
    library.LLVMPY_GetBufferSize.argtypes, library.LLVMPY_GetBufferSize.restype = [pointer], ctypes.c_size_t
    library.LLVMPY_DisposeMemoryBuffer.argtypes, library.LLVMPY_DisposeMemoryBuffer.restype = [pointer], None
    return library
