"""Messages between this process and the children of the server: a number of blobs.

The count and the lengths come first, as 64-bit integers, and then the blobs.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

_WORD = struct.calcsize("<Q")


def send(connection: socket.socket, blobs: Sequence[bytes]) -> None:
    """Send a message. Raises OSError."""
    connection.sendall(struct.pack(f"<{len(blobs) + 1}Q", len(blobs), *map(len, blobs)))
    for blob in blobs:
        connection.sendall(blob)


def receive(connection: socket.socket) -> list[bytes]:
    """Wait for a message. Raises OSError, and EOFError where the other side has gone."""
    (count,) = struct.unpack("<Q", _exactly(connection, _WORD))
    lengths = struct.unpack(f"<{count}Q", _exactly(connection, _WORD * count))
    return [_exactly(connection, length) for length in lengths]


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        taken = connection.recv_into(view)
        if not taken:
            raise EOFError
        view = view[taken:]
    return bytes(data)
