"""Channels of sends and receives that have none, which XLA's GPU backend does without.

Before: ``send(x, token), frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}``; after: the same with
``channel_id=7``, a number that nobody else has, and that sends and receives between the same pairs of devices share.

XLA's converter to StableHLO ends the process on a send without a channel. Without one a send meets the receive between
the same devices, in their order, as it does on a channel of their own. So do those whose channels nobody else has,
because XLA's GPU backend does not look at channels. Field numbers as found in jaxlib 0.10.2's
protos: HloInstructionProto, FrontendAttributes.
"""

from __future__ import annotations

from hloforge.dialect.protobuf import encode_number, fields, first, number, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _CHANNEL, _ID, _OPERANDS, _FRONTEND = 2, 26, 35, 36, 68
_ENTRY, _KEY, _VALUE = 1, 1, 2
_PAIRS = b"_xla_send_recv_source_target_pairs"
_STARTS, _DONES = frozenset({"send", "recv"}), frozenset({"send-done", "recv-done"})


def with_channels(module: bytes) -> bytes:
    """The ``HloModuleProto`` in which every send and receive has a channel.

    Raises:
        ValueError: the bytes are not a module.
    """
    if b"send" not in module and b"recv" not in module:
        return module
    instructions = [
        inner.payload
        for entry in fields(module)
        if entry.number == COMPUTATIONS
        for inner in fields(entry.payload)
        if inner.number == INSTRUCTIONS
    ]
    taken = max((_channel(one) for one in instructions), default=0)
    sides = {opcode: {_channel(one) for one in instructions if _opcode(one) == opcode} for opcode in _STARTS}
    met = set.intersection(*sides.values()) - {0}
    channels: dict[bytes, int] = {}
    # Of the starts, by their identities, for what waits for them.
    given: dict[int, int] = {}
    for one in instructions:
        if _opcode(one) in _STARTS and _channel(one) not in met and (pairs(one) or not _channel(one)):
            given[number(one, _ID)] = channels.setdefault(pairs(one), taken + 1 + len(channels))
    if not given:
        return module

    def visit(instruction: memoryview) -> bytes | memoryview:
        if _channel(instruction) in met or _opcode(instruction) not in _STARTS | _DONES:
            return instruction
        is_start = _opcode(instruction) in _STARTS
        channel = given.get(number(instruction, _ID) if is_start else _operand(instruction), 0)
        kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _CHANNEL]
        return b"".join([*kept, encode_number(_CHANNEL, channel)]) if channel else instruction

    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, visit))


def _opcode(instruction: memoryview) -> str:
    entry = first(instruction, _OPCODE)
    return entry.text if entry else ""


def _channel(instruction: memoryview) -> int:
    """The channel; 0 without one, which a proto may also write as -1."""
    channel = number(instruction, _CHANNEL)
    return channel if channel < 1 << 63 else 0


def _operand(instruction: memoryview) -> int:
    """The identity of the first operand."""
    entry = first(instruction, _OPERANDS)
    if entry is None:
        return 0
    return entry.value if isinstance(entry.value, int) else next(iter(unpack(entry.payload)), 0)


def pairs(instruction: memoryview) -> bytes:
    """Which devices it is between, as it is written, without spaces."""
    attributes = first(instruction, _FRONTEND)
    for entry in fields(attributes.payload) if attributes else ():
        key, value = first(entry.payload, _KEY), first(entry.payload, _VALUE)
        if entry.number == _ENTRY and key is not None and value is not None and bytes(key.payload) == _PAIRS:
            return bytes(value.payload).replace(b" ", b"")
    return b""
