"""The names of temporary files: what a process has not removed when a signal ends it is found by them."""

from __future__ import annotations

import os
from uuid import uuid4

# Tells a child process the beginning of its names, where its parent removes what it leaves.
VARIABLE = "HLOFORGE_TEMPORARY"
# Of this process and those that are forked of it. No number of a process: containers that share a folder have the same.
PREFIX = os.environ.get(VARIABLE) or f"hloforge-{uuid4().hex[:16]}-"


def prefix_of_child() -> str:
    """The beginning of names for a child process alone, which begin as those of this one do."""
    return f"{PREFIX}{uuid4().hex[:8]}-"
