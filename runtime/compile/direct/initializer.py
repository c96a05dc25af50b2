"""The function ``__init`` of a module: the device, the machine code, the constants, and the recorded dispatches."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.pipelines.weight_names import SCOPE
from hloforge.runtime.compile.direct import hal
from hloforge.runtime.compile.direct.bytecode import (
    ADD_I32,
    AND_I32,
    LESS_I32,
    NONNULL,
    NONZERO_I64,
    Code,
    Function,
)
from hloforge.runtime.compile.direct.rodata import Rodata
from hloforge.runtime.compile.direct.schedule import barriers_of, known_of, slots_of
from hloforge.runtime.compile.direct.shared import ALLOCATOR, COMMANDS, DEVICE, WEIGHT, await_fence, code_of

# Of names of weights: place and length among all. Of what is read of each: from where, to where, how many bytes.
_KEY, _SPAN = struct.Struct("<II"), struct.Struct("<QQQ")


def init_of(
    program: KernelProgram,
    exports: Sequence[str],
    rodata: Rodata,
    library: tuple[int, int],
    constants: tuple[int, int],
    format_: str,
) -> Function:
    """The function that runs when the module is loaded.

    Args:
        exports: the name of each kernel in the library.
        library: place and size of the machine code behind the module.
        constants: the same of the constant buffer's bytes.
        format_: IREE's name of the machine code.
    """
    code = code_of(program)
    device = _chosen_device(code, rodata, format_)
    allocator = code.reference()
    code.call("hal.device.allocator", device, results=[allocator])
    code.store(device, *DEVICE)
    code.store(allocator, *ALLOCATOR)
    weights = _weights(code, program, rodata, device) if program.weights else []
    if program.dispatches:
        held = rodata, device, allocator, constants
        buffer = _constant_buffer(code, *held, is_changed=program.has_variables) if program.constants else code.null()
        executable = _loaded(code, rodata, device, library, format_)
        code.store(
            code.moved(_recorded(code, program, exports, rodata, device, executable, (buffer, *weights))), *COMMANDS
        )
    code.return_()
    return code.finish()


def _chosen_device(code: Code, rodata: Rodata, format_: str) -> int:
    """The first device of this machine that takes the machine code."""
    count, number, is_fit, holds = (code.number(32) for _ in range(4))
    value, device = code.number(64), code.reference()
    code.call("hal.devices.count", results=[count])
    code.compute(ADD_I32, code.i32(0), code.i32(0), number)
    code.branch("look")
    code.block("look")
    code.compute(LESS_I32, number, count, holds)
    code.branch_if(holds, "ask", "absent")
    code.block("ask")
    code.call("hal.devices.get", number, results=[device])
    for key, pattern, then in (("hal.device.id", "local*", "loads"), ("hal.executable.format", format_, "found")):
        asked = code.moved(code.rodata(rodata.text(key))), code.moved(code.rodata(rodata.text(pattern)))
        code.call("hal.device.query.i64", device, *asked, results=[is_fit, value])
        code.compute(NONZERO_I64, value, holds)
        code.compute(AND_I32, is_fit, holds, holds)
        code.branch_if(holds, then, "next")
        if then == "loads":
            code.block("loads")
    code.block("next")
    code.discard(device)
    code.compute(ADD_I32, number, code.i32(1), number)
    code.branch("look")
    code.block("absent")
    code.fail(code.i32(hal.UNAVAILABLE), f"HAL device `__device_0` not found or unavailable: local, {format_}")
    code.block("found")
    return device


def _loaded(code: Code, rodata: Rodata, device: int, library: tuple[int, int], format_: str) -> int:
    executable = code.reference()
    code.call(
        "hal.executable.create",
        device,
        code.i64(hal.ANY_QUEUE),
        code.moved(code.rodata(rodata.text(format_))),
        code.moved(code.rodata(rodata.external(*library))),
        code.null(),
        results=[executable],
    )
    return executable


def _constant_buffer(
    code: Code, rodata: Rodata, device: int, allocator: int, constants: tuple[int, int], *, is_changed: bool
) -> int:
    """The constants as they lie in the file if the device can read them there and nobody writes them, or a copy."""
    buffer, file, fence, is_mapped = code.reference(), code.reference(), code.reference(), code.number(32)
    data = code.rodata(rodata.external(*constants))
    usual = code.i32(hal.OWN), code.i32(hal.USAGE if is_changed else hal.CONSTANT_USAGE)
    start, size, queue = code.i64(0), code.i64(constants[1]), code.i64(hal.ANY_QUEUE)
    if is_changed:
        code.branch("copy")
    else:
        tries = code.i32(1)
        code.call("hal.allocator.import", allocator, tries, queue, *usual, data, start, size, results=[buffer])
        code.compute(NONNULL, buffer, is_mapped)
        code.branch_if(is_mapped, "ready", "copy")
    code.block("copy")
    code.call("hal.allocator.allocate", allocator, queue, *usual, size, results=[buffer])
    opened = device, queue, code.i32(hal.READ), data, start, size, code.i32(0)
    code.call("hal.ex.file.from_memory", *opened, results=[file])
    code.call("hal.fence.create", device, start, results=[fence])
    code.call("hal.device.queue.read", device, queue, code.null(), fence, file, start, buffer, start, size, start)
    await_fence(code, fence)
    code.branch("ready")
    code.block("ready")
    return buffer


def _weights(code: Code, program: KernelProgram, rodata: Rodata, device: int) -> list[int]:
    """The buffers of a program's weights, in the pages of their file if the device can read them there."""
    keys = [name.encode() for name, _ in program.weights]
    ends = list(accumulate(map(len, keys)))
    table = b"".join(_KEY.pack(end - len(key), len(key)) for key, end in zip(keys, ends, strict=True))
    spans = b"".join(_SPAN.pack(0, 0, size) for _, size in program.weights)
    scope = code.moved(code.rodata(rodata.text(SCOPE)))
    told = [code.moved(code.rodata(rodata.data(data))) for data in (table, b"".join(keys), spans)]
    list_, fence, queue = code.reference(), code.reference(), code.i64(hal.ANY_QUEUE)
    code.call("hal.fence.create", device, code.i64(0), results=[fence])
    usual = code.i32(hal.OWN), code.i32(hal.CONSTANT_USAGE)
    code.call(hal.LOAD, device, queue, code.null(), fence, scope, queue, *usual, *told, results=[list_])
    await_fence(code, fence)
    found = []
    for number in range(len(keys)):
        found.append(code.element(list_, code.i32(number), WEIGHT[1]))
        code.store(found[-1], WEIGHT[0] + number, WEIGHT[1])
    return found


def _recorded(
    code: Code,
    program: KernelProgram,
    exports: Sequence[str],
    rodata: Rodata,
    device: int,
    executable: int,
    known: Sequence[int],
) -> int:
    """The command buffer of all dispatches.

    Args:
        known: the buffers that are the same in each call: of the constants, and of weights.
    """
    commands, slots = code.reference(), slots_of(program)
    place = {buffer: number for number, buffer in enumerate(slots)}
    buffers = dict(zip(known_of(program), known, strict=True))
    one, zero, nothing = code.i32(1), code.i32(0), code.i64(0)
    arguments = code.i32(0), code.i32(hal.CATEGORIES), code.i64(hal.ANY_QUEUE), code.i32(len(slots))
    code.call("hal.command_buffer.create", device, *arguments, results=[commands])
    functions: dict[str, int] = {}
    for dispatch, waits in zip(program.dispatches, barriers_of(program), strict=True):
        name = exports[dispatch.kernel]
        if name not in functions:
            functions[name] = code.number(64)
            text = code.moved(code.rodata(rodata.text(name)))
            code.call("hal.executable.lookup.function", executable, text, results=[functions[name]])
        if waits:
            code.call(
                "hal.command_buffer.execution_barrier", commands, code.i32(hal.BEFORE), code.i32(hal.AFTER), nothing
            )
        bindings = []
        for binding in dispatch.bindings:
            own = buffers.get(binding.buffer)
            where = (code.i32(place[binding.buffer]), code.null()) if own is None else (zero, own)
            bindings.append([zero, *where, code.i64(binding.offset), code.i64(binding.length)])
        workgroups = code.i32(dispatch.workgroups), one, one
        function = functions[name]
        code.call("hal.command_buffer.dispatch", commands, executable, function, *workgroups, nothing, [], bindings)
    code.call("hal.command_buffer.execution_barrier", commands, code.i32(hal.BEFORE), code.i32(hal.AFTER), nothing)
    code.call("hal.command_buffer.finalize", commands)
    return commands
