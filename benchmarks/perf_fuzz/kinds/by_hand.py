"""Algorithms that people write themselves, cell by cell or step by step, in loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, dominant, integers, normal, positive_definite, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("by hand")
def elimination(draw: Draw) -> Drawn:
    """Gauss, without pivots: each step a rank-1 update under a mask."""
    size = draw.size(3, 100)

    def function(a: Any, b: Any) -> Any:
        place = jnp.arange(size)

        def step(number: Any, state: Any) -> Any:
            a, b = state
            factor = jnp.where(place > number, a[:, number] / a[number, number], 0.0)
            return a - factor[:, None] * a[number], b - factor * b[number]

        a, b = jax.lax.fori_loop(0, size, step, (a, b))

        def back(turn: Any, x: Any) -> Any:
            number = size - 1 - turn
            rest = jnp.sum(jnp.where(place > number, a[number] * x, 0.0))
            return x.at[number].set((b[number] - rest) / a[number, number])

        return jax.lax.fori_loop(0, size, back, jnp.zeros(size))

    return drawn(function, dominant(size, size), normal(size))


@kind("by hand")
def cholesky_by_columns(draw: Draw) -> Drawn:
    size = draw.size(3, 100)

    def function(a: Any) -> Any:
        def step(number: Any, factor: Any) -> Any:
            column = a[:, number] - factor @ factor[number]
            column = jnp.where(jnp.arange(size) >= number, column / jnp.sqrt(column[number]), 0.0)
            return factor.at[:, number].set(column)

        return jax.lax.fori_loop(0, size, step, jnp.zeros((size, size)))

    return drawn(function, positive_definite(size, size))


@kind("by hand")
def reflections(draw: Draw) -> Drawn:
    """Householder's, one column after the other."""
    rows = draw.size(4, 80)
    columns = draw.size(2, rows)

    def function(a: Any) -> Any:
        def step(number: Any, r: Any) -> Any:
            x = jnp.where(jnp.arange(rows) >= number, r[:, number], 0.0)
            size = jnp.linalg.norm(x)
            v = x.at[number].add(jnp.where(x[number] < 0, -size, size))
            return r - v[:, None] * (2 * (v @ r) / (v @ v + 1e-12))

        return jax.lax.fori_loop(0, columns, step, a)

    return drawn(function, normal(rows, columns))


@kind("by hand")
def jacobi_rotations(draw: Draw) -> Drawn:
    """Eigenvalues of a symmetric matrix by plane rotations."""
    size, sweeps = draw.size(3, 16), draw.size(1, 4)
    pairs = [(p, q) for p in range(size) for q in range(p + 1, size)]

    def function(a: Any) -> Any:
        order = jnp.array(pairs, jnp.int32)

        def step(number: Any, a: Any) -> Any:
            p, q = order[number % len(pairs)]
            angle = 0.5 * jnp.arctan2(2 * a[p, q], a[q, q] - a[p, p])
            c, s = jnp.cos(angle), jnp.sin(angle)
            rows = c * a[p] - s * a[q], s * a[p] + c * a[q]
            a = a.at[p].set(rows[0]).at[q].set(rows[1])
            columns = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
            return a.at[:, p].set(columns[0]).at[:, q].set(columns[1])

        return jnp.sort(jnp.diagonal(jax.lax.fori_loop(0, sweeps * len(pairs), step, a)))

    return drawn(function, positive_definite(size, size))


@kind("by hand")
def exchange_sort(draw: Draw) -> Drawn:
    """Odd and even neighbours in turn, or a bitonic network."""
    if draw.chance(0.5):
        count = draw.size(4, 400)

        def by_turns(x: Any) -> Any:
            place = jnp.arange(count)

            def step(turn: Any, x: Any) -> Any:
                is_left = (place % 2) == (turn % 2)
                right, left = jnp.roll(x, -1), jnp.roll(x, 1)
                low = jnp.where(place + 1 < count, jnp.minimum(x, right), x)
                high = jnp.where(place > 0, jnp.maximum(x, left), x)
                return jnp.where(is_left, low, high)

            return jax.lax.fori_loop(0, count, step, x)

        return drawn(by_turns, normal(count))
    power = draw.size(2, 12)

    def bitonic(x: Any) -> Any:
        place = jnp.arange(2**power)
        for stage in range(1, power + 1):
            for bit in range(stage - 1, -1, -1):
                other = x[place ^ (1 << bit)]
                is_up = ((place >> stage) & 1) == ((place >> bit) & 1)
                x = jnp.where(is_up, jnp.minimum(x, other), jnp.maximum(x, other))
        return x

    return drawn(bitonic, normal(2**power))


@kind("by hand")
def sieve(draw: Draw) -> Drawn:
    """Primes up to a bound."""
    bound = draw.size(50, 30_000)
    root = int(bound**0.5)

    def function(first: Any) -> Any:
        place = jnp.arange(bound)

        def step(number: Any, prime: Any) -> Any:
            return prime & ~((place % number == 0) & (place > number))

        return jnp.sum(jax.lax.fori_loop(2, root + 1, step, place >= first))

    return drawn(function, integers(low=2, high=3))


@kind("by hand")
def pointer_jumping(draw: Draw) -> Drawn:
    """Roots of a forest: each node's parent becomes its parent's parent."""
    nodes = draw.elements(1e5)
    rounds = max(1, nodes.bit_length())

    def function(parents: Any) -> Any:
        first = jnp.minimum(parents, jnp.arange(nodes, dtype=jnp.int32))
        return jax.lax.fori_loop(0, rounds, lambda _, p: p[p], first)

    return drawn(function, integers(nodes, high=nodes))


@kind("by hand")
def common_subsequence(draw: Draw) -> Drawn:
    """A table, cell by cell, updated in place."""
    rows, columns = draw.size(3, 80), draw.size(3, 80)

    def function(a: Any, b: Any) -> Any:
        def cell(number: Any, table: Any) -> Any:
            i, j = number // columns, number % columns
            value = jnp.where(a[i] == b[j], table[i, j] + 1, jnp.maximum(table[i, j + 1], table[i + 1, j]))
            return table.at[i + 1, j + 1].set(value)

        table = jnp.zeros((rows + 1, columns + 1), jnp.int32)
        return jax.lax.fori_loop(0, rows * columns, cell, table)[rows, columns]

    return drawn(function, integers(rows, high=4), integers(columns, high=4))


@kind("by hand")
def matrix_chain(draw: Draw) -> Drawn:
    """The cheapest order of products: a table by diagonals."""
    count = draw.size(3, 40)

    def function(sizes: Any) -> Any:
        place = jnp.arange(count)

        def diagonal(length: Any, table: Any) -> Any:
            def cell(i: Any) -> Any:
                j = jnp.minimum(i + length, count - 1)
                costs = table[i, :] + jnp.roll(table[:, j], -1) + sizes[i] * sizes[1:] * sizes[j + 1]
                return jnp.min(jnp.where((place >= i) & (place < j), costs, jnp.inf))

            costs = jax.vmap(cell)(place)
            columns = place + length
            return table.at[place, columns].set(jnp.where(columns < count, costs, 0.0), mode="drop")

        return jax.lax.fori_loop(1, count, diagonal, jnp.zeros((count, count)))[0, count - 1]

    return drawn(function, uniform(count + 1, low=2, high=50))


@kind("by hand")
def collatz(draw: Draw) -> Drawn:
    """Steps until 1, for many numbers at once."""
    count = draw.size(4, 2000)

    def function(numbers: Any) -> Any:
        def one(n: Any) -> Any:
            def step(state: Any) -> Any:
                n, steps = state
                return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

            return jax.lax.while_loop(lambda s: (s[0] > 1) & (s[1] < 200), step, (n, jnp.int32(0)))[1]

        return jax.vmap(one)(numbers)

    return drawn(function, integers(count, low=1, high=1000))


@kind("by hand")
def cellular_automaton(draw: Draw) -> Drawn:
    """One dimension, a rule by number, all generations kept."""
    width, steps = draw.size(8, 3000), draw.size(3, 200)

    def function(first: Any, rule: Any) -> Any:
        def step(cells: Any, _: Any) -> Any:
            number = 4 * jnp.roll(cells, 1) + 2 * cells + jnp.roll(cells, -1)
            cells = (rule >> number) & 1
            return cells, cells

        return jax.lax.scan(step, first, None, length=steps)[1]

    return drawn(function, integers(width, high=2), integers(high=256))


@kind("by hand")
def cyclic_check(draw: Draw) -> Drawn:
    """CRC-32 by a table, a byte at a time, for several messages."""
    count, length = draw.size(1, 64), draw.size(4, 500)

    def function(data: Any, table: Any) -> Any:
        def step(state: Any, byte: Any) -> Any:
            return (state >> 8) ^ table[(state ^ byte) & 255], None

        start = jnp.full(count, 0xFFFFFFFF, jnp.uint32)
        return jax.lax.scan(step, start, data.astype(jnp.uint32))[0] ^ jnp.uint32(0xFFFFFFFF)

    return drawn(function, integers(length, count, high=256, dtype="uint8"), bits(256))


@kind("by hand")
def projection_on_simplex(draw: Draw) -> Drawn:
    rows, columns = draw.sizes(draw.elements(1e5), 2, least=2)

    def function(x: Any) -> Any:
        ordered = -jnp.sort(-x, axis=-1)
        excess = (jnp.cumsum(ordered, -1) - 1) / jnp.arange(1, columns + 1)
        count = jnp.sum(ordered > excess, -1, keepdims=True)
        return jax.nn.relu(x - jnp.take_along_axis(excess, count - 1, -1))

    return drawn(function, normal(rows, columns))


@kind("by hand")
def trees_of_decisions(draw: Draw) -> Drawn:
    """A forest's leaves for each row: a chain of gathers."""
    rows, features, trees, depth = draw.size(2, 1000), draw.size(2, 40), draw.size(1, 30), draw.size(2, 6)
    nodes = 2**depth

    def function(x: Any, feature: Any, bound: Any, leaves: Any) -> Any:
        tree = jnp.arange(trees)
        place = jnp.zeros((rows, trees), jnp.int32)
        for _ in range(depth):
            value = jnp.take_along_axis(x, feature[tree, place], 1)
            place = jnp.minimum(2 * place + 1 + (value > bound[tree, place]), nodes - 1)
        return leaves[tree, place].mean(-1)

    return drawn(
        function, normal(rows, features), integers(trees, nodes, high=features), normal(trees, nodes),
        normal(trees, nodes),
    )  # fmt: skip
