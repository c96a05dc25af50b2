"""The function ``main`` of a module: it checks its arguments, runs the recorded dispatches, and returns arrays."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.kernel_program import HOST_BYTES, KernelProgram
from hloforge.runtime.compile.direct import hal
from hloforge.runtime.compile.direct.bytecode import EXTEND_I32_I64, MUL_I64, Code, Function
from hloforge.runtime.compile.direct.rodata import Rodata
from hloforge.runtime.compile.direct.schedule import slots_of
from hloforge.runtime.compile.direct.shared import ALLOCATOR, COMMANDS, DEVICE, WEIGHT, await_fence, code_of

# Of a size among the results.
_SIZE_BYTES = 4


def main_of(program: KernelProgram, rodata: Rodata) -> Function:
    """The function that takes and returns views of buffers.

    Raises:
        DirectError: more values than a function can have.
    """
    code = code_of(program, len(program.parameters))
    device, allocator = code.load(*DEVICE), code.load(*ALLOCATOR)
    buffers = [_argument(code, program, rodata, number, allocator) for number in range(len(program.parameters))]
    inside = dict(program.aliases)
    for number, result in enumerate(program.results):
        buffers.append(buffers[inside[number]] if number in inside else _allocated(code, allocator, result.size))
    if program.transient:
        buffers.append(_allocated(code, allocator, program.transient))
    if program.dispatches:
        _run(code, program, device, buffers)
    results = buffers[len(program.parameters) :]
    views = []
    for number, (result, shape) in enumerate(program.returned):
        sizes = [code.i64(size) if size >= 0 else _loaded(code, results[-1 - size]) for size in shape]
        views.append(code.reference())
        code.call(
            "hal.buffer_view.create",
            code.moved(results[number]),
            code.i64(0),
            _bytes(code, program, number, sizes),
            code.i32(hal.element_type(result)),
            code.i32(hal.DENSE),
            sizes,
            results=[views[-1]],
        )
    code.return_(*views)
    return code.finish()


def weights_of(program: KernelProgram) -> Function:
    """The function that returns views of the program's weights, as bytes."""
    code = code_of(program)
    first, type_ = WEIGHT
    views = []
    for number, (_, size) in enumerate(program.weights):
        views.append(code.reference())
        whole = code.moved(code.load(first + number, type_)), code.i64(0), code.i64(size)
        kind = code.i32(hal.BYTE), code.i32(hal.DENSE)
        code.call("hal.buffer_view.create", *whole, *kind, [code.i64(size)], results=[views[-1]])
    code.return_(*views)
    return code.finish()


def _argument(code: Code, program: KernelProgram, rodata: Rodata, number: int, allocator: int) -> int:
    """The buffer of an argument that is what the program takes."""
    parameter, view, buffer = program.parameters[number], code.parameter(number), code.reference()
    code.call(
        "hal.buffer_view.assert",
        view,
        code.moved(code.rodata(rodata.text(f"input{number}"))),
        code.i32(hal.element_type(parameter)),
        code.i32(hal.DENSE),
        [code.i64(size) for size in parameter.shape],
    )
    code.call("hal.buffer_view.buffer", code.moved(view), results=[buffer])
    code.call(
        "hal.buffer.assert",
        buffer,
        code.moved(code.rodata(rodata.text("tensor"))),
        allocator,
        code.i64(parameter.size),
        code.i32(hal.VISIBLE),
        code.i32(hal.USAGE),
    )
    return buffer


def _allocated(code: Code, allocator: int, size: int) -> int:
    buffer = code.reference()
    code.call(
        "hal.allocator.allocate",
        allocator,
        code.i64(hal.ANY_QUEUE),
        code.i32(hal.OWN),
        code.i32(hal.USAGE),
        code.i64(max(size, 1)),
        results=[buffer],
    )
    return buffer


def _loaded(code: Code, buffer: int) -> int:
    """The number of 32 bits in a result, as one of 64."""
    short, number = code.number(32), code.number(64)
    code.call("hal.buffer.load", buffer, code.i64(0), code.i32(_SIZE_BYTES), results=[short])
    code.compute(EXTEND_I32_I64, short, number)
    return number


def _bytes(code: Code, program: KernelProgram, number: int, sizes: Sequence[int]) -> int:
    """How many bytes a result has of these sizes, by the registers that hold them."""
    result, shape = program.returned[number]
    if min(shape, default=0) >= 0:
        return code.i64(result.size)
    product = code.i64(result.element_bytes)
    for size in sizes:
        before, product = product, code.number(64)
        code.compute(MUL_I64, before, size, product)
    return product


def _host(code: Code) -> int:
    """The table of the host, which the session has."""
    view, buffer = code.reference(), code.reference()
    code.call(hal.HOST, results=[view])
    code.call("hal.buffer_view.buffer", code.moved(view), results=[buffer])
    return buffer


def _run(code: Code, program: KernelProgram, device: int, buffers: list[int]) -> None:
    """Execute the recorded dispatches on these buffers, and wait until they have ended."""
    sizes = [array.size for array in (*program.parameters, *program.results)] + [program.transient]
    bound = {number: (buffer, sizes[number]) for number, buffer in enumerate(buffers)}
    if program.host_calls:
        bound[program.host] = _host(code), HOST_BYTES
    fence = code.reference()
    code.call("hal.fence.create", device, code.i64(0), results=[fence])
    code.call(
        "hal.device.queue.execute.indirect",
        device,
        code.i64(hal.ANY_QUEUE),
        code.null(),
        fence,
        code.moved(code.load(*COMMANDS)),
        code.i64(0),
        [[bound[number][0], code.i64(0), code.i64(bound[number][1])] for number in slots_of(program)],
    )
    await_fence(code, fence)
