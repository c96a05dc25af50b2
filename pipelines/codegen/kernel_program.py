"""A program as kernels and the order in which they run: what code generation says and ``runtime/compile/direct`` makes.

A kernel is LLVM IR text of its own, which names nothing of its program, so that equal kernels have equal texts and
machine code is kept by content. It reads and writes arrays, which a program places in buffers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# The name of a kernel's entry in its text; globals and functions of its own begin with it and a dot.
ENTRY = "kernel"
# The first line of a text whose loops all have vectors, so that LLVM makes none: most of its passes gain nothing.
FEW_PASSES = "; few passes\n"
# The first line of a text that is as good as passes make it.
NO_PASSES = "; no passes\n"
# Where arrays of the transient and of the constant buffer begin.
ALIGNMENT = 64
# The table of the host: the address of a function ``int call(i64 number, ptr arrays)``.
HOST_BYTES = 8
# How a caller offers threads for steps in loops, in a dispatch's state: a number of constants, and their address. They
# are a function ``void share(ptr pool, ptr run, ptr arguments, ptr own, i64 count)``, which calls ``run(null,
# arguments, own)`` for each workgroup's number, 32 bits at ``own``, in any threads; and the pool.
CONSTANTS_COUNT_AT, CONSTANTS_AT, HANDED = 10, 24, 2


@dataclass(frozen=True)
class ArrayType:
    """An array at the border of a program, dense and row-major.

    Attributes:
        element: as MLIR spells it: ``f32``, ``ui8``, ``i1`` (a byte each), ``complex<f64>``.
        element_bytes: of one element in memory.
    """

    element: str
    shape: tuple[int, ...]
    element_bytes: int

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.element_bytes


@dataclass(frozen=True)
class Binding:
    """Bytes of a buffer that a dispatch reads or writes.

    Attributes:
        buffer: the number of a parameter; then those of the results, the transient buffer, the constants, the table
            of the host, and the weights.
        offset: in bytes.
        length: in bytes.
    """

    buffer: int
    offset: int
    length: int


@dataclass(frozen=True)
class Dispatch:
    """A kernel that runs once for each workgroup.

    Attributes:
        kernel: its number among the program's.
        bindings: its arrays, in the order of its text.
        workgroups: how many run, in any order and at once.
        shares: most workgroups of its own that a step of a loop in it has done.
        origins: names in the locations of the operations that it computes, where these were asked for.
    """

    kernel: int
    bindings: tuple[Binding, ...]
    workgroups: int = 1
    shares: int = 1
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True)
class KernelProgram:
    """A program of static sizes, but for what it returns.

    Attributes:
        parameters: arrays of the caller, which no kernel writes but those that results lie in.
        results: arrays that the program makes, each in a buffer of its own or in a parameter's.
        sizes: of the arrays that are returned, if each call has others: -1 - n is the number in result n.
            Results after them are such numbers of 32 bits. What is returned lies at the beginning of its result.
        aliases: the parameters that results lie in, by the numbers of these. Such a result has no other buffer.
        transient: bytes of the buffer that is gone after the call; 0 for none.
        constants: what the constant buffer holds; empty for none.
        kernels: LLVM IR texts, each with ``define i32 @kernel(ptr %environment, ptr %state, ptr %workgroup)``, whose
            arguments are those of ``iree_hal_executable_dispatch_v0_t``.
        parts: LLVM IR texts of functions that kernels call, each with the name of the one that it defines.
        names: of the kernels, for people; none where nobody names them.
        dispatches: in order; each sees what those before it have written.
        has_variables: whether kernels change what is beside the constants, atomically, and later calls read that.
        host_calls: records of the functions of the host that kernels call by their numbers. Such a kernel has one
            workgroup, and returns another number than 0 where a function has failed.
        weights: arrays of a file that is read when the program is loaded: names and sizes in bytes.
    """

    parameters: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    transient: int
    constants: bytes
    kernels: tuple[str, ...]
    dispatches: tuple[Dispatch, ...]
    has_variables: bool = False
    host_calls: tuple[str, ...] = ()
    weights: tuple[tuple[str, int], ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    sizes: tuple[tuple[int, ...], ...] = ()

    @property
    def returned(self) -> tuple[tuple[ArrayType, tuple[int, ...]], ...]:
        """The results that a caller gets, each with its sizes as of ``sizes``."""
        sizes = self.sizes or [result.shape for result in self.results]
        return tuple(zip(self.results, sizes, strict=False))

    def name(self, kernel: int) -> str:
        """Of a kernel by its number."""
        return self.names[kernel] if self.names else f"kernel_{kernel}"

    @property
    def host(self) -> int:
        """The number of the buffer that is the table of the host."""
        return len(self.parameters) + len(self.results) + 2
