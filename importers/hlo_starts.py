"""Starts of slices as scalars, where HLO text of 2018 gives one vector of them.

Before::

    s = s32[2] parameter(1)
    y = f32[2,2] dynamic-slice(x, s), dynamic_slice_sizes={2,2}

After::

    a = s32[1] slice(s), slice={[0:1]}          b = s32[1] slice(s), slice={[1:2]}
    c = s32[] reshape(a)                        d = s32[] reshape(b)
    y = f32[2,2] dynamic-slice(x, c, d), dynamic_slice_sizes={2,2}

XLA's parser and verifier take both, its converter to StableHLO the second only. The new instructions have the metadata
of the slice, so that they are where it is. Field numbers: xla/service/hlo.proto (HloInstructionProto,
SliceDimensions), xla/xla_data.proto (ShapeProto).
"""

from __future__ import annotations

from collections.abc import Iterator

from hloforge.dialect.protobuf import encode, encode_number, fields, first, number, pack, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_NAME, _OPCODE, _SHAPE, _METADATA, _SLICE, _ID, _OPERANDS = 1, 2, 3, 7, 17, 35, 36
_ELEMENT_TYPE, _DIMENSIONS, _LAYOUT, _MINOR_TO_MAJOR = 2, 3, 5, 1
_START, _LIMIT, _STRIDE = 1, 2, 3
# The operations, and the position of their starts among the operands.
_STARTS = {"dynamic-slice": 1, "dynamic-update-slice": 2}


def with_scalar_starts(module: bytes) -> bytes:
    """The ``HloModuleProto`` whose dynamic slices have a scalar for each dimension.

    Raises:
        ValueError: the bytes are not a module.
    """
    if not any(opcode.encode() in module for opcode in _STARTS):
        return module
    return rewrite(memoryview(module), COMPUTATIONS, _rewrite_computation)


def _rewrite_computation(message: memoryview) -> bytes | memoryview:
    instructions = [entry.payload for entry in fields(message) if entry.number == INSTRUCTIONS]
    by_id = {number(instruction, _ID): instruction for instruction in instructions}
    if not any(_start_vector(instruction, by_id) is not None for instruction in instructions):
        return message
    free = max(by_id) + 1
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        vector = _start_vector(entry.payload, by_id) if entry.number == INSTRUCTIONS else None
        if vector is None:
            out.append(message[entry.start : entry.end])
            continue
        made = list(_with_scalars(entry.payload, vector, free))
        free += len(made) - 1
        out += [encode(INSTRUCTIONS, instruction) for instruction in made]
    return b"".join(out)


def _start_vector(instruction: memoryview, by_id: dict[int, memoryview]) -> memoryview | None:
    """What computes the starts of a dynamic slice, where that is one array of them."""
    opcode = first(instruction, _OPCODE)
    place = _STARTS.get(opcode.text) if opcode else None
    operands = _numbers(instruction, _OPERANDS)
    if place is None or len(operands) != place + 1 or operands[place] not in by_id:
        return None
    vector = by_id[operands[place]]
    return vector if _sizes(vector) == [len(_sizes(instruction))] else None


def _with_scalars(instruction: memoryview, vector: memoryview, free: int) -> Iterator[bytes]:
    """Slices of one start, the scalars in them, and the instruction that has these for operands."""
    place = _STARTS[first(instruction, _OPCODE).text]  # type: ignore[union-attr]
    name = bytes(first(instruction, _NAME).payload)  # type: ignore[union-attr]
    metadata = [instruction[one.start : one.end] for one in fields(instruction) if one.number == _METADATA]
    element = number(first(vector, _SHAPE).payload, _ELEMENT_TYPE)  # type: ignore[union-attr]
    scalars = []
    for index in range(_sizes(vector)[0]):
        bounds = {_START: index, _LIMIT: index + 1, _STRIDE: 1}
        taken = encode(_SLICE, b"".join(encode_number(key, value) for key, value in bounds.items()))
        one, scalar = free + 2 * index, free + 2 * index + 1
        for opcode, identity, operand, rest, rank in (
            (b"slice", one, number(vector, _ID), taken, 1),
            (b"reshape", scalar, one, b"", 0),
        ):
            own = (
                encode(_NAME, b"%s.%s.%d" % (name, opcode, index)),
                encode(_OPCODE, opcode),
                encode(_SHAPE, _shape(element, rank)),
                encode_number(_ID, identity),
                encode(_OPERANDS, pack([operand])),
            )
            yield b"".join([*own, rest, *metadata])
        scalars.append(scalar)
    operands = pack([*_numbers(instruction, _OPERANDS)[:place], *scalars])
    kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _OPERANDS]
    yield b"".join([*kept, encode(_OPERANDS, operands)])


def _shape(element: int, rank: int) -> bytes:
    """A scalar, or an array of one element."""
    sizes = encode(_DIMENSIONS, pack([1])) if rank else b""
    layout = encode(_LAYOUT, encode(_MINOR_TO_MAJOR, pack([0])) if rank else b"")
    return b"".join([encode_number(_ELEMENT_TYPE, element), sizes, layout])


def _sizes(instruction: memoryview) -> list[int]:
    shape = first(instruction, _SHAPE)
    return _numbers(shape.payload, _DIMENSIONS) if shape else []


def _numbers(message: memoryview, field: int) -> list[int]:
    entry = first(message, field)
    if entry is None:
        return []
    return [entry.value] if isinstance(entry.value, int) else unpack(entry.payload)
