"""Read XLA's compile options: the devices that a program runs on, and the shardings of its arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from hloforge.dialect.protobuf import Field, fields
from hloforge.pipelines.replicas.shards import Sharding

# Numbers of fields. Source: XLA, pjrt/proto/compile_options.proto and xla_data.proto.
_BUILD_OPTIONS, _OVERRIDES = 3, 7
_ORDINAL, _REPLICAS, _PARTITIONS, _ASSIGNMENT = 1, 4, 5, 9
_COMPUTATION_DEVICES, _REPLICA_DEVICES = 3, 1
# OpSharding: what it is, the parts of each dimension, the devices part by part, whether several have each part, and
# what those have of it that share one.
_TYPE, _TILES, _TILED_DEVICES, _REPLICATES_LAST, _LAST_TILES = 1, 3, 4, 6, 8
_COPIES, _OTHER, _UNREDUCED = 0, 3, 6
_CONTINUES = 0x80
# An OpSharding whose type is 0.
REPLICATED = b""


@dataclass(frozen=True)
class Placement:
    """The grid of a program, and the number of the device at each of its positions.

    Attributes:
        replicas, partitions: the grid.
        devices: by ``replica * partitions + partition``.
    """

    replicas: int = 1
    partitions: int = 1
    devices: tuple[int, ...] = (0,)


def placement(options: bytes) -> Placement:
    """Where a program runs by its serialized compile options.

    Raises:
        ValueError: the bytes are not a whole message.
    """
    build = _by_number(_payload(fields(options), _BUILD_OPTIONS))
    replicas = _number(build.get(_REPLICAS), 1) or 1
    partitions = _number(build.get(_PARTITIONS), 1) or 1
    count = replicas * partitions
    if _ASSIGNMENT not in build:
        first = _number(build.get(_ORDINAL), 0)
        start = first if count == 1 and 0 <= first < 1 << 31 else 0
        return Placement(replicas, partitions, tuple(range(start, start + count)))
    columns = [
        _numbers(field.payload) for field in fields(build[_ASSIGNMENT].payload) if field.number == _COMPUTATION_DEVICES
    ]
    return Placement(replicas, partitions, tuple(column[replica] for replica in range(replicas) for column in columns))


def overrides(options: bytes) -> bytes:
    """What the user set by ``compiler_options=``, as compile options that hold nothing else; empty if nothing."""
    return b"".join(options[field.start : field.end] for field in fields(options) if field.number == _OVERRIDES)


def op_sharding(sharding: Sharding) -> bytes:
    """How an array lies on devices, as a serialized OpSharding."""
    parts, terms = prod(sharding.tiles), sharding.terms or (0,) * len(sharding.places)
    summands = max(terms) + 1
    if parts == 1 and summands == 1:
        return REPLICATED
    if parts == 1 and summands == len(terms):
        return _key(_TYPE, 0) + bytes([_UNREDUCED])
    devices = sorted(range(len(terms)), key=lambda device: (sharding.places[device], terms[device], device))
    copies = len(devices) // (parts * summands)
    # In XLA's order.
    sharing = [(count, kind) for count, kind in ((summands, _UNREDUCED), (copies, _COPIES)) if count > 1]
    tiles = (*sharding.tiles, *(count for count, _ in sharing))
    message = _key(_TYPE, 0) + bytes([_OTHER]) + _packed(_TILES, tiles) + _packed(_TILED_DEVICES, devices)
    if summands > 1:
        return message + _packed(_LAST_TILES, [kind for _, kind in sharing])
    return message + _key(_REPLICATES_LAST, 0) + b"\1" if copies > 1 else message


def _key(number: int, wire: int) -> bytes:
    return bytes([number << 3 | wire])


def _packed(number: int, values: Iterable[int]) -> bytes:
    payload = b"".join(map(_varint, values))
    return _key(number, 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= _CONTINUES:
        found.append(value % _CONTINUES | _CONTINUES)
        value //= _CONTINUES
    return bytes([*found, value])


def _payload(found: Iterable[Field], number: int) -> bytes:
    return b"".join(bytes(field.payload) for field in found if field.number == number)


def _by_number(message: bytes) -> dict[int, Field]:
    return {field.number: field for field in fields(message)}


def _number(field: Field | None, default: int) -> int:
    return field.value if field is not None and isinstance(field.value, int) else default


def _numbers(computation: memoryview) -> list[int]:
    """The devices of one partition, by replica; packed or one by one."""
    found: list[int] = []
    for field in fields(computation):
        if field.number == _REPLICA_DEVICES:
            found += [field.value] if isinstance(field.value, int) else _varints(field.value)
    return found


def _varints(packed: memoryview) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & ~_CONTINUES) << shift
        shift += 7
        if byte < _CONTINUES:
            found.append(value)
            value = shift = 0
    return found
