"""What a row of the tables says, computed from times and results alone: for checks with and without hloforge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu.kernels import Array, Kernel
from benchmarks.gpu.peaks import Peaks

Row = dict[str, Any]


def compared(seconds: Mapping[str, float]) -> Row:
    """The times of a call by engine, and hloforge's to each other one."""
    ratios = {name: seconds["hloforge"] / other for name, other in seconds.items() if name != "hloforge"}
    return {"seconds": dict(seconds), "ratios": ratios}


def rates(kernel: Kernel, peaks: Peaks | None, times: Row) -> Row:
    """A kernel's times with what it computes and moves in them, and the least time of the device."""
    seconds = times["seconds"]["hloforge"]
    bound = {} if peaks is None else {"bound": peaks.seconds(kernel.element, kernel.flops, kernel.bytes_moved)}
    return times | bound | {"tflops": kernel.flops / seconds / 1e12, "gigabytes": kernel.bytes_moved / seconds / 1e9}


def judged(kernel: Kernel, arguments: Sequence[Array], result: Array) -> Row:
    """Whether a kernel's result is right."""
    error = kernel.error(arguments, result)
    said = {} if kernel.agrees(error) else {"difference": f"differs by {error:.2g} of the largest number"}
    return {"agrees": kernel.agrees(error), **said}
