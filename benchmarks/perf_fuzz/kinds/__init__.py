"""Every kind of program: a module for each few families registers its own."""

from __future__ import annotations

from benchmarks.perf_fuzz.kinds import (
    attention,
    bits,
    dense,
    dynamic,
    images,
    indexing,
    iterations,
    linear_algebra,
    losses,
    norms,
    ode,
    optimizers,
    recurrences,
    science,
    signal,
    sorting,
    statistics,
    stencils,
)
from benchmarks.perf_fuzz.registry import KINDS

__all__ = [
    "KINDS",
    "attention",
    "bits",
    "dense",
    "dynamic",
    "images",
    "indexing",
    "iterations",
    "linear_algebra",
    "losses",
    "norms",
    "ode",
    "optimizers",
    "recurrences",
    "science",
    "signal",
    "sorting",
    "statistics",
    "stencils",
]
