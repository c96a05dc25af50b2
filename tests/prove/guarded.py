"""Programs between pages that nobody may touch: the process ends where something beside an array is read or written.

What a condition keeps from being used may still be read, as by whole vectors where padding is. Results show nothing of
it, and the process ends only where no memory happens to be. Here none is: arguments, results and the memory of a call
lie next to the page before them in one call and next to the page after them in another. Results must have the bits of
a usual call.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import jax
import numpy as np

import hloforge
from benchmarks.perf_fuzz.programs import program_of
from hloforge.dialect.program import Program
from hloforge.runtime.native import calls
from tests.pipelines.codegen.products.memory import Guarded

Array = np.ndarray[Any, Any]
_OTHERS = (
    "tests.fuzz.generator", "tests.prove.jax_functions", "tests.prove.jax_habits", "tests.prove.jax_short",
    "tests.prove.views", "tests.prove.edges", "tests.prove.jax_algorithms",
)  # fmt: skip
# Of programs of perf-fuzz, which are the larger ones: with vectors, tiles and several threads.
_REALISTIC = 0.6
# Bytes of arguments: a program is compiled for its form, which larger ones share.
_MOST_BYTES = 1 << 23
# Programs of a seed until one takes its arrays where they are.
_DRAWS = 8


def judge(seed: int) -> str:
    """What is wrong about a seed's program in such memory; empty if nothing is."""
    random = Random(f"guarded {seed}")
    for _ in range(_DRAWS):
        program, arguments = _drawn(random, seed)
        session = hloforge.compile(program, cache=False).load(threads=random.choice((1, 2)))
        native = session._native
        # IREE's runtime copies what it is given; donated arguments are results as well.
        if native is not None and not native.inside:
            break
    else:
        raise RuntimeError(f"none of {_DRAWS} programs is called with its arrays where they are")
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(session(*arguments))]
    flat = [np.asarray(leaf) for leaf in jax.tree.leaves(tuple(arguments))]
    for at_end in (False, True):
        with _guarded_memory(at_end):
            wrong = _in_guarded_memory(native, flat, expected, at_end)
        if wrong:
            return f"{wrong}, {'before' if at_end else 'after'} a page that nobody may touch"
    return ""


def _drawn(random: Random, seed: int) -> tuple[Program, Sequence[Array]]:
    if random.random() < _REALISTIC:
        for _ in range(10):
            drawn = program_of(random.randrange(1 << 30))
            if sum(one.numpy_dtype.itemsize * np.prod(one.shape) for one in drawn.drawn.arguments) <= _MOST_BYTES:
                return hloforge.read(drawn.text(), name=f"guarded_{seed}"), drawn.values()
    case = importlib.import_module(random.choice(_OTHERS)).case_of(random.randrange(1 << 30))
    return case.program, case.arguments


def _in_guarded_memory(native: Any, arguments: Sequence[Array], expected: Sequence[Array], at_end: bool) -> str:
    native._free.clear()  # what calls work in is made anew
    memories = [Guarded(array.nbytes, at_end=at_end) for array in (*arguments, *expected)]
    placed = [memory.array(array) for memory, array in zip(memories, arguments, strict=False)]
    results = [memory.array(np.zeros_like(one)) for memory, one in zip(memories[len(placed) :], expected, strict=True)]
    if not native.write(placed, results):
        return "its arrays were not taken where they are"
    native._free.clear()
    for number, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        if found.tobytes() != wanted.tobytes():
            return f"result {number} differs: {found!r} for {wanted!r}"
    changed = [
        n for n, (one, given) in enumerate(zip(placed, arguments, strict=True)) if one.tobytes() != given.tobytes()
    ]
    if changed:
        return f"arguments {changed} are changed"
    return "" if all(memory.is_intact for memory in memories) else "bytes beside an array are written"


@contextmanager
def _guarded_memory(at_end: bool) -> Iterator[None]:
    """Memory of calls, for arrays between kernels, as well."""
    kept: list[Guarded] = []

    def aligned(size: int) -> Array:
        whole = -(-size // 64) * 64
        kept.append(Guarded(whole, at_end=at_end))
        return kept[-1].array(np.zeros(whole, np.uint8))[:size]

    with mock.patch.object(calls, "aligned_bytes", aligned):
        yield
