"""How fast a device can be at best, by its data sheet: numpy alone, for machines without hloforge."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Dense peaks of NVIDIA's data sheets: TFLOP/s of bf16 in tensor cores and of f32 outside of them, and TB/s of memory.
# The first that fits decides.
_DATA_SHEETS: tuple[tuple[str, float, float, float], ...] = (
    (r"B200", 2250, 75, 8.0),
    (r"H200", 989, 67, 4.8),
    (r"GH200", 989, 67, 4.0),
    (r"H100.*PCIe", 756, 51, 2.0),
    (r"H100", 989, 67, 3.35),
    (r"A100.*80GB", 312, 19.5, 2.0),
    (r"A100", 312, 19.5, 1.555),
    (r"L40S", 362, 91.6, 0.864),
    (r"L40", 181, 90.5, 0.864),
    (r"\bL4\b", 121, 30.3, 0.3),
    (r"A10\b", 125, 31.2, 0.6),
    (r"RTX 4090", 165, 82.6, 1.008),
    (r"RTX 3090", 71, 35.6, 0.936),
)


@dataclass(frozen=True)
class Peaks:
    """What bounds every program on a device.

    Attributes:
        flops: of a second, by element type.
        bandwidth: bytes of a second.
        source: where the numbers are from.
    """

    flops: dict[str, float]
    bandwidth: float
    source: str

    def seconds(self, element: str, flops: float, moved: float) -> float:
        """The least time for some arithmetic on some bytes, each of which is moved once."""
        return max(flops / self.flops[element], moved / self.bandwidth)


def known_peaks(name: str) -> Peaks | None:
    """The peaks of a product by its name."""
    for form, half, single, bandwidth in _DATA_SHEETS:
        if re.search(form, name):
            return Peaks({"bf16": half * 1e12, "f32": single * 1e12}, bandwidth * 1e12, "NVIDIA's data sheet, dense")
    return None


def measured_peaks() -> Peaks:
    """What numpy reaches on this processor: a stand-in for a data sheet, to try the measuring without a GPU."""
    size = 512
    a = np.ones((size, size), np.float32)
    product = _best(lambda: a @ a)
    block = np.ones(1 << 22, np.float32)
    target = np.empty_like(block)
    copy = _best(lambda: np.copyto(target, block))
    flops = 2 * size**3 / product
    return Peaks({"bf16": flops, "f32": flops}, 2 * block.nbytes / copy, "numpy's product and copy")


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
