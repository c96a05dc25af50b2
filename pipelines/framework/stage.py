"""A pass of a pipeline and why it is there."""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.framework.passes import Pass


@dataclass(frozen=True)
class Stage:
    """A pass of a named pipeline and why it is there."""

    entry: Pass
    reason: str
