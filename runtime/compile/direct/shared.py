"""What the functions of a module share: its globals, and how they wait."""

from __future__ import annotations

from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.runtime.compile.direct import hal
from hloforge.runtime.compile.direct.bytecode import Code

# Numbers and types.
DEVICE = 0, hal.TYPES.index("!hal.device")
ALLOCATOR = 1, hal.TYPES.index("!hal.allocator")
COMMANDS = 2, hal.TYPES.index("!hal.command_buffer")
# The first weight; others follow.
WEIGHT = 3, hal.TYPES.index("!hal.buffer")


def count(program: KernelProgram) -> int:
    """Of a module's globals."""
    return WEIGHT[0] + len(program.weights)


def code_of(program: KernelProgram, parameters: int = 0) -> Code:
    """A function of a program's module, without its code."""
    return Code({name: number for number, name in enumerate(hal.imports_of(program))}, parameters)


def await_fence(code: Code, fence: int) -> None:
    """Wait for a fence, and fail if what it stands for has failed."""
    status = code.number(32)
    code.await_("hal.fence.await", code.i32(hal.FOR_EVER), code.i64(0), [code.moved(fence)], results=[status])
    code.fail_if(status, "failed to wait on timepoint")
