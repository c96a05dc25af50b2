"""Tuples of constants, where HLO has one constant of tuple shape.

Before::

    c = (f32[2], s32[]) constant(({1, 2}, 3))

After::

    a = f32[2] constant({1, 2})
    b = s32[] constant(3)
    c = (f32[2], s32[]) tuple(a, b)

XLA's converter to StableHLO takes constants of arrays only. The new instructions have the metadata of the constant, so
that they are where it is. A schedule, which lists all instructions, is dropped then. Field numbers:
xla/service/hlo.proto (HloModuleProto, HloInstructionProto), xla/xla_data.proto (LiteralProto, ShapeProto).
"""

from __future__ import annotations

from collections.abc import Iterator

from hloforge.dialect.protobuf import encode, encode_number, fields, first, number, pack, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_NAME, _OPCODE, _SHAPE, _METADATA, _LITERAL, _ID, _OPERANDS = 1, 2, 3, 7, 8, 35, 36
_LITERAL_SHAPE, _LITERAL_PARTS = 1, 10
_ELEMENT_TYPE, _TUPLE = 2, 13
_SCHEDULE = 7


def with_constant_parts(module: bytes) -> bytes:
    """The ``HloModuleProto`` whose constants are arrays.

    Raises:
        ValueError: the bytes are not a module.
    """
    made = rewrite(memoryview(module), COMPUTATIONS, _rewrite_computation)
    if len(made) == len(module):
        return made
    return b"".join(made[entry.start : entry.end] for entry in fields(made) if entry.number != _SCHEDULE)


def _rewrite_computation(message: memoryview) -> bytes | memoryview:
    instructions = [entry.payload for entry in fields(message) if entry.number == INSTRUCTIONS]
    if not any(map(_is_tuple_constant, instructions)):
        return message
    free = max(number(instruction, _ID) for instruction in instructions) + 1
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        if entry.number != INSTRUCTIONS or not _is_tuple_constant(entry.payload):
            out.append(message[entry.start : entry.end])
            continue
        made = list(_in_parts(entry.payload, free))
        free += len(made) - 1
        out += [encode(INSTRUCTIONS, instruction) for instruction in made]
    return b"".join(out)


def _is_tuple_constant(instruction: memoryview) -> bool:
    opcode = first(instruction, _OPCODE)
    if opcode is None or opcode.text != "constant":
        return False
    literal = first(instruction, _LITERAL)
    return literal is not None and _is_tuple(literal.payload)


def _is_tuple(literal: memoryview) -> bool:
    shape = first(literal, _LITERAL_SHAPE)
    return shape is not None and number(shape.payload, _ELEMENT_TYPE) == _TUPLE


def _in_parts(instruction: memoryview, free: int) -> Iterator[bytes]:
    """The parts of a constant, each before what has it for an operand; the last one is the tuple itself."""
    name = bytes(first(instruction, _NAME).payload)  # type: ignore[union-attr]
    metadata = [instruction[one.start : one.end] for one in fields(instruction) if one.number == _METADATA]
    made: list[bytes] = []

    def operands_of(literal: memoryview) -> bytes:
        parts = [part(entry.payload) for entry in fields(literal) if entry.number == _LITERAL_PARTS]
        return encode(_OPERANDS, pack(parts)) if parts else b""

    def part(literal: memoryview) -> int:
        is_tuple = _is_tuple(literal)
        value = operands_of(literal) if is_tuple else encode(_LITERAL, literal)
        identity = free + len(made)
        own = (
            encode(_NAME, b"%s.part.%d" % (name, len(made))),
            encode(_OPCODE, b"tuple" if is_tuple else b"constant"),
            encode(_SHAPE, first(literal, _LITERAL_SHAPE).payload),  # type: ignore[union-attr]
            encode_number(_ID, identity),
        )
        made.append(b"".join([*own, value, *metadata]))
        return identity

    operands = operands_of(first(instruction, _LITERAL).payload)  # type: ignore[union-attr]
    kept = [
        instruction[one.start : one.end]
        for one in fields(instruction)
        if one.number not in (_OPCODE, _LITERAL, _OPERANDS)
    ]
    yield from made
    yield b"".join([*kept, encode(_OPCODE, b"tuple"), operands])
