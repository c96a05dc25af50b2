"""Products of scaled blocks as calls of our own, because XLA's converter makes invalid IR of them.

Before: ``scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}``; after: a custom call of
``hloforge.scaled_dot`` whose backend configuration is ``{"contracting": [[1], [0]], "batch": [[], []]}``.

Field numbers: xla/service/hlo.proto (HloInstructionProto), xla/xla_data.proto (DotDimensionNumbers).
"""

from __future__ import annotations

import json

from hloforge.dialect.marks import SCALED_DOT
from hloforge.dialect.protobuf import encode, encode_number, fields, first, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _TARGET, _NUMBERS, _CONFIGURATION, _PRECISION, _API_VERSION = 2, 28, 30, 43, 51, 77
_REPLACED = (_OPCODE, _TARGET, _NUMBERS, _CONFIGURATION, _PRECISION, _API_VERSION)
_CONTRACTING, _BATCH = (1, 2), (3, 4)
_NAME = b"scaled-dot"
_OWN = SCALED_DOT.encode()
_ORIGINAL_API = 1


def with_called_products(module: bytes) -> bytes:
    """The ``HloModuleProto`` without ``scaled-dot``.

    Raises:
        ValueError: the bytes are not a module.
    """
    if _NAME not in module:
        return module
    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, _called))


def _called(instruction: memoryview) -> bytes | memoryview:
    opcode, numbers = first(instruction, _OPCODE), first(instruction, _NUMBERS)
    if opcode is None or bytes(opcode.payload) != _NAME:
        return instruction
    message = numbers.payload if numbers else memoryview(b"")
    sides = {"contracting": _CONTRACTING, "batch": _BATCH}
    configuration = {name: [_dimensions(message, field) for field in pair] for name, pair in sides.items()}
    kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number not in _REPLACED]
    made = (
        encode(_OPCODE, b"custom-call"),
        encode(_TARGET, _OWN),
        encode(_CONFIGURATION, json.dumps(configuration).encode()),
        encode_number(_API_VERSION, _ORIGINAL_API),
    )
    return b"".join([*kept, *made])


def _dimensions(message: memoryview, field: int) -> list[int]:
    entry = first(message, field)
    return unpack(entry.payload) if entry else []
