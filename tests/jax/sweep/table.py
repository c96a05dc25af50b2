"""Rows of the sweep of JAX's functions: one function, drawn arguments, several element types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.sweep.case import EVERY, Array, Case, Draw, case

REALS = ("float32", "float64", "bfloat16", "float16")
FLOATS = ("float32", "float64", "bfloat16")
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEX)
INTEGERS = ("int32", "int8", "uint32", "uint8", "int64", "uint64")
SOME_INTEGERS = ("int32", "uint8", "int64")
ORDERED = (*FLOATS, *SOME_INTEGERS, "bool")
SOME = ("float32", "float64", "bfloat16", "int32", "uint8", "bool", "complex64")
TWO = ("float32", "int32")


def rows(
    name: str,
    function: Callable[..., Any],
    *arguments: Draw | Array | float,
    dtypes: Sequence[str] = ("float32", "float64"),
) -> Iterator[Case]:
    """The function once for each element type, or other label; what is of one name is compiled together."""
    for label in dtypes:
        yield case(f"{name}/{label}", function, *arguments, dtype=label if label in EVERY else "float32")
