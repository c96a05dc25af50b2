"""docs/perf-fuzz.md: what is measured, and the tables of the recorded run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.perf_fuzz import summary
from benchmarks.render import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "perf_fuzz.json"
DOCUMENT = ROOT / "docs" / "perf-fuzz.md"

_START, _END = "<!-- generated:perf-fuzz -->", "<!-- end:perf-fuzz -->"


def rendered(results: dict[str, Any]) -> str:
    """The part of the page between its marks."""
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    words = [
        f"{where['processor']} ({where['architecture']}, {where['cores']} cores), {where['date']}; {versions}.",
        f"{len(results['programs'])} programs, seeds {results['seeds']}.",
    ]
    if results.get("environment"):
        words.append("With " + ", ".join(f"`{name}={value}`" for name, value in results["environment"].items()) + ".")
    if results.get("note"):
        words.append(results["note"])
    return "\n\n".join([" ".join(words), summary.report(results["programs"])])


def written(text: str, results: dict[str, Any]) -> str:
    """A page with its generated part replaced. Raises ValueError if it has no marks."""
    pattern = re.compile(re.escape(_START) + ".*" + re.escape(_END), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{DOCUMENT.name} has no {_START}")
    return pattern.sub(lambda _: f"{_START}\n{rendered(results)}\n{_END}", text)


def main(source: Path = RESULTS) -> None:
    DOCUMENT.write_text(written(DOCUMENT.read_text(), json.loads(source.read_text())))


if __name__ == "__main__":
    main()
