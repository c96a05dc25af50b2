"""The IR that the file of a pass shows before and after it, held to a file of this folder with the pass's name.

The docstring of ``pipelines/decompose/pred_arithmetic.py`` has blocks ``Before::`` and ``After::``; the pass is
``decompose-pred-arithmetic``, so ``decompose_pred_arithmetic.mlir`` has to be a whole program of that kind, with CHECK
lines for what comes out. A file of ``pipelines`` that is a part of a pass has one by its own name.
"""

from __future__ import annotations

import dataclasses
import pkgutil
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hloforge import pipelines
from hloforge.pipelines.catalogue import passes_by_name
from tests.filecheck.runner import run_lines, run_pipeline

HERE = Path(__file__).parent
# Names of operations, attributes and targets, as in stablehlo.add and @hloforge.gather; no values and no numbers.
_NAME = re.compile(r"(?<![\w.%/])[a-z_]\w*(?:\.[a-z_]\w*)+(?!\w)")
# The passes whose output the program is before they run, with the reason.
UNSEEN = {"flatten-tuples": "the reader takes apart the tuples of StableHLO text itself"}
# The passes whose docstrings show no IR, with the reason.
WITHOUT_IR = {"audit": "it rewrites nothing", "check-needs": "it rewrites nothing"}
# The other files that show IR, of which no pass by itself makes anything, with the reason.
WITHOUT_PASS = {
    "hloforge.pipelines.delta_debugging.outline": "hloforge bisect calls it",
    "hloforge.pipelines.weights": "a compilation with weights calls it",
}


@dataclass(frozen=True)
class Example:
    """What a docstring shows.

    Attributes:
        name: of the pass, or of the file of a part.
        before, after: the names of operations, attributes and targets in the sections of these titles.
    """

    name: str
    before: frozenset[str]
    after: frozenset[str]

    @property
    def path(self) -> Path:
        return HERE / f"{self.name.replace('-', '_')}.mlir"


def section(text: str, title: str) -> str | None:
    """The paragraph of a docstring that begins with a word, and the indented block behind it."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(title)), None)
    if start is None:
        return None
    found = [lines[start]]
    in_paragraph = True
    for line in lines[start + 1 :]:
        in_paragraph = in_paragraph and bool(line)
        if line and not line.startswith(" ") and not in_paragraph:
            break
        found.append(line)
    return "\n".join(found)


def names(text: str) -> frozenset[str]:
    """Those of the indented lines of a section, not of its words."""
    return frozenset(name for line in text.splitlines() if line.startswith(" ") for name in _NAME.findall(line))


def documented() -> dict[str, str]:
    """The docstring of each pass's file."""
    files = {name: type_.__module__ for name, type_ in passes_by_name().items()}
    return {
        name: sys.modules[module].__doc__ or ""
        for name, module in sorted(files.items())
        if module.startswith("hloforge.pipelines.")
    }


def parts() -> dict[str, str]:
    """The docstring of each file without a pass, by the file's module."""
    own = {type_.__module__ for type_ in passes_by_name().values()}
    found = [module.name for module in pkgutil.walk_packages(pipelines.__path__, f"{pipelines.__name__}.")]
    return {module: sys.modules[module].__doc__ or "" for module in found if module not in own}


def examples(texts: dict[str, str]) -> list[Example]:
    """Those of the docstrings that show IR before and after."""
    found = []
    for name, text in texts.items():
        before, after = section(text, "Before"), section(text, "After")
        if before is not None and after is not None:
            found.append(Example(name, names(before), names(after)))
    return found


PASSES = examples(documented())
PARTS = [
    dataclasses.replace(example, name=example.name.rpartition(".")[2])
    for example in examples(parts())
    if example.name not in WITHOUT_PASS
]
EXAMPLES = [*PASSES, *PARTS]


def lines_of(path: Path) -> tuple[str, str]:
    """The program of a file, and its CHECK lines that ask for something."""
    lines = path.read_text().splitlines()
    program = [line for line in lines if not line.startswith("//")]
    checks = [line for line in lines if re.match(r"// CHECK(-[A-Z0-9-]+)?:", line) and "CHECK-NOT:" not in line]
    return "\n".join(program), "\n".join(checks)


def last_pass(path: Path) -> tuple[str, list[str]]:
    """The last pass that the only RUN line of a file names, and the words without it."""
    (line,) = run_lines(path)
    words = shlex.split(line)
    place = max(number for number, word in enumerate(words) if word.startswith("--pass="))
    name = words[place].removeprefix("--pass=").partition("{")[0]
    return name, words[:place] + words[place + 1 :]


def missing(wanted: frozenset[str], text: str) -> list[str]:
    """The names that a text lacks. In a function, MLIR prints ``call`` and ``return`` without their dialect."""
    return sorted(name for name in wanted if not re.search(rf"(?<![\w.]){_printed(name)}(?!\w)", text))


def _printed(name: str) -> str:
    return name.removeprefix("func.") if name in ("func.call", "func.return") else re.escape(name)


def test_every_pass_shows_its_ir() -> None:
    shown = {example.name for example in PASSES}
    assert set(documented()) - shown == set(WITHOUT_IR)
    assert shown.issuperset(UNSEEN)
    assert {example.name for example in examples(parts())}.issuperset(WITHOUT_PASS)
    assert len({example.path for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("example", PASSES, ids=lambda example: example.name)
def test_a_file_runs_its_pass_last(example: Example) -> None:
    assert last_pass(example.path)[0] == example.name


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_what_a_docstring_shows_is_checked(example: Example) -> None:
    assert example.path.exists(), f"{example.name} shows IR in its docstring: check it in {example.path.name}"
    program, checks = lines_of(example.path)
    assert checks
    assert missing(example.before, program) == [], "the docstring's Before names what the program lacks"
    assert missing(example.after, checks) == [], "the docstring's After names what no CHECK line asks for"


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.name not in UNSEEN], ids=lambda example: example.name
)
def test_the_checks_fail_without_the_pass(example: Example, tmp_path: Path) -> None:
    _, kept = last_pass(example.path)
    with pytest.raises(AssertionError, match="filecheck gave 1"):
        run_pipeline(" ".join(kept), example.path, tmp_path)


def test_sections_end_where_the_prose_goes_on() -> None:
    text = "``p``: does it.\n\nBefore::\n\n    a.b %x\n\nAfter, said\nin words of g.h::\n\n    c.d %x\n\nSource: e.f.\n"
    assert section(text, "Before") == "Before::\n\n    a.b %x\n"
    assert names(section(text, "After") or "") == {"c.d"}
    assert section(text, "Source: g") is None
