"""What became of programs, as data: a line of JSON for each, of which the table is made."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.examine import AGREES, UNDECIDED

ROOT = Path(__file__).resolve().parents[2]
KNOWN = "known"
# What programs are compiled and run by; tests and documents make no other state.
_CODE = ("dialect", "importers", "pipelines", "runtime", "src", "tools")


@dataclass(frozen=True)
class Entry:
    """What became of one program.

    Attributes:
        seed: of the generator.
        state: the last commit of the code, with a digest of edits after it.
        verdict: ``agrees``, ``undecided``, ``known``, or the kind of a finding (``Outcome.kind``).
        cause: of a finding; why a known one is no new one.
    """

    generator: str
    seed: int
    state: str
    verdict: str
    cause: str = ""

    @property
    def is_finding(self) -> bool:
        return self.verdict not in (AGREES, UNDECIDED, KNOWN)


def state() -> str:
    """The last commit that changed the code, and a digest of what was edited after it.

    Raises:
        CalledProcessError: this is no checkout of git.
    """
    commit = _git("log", "-1", "--format=%h", "--", *_CODE).strip()
    edits = _git("diff", "HEAD", "--", *_CODE)
    return commit + (f"+{hashlib.sha256(edits.encode()).hexdigest()[:6]}" if edits else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Ledger:
    """A file of entries, which only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, entries: Iterable[Entry]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(asdict(entry)) + "\n" for entry in entries)

    def __iter__(self) -> Iterator[Entry]:
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                if line.endswith("}"):  # not the half line of a process that was killed
                    yield Entry(**json.loads(line))

    def next_seed(self, generator: str, first: int) -> int:
        """The seed after the last one of a generator on any state."""
        return max([first, *(entry.seed + 1 for entry in self if entry.generator == generator and entry.seed >= first)])


def table(entries: Iterable[Entry], current: str) -> list[str]:
    """A table of Markdown: a line for each generator, on all states and on the current one, and their sums."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        for name in (entry.generator, "together"):
            row = counts.setdefault(name, Counter())
            row["all"] += 1
            row["findings"] += entry.is_finding
            if entry.state != current:
                continue
            row["here"] += 1
            row[entry.verdict] += 1
            row["since"] = 0 if entry.is_finding else row["since"] + 1
    lines = [
        f"| generator | programs | findings | on {current} | agree | undecided | known | since the last finding |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(counts, key=lambda name: (name == "together", name)):
        row = counts[name]
        cells = ("all", "findings", "here", AGREES, UNDECIDED, KNOWN, "since")
        lines.append(f"| {name} | " + " | ".join(f"{row[cell]:,}" for cell in cells) + " |")
    return lines
