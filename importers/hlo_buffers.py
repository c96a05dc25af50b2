"""Buffers of HLO as the arrays that they hold.

Before::

    b = b(f32[4]) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
    c = b(f32[4]) custom-call(b), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}
    y = f32[4] custom-call(c), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}

After::

    b = f32[4] copy(x)
    c = f32[4] custom-call(b), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}
    y = f32[4] copy(c)

XLA's verifier lets a buffer have one user that writes, so what is written is a new value, as of any other operation.
A buffer that ``CreateBuffer`` makes has no contents yet: it is an array of any.

Field numbers: xla/service/hlo.proto (HloModuleProto, HloComputationProto, HloInstructionProto), xla/xla_data.proto
(ShapeProto, ProgramShapeProto, PrimitiveType).
"""

from __future__ import annotations

from hloforge.dialect.protobuf import encode, encode_number, fields, first, number, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_PROGRAM_SHAPE = 4  # Of a module and of a computation.
_OPCODE, _SHAPE, _TARGET, _OPERAND_SHAPES, _VERSION = 2, 3, 28, 47, 77
# What a copy has: its name, shape, metadata, identity, operands, predecessors and sharding.
_OF_COPIES = frozenset({1, _SHAPE, 7, 35, 36, 37, 40})
_PARAMETERS, _RESULT = 1, 2
_ELEMENT_TYPE, _PARTS, _BUFFER = 2, 4, 34
# How the shape of a buffer begins: its type, and the key of what it holds.
_START = encode_number(_ELEMENT_TYPE, _BUFFER) + bytes([_PARTS << 3 | 2])
_MOVES = frozenset({b"Pin", b"Unpin"})


def with_arrays_of_buffers(module: bytes) -> bytes:
    """The ``HloModuleProto`` without shapes of buffers.

    Raises:
        ValueError: the bytes are not a module.
    """
    if _START not in module:
        return module
    plain = rewrite(memoryview(module), COMPUTATIONS, _computation)
    return bytes(rewrite(memoryview(plain), _PROGRAM_SHAPE, _program_shape))


def _computation(message: memoryview) -> bytes | memoryview:
    plain = rewrite(message, INSTRUCTIONS, _instruction)
    return rewrite(memoryview(plain), _PROGRAM_SHAPE, _program_shape)


def _program_shape(message: memoryview) -> bytes | memoryview:
    return rewrite(memoryview(rewrite(message, _PARAMETERS, _shape)), _RESULT, _shape)


def _shape(message: memoryview) -> bytes | memoryview:
    if number(message, _ELEMENT_TYPE) == _BUFFER:
        held = first(message, _PARTS)
        return held.payload if held else message
    return rewrite(message, _PARTS, _shape)


def _instruction(message: memoryview) -> bytes | memoryview:
    plain = memoryview(rewrite(memoryview(rewrite(message, _SHAPE, _shape)), _OPERAND_SHAPES, _shape))
    target = first(plain, _TARGET)
    name = bytes(target.payload) if target else b""
    if name in _MOVES:
        kept = [plain[one.start : one.end] for one in fields(plain) if one.number in _OF_COPIES]
        return b"".join([*kept, encode(_OPCODE, b"copy")])
    if name == b"CreateBuffer":
        kept = [plain[one.start : one.end] for one in fields(plain) if one.number not in (_TARGET, _VERSION)]
        return b"".join([*kept, encode(_TARGET, b"AllocateBuffer")])
    return plain
