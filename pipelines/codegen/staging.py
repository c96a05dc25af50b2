"""Kernels of more arrays than a dispatch binds: arguments and results among them are copied to and from one buffer.

What a program works in lies in one buffer, which a kernel binds once. A loop over dozens of arguments, or branches with
dozens of results, is one kernel all the same: as many of these as are too many get a place in that buffer. Kernels
before it copy arguments there, and kernels after it copy results back. The smallest arrays are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hloforge.pipelines.codegen.kernel_writer import MOST_BINDINGS, KernelWriter
from hloforge.pipelines.codegen.slots import Arena, Slot, Where

# A slot to read, and one to write.
Copy: TypeAlias = tuple[Slot, Slot]

_OF_CALLER = (Where.PARAMETER, Where.RESULT, Where.WEIGHT)
_COPIES = MOST_BINDINGS // 2


def stage(kernel: KernelWriter, arena: Arena) -> list[Copy]:
    """Let a kernel use places of the arena instead of arguments and results that it cannot bind.

    Returns:
        these with their places, which are the caller's to give back after the kernel.
    """
    excess = len(kernel.bindings()) - MOST_BINDINGS
    if excess <= 0:
        return []
    # The buffer takes a binding of its own, if the kernel had none of it.
    excess += all(slot.where is not Where.TRANSIENT for slot in kernel.slots)
    chosen = sorted((slot for slot in kernel.slots if slot.where in _OF_CALLER), key=lambda slot: slot.size)[:excess]
    places = {slot: Slot(Where.TRANSIENT, slot.size, slot.element, offset=arena.take(slot.size)) for slot in chosen}
    kernel.slots[:] = [places.get(slot, slot) for slot in kernel.slots]
    return list(places.items())


def copying(copies: Sequence[Copy], vector_bytes: int) -> Iterator[KernelWriter]:
    """Kernels that copy slots.

    Args:
        vector_bytes: of the processor's registers.
    """
    for start in range(0, len(copies), _COPIES):
        kernel = KernelWriter(vector_bytes)
        for source, target in copies[start : start + _COPIES]:
            kernel.function.copy(kernel.memory(target).pointer, kernel.memory(source).pointer, source.size)
        yield kernel
