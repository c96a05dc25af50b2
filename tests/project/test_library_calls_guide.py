"""docs/library-calls.md names what there is: each target that is computed, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from hloforge.dialect.marks import PREFIX
from hloforge.pipelines.library_calls.registry import decompositions

TABLE = (Path(__file__).resolve().parents[2] / "docs" / "library-calls.md").read_text().split("\n## ")[0]


def test_names() -> None:
    rows = [line.split("|")[2] for line in TABLE.splitlines() if line.startswith("|")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row) if name not in ("Dropout", "Backward")]
    patterns = {name: re.escape(name).replace("…", ".*") for name in names}
    targets = [target for target in decompositions() if not target.startswith(PREFIX)]
    assert [t for t in targets if not any(re.fullmatch(p, t) for p in patterns.values())] == []
    assert [n for n, p in patterns.items() if not any(re.fullmatch(p, t) for t in targets)] == []
