"""The table of opcodes (`opcodes.def`), for README.md: ``python -m emulator.opcodes`` writes it there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
README = _FOLDER / "README.md"
_ROW = re.compile(r'^OPCODE\("(\w+)",\s*(?:[^",]|::)+,\s*(\w+),\s*"([^"]*)",\s*"([^"]*)"\)', re.MULTILINE)
_BEGIN, _END = "<!-- opcodes.def -->", "<!-- end -->"


@dataclass(frozen=True)
class Row:
    opcode: str
    form: str
    example: str
    notes: str


ROWS = tuple(Row(*found) for found in _ROW.findall((_FOLDER / "opcodes.def").read_text()))


def table() -> str:
    """The rows as a table in Markdown."""
    lines = ["| opcode | notes | an instruction |", "|---|---|---|"]
    lines += [f"| `{row.opcode}` | {row.notes} | `{row.example.replace('|', chr(92) + '|')}` |" for row in ROWS]
    return "\n".join(lines)


def with_table(text: str) -> str:
    """A README with the table between its marks."""
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
