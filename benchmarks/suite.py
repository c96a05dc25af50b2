"""Every case by its name, in the tables' order."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.kernels import KERNELS
from benchmarks.models import MODELS

CASES: dict[str, Case] = {case.name: case for case in (*KERNELS, *MODELS)}
