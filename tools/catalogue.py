"""List passes and pipelines as text."""

from __future__ import annotations

import inspect

from hloforge.pipelines.catalogue import NATIVE_PASSES, passes_by_name
from hloforge.pipelines.framework.passes import Pass
from hloforge.pipelines.named import PIPELINES, stages


def passes_text() -> str:
    """Every pass, one a line: its name, its options with their defaults, and the first line of its documentation."""
    rows = [(_title(cls), _summary(cls)) for _, cls in sorted(passes_by_name().items())]
    lines = _aligned(rows)
    return "\n".join(["hloforge's own:", *lines, "", "MLIR's and StableHLO's:", *(f"  {n}" for n in NATIVE_PASSES)])


def _title(cls: type[Pass]) -> str:
    options = [f"{name}={default}" for name, (_, default) in cls().options().items()]
    return cls.name + ("{" + " ".join(options) + "}" if options else "")


def _summary(cls: type[Pass]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def pipelines_text() -> str:
    """The named pipelines: each pass with the reason why it is there."""
    parts = []
    for name in PIPELINES:
        rows = [(str(stage.entry), stage.reason) for stage in stages(name)]
        parts.append("\n".join([f"{name}:", *_aligned(rows)]))
    return "\n\n".join(parts)


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    # A few long native pipelines must not push all reasons out of sight.
    width = min(44, max((len(left) for left, _ in rows), default=0))
    return [f"  {left:<{width}}  {right}" for left, right in rows]
