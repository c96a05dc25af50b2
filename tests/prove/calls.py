"""Many calls of one session: one after the other, from threads, with results kept, arguments shared, odd or donated.

XLA gives the first results; every later call with the same arguments must give the same bits, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import jax
import numpy as np

import hloforge
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.reference.engines import reference
from tests.prove.jax_functions import function_of
from tests.prove.pool import Pool

Array = np.ndarray[Any, Any]
_THREADS, _CALLS = 4, 24


def judge(seed: int) -> str:
    """What is wrong about the calls of a seed's program; empty if nothing is."""
    random = Random(f"calls {seed}")
    made = function_of(seed, (1, 2, 3, 5, 8))
    pool = Pool(random, (), ())
    sets = [made.arguments, *([pool.numbers(a.shape, str(a.dtype)) for a in made.arguments] for _ in range(3))]
    equal = len({(a.shape, str(a.dtype)) for a in made.arguments}) < len(made.arguments)
    if equal:
        sets.append(_shared(made.arguments))
    function = _returning(made.function, random)
    donated = tuple(n for n in range(len(made.arguments)) if random.random() < 0.25)
    with jax.enable_x64(made.x64):
        structs = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in made.arguments]
        jitted = jax.jit(function, keep_unused=True, donate_argnums=donated)
        text = str(jitted.trace(*structs).lower(lowering_platforms=("cpu",)).as_text())
    program = hloforge.read(text, name=f"calls_{seed}")
    session = hloforge.compile(program, cache=False).load(threads=random.choice((1, 2, 3)))
    engines = [reference(name, isolated=False) for name in ("xla", "interpreter")]
    kept: list[list[Array]] = []
    for given in sets:
        results = session(*given)
        verdicts = Judge(program, engines)(given, results).verdicts
        bad = [verdict.text() for verdict in verdicts if not verdict.agrees]
        if bad:
            return f"the first call: {bad[0]}"
        kept.append(_leaves(results))
    expected = [[leaf.copy() for leaf in leaves] for leaves in kept]
    before = [[np.array(one) for one in given] for given in sets]
    return (
        _repeated(random, session, sets, expected)
        or _on_device(random, session, sets, expected, donated)
        or _same(kept, expected, "results of the first calls, which were kept")
        or _same([list(map(np.asarray, given)) for given in sets], before, "arguments")
    )


def _shared(arguments: Sequence[Array]) -> list[Array]:
    """Equal arguments as one array, which several parameters get."""
    first: dict[Any, Array] = {}
    return [first.setdefault((a.shape, str(a.dtype)), a) for a in arguments]


def _returning(function: Callable[..., Any], random: Random) -> Callable[..., Any]:
    """Also returns some arguments as they are, and some results twice."""
    argument, twice = random.randrange(2), random.random() < 0.5

    def returns(*values: Any) -> Any:
        results = [*function(*values), values[argument % len(values)]]
        return tuple([*results, results[0]] if twice else results)

    return returns


def _repeated(random: Random, session: Any, sets: Sequence[Sequence[Array]], expected: list[list[Array]]) -> str:
    """Calls from threads, of arrays that lie oddly; all results are compared when the last call is over."""
    order = [random.randrange(len(sets)) for _ in range(_CALLS)]
    odd = [random.choice((np.asarray, _misaligned, _reversed, _frozen, _fortran)) for _ in order]
    with ThreadPoolExecutor(_THREADS) as threads:
        done = list(threads.map(lambda n: session(*map(odd[n], sets[order[n]])), range(_CALLS)))
    for number, (which, results) in enumerate(zip(order, done, strict=True)):
        wrong = _same([_leaves(results)], [expected[which]], f"call {number} of {_CALLS} from threads ({odd[number]})")
        if wrong:
            return wrong
    return ""


def _on_device(
    random: Random, session: Any, sets: Sequence[Sequence[Array]], expected: list[list[Array]], donated: Sequence[int]
) -> str:
    """Arguments and results that stay on the device; what is not donated is given again."""
    for which in random.sample(range(len(sets)), 2):
        placed = [session.put(one, number) for number, one in enumerate(sets[which])]
        for turn in range(3):
            results = session.call_device(*placed)
            found = [np.asarray(leaf) for leaf in jax.tree.leaves(results)]
            wrong = _same([found], [expected[which]], f"call {turn} on the device")
            if wrong:
                return wrong
            placed = [session.put(sets[which][n], n) if n in donated else one for n, one in enumerate(placed)]
    return ""


def _same(found: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]], what: str) -> str:
    for number, (some, others) in enumerate(zip(found, expected, strict=True)):
        for place, (one, other) in enumerate(zip(some, others, strict=True)):
            if one.dtype != other.dtype or one.shape != other.shape or one.tobytes() != other.tobytes():
                return f"{what}: set {number}, array {place}: {one.dtype}{list(one.shape)} {one!r} for {other!r}"
    return ""


def _leaves(results: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def _misaligned(array: Array) -> Array:
    """At an address that no vector is at."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    made = memory.view(np.uint8)[: array.nbytes]
    made[:] = np.frombuffer(array.tobytes(), np.uint8)
    return made.view(array.dtype).reshape(array.shape) if array.nbytes else array


def _reversed(array: Array) -> Array:
    """With negative strides."""
    return array[::-1].copy()[::-1] if array.ndim else array


def _frozen(array: Array) -> Array:
    made = array.copy()
    made.setflags(write=False)
    return made


def _fortran(array: Array) -> Array:
    return np.array(array, order="F")
