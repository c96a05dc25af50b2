"""The results of a check as they come: after each row its JSON and its document are written anew.

Whatever ends a check (a limit of time, a lost machine), what it found is in the files, and ``--resume`` goes on there.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.render import document
from benchmarks.gpu.rows import Row

PARTS = ("kernels", "programs", "conformance")
# Less time than this is left for no row.
_LEAST = 5.0


class Progress:
    """What a check has found, and how much of its time is left.

    Args:
        head: date, machine and versions. Rows are taken over from a file that has the same two last.
        results, page: the files; their folders are made.
        budget: seconds for all rows; None for no limit.
        resume: keep the rows without an error that ``results`` has.
    """

    def __init__(
        self, head: Row, results: Path, page: Path, *, budget: float | None = None, resume: bool = False
    ) -> None:
        self.found: dict[str, Any] = dict(head)
        self._results, self._page = results, page
        self._end = None if budget is None else time.monotonic() + budget
        if resume:
            self._take_over()

    def _take_over(self) -> None:
        try:
            earlier = json.loads(self._results.read_text())
        except (OSError, ValueError):
            return
        if any(earlier.get(name) != json.loads(json.dumps(self.found[name])) for name in ("machine", "versions")):
            return
        for part in PARTS:
            if rows := [row for row in earlier.get(part, []) if "error" not in row]:
                self.found[part] = rows

    def seconds(self, most: float) -> float:
        """What a row may take: at most ``most``; 0 if too little is left for one."""
        if self._end is None:
            return most
        left = self._end - time.monotonic()
        return min(most, left) if left > _LEAST else 0.0

    def has(self, part: str, name: str) -> bool:
        return any(row["name"] == name for row in self.found.get(part, []))

    def take(self, part: str, row: Row) -> None:
        """Note a row, and write the files."""
        self.found.setdefault(part, []).append(row)
        self.write()

    def leave(self, part: str, name: str) -> None:
        """Note a row that was not reached."""
        self.found.setdefault("unreached", []).append(f"{part}: {name}")

    def write(self) -> None:
        for path, text in (
            (self._results, json.dumps(self.found, indent=1, ensure_ascii=False) + "\n"),
            (self._page, document(self.found)),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Whoever is killed here leaves the old file or the new one.
            made = path.with_name(f".{path.name}.new")
            made.write_text(text)
            made.replace(path)

    @property
    def is_wrong(self) -> bool:
        """Whether a result differs from what it has to be."""
        rows = [row for part in ("kernels", "programs") for row in self.found.get(part, [])]
        return any(row.get("agrees") is False for row in rows) or any(
            row.get("stage") == "numerics" for row in self.found.get("conformance", [])
        )
