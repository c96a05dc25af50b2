"""Arguments of random programs: a type, and how to fill it. Nothing is filled before somebody calls the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Fill = Callable[[np.random.Generator, tuple[int, ...]], Array]

_NARROW = {"bfloat16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Argument:
    """A parameter of a program.

    Attributes:
        fill: gives the values of a shape; of a shape with more dimensions in front, a batch of them.
    """

    shape: tuple[int, ...]
    dtype: str
    fill: Fill

    def array(self, random: np.random.Generator) -> Array:
        """Its values."""
        return np.ascontiguousarray(self.fill(random, self.shape).astype(self.numpy_dtype)).reshape(self.shape)

    def batched(self, count: int) -> Argument:
        """So many of it, along a new first dimension."""
        return replace(self, shape=(count, *self.shape))

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(_NARROW.get(self.dtype, self.dtype))

    @property
    def is_float(self) -> bool:
        return self.dtype in ("float16", "bfloat16", "float32", "float64")

    @property
    def needs_x64(self) -> bool:
        return self.dtype in ("float64", "complex128", "int64", "uint64")


def normal(*shape: int, dtype: str = "float32", scale: float = 1.0, shift: float = 0.0) -> Argument:
    """Of the normal distribution; complex numbers with such parts."""

    def fill(random: np.random.Generator, sizes: tuple[int, ...]) -> Array:
        values = shift + scale * random.standard_normal(sizes, np.float32)
        return values + scale * 1j * random.standard_normal(sizes, np.float32) if "complex" in dtype else values

    return Argument(shape, dtype, fill)


def weights(*shape: int, dtype: str = "float32", inputs: int | None = None) -> Argument:
    """A layer's: such that its results are as large as its ``inputs``, the last dimension but one by default."""
    return normal(*shape, dtype=dtype, scale=(inputs or shape[-2]) ** -0.5)


def uniform(*shape: int, dtype: str = "float32", low: float = 0.0, high: float = 1.0) -> Argument:
    return Argument(shape, dtype, lambda random, sizes: low + (high - low) * random.random(sizes, np.float32))


def integers(*shape: int, low: int = 0, high: int, dtype: str = "int32") -> Argument:
    """Evenly from ``low`` to below ``high``."""
    return Argument(shape, dtype, lambda random, sizes: random.integers(low, high, sizes))


def bits(*shape: int, dtype: str = "uint32") -> Argument:
    """Any integers of an unsigned type."""
    width = np.dtype(dtype).itemsize
    return Argument(
        shape,
        dtype,
        lambda random, sizes: np.frombuffer(random.bytes(width * int(np.prod(sizes))), dtype).reshape(sizes),
    )


def skewed(*shape: int, high: int, dtype: str = "int32") -> Argument:
    """Integers below ``high`` of which small ones are frequent, as words of a text."""
    return Argument(shape, dtype, lambda random, sizes: np.int64(high * random.random(sizes) ** 3))


def booleans(*shape: int, share: float = 0.5) -> Argument:
    return Argument(shape, "bool", lambda random, sizes: random.random(sizes) < share)


def ordered(*shape: int, dtype: str = "float32", high: float = 1.0) -> Argument:
    """Ascending numbers from 0 to ``high`` along the last dimension."""
    return Argument(shape, dtype, lambda random, sizes: high * np.sort(random.random(sizes), axis=-1))


def positive_definite(*shape: int, dtype: str = "float32") -> Argument:
    """Symmetric matrices, well conditioned."""

    def fill(random: np.random.Generator, sizes: tuple[int, ...]) -> Array:
        root = random.standard_normal(sizes) * sizes[-1] ** -0.5
        return root @ np.swapaxes(root, -1, -2) + np.eye(sizes[-1])

    return Argument(shape, dtype, fill)


def dominant(*shape: int, dtype: str = "float32") -> Argument:
    """Square matrices that are easily inverted: a large diagonal."""

    def fill(random: np.random.Generator, sizes: tuple[int, ...]) -> Array:
        return random.standard_normal(sizes) * 0.5 * sizes[-1] ** -0.5 + 1.5 * np.eye(sizes[-1])

    return Argument(shape, dtype, fill)


def stochastic(*shape: int, dtype: str = "float32") -> Argument:
    """Rows that sum to 1, as of transition probabilities."""

    def fill(random: np.random.Generator, sizes: tuple[int, ...]) -> Array:
        values = 0.1 + random.random(sizes)
        return np.asarray(values / values.sum(-1, keepdims=True))

    return Argument(shape, dtype, fill)
