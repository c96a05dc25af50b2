"""Custom calls of MHLO's operations, under a name that XLA's converter leaves alone.

Before: a custom call of ``mhlo.erf``, which the converter takes for an operation of its own and crashes on; after: one
of ``chlo.erf``, which ``lower-mhlo`` knows.

Field numbers: xla/service/hlo.proto (HloInstructionProto).
"""

from __future__ import annotations

from hloforge.dialect.protobuf import encode, first, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_TARGET = 28
_PREFIX, _OTHER = b"mhlo.", b"chlo."
# Those that the converter makes operations of: they compute with sizes.
_CONVERTED = frozenset({b"mhlo.dynamic_broadcast_in_dim", b"mhlo.dynamic_reshape", b"mhlo.real_dynamic_slice"})


def renamed_calls(module: bytes) -> bytes:
    """The ``HloModuleProto`` without calls that XLA's converter does not survive.

    Raises:
        ValueError: the bytes are not a module.
    """
    if _PREFIX not in module:
        return module
    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, _renamed))


def _renamed(instruction: memoryview) -> bytes | memoryview:
    target = first(instruction, _TARGET)
    name = bytes(target.payload) if target else b""
    if target is None or not name.startswith(_PREFIX) or name in _CONVERTED:
        return instruction
    renamed = encode(_TARGET, _OTHER + name.removeprefix(_PREFIX))
    return b"".join([instruction[: target.start], renamed, instruction[target.end :]])
