"""Divide a machine's processors among several devices."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any


def own_processors() -> tuple[int, ...]:
    """The processors that this process may use; none where the system does not tell."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def share(processors: Sequence[int], place: int, devices: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``hloforge.load`` for a device that shares processors with others, each of which has a thread that
    calls: a pool on its part of them, or where that is one or nothing, the calling thread alone.

    Args:
        processors: of all devices.
        place: of the device among them.
        options: the arguments that are given; they stay as they are if they say where to run.
    """
    if options.get("device") is not None or options.get("threads") is not None:
        return dict(options)
    part = tuple(processors[len(processors) * place // devices : len(processors) * (place + 1) // devices])
    return {**options, **({"threads": part} if len(part) > 1 else {"device": "local-sync"})}
