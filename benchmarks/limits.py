"""The least time that this machine needs for a program: for its arithmetic, or for what it reads and writes.

python -m benchmarks.limits           # products, chains, reductions and transposes beside their limits
python -m benchmarks.limits --seconds=2

Peaks are what libraries reach: products of numpy's BLAS and of XLA, the faster one, because a BLAS that does not know
a new processor reaches half of it; copies by numpy, by as many threads as there are processors. Both are the best of
many, so that other work matters little. A program's bytes are those of its arguments and results, each once;
what fits in caches can be faster than that. On a busy machine, the time of all processors, divided by their number,
says more than the shortest call. Source: Williams, Waterman, Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import seconds, table, times
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program, entry_function
from hloforge.runtime.profiling.costs import Cost, byte_count, cost_of
from hloforge.runtime.profiling.result import Roofline

# Short calls, some of which are undisturbed on a busy machine; twice the bytes are more than caches hold.
_SIDES, _BYTES, _SECONDS = (384, 768, 1024), 24 << 20, 1.5
# How often the body of a loop or branch runs is not known, nor what a call of a library computes.
_UNKNOWN = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.custom_call", "stablehlo.sort"})


def _best(call: Callable[[], Any]) -> float:
    """Seconds of the fastest of some calls."""
    call()
    taken: list[float] = []
    while sum(taken) < _SECONDS:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def measured_peaks() -> Roofline:
    """What all processors of this machine together reach in f32, by numpy and XLA."""
    flops = []
    product = jax.jit(jnp.matmul)
    for side in _SIDES:
        x = np.full((side, side), 0.5, np.float32)
        out = np.empty_like(x)
        flops.append(2 * side**3 / _best(partial(np.matmul, x, x, out=out)))
        held = jax.device_put(x)
        flops.append(2 * side**3 / _best(lambda held=held: product(held, held).block_until_ready()))
    count = os.cpu_count() or 1
    source, target = (np.ones(_BYTES // 4, np.float32) for _ in range(2))
    parts = list(zip(np.array_split(target, count), np.array_split(source, count), strict=True))
    with ThreadPoolExecutor(count) as pool:
        copy = _best(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))
    return Roofline(max(flops) / 1e9, 2 * _BYTES / copy / 1e9, "measured by numpy and XLA")


def work_of(program: Program) -> Cost | None:
    """A program's arithmetic, in operations of f32, and the bytes of its border; None if that is not known."""
    entry = entry_function(program.module)
    found = Cost()
    for op in operations(program.module.operation):
        if op.name in _UNKNOWN:
            return None
        wide = any("f64" in str(result.type) for result in op.results)
        cost = cost_of(op)
        found += Cost(cost.flops * (2 if wide else 1), cost.transcendentals)
    kinds = [*entry.type.inputs, *entry.type.results]
    return Cost(found.flops, found.transcendentals, sum(map(byte_count, kinds)))


def _cases() -> list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]]:
    def chain(x: Any, y: Any) -> Any:
        return jnp.maximum(x * 1.5 + y, 0) - x * y

    return [
        *((f"product {n}³", jnp.matmul, [(n, n), (n, n)]) for n in (256, 384, 512, 1000, 1024, 2048)),
        ("product 128×768×3072", jnp.matmul, [(128, 768), (768, 3072)]),
        ("product 300×4000×300", jnp.matmul, [(300, 4000), (4000, 300)]),
        ("product x·wᵀ 512×1024×1024", lambda x, w: x @ w.T, [(512, 1024), (1024, 1024)]),
        ("8 products 256³", jnp.matmul, [(8, 256, 256), (8, 256, 256)]),
        ("chain 4M", chain, [(4_000_000,), (4_000_000,)]),
        ("chain 2000×1999", chain, [(2000, 1999), (2000, 1999)]),
        ("chain with a row", chain, [(2000, 2000), (2000,)]),
        ("sum of 8M", jnp.sum, [(8_000_000,)]),
        ("sums of rows 4000×2000", lambda x: x.sum(1), [(4000, 2000)]),
        ("sums of columns 4000×2000", lambda x: x.sum(0), [(4000, 2000)]),
        ("maxima of rows 4000×2000", lambda x: x.max(1), [(4000, 2000)]),
        ("sums of rows 500000×12", lambda x: x.sum(1), [(500_000, 12)]),
        ("maxima of rows 250000×24", lambda x: x.max(1), [(250_000, 24)]),
        ("softmax 4000×1000", jax.nn.softmax, [(4000, 1000)]),
        ("transpose 2048²", lambda x: x.T, [(2048, 2048)]),
        ("transpose 2000×1500", lambda x: x.T, [(2000, 1500)]),
        ("transpose 400000×9", lambda x: x.T, [(400_000, 9)]),
        ("NHWC to NCHW 8×112×112×32", lambda x: x.transpose(0, 3, 1, 2), [(8, 112, 112, 32)]),
        ("heads 8×512×12×64", lambda x: x.transpose(0, 2, 1, 3), [(8, 512, 12, 64)]),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls for each program")
    options = parser.parse_args(arguments)
    # What compiles and times programs takes long to load, and the tables need none of it.
    from benchmarks.engines import prepare_hloforge, prepare_xla
    from hloforge.importers.reader import read
    from hloforge.runtime.tuning.timing import interleaved

    peaks = measured_peaks()
    print(f"{peaks.gflops:.0f} GFLOP/s, {peaks.bandwidth:.1f} GB/s ({peaks.origin})\n")
    rows = []
    for name, function, shapes in _cases():
        structs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        program = read(str(jax.jit(function).lower(*structs).as_text()))
        values = [np.random.default_rng(n).standard_normal(shape, np.float32) for n, shape in enumerate(shapes)]
        calls = {"xla": prepare_xla(program, values).call, "hloforge": prepare_hloforge(program, values).call}
        found = interleaved(calls, options.seconds)
        work = work_of(program)
        assert work is not None
        limit, count = peaks.seconds(work), os.cpu_count() or 1
        cells = [
            times(value / limit)
            for engine in ("hloforge", "xla")
            for value in (min(found[engine].values), found[engine].cpu / count)
        ]
        rows.append([name, seconds(limit), peaks.bound(work), *cells])
        print(rows[-1], flush=True)
    header = ["program", "limit", "of", "shortest call / limit", "processors / limit", "XLA's call", "XLA's processors"]
    print("\n" + table(header, rows))


if __name__ == "__main__":
    main()
