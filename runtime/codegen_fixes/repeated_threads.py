"""Remove threads that repeat others' work in CUDA's kernels, between two runs of IREE's compiler.

IREE 3.13 chooses the threads of a block for a dispatch, and may give its operations to none or to fewer dimensions of
them: 64 threads of a scatter each added all updates. A dimension along which no thread asks for its position gets the
size 1, as in ``idle_invocations.py`` for Vulkan. Source: PTX ISA, "Special Registers: %tid", ".maxntid".
"""

from __future__ import annotations

import re

from hloforge.runtime.codegen_fixes.kernel_text import Kernel, kernels

__all__ = ["without_repeated_threads"]

_NUMBERS = (b"nvvm.read.ptx.sreg.ctaid.", b"nvvm.read.ptx.sreg.nctaid.")
_PLACE = b"nvvm.read.ptx.sreg.tid."
_BARRIER = b"nvvm.barrier"
_EXPORT = re.compile(rb"^ *hal\.executable\.export public @(\S+) ")
_SIZES = re.compile(rb"workgroup_size = \[(\d+) : index, (\d+) : index, (\d+) : index\]")
_BLOCK = re.compile(rb"gpu\.known_block_size = array<i32: \d+, \d+, \d+>")


def without_repeated_threads(code: bytes) -> bytes:
    """The text of IREE's module, where it has written LLVM's dialect, with blocks of as many threads as differ."""
    lines = code.split(b"\n")
    found = {kernel.name: kernel for kernel in kernels(lines)}
    sizes = {name: _needed(kernel) for name, kernel in found.items()}
    changed = {name: needed for name, needed in sizes.items() if needed not in (None, found[name].sizes)}
    name = b""
    for number, line in enumerate(lines if changed else ()):
        if export := _EXPORT.match(line):
            name = export[1]
        needed = changed.get(name)
        if needed and _SIZES.search(line):
            texts = b", ".join(b"%d : index" % size for size in needed)
            lines[number] = _SIZES.sub(b"workgroup_size = [" + texts + b"]", line)
            head = found.get(name)
            if head:
                block = b"gpu.known_block_size = array<i32: %d, %d, %d>" % needed
                lines[head.line] = _BLOCK.sub(block, lines[head.line])
            name = b""
    return b"\n".join(lines) if changed else code


def _needed(kernel: Kernel) -> tuple[int, int, int] | None:
    """The sizes of blocks that a kernel needs; None if something but their positions tells its threads apart."""
    read = set()
    for operation in kernel.operations():
        if operation.name.startswith(_PLACE):
            read.add(operation.name[len(_PLACE) :])
        elif operation.name.startswith(b"nvvm.") and not operation.name.startswith(_NUMBERS):
            # Warps, and whatever counts threads; a barrier of the whole block does not.
            if operation.body != _BARRIER:
                return None
        elif b"atomic" in operation.name or operation.name == b"llvm.inline_asm":
            return None
    x, y, z = (size if axis in read else 1 for axis, size in zip((b"x", b"y", b"z"), kernel.sizes, strict=True))
    return x, y, z
