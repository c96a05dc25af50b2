"""The instruction because of which XLA's converter refuses a module, where its message names none.

The converter is asked again, with calls of an unknown function in the place of all instructions from some place on. The
first place from which it no longer refuses is after the culprit. That takes as many conversions as the number of
instructions has bits.

Field numbers: xla/service/hlo.proto (HloInstructionProto), xla/xla_data.proto (ShapeProto, OpMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

from hloforge.dialect.protobuf import encode, fields, first, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS, LABEL

_OPCODE, _SHAPE, _METADATA, _OP_NAME, _TARGET = 2, 3, 7, 2, 28
_PARTS, _LAYOUT = 4, 5
# Name, metadata, identity, operands and control predecessors: what any instruction has.
_KEPT = frozenset({1, _METADATA, 35, 36, 37})
_LEFT = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})
_LABEL = re.compile(re.escape(LABEL) + r"(\d+)")


def culprit(module: bytes, convert: Callable[[bytes], object], message: str) -> int | None:
    """The label number of the first instruction with which a labelled module fails as the message says.

    Args:
        convert: raises an exception for what it refuses.
        message: of the exception for the whole module.

    Returns:
        None if it fails without all instructions that can be left out, or another one's message comes first.
    """
    labels = [
        _label(instruction.payload)
        for computation in fields(module)
        if computation.number == COMPUTATIONS
        for instruction in fields(computation.payload)
        if instruction.number == INSTRUCTIONS
    ]

    def fails(kept: int) -> bool:
        try:
            convert(_first_instructions(module, kept))
        except Exception as error:
            return _plain(str(error)) == _plain(message)
        return False

    low, high = 0, len(labels)
    if fails(low) or not fails(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return labels[low]


def _plain(message: str) -> str:
    return _LABEL.sub(LABEL, message.strip().partition("\n")[0])


def _first_instructions(module: bytes, kept: int) -> bytes:
    numbers = count()

    def visit(instruction: memoryview) -> bytes | memoryview:
        opcode = first(instruction, _OPCODE)
        if next(numbers) < kept or opcode is None or opcode.text in _LEFT:
            return instruction
        out: list[bytes | memoryview] = [encode(_OPCODE, b"custom-call"), encode(_TARGET, b"unknown")]
        for one in fields(instruction):
            if one.number in _KEPT:
                out.append(instruction[one.start : one.end])
            elif one.number == _SHAPE:
                out.append(encode(_SHAPE, _without_layouts(one.payload)))
        return b"".join(out)

    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, visit))


def _without_layouts(shape: memoryview) -> bytes:
    kept = b"".join(shape[one.start : one.end] for one in fields(shape) if one.number != _LAYOUT)
    return rewrite(memoryview(kept), _PARTS, _without_layouts)


def _label(instruction: memoryview) -> int | None:
    metadata = first(instruction, _METADATA)
    name = first(metadata.payload, _OP_NAME) if metadata else None
    found = _LABEL.fullmatch(name.text) if name else None
    return int(found[1]) if found else None
