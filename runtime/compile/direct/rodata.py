"""The constant bytes of a module: texts inside it, machine code and constants behind it."""

from __future__ import annotations

from hloforge.runtime.compile.direct import flat


class Rodata:
    """The segments of a module while it is written."""

    def __init__(self) -> None:
        self._pieces: list[flat.Piece] = []
        self._known: dict[bytes, int] = {}

    def text(self, value: str) -> int:
        """The number of a text, which is written once."""
        return self.data(value.encode())

    def data(self, value: bytes) -> int:
        """The number of bytes, which are written once."""
        if value not in self._known:
            self._known[value] = len(self._pieces)
            self._pieces.append(flat.table((None, None, flat.content(value))))
        return self._known[value]

    def external(self, place: int, size: int) -> int:
        """The number of bytes behind the module."""
        numbers = flat.Number("Q", place), flat.Number("Q", size)
        self._pieces.append(flat.table((None, None, None, *numbers)))
        return len(self._pieces) - 1

    def finish(self) -> flat.Piece:
        """All segments."""
        return flat.vector(self._pieces)
