"""Chains of operations that move elements: ``python -m tests.fuzz.chains --seed=0 --count=100``.

Each program has ten chains of two to six paddings, padded windows, slices, reshapes, transpositions, reversals and
concatenations, of a few arrays and a few padding values that all of them share. IREE merges such operations, or their
fills, across each other; general programs (``generator.py``) seldom have two in a row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import prod
from random import Random

import numpy as np

from hloforge import Builder, CompileError, Program, ops, random_inputs
from hloforge.dialect.errors import Error
from hloforge.dialect.values import Value

TYPES = ("f32", "c64", "c128", "s32", "s64", "u8", "bf16", "f64", "pred")
SHAPES = ("7", "3,5", "4,1", "1,6")
CHAINS = 10


def program_of(seed: int) -> Program:
    random = Random(seed)
    element = random.choice(TYPES)
    with Builder("chains") as builder:
        number = builder.parameter(0, f"{element}[]")
        fills = [*(ops.constant(value, element) for value in (0, 0, 1)), number, _changed(number)]
        arrays: list[Value] = []
        results = []
        for _ in range(CHAINS):
            arrays.append(builder.parameter(len(arrays) + 1, f"{element}[{random.choice(SHAPES)}]"))
            made = random.choice([arrays[-1], _changed(arrays[-1]), random.choice(arrays)])
            for _ in range(random.randint(2, 6)):
                made = _moved(random, made, fills)
            results.append(_changed(made) if random.random() < 0.6 else made)
        return builder.build(tuple(results))


def _changed(x: Value) -> Value:
    return ops.not_(x) if x.element_type.name == "pred" else x + x


def _moved(random: Random, x: Value, fills: list[Value]) -> Value:
    """One more operation; the array as it is where an operation does not take it."""
    kind = random.choice((*["pad"] * 4, "window", "reshape", "transpose", "reverse", "join", "slice", "parts"))
    try:
        if kind == "window":
            return _window(random, x, fills)
        if kind == "pad":
            edges = [(random.choice((0, 0, 1, 2, -1)), random.choice((0, 1, 0, -1, -2)), random.choice((0, 0, 1, 2)))
                     for _ in x.dims]  # fmt: skip
            return ops.pad(x, random.choice(fills), edges)
        if kind == "reshape":
            return ops.reshape(x, (1, *x.dims) if x.rank < 3 else (prod(x.dims),))
        if kind == "transpose":
            return ops.transpose(x, list(reversed(range(x.rank))))
        if kind == "reverse":
            return ops.rev(x, [random.randrange(x.rank)])
        if kind == "join":
            return ops.concat_in_dim([x, x], random.randrange(x.rank))
        if kind == "parts":
            return ops.complex(ops.real(x), ops.imag(x)) if x.element_type.is_complex else x
        return ops.slice(x, [0] * x.rank, [max(1, size - 1) for size in x.dims], [random.choice((1, 1, 2))] * x.rank)
    except Error:
        # A size would be negative, or a slice would end beyond an empty array.
        return x


def _window(random: Random, x: Value, fills: list[Value]) -> Value:
    """Extremes of windows along a dimension, padded by any number; of complex numbers sums of two, which are exact."""
    is_complex, along = x.element_type.is_complex, random.randrange(x.rank)
    length = 2 if is_complex else random.choice((2, x.dims[along]))
    window, edges = [1] * x.rank, [(0, 0)] * x.rank
    window[along], edges[along] = length, random.choice(((length - 1, 0), (0, length - 1), (1, 1)))
    combine, fill = (ops.add, fills[0]) if is_complex else (ops.max, random.choice(fills))
    return ops.reduce_window(x, fill, combine, window, padding=edges)


def findings(seeds: range) -> Iterator[str]:
    """What goes wrong: a program that does not compile, or a chain with another result than the interpreter's."""
    for seed in seeds:
        program = program_of(seed)
        inputs = random_inputs(program.signature, seed)
        try:
            results = program.compile(cache=False)(*inputs)
        except CompileError as error:
            yield f"seed {seed}: {error.message}"
            continue
        expected = program.evaluate(*inputs, engine="interpreter")
        for number, (found, right) in enumerate(zip(results, expected, strict=True)):
            if found.shape != right.shape or not np.array_equal(found, right, equal_nan=right.dtype.kind in "fcV"):
                yield f"seed {seed}, chain {number}: {found} for {right}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.chains", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    wrong = 0
    for message in findings(range(options.seed, options.seed + options.count)):
        wrong += 1
        print(message, flush=True)
    print(f"{options.count} programs, {wrong} findings")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
