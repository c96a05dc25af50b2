"""Whole networks, their weights random and given as arguments, and optimized HLO dumps of others."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.models import dumps, of_keras, other, pytorch, training, transformers, vision

MODELS: tuple[Case, ...] = (
    *vision.CASES,
    *transformers.CASES,
    *other.CASES,
    *training.CASES,
    *pytorch.CASES,
    *of_keras.CASES,
    *dumps.CASES,
)
