"""Which buffers a program's dispatches use, and where one has to wait for another."""

from __future__ import annotations

from hloforge.pipelines.codegen.kernel_program import HOST_BYTES, Binding, KernelProgram
from hloforge.runtime.compile.direct.host import DirectError
from hloforge.runtime.native.schedule_file import Bounded, Part, Schedule


def constants_of(program: KernelProgram) -> int:
    """The number of the constant buffer; that of the transient buffer is one less."""
    return len(program.parameters) + len(program.results) + 1


def known_of(program: KernelProgram) -> list[int]:
    """The numbers of the buffers that are the same in each call: the constants, and weights."""
    return [constants_of(program), *range(program.host + 1, program.host + 1 + len(program.weights))]


def slots_of(program: KernelProgram) -> list[int]:
    """The buffers of a call that dispatches use, in the order in which the command buffer numbers them."""
    used = {binding.buffer for dispatch in program.dispatches for binding in dispatch.bindings}
    return sorted(used - set(known_of(program)))


def barriers_of(program: KernelProgram) -> list[bool]:
    """Whether each dispatch has to wait for those before it.

    Nobody says what a kernel writes, so that any two that share bytes of a buffer which is not the caller's nor
    constant are kept in order; and so are any two that call the host. A parameter with a result in it counts as ours.
    """
    found, since = [], list[Binding]()
    kept = set(range(len(program.parameters), constants_of(program))) | {program.host}
    kept |= {parameter for _, parameter in program.aliases}
    for dispatch in program.dispatches:
        shared = [binding for binding in dispatch.bindings if binding.buffer in kept]
        waits = any(_overlap(one, other) for one in shared for other in since)
        found.append(waits)
        since = shared if waits else since + shared
    return found


def schedule_of(program: KernelProgram) -> Schedule:
    """What calls without IREE's runtime are told."""
    parts = [
        Part(one.kernel, one.workgroups, tuple((own.buffer, own.offset) for own in one.bindings), one.shares)
        for one in program.dispatches
    ]
    return Schedule(
        len(program.parameters),
        len(program.results),
        program.transient,
        tuple(parts),
        len(program.weights),
        program.aliases,
        tuple(Bounded(result.shape, sizes) for result, sizes in program.returned) if program.sizes else (),
    )


def check(program: KernelProgram) -> None:
    """Raises DirectError if a dispatch names what the program does not have."""
    sizes = [array.size for array in (*program.parameters, *program.results)]
    sizes += [program.transient, len(program.constants), HOST_BYTES if program.host_calls else 0]
    sizes += [size for _, size in program.weights]
    bound: dict[int, int] = {}
    for dispatch in program.dispatches:
        if not 0 <= dispatch.kernel < len(program.kernels):
            raise DirectError(f"no kernel {dispatch.kernel}")
        if bound.setdefault(dispatch.kernel, len(dispatch.bindings)) != len(dispatch.bindings):
            raise DirectError(f"kernel {dispatch.kernel} is given different numbers of arrays")
        for binding in dispatch.bindings:
            inside = 0 <= binding.buffer < len(sizes) and min(binding.offset, binding.length) >= 0
            if not inside or binding.offset + binding.length > sizes[binding.buffer]:
                raise DirectError(f"{binding} is outside of the program's buffers")


def _overlap(one: Binding, other: Binding) -> bool:
    if one.buffer != other.buffer:
        return False
    return one.offset < other.offset + other.length and other.offset < one.offset + one.length
