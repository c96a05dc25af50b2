"""Functions of the kernel language as machine code of this machine, called with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, POINTER, Value
from hloforge.runtime.native.library import Library

from .linked import linked

_ATTRIBUTES = 'nounwind "no-trapping-math"="true" "prefer-vector-width"="512"'


@dataclass
class Compiled:
    """A function in memory.

    Attributes:
        text: LLVM's text, as it was written.
        speed: the level of LLVM's passes.
    """

    library: Library
    text: str
    speed: int

    @cached_property
    def optimized(self) -> str:
        """The text after LLVM's passes."""
        return str(_optimized(self.text, self.speed))

    @cached_property
    def assembly(self) -> str:
        """The machine code."""
        return str(_machine().emit_assembly(_optimized(self.text, self.speed)))

    def __call__(self, *arguments: np.ndarray[Any, Any] | int) -> None:
        """Call it with arrays, which it may write, and numbers."""
        types = [ctypes.c_int64 if isinstance(one, int) else ctypes.c_void_p for one in arguments]
        values = [one if isinstance(one, int) else one.ctypes.data for one in arguments]
        ctypes.CFUNCTYPE(None, *types)(self.library.kernels[0])(*values)


def compiled(
    write: Callable[..., None], pointers: int, numbers: int = 0, *, constants: Sequence[str] = (), speed: int = 2
) -> Compiled:
    """A function of pointers to arrays that do not overlap, and of numbers of 64 bits.

    Args:
        write: given a Function, its pointers and its numbers, writes its body.
        constants: definitions of globals.
    """
    function = Function(vector_bytes=64)
    own = [Value(function, POINTER, f"%p{place}") for place in range(pointers)]
    others = [Value(function, I64, f"%n{place}") for place in range(numbers)]
    write(function, own, others) if numbers else write(function, own)
    function.do("ret void")
    taken = [f"ptr noalias noundef {pointer.text}" for pointer in own] + [f"i64 noundef {n.text}" for n in others]
    # Parts of their own stand in this text, too, because it is the only object.
    function.has_scalar_loops = False
    text, _ = function.text(f"define void @kernel({', '.join(taken)}) #0")
    return compiled_text(
        "\n".join((*constants, *function.definitions.values(), text, f"attributes #0 = {{ {_ATTRIBUTES} }}\n")),
        speed=speed,
    )


def compiled_text(text: str, *, speed: int = 2) -> Compiled:
    """LLVM's text with a function ``kernel``."""
    code = _machine().emit_object(_optimized(text, speed))
    return Compiled(linked(code, "kernel"), text, speed)


def _optimized(text: str, speed: int) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return module


@cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")


def address_room(size: int, alignment: int = 64) -> np.ndarray[Any, Any]:
    """Bytes that begin at a multiple of ``alignment``, all 0xA5."""
    room = np.full(size + alignment, 0xA5, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]
