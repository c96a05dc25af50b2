"""The record of a workaround of a fault of IREE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workaround:
    """A fault of IREE, and what hloforge does because of it.

    Attributes:
        name: in kebab-case; the reproducer's file is called like it.
        fault: what IREE does, in one line.
        passes: names of the passes that keep programs from the fault.
        flags: names of the constants in ``runtime/compile/by_iree.py`` or ``runtime/devices/devices.py`` that hold
            flags of IREE.
        where: files of the repository that go when the fault is fixed. Empty if the workaround is a part of a file
            that has other reasons to stay.
        upstream: IREE's issue, as ``iree-org/iree#24753``; empty if none is known.
        since: the version of IREE in which the fault was seen first.
        reproducer: a file in ``tests/upstream/`` that shows the fault without the workaround; empty if there is none.
        unshown: why there is none, and what was tried; empty if there is one.
    """

    name: str
    fault: str
    passes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    upstream: str = ""
    since: str = "3.13.0"
    reproducer: str = ""
    unshown: str = ""
