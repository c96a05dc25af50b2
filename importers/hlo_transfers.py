"""Sends and receives that a loop carries, as XLA pipelines them for GPUs, awaited within their computation.

XLA's converter to StableHLO looks for a send or receive where it is awaited. The state ``(data, u32[], token[])`` of
one that goes through a tuple is kept, so that no other shape changes. What is sent leaves where the send begins, and
what is received is asked for where it is awaited: sends do not wait for anybody, so that each meets the same partner.

Before::

    s = (f32[4], u32[], token[]) send(x, t), channel_id=1        r = (f32[4], u32[], token[]) recv(t), channel_id=1
    c = tuple(s, r)                                              (in the next turn, of the parts of c)
    d = token[] send-done(s1)                                    e = (f32[4], token[]) recv-done(r1)

After::

    a = (f32[4], u32[], token[]) send(x, t), channel_id=1
    b = token[] send-done(a)
    s = (f32[4], u32[], token[]) tuple(x, zero, b)               r = (f32[4], u32[], token[]) tuple(zeros, zero, t)
    d = token[] get-tuple-element(s1), index=2                   f = token[] get-tuple-element(r1), index=2
                                                                 g = (f32[4], u32[], token[]) recv(f), channel_id=1
                                                                 e = (f32[4], token[]) recv-done(g)

Nothing changes unless each state that is awaited has a start between the same devices or on the same channel. Field
numbers: xla/service/hlo.proto (HloInstructionProto), xla/xla_data.proto (ShapeProto).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from hloforge.dialect.protobuf import encode, encode_number, fields, first, number, pack, rewrite, unpack
from hloforge.importers.hlo_channels import pairs
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_NAME, _OPCODE, _SHAPE, _METADATA, _INDEX, _DIMENSIONS, _CHANNEL, _ID, _OPERANDS, _CONTROL = (
    (1, 2, 3, 7, 13, 14, 26, 35, 36, 37)
)  # fmt: skip
# Of a shape, of a computation, and of the module.
_ELEMENT, _SIZES, _PARTS, _LAYOUT, _ROOT, _SCHEDULE = 2, 3, 4, 5, 6, 7
_MINOR_TO_MAJOR = 1
_TUPLE, _TOKEN, _U32 = 13, 17, 8
_DONES = {"send-done": "send", "recv-done": "recv"}
_OWN = (_NAME, _METADATA, _ID, _CONTROL)

Instruction: TypeAlias = "memoryview | bytes"


def with_awaited_transfers(module: bytes) -> bytes:
    """The ``HloModuleProto`` in which every send and receive is awaited in its computation, where that can be.

    Raises:
        ValueError: the bytes are not a module.
    """
    if b"send-done" not in module and b"recv-done" not in module:
        return module
    found = [_Transfers(entry.payload) for entry in fields(module) if entry.number == COMPUTATIONS]
    starts = [start for one in found for start in one.starts]
    for computation in found:
        for done in computation.carried:
            if not computation.understands(done, starts):
                return module
    if not any(computation.carried for computation in found):
        return module
    made = rewrite(memoryview(module), COMPUTATIONS, lambda message: _Transfers(message).rewritten(starts))
    return b"".join(made[entry.start : entry.end] for entry in fields(made) if entry.number != _SCHEDULE)


class _Transfers:
    """A computation.

    Attributes:
        starts: sends and receives that something else than their awaiting reads.
        carried: what awaits the state of a start that is not here.
    """

    def __init__(self, message: memoryview) -> None:
        self._message = message
        self._by_id = {number(e.payload, _ID): e.payload for e in fields(message) if e.number == INSTRUCTIONS}
        readers: dict[int, set[str]] = {number(message, _ROOT): {"the caller"}}
        for instruction in self._by_id.values():
            for operand in _operands(instruction):
                readers.setdefault(operand, set()).add(_opcode(instruction))
        self.starts = [
            one
            for identity, one in self._by_id.items()
            if _opcode(one) in _DONES.values() and not readers.get(identity, set()) <= _DONES.keys()
        ]
        self.carried = [one for one in self._by_id.values() if _opcode(one) in _DONES and self._is_carried(one)]

    def _is_carried(self, done: Instruction) -> bool:
        state = self._by_id.get(next(iter(_operands(done)), -1))
        return state is None or state in self.starts or _opcode(state) not in _DONES.values()

    def understands(self, done: Instruction, starts: Iterable[Instruction]) -> bool:
        """Whether it is known what a state is of, and that it is of one array."""
        state = self._by_id.get(next(iter(_operands(done)), -1))
        parts = _parts(state) if state is not None else []
        is_token = number(_shape(done), _ELEMENT) == _TOKEN
        return (
            [number(part, _ELEMENT) for part in parts[1:]] == [_U32, _TOKEN]
            and number(parts[0], _ELEMENT) != _TUPLE
            and is_token == (_opcode(done) == "send-done")
            and _start_of(done, starts) is not None
        )

    def rewritten(self, starts: Iterable[Instruction]) -> bytes | memoryview:
        """The computation with its starts as states, and its awaited states as starts."""
        if not self.starts and not self.carried:
            return self._message
        free = max(self._by_id) + 1
        out: list[bytes | memoryview] = []
        for entry in fields(self._message):
            instruction = entry.payload
            if entry.number == INSTRUCTIONS and instruction in self.starts:
                made = list(_as_state(instruction, free))
            elif entry.number == INSTRUCTIONS and instruction in self.carried:
                made = list(_as_start(instruction, _start_of(instruction, starts), free))
            else:
                out.append(self._message[entry.start : entry.end])
                continue
            free += len(made) - 1
            out += [encode(INSTRUCTIONS, one) for one in made]
        return b"".join(out)


def _start_of(done: Instruction, starts: Iterable[Instruction]) -> Instruction | None:
    """A start on the channel of what awaits it, else between the same devices, else the only kind of starts."""
    same = [start for start in starts if _opcode(start) == _DONES[_opcode(done)]]
    channel, between = number(done, _CHANNEL), pairs(memoryview(done))
    on_channel = [start for start in same if channel and number(start, _CHANNEL) == channel]
    of_pairs = [start for start in same if between and pairs(memoryview(start)) == between]
    kinds = {(number(start, _CHANNEL), pairs(memoryview(start))) for start in same}
    chosen = on_channel or of_pairs or (same if len(kinds) == 1 else [])
    return chosen[0] if chosen else None


def _as_state(start: Instruction, free: int) -> Iterator[bytes]:
    """Instructions of which the last is the start's state."""
    data, *_ = _parts(start)
    token = _operands(start)[-1]
    metadata = _fields(start, _METADATA)
    element = number(data, _ELEMENT)
    counts = pack([free])
    yield _new(b"iota", free, _array(_U32, 1), encode(_DIMENSIONS, pack([0])), metadata)
    yield _new(b"reshape", free + 1, _array(_U32, 0), encode(_OPERANDS, counts), metadata)
    if _opcode(start) == "send":
        sent = b"".join(_rest(start, (*_OWN,)))
        yield b"".join([sent, _named(start, free + 2), metadata])
        channel = _fields(start, _CHANNEL)
        shape = encode_number(_ELEMENT, _TOKEN)
        yield _new(b"send-done", free + 3, shape, encode(_OPERANDS, pack([free + 2])) + channel, metadata)
        parts = [_operands(start)[0], free + 1, free + 3]
    else:
        yield _new(b"convert", free + 2, _array(element, 0), encode(_OPERANDS, pack([free + 1])), metadata)
        yield _new(b"broadcast", free + 3, bytes(data), encode(_OPERANDS, pack([free + 2])), metadata)
        parts = [free + 3, free + 1, token]
    own = _fields(start, *_OWN, _SHAPE)
    yield b"".join([own, encode(_OPCODE, b"tuple"), encode(_OPERANDS, pack(parts))])


def _as_start(done: Instruction, start: Instruction | None, free: int) -> Iterator[bytes]:
    """Instructions of which the last is what awaited a state."""
    assert start is not None
    (state,) = _operands(done)
    index = encode_number(_INDEX, 2) + encode(_OPERANDS, pack([state]))
    if _opcode(done) == "send-done":
        yield b"".join([_fields(done, *_OWN, _SHAPE), encode(_OPCODE, b"get-tuple-element"), index])
        return
    metadata, token = _fields(done, _METADATA), encode_number(_ELEMENT, _TOKEN)
    yield _new(b"get-tuple-element", free, token, index, metadata)
    begun = b"".join(_rest(start, (*_OWN, _OPERANDS)))
    yield b"".join([begun, _named(done, free + 1), encode(_OPERANDS, pack([free])), metadata])
    awaited = b"".join(_rest(done, (_OPERANDS, _CHANNEL)))
    yield b"".join([awaited, encode(_OPERANDS, pack([free + 1])), _fields(start, _CHANNEL)])


def _named(instruction: Instruction, identity: int) -> bytes:
    """The name of an instruction with a number, so that errors find its line, and an identity."""
    name = first(instruction, _NAME)
    return encode(_NAME, b"%s.%d" % (bytes(name.payload) if name else b"", identity)) + encode_number(_ID, identity)


def _new(opcode: bytes, identity: int, shape: bytes, rest: bytes, metadata: bytes) -> bytes:
    name = b"%s.of_transfer.%d" % (opcode, identity)
    own = encode(_NAME, name) + encode(_OPCODE, opcode) + encode(_SHAPE, shape) + encode_number(_ID, identity)
    return own + rest + metadata


def _array(element: int, rank: int) -> bytes:
    """The shape of a number, or of an array of one."""
    sizes = encode(_SIZES, pack([1])) if rank else b""
    layout = encode(_LAYOUT, encode(_MINOR_TO_MAJOR, pack([0])) if rank else b"")
    return encode_number(_ELEMENT, element) + sizes + layout


def _fields(instruction: Instruction, *numbers: int) -> bytes:
    return b"".join(instruction[f.start : f.end] for f in fields(instruction) if f.number in numbers)


def _rest(instruction: Instruction, numbers: Iterable[int]) -> list[Instruction]:
    return [instruction[f.start : f.end] for f in fields(instruction) if f.number not in numbers]


def _opcode(instruction: Instruction) -> str:
    entry = first(instruction, _OPCODE)
    return entry.text if entry else ""


def _operands(instruction: Instruction) -> list[int]:
    entry = first(instruction, _OPERANDS)
    if entry is None:
        return []
    return [entry.value] if isinstance(entry.value, int) else unpack(entry.payload)


def _shape(instruction: Instruction) -> memoryview:
    entry = first(instruction, _SHAPE)
    return entry.payload if entry else memoryview(b"")


def _parts(instruction: Instruction) -> list[memoryview]:
    return [entry.payload for entry in fields(_shape(instruction)) if entry.number == _PARTS]
