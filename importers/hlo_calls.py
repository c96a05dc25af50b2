"""Custom calls of MHLO's operations, under a name that XLA's converter leaves alone.

Before: a custom call of ``mhlo.erf``, which the converter takes for an operation of its own and crashes on; after: one
of ``chlo.erf``, which ``lower-mhlo`` knows. The same is made of opcodes that the converter does not know: ``mulhi``.

Field numbers: xla/service/hlo.proto (HloInstructionProto).
"""

from __future__ import annotations

from collections.abc import Iterator

from hloforge.dialect.protobuf import encode, fields, first, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _METADATA, _OP_NAME, _TARGET = 2, 7, 2, 28
_PREFIX, _OTHER = b"mhlo.", b"chlo."
# Those that the converter makes operations of: they compute with sizes.
_CONVERTED = frozenset({b"mhlo.dynamic_broadcast_in_dim", b"mhlo.dynamic_reshape", b"mhlo.real_dynamic_slice"})
# Opcodes that the converter does not know.
_UNCONVERTED = frozenset({b"mulhi"})


def calls_of(module: bytes, prefix: str) -> Iterator[tuple[str, str]]:
    """The targets of custom calls that begin with a prefix, each with the name that the metadata gives its instruction.

    Raises:
        ValueError: the bytes are not a module.
    """
    if prefix.encode() not in module:
        return
    for computation in (entry for entry in fields(module) if entry.number == COMPUTATIONS):
        for instruction in (entry for entry in fields(computation.payload) if entry.number == INSTRUCTIONS):
            target, metadata = first(instruction.payload, _TARGET), first(instruction.payload, _METADATA)
            if target is not None and target.text.startswith(prefix):
                name = first(metadata.payload, _OP_NAME) if metadata else None
                yield target.text, name.text if name else ""


def renamed_calls(module: bytes) -> bytes:
    """The ``HloModuleProto`` without calls that XLA's converter does not survive.

    Raises:
        ValueError: the bytes are not a module.
    """
    if not any(name in module for name in (_PREFIX, *_UNCONVERTED)):
        return module
    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, _renamed))


def _renamed(instruction: memoryview) -> bytes | memoryview:
    opcode = first(instruction, _OPCODE)
    if opcode is not None and (name := bytes(opcode.payload)) in _UNCONVERTED:
        call = encode(_OPCODE, b"custom-call") + encode(_TARGET, _OTHER + name)
        return b"".join([instruction[: opcode.start], call, instruction[opcode.end :]])
    target = first(instruction, _TARGET)
    name = bytes(target.payload) if target else b""
    if target is None or not name.startswith(_PREFIX) or name in _CONVERTED:
        return instruction
    renamed = encode(_TARGET, _OTHER + name.removeprefix(_PREFIX))
    return b"".join([instruction[: target.start], renamed, instruction[target.end :]])
