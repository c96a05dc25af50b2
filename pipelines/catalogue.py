"""Every pass of hloforge in one place: importing this module fills the registry."""

from __future__ import annotations

from functools import cache

from hloforge.pipelines import decompose, legalize, normalize
from hloforge.pipelines.passes import Pass, load_modules, registered


@cache
def passes_by_name() -> dict[str, type[Pass]]:
    """All passes that textual pipelines may name; each file of the pass folders is imported once."""
    for folder in (normalize, decompose, legalize):
        load_modules(folder)
    from hloforge.pipelines import audit  # noqa: F401 - registers the audit itself

    return registered()
