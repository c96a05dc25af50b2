"""Eight threads that call jitted functions for a while: ``python -m tests.jax.soak ENGINE SECONDS``.

The engine is ``jit`` (``hloforge.jit``) or ``backend`` (``jax.jit`` with hloforge as JAX's backend). Every answer is
checked, threads that do not end are shown and killed, and the memory of the process must not grow.
"""

from __future__ import annotations

import faulthandler
import itertools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge

_THREADS = 8
_MEBIBYTE = 2**20
# Threads have their own arenas of memory, which fill up one after the other.
_GROWTH = 48 * _MEBIBYTE
_LATE = 120.0


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def turns(jit: Callable[..., Any]) -> Callable[[int], None]:
    """One turn of a thread: small and large programs, gradients, donated arrays, pytrees, and new programs at times."""
    add = jit(lambda x, y: {"sum": x + y, "rest": (x - y, y)})
    product = jit(lambda a: a @ a)
    slope = jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))
    step = jit(lambda cache, row, i: jax.lax.dynamic_update_slice(cache, row[None], (i, 0)), donate_argnums=0)
    scale = jit(lambda x, by: x * by, static_argnums=1)
    small, turned = jnp.arange(8.0), jnp.asarray(np.roll(np.eye(300, dtype=np.float32), 1, axis=0))
    weights, rows = jnp.zeros((4, 3)), jnp.ones((5, 4))
    twice = np.roll(np.eye(300), 2, axis=0)

    def turn(number: int) -> None:
        assert float(add(small, number % 1000)["sum"][3]) == 3 + number % 1000
        assert float(slope(weights, rows)[0, 0]) == 5
        cache = jnp.zeros((64, 8)) + 0
        for i in range(4):
            cache = step(cache, small + number % 7, i)
        assert float(cache[3, 7]) == 7 + number % 7 and float(cache.sum()) == 4 * (28 + 8 * (number % 7))
        if number % 8 == 0:
            np.testing.assert_array_equal(product(turned), twice)
        if number % 50 == 0:
            assert float(scale(small, number // 50 % 6)[1]) == number // 50 % 6

    return turn


def soak(engine: str, seconds: float) -> tuple[int, int]:
    """Turns of all threads, and the bytes by which the process grew behind the first quarter of the time."""
    if engine == "backend":
        assert jax.default_backend() == "hloforge"
    turn = turns(hloforge.jit if engine == "jit" else jax.jit)
    for number in range(0, 300, 50):
        turn(number)
    begin, counts, failures = time.monotonic(), [0] * _THREADS, list[BaseException]()

    def work(thread: int) -> None:
        try:
            for number in itertools.count(thread):
                if time.monotonic() > begin + seconds or failures:
                    return
                turn(number)
                counts[thread] += 1
        except BaseException as error:
            failures.append(error)

    faulthandler.dump_traceback_later(seconds + _LATE, exit=True)
    running = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
    for thread in running:
        thread.start()
    time.sleep(seconds / 4)
    before = resident()
    for thread in running:
        thread.join()
    faulthandler.cancel_dump_traceback_later()
    if failures:
        raise failures[0]
    assert all(counts), counts
    return sum(counts), resident() - before


def main() -> None:
    calls, growth = soak(sys.argv[1], float(sys.argv[2]))
    print(f"{calls} turns of {_THREADS} threads; {resident() / _MEBIBYTE:.0f} MiB, {growth / _MEBIBYTE:+.1f} MiB")
    assert growth < _GROWTH


if __name__ == "__main__":
    main()
