"""Awaited asynchronous work as plain calls, in the proto before XLA converts it.

XLA's converter makes invalid IR of an ``async-done`` whose result is a tuple: ``mhlo.async_done`` has flat results, its
users a tuple. An ``async-done`` means the call of the computation that its start names, on the start's operands; the
start stays without users, and the pass ``unwrap-async`` drops it.

Nor does it take collectives of several arrays that are started and awaited, as XLA combines them for GPUs. There the
``all-reduce-done`` or ``all-gather-done`` becomes the ``all-reduce`` or ``all-gather``, a ``collective-permute-done``
becomes one ``collective-permute`` for each array and their tuple, and the start a tuple of its operands. So does a
``collective-permute`` of several arrays. A schedule, which lists all instructions, is dropped then.

Field numbers: xla/service/hlo.proto (HloInstructionProto).
"""

from __future__ import annotations

from hloforge.dialect.protobuf import encode, encode_number, fields, first, pack, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _ID, _OPERANDS, _CALLED = 2, 35, 36, 38
_SHAPE, _PARTS, _NAME = 3, 4, 1
_REPLACED = (_OPCODE, _OPERANDS, _CALLED)
# Name, metadata, identity and control predecessors: an instruction's own.
_OWN = (_NAME, 7, _ID, 37)
# Of the module.
_SCHEDULE = 7
_COMBINED = ("all-reduce", "all-gather", "collective-permute")


def awaited_as_calls(module: bytes) -> bytes:
    """The module with every ``async-done`` replaced by a call, where its start is in the same computation.

    Raises:
        ValueError: the bytes are not a module.
    """
    if b"-done" not in module and b"collective-permute" not in module:
        return module
    made = rewrite(memoryview(module), COMPUTATIONS, _rewrite_computation)
    if len(made) == len(module):
        return made
    return b"".join(made[entry.start : entry.end] for entry in fields(made) if entry.number != _SCHEDULE)


def _rewrite_computation(message: memoryview) -> bytes | memoryview:
    instructions = [entry.payload for entry in fields(message) if entry.number == INSTRUCTIONS]
    if not any(_opcode(one).endswith("-done") or _permutes_several(one) for one in instructions):
        return message
    by_id = {_identity(instruction): instruction for instruction in instructions}
    combined = _combined(instructions, by_id)
    free = max(by_id) + 1
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        if entry.number != INSTRUCTIONS:
            out.append(message[entry.start : entry.end])
            continue
        instruction = entry.payload
        made: list[bytes | memoryview]
        if _identity(instruction) in combined:
            made = [_tuple_of_operands(instruction)]
        elif (
            _opcode(instruction).endswith("-done")
            and _operands(instruction)[:1]
            and (_operands(instruction)[0] in combined)
        ):
            made = _awaited(instruction, by_id[_operands(instruction)[0]], free)
            free += len(made) - 1
        elif _permutes_several(instruction):
            made = _awaited(instruction, instruction, free)
            free += len(made) - 1
        else:
            made = [_rewrite_instruction(instruction, by_id)]
        out += [encode(INSTRUCTIONS, one) for one in made]
    return b"".join(out)


def _combined(instructions: list[memoryview], by_id: dict[int, memoryview]) -> set[int]:
    """The starts of collectives of several arrays that are only awaited, and that here."""
    readers: dict[int, list[memoryview]] = {}
    for instruction in instructions:
        for operand in _operands(instruction):
            readers.setdefault(operand, []).append(instruction)
    return {
        identity
        for identity, start in by_id.items()
        if _opcode(start).removesuffix("-start") in _COMBINED
        and _opcode(start).endswith("-start")
        and [_opcode(reader) for reader in readers.get(identity, ())] == [_opcode(start).replace("-start", "-done")]
        and 1 < len(_operands(start)) == len(_parts(readers[identity][0]))
    }


def _permutes_several(instruction: memoryview) -> bool:
    return _opcode(instruction) == "collective-permute" and 1 < len(_operands(instruction)) == len(_parts(instruction))


def _parts(instruction: memoryview) -> list[memoryview]:
    """The members of an instruction's shape, which is a tuple."""
    shape = first(instruction, _SHAPE)
    return [entry.payload for entry in fields(shape.payload) if entry.number == _PARTS] if shape else []


def _tuple_of_operands(start: memoryview) -> bytes:
    kept = [start[f.start : f.end] for f in fields(start) if f.number in (*_OWN, _OPERANDS)]
    # An all-reduce has the shape of its operands; others have (operands, results, …).
    is_flat = _opcode(start).startswith("all-reduce")
    shape = first(start, _SHAPE) if is_flat else None
    return b"".join([*kept, encode(_OPCODE, b"tuple"), encode(_SHAPE, shape.payload if shape else _parts(start)[0])])


def _awaited(done: memoryview, start: memoryview, free: int) -> list[bytes | memoryview]:
    """The instructions of a combined collective, of which the last one has the identity of ``done``."""
    own = [done[f.start : f.end] for f in fields(done) if f.number in (*_OWN, _SHAPE)]
    rest = [start[f.start : f.end] for f in fields(start) if f.number not in (_OPCODE, _SHAPE, _OPERANDS, *_OWN)]
    opcode = _opcode(start).removesuffix("-start").encode()
    if opcode != b"collective-permute":
        operands = [start[f.start : f.end] for f in fields(start) if f.number == _OPERANDS]
        return [b"".join([encode(_OPCODE, opcode), *own, *operands, *rest])]
    members = zip(_operands(start), _parts(done), strict=True)
    metadata = [done[f.start : f.end] for f in fields(done) if f.number == 7]
    made: list[bytes | memoryview] = []
    name = bytes(first(done, _NAME).payload)  # type: ignore[union-attr]
    for number, (operand, shape) in enumerate(members):
        # Errors find its line by this name.
        named = encode(_NAME, b"%s.%d" % (name, free + number)) + encode_number(_ID, free + number)
        ends = encode(_SHAPE, shape) + encode(_OPERANDS, pack([operand]))
        made.append(b"".join([encode(_OPCODE, opcode), named, *metadata, ends, *rest]))
    results = encode(_OPERANDS, pack(range(free, free + len(made))))
    return [*made, b"".join([encode(_OPCODE, b"tuple"), *own, results])]


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
