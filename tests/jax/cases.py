"""The programs that ship with JAX to judge a backend: its harnesses, and its records of operations by type and shape.

The names are JAX's own; records are called ``record/<operation>/<type>/<sizes>``.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax._src.internal_test_util import lax_test_util, test_harnesses

_SHAPES = ((), (4,), (3, 5))


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        group: the operation that it is about.
        function: of its dynamic arguments.
        make: the arguments from a source of random numbers.
    """

    name: str
    group: str
    function: Callable[..., Any]
    make: Callable[[np.random.RandomState], Any]

    def arguments(self) -> list[Any]:
        """The same at each call."""
        return list(self.make(np.random.RandomState(zlib.crc32(self.name.encode()))))


@functools.cache
def cases() -> dict[str, Case]:
    """All cases that JAX says its CPU backend has, by name."""
    return {case.name: case for case in (*_harnesses(), *_records(), *_reductions())}


def _harnesses() -> Iterator[Case]:
    for harness in test_harnesses.all_harnesses:
        if harness.filter("cpu"):
            yield Case(harness.fullname, harness.group_name, harness.dyn_fun, harness.dyn_args_maker)


def _records() -> Iterator[Case]:
    for record in lax_test_util.lax_ops():
        for dtype in record.dtypes:
            for shape in _SHAPES:
                name = f"record/{record.op}/{np.dtype(dtype).name}/{'x'.join(map(str, shape))}"
                yield Case(name, record.op, getattr(lax, record.op), _maker(record, dtype, shape))


def _maker(record: Any, dtype: Any, shape: tuple[int, ...]) -> Callable[[np.random.RandomState], Any]:
    def make(random: np.random.RandomState) -> list[Any]:
        draw = record.rng_factory(random)
        return [draw(shape, dtype) for _ in range(record.nargs)]

    return make


def _reductions() -> Iterator[Case]:
    for record in lax_test_util.lax_reduce_ops():
        operation = record.op.__name__

        def reduce(x: Any, record: Any = record) -> Any:
            return lax.reduce(x, np.array(record.init_val).astype(x.dtype), record.op, (0,))

        for dtype in record.dtypes:
            yield Case(f"record/reduce_{operation}/{np.dtype(dtype).name}", operation, reduce, _numbers_of(dtype))
    for record in lax_test_util.lax_named_reduce_ops():
        operation = record.op.__name__
        for dtype in record.dtypes:
            name = f"record/{operation}/{np.dtype(dtype).name}/all"
            yield Case(name, operation, partial(record.op, axes=(0, 1)), _numbers_of(dtype))


def _numbers_of(dtype: Any) -> Callable[[np.random.RandomState], Any]:
    return lambda random: [_numbers(random, dtype)]


def _numbers(random: np.random.RandomState, dtype: Any) -> Any:
    return jax.numpy.asarray(random.randint(0, 2 if np.dtype(dtype) == bool else 5, (4, 5))).astype(dtype)
