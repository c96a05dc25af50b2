"""Awaited asynchronous work as plain calls, in the proto before XLA converts it.

XLA's converter makes invalid IR of an ``async-done`` whose result is a tuple: ``mhlo.async_done`` has flat results, its
users a tuple. An ``async-done`` means the call of the computation that its start names, on the start's operands; the
start stays without users, and the pass ``unwrap-async`` drops it.

Field numbers: xla/service/hlo.proto (HloInstructionProto).
"""

from __future__ import annotations

from hloforge.dialect.protobuf import encode, fields, first, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _ID, _OPERANDS, _CALLED = 2, 35, 36, 38
_REPLACED = (_OPCODE, _OPERANDS, _CALLED)


def awaited_as_calls(module: bytes) -> bytes:
    """The module with every ``async-done`` replaced by a call, where its start is in the same computation.

    Raises:
        ValueError: the bytes are not a module.
    """
    if b"async-done" not in module:
        return module
    return rewrite(memoryview(module), COMPUTATIONS, _rewrite_computation)


def _rewrite_computation(message: memoryview) -> bytes:
    instructions = [entry.payload for entry in fields(message) if entry.number == INSTRUCTIONS]
    by_id = {_identity(instruction): instruction for instruction in instructions}
    return rewrite(message, INSTRUCTIONS, lambda instruction: _rewrite_instruction(instruction, by_id))


def _rewrite_instruction(instruction: memoryview, by_id: dict[int, memoryview]) -> bytes | memoryview:
    if _opcode(instruction) != "async-done":
        return instruction
    start = instruction
    while _opcode(start) in ("async-done", "async-update"):
        operands = _operands(start)
        if not operands or operands[0] not in by_id:
            return instruction
        start = by_id[operands[0]]
    if _opcode(start) != "async-start":
        return instruction
    kept = [instruction[f.start : f.end] for f in fields(instruction) if f.number not in _REPLACED]
    taken = [start[f.start : f.end] for f in fields(start) if f.number in (_OPERANDS, _CALLED)]
    return b"".join([encode(_OPCODE, b"call"), *kept, *taken])


def _opcode(instruction: memoryview) -> str:
    entry = first(instruction, _OPCODE)
    return entry.text if entry else ""


def _identity(instruction: memoryview) -> int:
    entry = first(instruction, _ID)
    return entry.value if entry and isinstance(entry.value, int) else 0


def _operands(instruction: memoryview) -> list[int]:
    """The operand ids: one packed field."""
    entry = first(instruction, _OPERANDS)
    if entry is None:
        return []
    if isinstance(entry.value, int):
        return [entry.value]
    return unpack(entry.payload)
