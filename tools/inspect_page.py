"""The page of ``hloforge inspect --html``, made from a program or a vmfb."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Error, OptionError
from hloforge.dialect.program import Program
from hloforge.pipelines import named
from hloforge.pipelines.codegen.lowering import STAGES
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.artifact.manifest import tool_versions
from hloforge.runtime.compile.generated import makes
from hloforge.runtime.compile.limits import check_elements
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.debug import verification
from hloforge.runtime.debug.lowering_record import ELIDED, LoweringRecord, record_lowering
from hloforge.runtime.debug.memory_estimate import memory_estimate
from hloforge.runtime.debug.outline import Outline, outline
from hloforge.runtime.profiling import result
from hloforge.tools.inspection import Facts, program_facts
from hloforge.tools.page import render
from hloforge.tools.quantities import bytes_text, si_text

# Limits that keep a page below about 20 MB; the page says what they leave out.
MOST_OPERATIONS = 50_000
MOST_LINES = 5_000
MOST_TEXT = 6_000_000
_LONGEST_WORD = 200

# Fields of the reports that the page shows: of the whole, and of the members of its lists.
_VERIFICATION = {
    "": {"program", "target", "references", "agrees", "trials"},
    "trials": {"number", "kind", "seed", "agrees", "failure", "notes", "results"},
}
_PROFILE = {
    "": {
        *("program", "device", "calls", "seconds", "unprofiled_seconds", "dispatch_seconds", "transfer_seconds"),
        *("host_seconds", "flops", "transcendentals", "bytes", "roofline", "notes", "rows"),
    },
    "rows": {"kinds", "dispatch", "count", "seconds", "share", "roofline_fraction", "bound", "location", "scope"},
}


@dataclass(frozen=True)
class Measured:
    """Reports of other commands that the page shows too: of ``verify --json`` and ``profile --json``."""

    verification: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None

    @classmethod
    def read(cls, numerics: Path | None, profile: Path | None) -> Measured:
        """Raises OptionError for a file that is no such report."""
        return cls(
            None if numerics is None else _report(numerics, "verify", verification.FORMAT, _VERIFICATION),
            None if profile is None else _report(profile, "profile", result.FORMAT, _PROFILE),
        )

    def facts(self) -> Facts:
        found = {"verification": self.verification, "profile": self.profile}
        return {name: report for name, report in found.items() if report is not None}


def _report(path: Path, command: str, format: str, fields: dict[str, set[str]]) -> dict[str, Any]:
    """A report, if it is of this format and has the fields."""
    hint = f"write one with hloforge {command} PROGRAM --json={path}"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", hint=hint) from None
    except (ValueError, RecursionError):
        raise OptionError(f"{path} is no JSON", hint=hint) from None
    if not isinstance(found, dict) or found.get("format") != format or found.get("version") != 1:
        raise OptionError(f"{path} is no report of hloforge {command}, or one of another version", hint=hint)
    for part, names in fields.items():
        members = found[part] if part else [found]
        whole = isinstance(members, list) and all(isinstance(one, dict) and names <= one.keys() for one in members)
        if not whole:
            raise OptionError(f"{path} is damaged: {part or 'the report'} lacks fields", hint=hint)
    return found


def vmfb_page(facts: Facts, measured: Measured) -> str:
    """The page of a vmfb: what its manifest says."""
    header = [
        ("file", facts["source"]),
        ("compiled for", ", ".join(facts["targets"])),
        ("size", bytes_text(facts["bytes"])),
        ("runs on", facts["grid"]),
        ("called with", facts["whole"]),
        *((f"function {name}", signature) for name, signature in facts["functions"].items()),
        ("host calls", ", ".join(facts["host_calls"])),
        ("weights", f"{len(facts['weights'])} in {facts['weights_file']}" if facts["weights"] else ""),
        ("code of", facts["code_generator"]),
        ("flags", " ".join(facts["flags"])),
        ("compiled at", facts["compiled_at"] if facts["failed_attempts"] else ""),
        ("failed attempts", "; ".join(f"{row['attempt']}: {row['reason']}" for row in facts["failed_attempts"])),
        ("versions", _versions(facts["versions"])),
    ]
    return _page(facts, header, measured.facts())


def program_page(
    program: Program,
    target: str,
    options: Sequence[str],
    measured: Measured,
    on_pass: Callable[[str], None] = lambda _: None,
) -> str:
    """The page of a program, which the passes of the target run over.

    Args:
        target: as of ``Target.parse``.
        options: what the user asked for, to be shown.
        on_pass: told of each pass before it runs.

    Raises:
        OptionError: a malformed target.
    """
    parsed = Target.parse(target)
    is_ours = makes(program, parsed)
    record = record_lowering(
        program,
        STAGES if is_ours else named.stages(parsed.pipeline),
        most_lines=MOST_LINES,
        on_pass=on_pass,
        check=lambda module: None if is_ours else check_elements(module, parsed),
    )
    facts = program_facts(program, target, record)
    header = [
        ("file", facts["source"]),
        ("target", target),
        ("options", " ".join(options)),
        ("code of", "hloforge's kernels" if is_ours else "IREE's compiler"),
        ("element types", ", ".join(f"{name} {count}" for name, count in facts.get("element_types", {}).items())),
        ("versions", _versions(dict(tool_versions()))),
    ]
    normal = program.clone()
    own: Facts = {}
    try:
        normalize(normal.module)
        own["memory"] = memory_estimate(normal.module, program.signature)
    except Error:
        # The page shows the program as it was read, and the error among what is refused.
        normal = program
    graph = outline(normal.module, program.signature, MOST_OPERATIONS)
    words = _Words()
    texts, stages, cut = _stages(record)
    own |= {
        "record": record,
        "histogram": _histogram(record),
        "left_out": graph.left_out,
        "most_nodes": MOST_OPERATIONS,
        "elided": ELIDED,
        "cut_lines": cut,
        "payload": {
            "graph": _graph(graph, words) | _lowered(facts) | _times(graph, measured.profile),
            "stages": stages,
            "texts": texts,
        },
    }
    return _page(facts, header, own | measured.facts())


def _page(facts: Facts, header: Sequence[tuple[str, str]], own: Facts) -> str:
    names = {
        "signature": "Parameters and results",
        "memory": "Memory",
        "operations": "Operations",
        "passes": "Passes",
        "graph": "Graph",
        "stages": "Stages",
        "numerics": "Numerics",
        "profile": "Profile",
    }
    there = {
        "signature": True,
        "memory": "memory" in own,
        "numerics": "verification" in own,
        "profile": "profile" in own,
    }
    sections = [(name, label) for name, label in names.items() if there.get(name, "record" in own)]
    title = f"hloforge inspect: {facts['name'] or facts['source']}"
    return render("inspect.html", title=title, facts=facts, header=header, sections=sections, **own)


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _histogram(record: LoweringRecord) -> list[Facts]:
    """A row for each kind of operation: how many there are before the passes and after them."""
    before, after = (Counter(record.snapshots[place].operations) for place in (0, -1))
    most = max(before.values(), default=1)
    names = [*before, *(name for name in after if name not in before)]
    return [
        {"name": name, "before": before[name], "after": after[name], "share": 100 * before[name] / most}
        for name in names
    ]


@dataclass
class _Words:
    """Texts by number, each once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def __call__(self, word: str) -> int:
        short = word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…"
        return self.numbers.setdefault(short, len(self.numbers))


def _graph(found: Outline, words: _Words) -> Facts:
    """The outline as lists of numbers; of each scope, how many operations it holds."""
    nodes = [
        [words(node.kind), words(node.name), node.end, words(node.shape), words(node.location), list(node.operands)]
        for node in found.nodes
    ]
    # How many of the nodes before each one are operations.
    ahead = [0]
    for node in found.nodes:
        ahead.append(ahead[-1] + (node.kind == "operation"))
    counts = {
        number: ahead[node.end] - ahead[number] for number, node in enumerate(found.nodes) if node.kind == "scope"
    }
    return {"nodes": nodes, "words": list(words.numbers), "counts": counts}


def _lowered(facts: Facts) -> Facts:
    """What the target's passes do to kinds of operations."""
    found: dict[str, list[str]] = {}
    for row in facts.get("decomposed", ()):
        found.setdefault(row["operation"], []).append(
            f"{row['by']} decomposes {row['count']} of its kind: {row['reason']}"
        )
    return {"lowered": {name: "; ".join(rows) for name, rows in found.items()}}


def _times(found: Outline, profile: Facts | None) -> Facts:
    """The time in a profile of the operations, by location, and of the scopes around them."""
    seconds = {row["location"]: 0.0 for row in profile["rows"] if row["location"]} if profile else {}
    for row in profile["rows"] if profile else ():
        if row["location"]:
            seconds[row["location"]] += row["seconds"]
    own = [0.0] * len(found.nodes)
    for number, node in enumerate(found.nodes):
        if node.kind == "operation":
            own[number] = seconds.pop(node.location, 0.0)
    before = [0.0, *accumulate(own)]
    spent = {number: before[node.end] - before[number] for number, node in enumerate(found.nodes)}
    return {"times": {number: si_text(took, "s") for number, took in spent.items() if took > 0}}


def _stages(record: LoweringRecord) -> tuple[list[str], list[Facts], int]:
    """Lines of all stages, each text once; the stages as numbers of tracks and texts; and after how many lines they
    are cut, 0 if they are whole.
    """
    most = MOST_LINES
    texts = _Texts.of(record, most)
    while texts.size > MOST_TEXT:
        most //= 2
        texts = _Texts.of(record, most)
    is_cut = any(snapshot.line_count > most for snapshot in record.snapshots)
    return list(texts.numbers), texts.stages, most if is_cut else 0


@dataclass
class _Texts:
    numbers: dict[str, int] = field(default_factory=dict)
    stages: list[Facts] = field(default_factory=list)
    size: int = 0

    @classmethod
    def of(cls, record: LoweringRecord, most: int) -> _Texts:
        found = cls()
        for snapshot in record.snapshots:
            flat: list[int] = []
            for line in snapshot.lines[:most]:
                flat += (line.track, found.number(line.text))
            found.size += 8 * len(flat)
            found.stages.append({"name": snapshot.name, "reason": snapshot.reason, "lines": flat})
        return found

    def number(self, text: str) -> int:
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            self.size += len(text)
        return self.numbers[text]
