"""Random functions of JAX: a seed is a function with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import jax
import numpy as np

import hloforge
from tests.fuzz.generator import Case
from tests.prove import jax_control, jax_elements, jax_library, jax_moves, jax_sums  # noqa: F401 - they register steps
from tests.prove.pool import WIDE, Item, Pool, grow

_COUNTS = (3, 5, 5, 8, 12, 20, 40)


@dataclass(frozen=True)
class RandomFunction:
    """A function of arrays, its arguments, and whether its types need ``jax_enable_x64``."""

    function: Callable[..., Any]
    arguments: tuple[np.ndarray[Any, Any], ...]
    x64: bool

    def lowered(self) -> Any:
        structs = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in self.arguments]
        with jax.enable_x64(self.x64):
            return jax.jit(self.function, keep_unused=True).trace(*structs).lower(lowering_platforms=("cpu",))


def function_of(seed: int, counts: tuple[int, ...] = _COUNTS) -> RandomFunction:
    """The function of a seed, of so many steps."""
    random = Random(f"jax {seed}")
    pool = Pool.of(random)
    count = random.choice(counts)
    x64 = any(name in WIDE for name in pool.types) or random.random() < 0.2
    if not x64:
        pool.types = tuple(name for name in pool.types if name not in WIDE) or ("float32",)
    shapes = [pool.dims() for _ in range(random.choice((1, 2, 2, 3)))]
    # Equal ones, so that operations of two find both.
    shapes += shapes[:1]
    arguments = tuple(pool.numbers(shape, random.choice(pool.types)) for shape in shapes)
    start = random.getrandbits(64)

    def function(*values: Any) -> Any:
        inner = Pool(Random(start), pool.types, pool.sizes)
        inner.items += [Item(value) for value in values]
        grow(inner, count)
        return tuple(_results(inner, len(values)))

    return RandomFunction(function, arguments, x64)


def _results(pool: Pool, parameters: int) -> list[Any]:
    """The last values and some others; now and then an argument as it is."""
    made = [item.value for item in pool.items[parameters:]]
    chosen = made[-4:] + [value for value in made[:-4] if pool.chance(0.15)][:4]
    if pool.chance(0.1):
        chosen.append(pool.items[0].value)
    return chosen or [pool.items[0].value]


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    made = function_of(seed)
    program = hloforge.read(str(made.lowered().as_text()), name=f"jax_{seed}")
    return Case(seed, program, made.arguments)
