"""What the README prints, run as a reader would: its shell and Python blocks in order, and what they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?P<mark><!-- test: (?P<word>\w+) -->\n)?^```(?P<language>sh|python|text)\n(?P<code>.*?)^```", re.M | re.S
)


@dataclass(frozen=True)
class Step:
    """A block of code.

    Attributes:
        language: ``sh`` or ``python``.
        mark: the word of a comment before it; empty without.
        output: the ``text`` block that follows, which is all that it prints on standard output; None without.
    """

    language: str
    code: str
    mark: str
    output: str | None = None


def steps(document: Path) -> list[Step]:
    """The blocks of a document in order."""
    found: list[Step] = []
    for block in _BLOCK.finditer(document.read_text()):
        if block["language"] == "text":
            last = found.pop()
            found.append(Step(last.language, last.code, last.mark, block["code"]))
        else:
            found.append(Step(block["language"], block["code"], block["word"] or ""))
    return found


def run(step: Step, folder: Path, environment: Mapping[str, str], python: str) -> str:
    """What a block prints when it is typed in a folder. Raises AssertionError if it fails."""
    words = ["bash", "-euc", step.code] if step.language == "sh" else [python, "-c", step.code]
    done = subprocess.run(words, cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (step.code, done.stderr)
    return done.stdout


def differing(document: Path, folder: Path, environment: Mapping[str, str], python: str) -> Iterator[tuple[str, str]]:
    """Runs the blocks of a document without marks; what prints something else than the document says, and what."""
    for step in steps(document):
        if not step.mark:
            said = run(step, folder, environment, python)
            if step.output is not None and said != step.output:
                yield step.code, said
