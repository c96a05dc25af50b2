"""What is compiled for directly: the processor of this machine, where it is one that this package knows."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib.util import find_spec


class DirectError(Exception):
    """This package cannot make the program; a compilation by IREE's compiler can."""


def is_available() -> bool:
    """Whether programs can be made directly on this machine."""
    return not unavailable()


@cache
def unavailable() -> str:
    """Why programs cannot be made directly on this machine; empty if they can."""
    if not sys.platform.startswith("linux"):
        return "direct compilation needs Linux"
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"direct compilation has no linker for {platform.machine()}"
    if find_spec("llvmlite") is None:
        return "llvmlite is not installed"
    return ""
