"""What IREE's hardware abstraction layer is to a module: functions, types, numbers of its enumerations.

Source: iree-org/iree, ``runtime/src/iree/modules/hal/exports.inl`` and ``runtime/src/iree/hal``, version 3.13.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hloforge.dialect.host_calls import MODULE, TABLE
from hloforge.pipelines.codegen.kernel_program import ArrayType, KernelProgram
from hloforge.runtime.compile.direct.host import DirectError

VERSION = 7

# Functions with their calling conventions.
IMPORTS = {
    "hal.allocator.allocate": "0rIiiI_r",
    "hal.allocator.import": "0riIiirII_r",
    "hal.buffer.assert": "0rrrIii_v",
    "hal.buffer.load": "0rIi_i",
    "hal.buffer_view.assert": "0rriiCID_v",
    "hal.buffer_view.buffer": "0r_r",
    "hal.buffer_view.create": "0rIIiiCID_r",
    "hal.command_buffer.create": "0riiIi_r",
    "hal.command_buffer.dispatch": "0rrIiiiICiDCiirIID_v",
    "hal.command_buffer.execution_barrier": "0riiI_v",
    "hal.command_buffer.finalize": "0r_v",
    "hal.device.allocator": "0r_r",
    "hal.device.query.i64": "0rrr_iI",
    "hal.device.queue.execute.indirect": "0rIrrrICrIID_v",
    "hal.device.queue.read": "0rIrrrIrIII_v",
    "hal.devices.count": "0v_i",
    "hal.devices.get": "0i_r",
    "hal.ex.file.from_memory": "0rIirIIi_r",
    "hal.executable.create": "0rIrrr_r",
    "hal.executable.lookup.function": "0rr_I",
    "hal.fence.await": "0iICrD_i",
    "hal.fence.create": "0rI_r",
}
# What only programs import that call the host: the table of its functions, a buffer view.
HOST = f"{MODULE}.{TABLE}"
# What only programs with weights in files import: a list of buffers.
LOAD = "io_parameters.load"
TYPES = (
    "i32", "i64", "!hal.allocator", "!hal.buffer", "!hal.buffer_view", "!hal.command_buffer", "!hal.device",
    "!hal.executable", "!hal.fence", "!hal.file", "!vm.buffer", "!vm.list<!vm.ref<!hal.buffer>>",
)  # fmt: skip

ANY_QUEUE = -1
# Memory that the device sees, and its own; what arrays and constants are used for.
VISIBLE, OWN = 16, 48
USAGE, CONSTANT_USAGE = 0xC03, 0x80C03
# Commands: transfers and dispatches.
CATEGORIES = 3
# The stages before and after a barrier.
BEFORE, AFTER = 28, 13
READ = 1
# The elements of an array one after the other.
DENSE = 1
FOR_EVER = -1
UNAVAILABLE = 18

# An element of bytes that nobody computes with.
BYTE = 0x10000008

_ELEMENT = re.compile(r"(si|ui|i|bf|f)(\d+)|complex<f(\d+)>")
_KINDS = {"i": 0x10, "si": 0x11, "ui": 0x12, "f": 0x21, "bf": 0x22}
_COMPLEX, _BOOLEAN = 0x23, 0x13000008


def imports_of(program: KernelProgram) -> dict[str, str]:
    """The functions that a program's module calls, with their calling conventions, in their order."""
    more = {HOST: "0v_r"} if program.host_calls else {}
    return IMPORTS | more | ({LOAD: "0rIrrrIiirrr_r"} if program.weights else {})


def element_type(array: ArrayType) -> int:
    """The number of an element type.

    Raises:
        DirectError: there is none, or it is stored in another number of bytes.
    """
    match = _ELEMENT.fullmatch(array.element)
    if match is None:
        raise DirectError(f"no array of {array.element} crosses IREE's border")
    kind, bits, part_bits = match.groups()
    if array.element == "i1":
        found = _BOOLEAN
    elif part_bits:
        found = _COMPLEX << 24 | 2 * int(part_bits)
    else:
        found = _KINDS[kind] << 24 | int(bits)
    if found & 0xFF != 8 * array.element_bytes:
        raise DirectError(f"{array.element} takes no {array.element_bytes} bytes")
    return found


def declared(array: ArrayType, shape: Sequence[int]) -> str:
    """An array as IREE declares it: integers have no sign, and what the program says of it stands beside.

    Args:
        shape: its sizes; negative ones are dynamic.
    """
    sizes = "".join(f"{'?' if size < 0 else size}x" for size in shape)
    plain = re.sub("^[su]i", "i", array.element)
    said = f"tensor<{sizes}{plain}>"
    return said if plain == array.element else f"{said} {{iree.abi.encoding = tensor<{sizes}{array.element}>}}"
