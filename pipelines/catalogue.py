"""All passes of hloforge: importing this module fills the registry."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from hloforge import pipelines
from hloforge.pipelines.framework.passes import Pass, registered
from hloforge.pipelines.pass_names import NATIVE_PASSES

__all__ = ["NATIVE_PASSES", "passes_by_name"]


@cache
def passes_by_name() -> dict[str, type[Pass]]:
    """All passes that textual pipelines may name; every file of the folder is imported once."""
    for module in pkgutil.walk_packages(pipelines.__path__, f"{pipelines.__name__}."):
        importlib.import_module(module.name)
    return registered()
