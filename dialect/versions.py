"""Which versions of the packages below hloforge it works with: others are refused when they are loaded, in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hloforge._version import __version__
from hloforge.dialect.errors import Error

_Numbers = tuple[int, ...]


class InstallationError(Error, ImportError):
    """A package that hloforge needs is installed in a version that it does not work with."""


@dataclass(frozen=True)
class Range:
    """Versions from ``least`` on, up to but not including ``below``; as pyproject.toml has them (a test compares)."""

    least: _Numbers
    below: _Numbers

    def __contains__(self, version: str) -> bool:
        return self.least <= numbers(version) < self.below

    def __str__(self) -> str:
        least, below = (".".join(map(str, bound)) for bound in (self.least, self.below))
        return f">={least},<{below}"


# A vmfb runs with the version of IREE that compiled it; jaxlib's bindings are private, and change with each version.
RANGES: Mapping[str, Range] = {
    "jaxlib": Range((0, 10, 2), (0, 11)),
    "iree-base-compiler": Range((3, 13), (3, 14)),
    "iree-base-runtime": Range((3, 13), (3, 14)),
    # Operators, captures and their decompositions change with each release.
    "torch": Range((2, 13), (2, 16)),
}


def numbers(version: str) -> _Numbers:
    """The numbers that a version begins with: (3, 13, 0) of ``3.13.0rc20261016``."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def check_version(package: str, installed: str) -> None:
    """Raise InstallationError unless hloforge works with an installed version of a package."""
    wanted = RANGES[package]
    if installed not in wanted:
        raise InstallationError(
            f"hloforge {__version__} does not work with {package} {installed}",
            hint=f"pip install '{package}{wanted}'",
        )
