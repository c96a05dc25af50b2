"""Known algorithms of integers as people write them in JAX: machines, strings, graphs, sorts, bits, tables, games.

Each is loops whose trip counts depend on numbers, branches by index, and arrays that are read and written at places
that a loop computes. Results are integers, or floats that are integers, and so exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.prove.jax_habits import Function, Habit, Plan


def _drawn(p: Plan, low: int, high: int, shape: tuple[int, ...], *kinds: str) -> int:
    """The place of an argument of integers from ``low`` to below ``high``."""
    return p.put(p.numbers().integers(low, high, shape), p.of(*(kinds or ("int32",))))


def _virtual_machine(p: Plan) -> Function:
    """A machine of eight instructions that rewrites its memory, by ``switch`` in ``while_loop``."""
    size, limit = p.of(4, 7, 16), p.of(5, 20, 50)
    code = _drawn(p, 0, 8, (p.of(3, 6, 9), 2), "int32", "int8", "uint8")
    memory = _drawn(p, -9, 9, (size,), "int32", "int64", "int16")

    def function(v: Sequence[Any]) -> Sequence[Any]:
        program, start = v[code].astype("int32"), v[memory]
        steps = [
            lambda m, a, x: (m.at[x % size].set(a), a),
            lambda m, a, x: (m, m[x % size]),
            lambda m, a, x: (m, a + m[x % size]),
            lambda m, a, x: (m, a * 3 - x.astype(a.dtype)),
            lambda m, a, x: (jnp.roll(m, x), a),
            lambda m, a, x: (m.at[x % size].add(1), a ^ 1),
            lambda m, a, x: (lax.cond(a > 0, lambda n: n[::-1], lambda n: n, m), -a),
            lambda m, a, x: (m, jnp.where(m[0] > a, m[0], a >> 1)),
        ]

        def turn(state: Any) -> Any:
            count, place, held, accumulator = state
            operation, operand = program[place % len(program)]
            held, accumulator = lax.switch(operation, steps, held, accumulator, operand)
            jump = jnp.where(accumulator % 3 == 0, operand, 1)
            return count + 1, place + jump, held, accumulator

        first = (jnp.int32(0), jnp.int32(0), start, start[-1])
        return lax.while_loop(lambda s: (s[0] < limit) & (s[3] != 13), turn, first)

    return function


def _stack_machine(p: Plan) -> Function:
    """Reverse Polish notation: a stack in an array, written where a counter points."""
    words = _drawn(p, -4, 9, (p.of(1, 5, 12),), "int32", "int8")
    depth = p.of(3, 8)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        def turn(state: Any, word: Any) -> Any:
            stack, top = state

            def push() -> Any:
                return lax.dynamic_update_index_in_dim(stack, word.astype("int32"), top, 0), jnp.minimum(top + 1, depth)

            def combine() -> Any:
                a, b = stack[top - 1], stack[jnp.maximum(top - 2, 0)]
                made = lax.switch(word + 4, [lambda: a + b, lambda: b - a, lambda: a * b, lambda: jnp.maximum(a, b)])
                return stack.at[jnp.maximum(top - 2, 0)].set(made), jnp.maximum(top - 1, 1)

            state = lax.cond((word >= 0) | (top < 2), push, combine)
            return state, state[0][0]

        return jax.tree.leaves(lax.scan(turn, (jnp.zeros(depth, "int32"), jnp.int32(0)), v[words]))

    return function


def _automaton(p: Plan) -> Function:
    """Elementary automata by the bits of their number; life on a torus or between walls; a pile of sand."""
    size, turns, kind = p.of(3, 8, 17), p.of(1, 3, 6), p.of(0, 1, 2, 3)
    cells = _drawn(p, 0, 2, (size, size + 1), "uint8", "int32", "bool")
    rule = _drawn(p, 0, 256, (), "int32", "uint8")
    heap = _drawn(p, 0, 9, (5, 4))

    def elementary(row: Any, number: Any) -> Any:
        def turn(c: Any, _: Any) -> Any:
            code = 4 * jnp.roll(c, 1) + 2 * c + jnp.roll(c, -1)
            return (number.astype("int32") >> code) & 1, c

        return lax.scan(turn, row.astype("int32"), length=turns)

    def life(board: Any) -> Any:
        counted = board.astype("int32")
        if kind == 1:
            around = sum(jnp.roll(counted, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)) - counted
        else:
            padded = jnp.pad(counted, 1)
            parts = [padded[a : a + size, b : b + size + 1] for a in range(3) for b in range(3)]
            around = jnp.stack(parts).sum(0) - counted
        return ((around == 3) | ((around == 2) & (counted == 1))).astype(board.dtype)

    def topple(pile: Any) -> Any:
        falls = pile // 4
        padded = jnp.pad(falls, 1)
        return pile - 4 * falls + padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        if kind == 0:
            return list(elementary(v[cells][0], v[rule]))
        if kind == 3:
            return [lax.while_loop(lambda h: jnp.any(h > 3), topple, v[heap])]
        return [lax.fori_loop(0, turns, lambda _, b: life(b), v[cells])]

    return function


def _text(p: Plan) -> Function:
    """Distances between strings, longest common parts, runs, palindromes, a table of a finite automaton."""
    a, b = (_drawn(p, 97, 100, (p.of(1, 3, 8, 13),), "uint8", "int32") for _ in range(2))
    table = _drawn(p, 0, 4, (4, 3), "int32", "int8")
    kind = p.of(0, 1, 2, 3)

    def edit(x: Any, y: Any) -> Any:
        places = jnp.arange(len(y) + 1)

        def row(before: Any, letter: Any) -> Any:
            changed = before[:-1] + (y != letter)
            best = jnp.concatenate([before[:1] + 1, jnp.minimum(changed, before[1:] + 1)])
            return lax.associative_scan(jnp.minimum, best - places) + places, best

        return lax.scan(row, places, x)

    def common(x: Any, y: Any) -> Any:
        def cell(i: Any, t: Any) -> Any:
            r, c = i // len(y), i % len(y)
            return t.at[r + 1, c + 1].set(jnp.where(x[r] == y[c], t[r, c] + 1, jnp.maximum(t[r, c + 1], t[r + 1, c])))

        return lax.fori_loop(0, len(x) * len(y), cell, jnp.zeros((len(x) + 1, len(y) + 1), "int32"))

    def function(v: Sequence[Any]) -> Sequence[Any]:
        x, y = v[a].astype("int32"), v[b].astype("int32")
        if kind == 0:
            return jax.tree.leaves(edit(x, y))
        if kind == 1:
            return [common(x, y)]
        if kind == 2:
            starts = jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
            number = jnp.cumsum(starts) - 1
            lengths = jax.ops.segment_sum(jnp.ones_like(x), number, num_segments=len(x))
            same = jnp.all(x == x[::-1])
            return [starts, number, lengths, same, jnp.repeat(x, 2)[:: x.size], jnp.where(starts, x - 32, x)]
        return list(lax.scan(lambda s, c: (v[table][s, c - 97], s), v[table][0, 0], x))

    return function


def _graph(p: Plan) -> Function:
    """Shortest paths in four ways, parts that hang together, what can be reached, a maze that fills."""
    n, edges, kind = p.of(2, 5, 9), p.of(1, 6, 20), p.of(0, 1, 2, 3, 4, 5)
    weights = _drawn(p, 1, 9, (n, n), "int32", "float32", "int64")
    ends, lengths = _drawn(p, 0, n, (2, edges)), _drawn(p, 1, 9, (edges,))
    maze = _drawn(p, 0, 3, (7, 6), "int32", "int8")

    def dijkstra(w: Any) -> Any:
        def turn(_: Any, state: Any) -> Any:
            far, done = state
            here = jnp.argmin(jnp.where(done, 10**6, far))
            return jnp.minimum(far, far[here] + w[here]), done.at[here].set(True)

        return lax.fori_loop(0, n, turn, (jnp.full(n, 1000, w.dtype).at[0].set(0), jnp.zeros(n, bool)))[0]

    def roots(parents: Any, pairs: Any) -> Any:
        def turn(state: Any) -> Any:
            label, _ = state
            low = jnp.minimum(label[pairs[0]], label[pairs[1]])
            after = label.at[pairs[0]].min(low).at[pairs[1]].min(low)
            after = after[after]
            return after, jnp.any(after != label)

        return lax.while_loop(lambda s: s[1], turn, (parents, jnp.array(True)))[0]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        pairs, far = v[ends], jnp.full(n, 1000).at[0].set(0)
        if kind == 0:
            w = v[weights].at[jnp.arange(n), jnp.arange(n)].set(0)
            return [lax.fori_loop(0, n, lambda k, d: jnp.minimum(d, d[:, k, None] + d[k]), w)]
        if kind == 1:
            return [dijkstra(v[weights])]
        if kind == 2:
            relax = lambda _, d: jnp.minimum(d, jax.ops.segment_min(d[pairs[0]] + v[lengths], pairs[1], n))  # noqa: E731
            return [lax.fori_loop(0, n, relax, far)]
        if kind == 3:
            return [roots(jnp.arange(n), pairs), jnp.zeros(n, "int32").at[pairs.ravel()].add(1)]
        if kind == 4:
            joined = jnp.zeros((n, n), bool).at[pairs[0], pairs[1]].set(True) | jnp.eye(n, dtype=bool)
            return [lax.fori_loop(0, 3, lambda _, r: jnp.any(r[:, :, None] & r[None], 1), joined)]
        free = v[maze] > 0

        def spread(state: Any) -> Any:
            wet, _ = state
            padded = jnp.pad(wet, 1)
            after = (padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2] | wet) & free
            return after, jnp.any(after != wet)

        start = jnp.zeros_like(free).at[0].set(free[0])
        return [lax.while_loop(lambda s: s[1], spread, (start, jnp.array(True)))[0]]

    return function


def _sorting(p: Plan) -> Function:
    """Sorts that people write themselves: networks, insertion, counting, by digits; merges, heaps, permutations."""
    size, kind = p.of(1, 2, 4, 8, 16), p.of(0, 1, 2, 3, 4, 5)
    x = _drawn(p, -9, 99, (size,), "int32", "int16", "float32", "int64")
    keys = _drawn(p, 0, 16, (p.of(1, 5, 30),), "int32", "uint8", "uint32")

    def bitonic(a: Any) -> Any:
        places, length = jnp.arange(size), 2
        while length <= size:
            step = length // 2
            while step:
                other = a[places ^ step]
                low = ((places & step) == 0) == ((places & length) == 0)
                a = jnp.where(low, jnp.minimum(a, other), jnp.maximum(a, other))
                step //= 2
            length *= 2
        return a

    def insertion(a: Any) -> Any:
        def outer(i: Any, b: Any) -> Any:
            def swap(state: Any) -> Any:
                j, c = state
                return j - 1, c.at[j].set(c[j - 1]).at[j - 1].set(c[j])

            return lax.while_loop(lambda s: (s[0] > 0) & (s[1][s[0] - 1] > s[1][s[0]]), swap, (i, b))[1]

        return lax.fori_loop(1, size, outer, a)

    def digits(a: Any) -> Any:
        def turn(bit: Any, b: Any) -> Any:
            one = (b >> bit.astype(b.dtype)) & 1
            zeros = jnp.cumsum(1 - one.astype("int32"))
            place = jnp.where(one == 0, zeros - 1, zeros[-1] + jnp.cumsum(one.astype("int32")) - 1)
            return jnp.zeros_like(b).at[place].set(b)

        return lax.fori_loop(0, 4, turn, a)

    def sift(a: Any) -> Any:
        def turn(state: Any) -> Any:
            here, b, _ = state
            child = 2 * here + 1
            child = jnp.where((child + 1 < size) & (b[child + 1] > b[child]), child + 1, child)
            moves = (child < size) & (b[child] > b[here])
            swapped = b.at[here].set(b[child]).at[child].set(b[here])
            return child, jnp.where(moves, swapped, b), moves

        def heapify(k: Any, b: Any) -> Any:
            return lax.while_loop(lambda s: s[2], turn, (size // 2 - k, b, jnp.array(True)))[1]

        return lax.fori_loop(1, size // 2 + 1, heapify, a)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a, k = v[x], v[keys]
        if kind == 0:
            return [bitonic(a)]
        if kind == 1:
            return [insertion(a)]
        if kind == 2:
            counts = jnp.zeros(16, "int32").at[k].add(1)
            starts = jnp.cumsum(counts) - counts
            return [counts, starts, jnp.repeat(jnp.arange(16), counts, total_repeat_length=len(k))]
        if kind == 3:
            return [digits(k)]
        if kind == 4:
            return [sift(a)]
        b = jnp.sort(a)
        ranks = jnp.arange(size) + jnp.searchsorted(k.astype(a.dtype), b)
        order = jnp.argsort(a, stable=True)
        inverse = jnp.zeros_like(order).at[order].set(jnp.arange(size))
        return [ranks, a[order][inverse], jnp.lexsort((a, a % 3)), jnp.argsort(inverse)]

    return function


def _bit_tricks(p: Plan) -> Function:
    """Hashes, checksums, Gray and Morton codes, generators of random numbers, bits reversed, big numbers, dates."""
    word = p.of("uint32", "uint32", "uint64", "uint16")
    data, letters = _drawn(p, 0, 60000, (p.of(1, 3, 8),), word), _drawn(p, 0, 256, (p.of(1, 4, 11),), "uint8")
    kind, days = p.of(0, 1, 2, 3, 4, 5, 6), _drawn(p, -800000, 800000, (5,), "int32", "int64")

    def crc(bytes_: Any) -> Any:
        def bit(_: Any, c: Any) -> Any:
            return jnp.where(c & 1, (c >> 1) ^ np.uint32(0xEDB88320), c >> 1)

        def byte(c: Any, b: Any) -> Any:
            after = lax.fori_loop(0, 8, bit, c ^ b.astype("uint32"))
            return after, ~after

        return lax.scan(byte, jnp.uint32(0xFFFFFFFF), bytes_)

    def reverse(x: Any, width: int) -> Any:
        mask, shift = (1 << width) - 1, width
        while shift > 1:
            shift //= 2
            mask ^= (mask << shift) & ((1 << width) - 1)
            lower, amount = np.array(mask, x.dtype), np.array(shift, x.dtype)
            x = ((x >> amount) & lower) | ((x & lower) << amount)
        return x

    def carried(digits: Any) -> Any:
        def turn(carry: Any, digit: Any) -> Any:
            total = digit + carry
            return total // 10, total % 10

        return lax.scan(turn, jnp.zeros((), digits.dtype), digits)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        x, s = v[data], v[letters]
        width = x.dtype.itemsize * 8
        if kind == 0:
            return [*crc(s), lax.scan(lambda h, b: ((h ^ b) * np.uint32(16777619), h), jnp.uint32(2166136261), s)[0]]
        if kind == 1:
            return [reverse(x, width), x ^ (x >> 1), x & -x, x & (x - 1), lax.population_count(x), ~x >> (width - 3)]
        if kind == 2:

            def xorshift(state: Any, _: Any) -> Any:
                state = state ^ (state << 5)
                state = state ^ (state >> 7)
                state = state ^ (state << 3)
                return state, state % 10

            return list(lax.scan(xorshift, x | 1, length=9))
        if kind == 3:
            a = s.astype("int32")
            product = jnp.convolve(a.astype("float32"), a[::-1].astype("float32")).astype("int32")
            return [*carried(product), *carried(a)]
        if kind == 4:
            z = v[days] + 719468
            era = z // 146097
            day = z - era * 146097
            year = (day - day // 1460 + day // 36524 - day // 146096) // 365
            of_year = day - (365 * year + year // 4 - year // 100)
            month = (5 * of_year + 2) // 153
            return [year + era * 400, month, of_year - (153 * month + 2) // 5 + 1, (v[days] + 4) % 7]
        if kind == 5:
            spread = s.astype("uint32")
            for shift, mask in ((4, 0x0F0F), (2, 0x3333), (1, 0x5555)):
                spread = (spread | (spread << shift)) & mask
            return [spread | (spread[::-1] << 1), jnp.unpackbits(s)[::2], jnp.packbits(s > 100), s + s, s - s[::-1]]

        def power(base: Any) -> Any:
            def turn(state: Any) -> Any:
                e, b, r = state
                return e >> 1, b * b % 1009, jnp.where(e & 1, r * b % 1009, r)

            return lax.while_loop(lambda s: s[0] > 0, turn, (base % 37, base % 1009, jnp.ones_like(base)))[2]

        def collatz(n: Any) -> Any:
            def turn(s: Any) -> Any:
                return jnp.where(s[0] % 2, 3 * s[0] + 1, s[0] // 2), s[1] + 1

            return lax.while_loop(lambda s: (s[0] > 1) & (s[1] < 60), turn, (n, 0))

        i = x.astype("int32")
        return [jax.vmap(power)(i), *jax.vmap(collatz)(i % 99 + 1), jnp.gcd(i, 84), jnp.lcm(i % 20 + 1, 6)]

    return function


def _tables(p: Plan) -> Function:
    """Knapsacks, change, longest rising parts, sieves, triangles of numbers, windows that slide, caches and rings."""
    size, kind = p.of(1, 3, 6, 10), p.of(0, 1, 2, 3, 4, 5)
    weights, values = _drawn(p, 1, 6, (size,)), _drawn(p, 1, 20, (size,), "int32", "float32", "int64")
    room = p.of(1, 7, 20)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        w, x = v[weights], v[values]
        if kind == 0:

            def item(best: Any, pair: Any) -> Any:
                weight, value = pair
                padded = jnp.pad(best, (room + 6, 0), constant_values=-99)
                moved = lax.dynamic_slice(padded, [room + 6 - weight], [room + 1])
                after = jnp.maximum(best, moved + value)
                return after, after != best

            return list(lax.scan(item, jnp.zeros(room + 1, x.dtype), (w, x)))
        if kind == 1:

            def coin(ways: Any, c: Any) -> Any:
                return lax.fori_loop(c, room + 1, lambda i, t: t.at[i].add(t[i - c]), ways), ways[-1]

            return list(lax.scan(coin, jnp.zeros(room + 1, "int32").at[0].set(1), w))
        if kind == 2:

            def rising(i: Any, t: Any) -> Any:
                before = (jnp.arange(size) < i) & (x < x[i])
                return t.at[i].set(1 + jnp.max(jnp.where(before, t, 0)))

            return [lax.fori_loop(0, size, rising, jnp.ones(size, "int32")), lax.cummax(x), jnp.diff(x, n=2)]
        if kind == 3:

            def strike(n: Any, s: Any) -> Any:
                return jnp.where(s[n] & (jnp.arange(40) % n == 0) & (jnp.arange(40) > n), False, s)

            sieve = lax.fori_loop(2, 7, strike, jnp.arange(40) > 1)
            return [sieve, jnp.nonzero(sieve, size=12)[0], jnp.cumsum(sieve)]
        if kind == 4:

            def access(state: Any, key: Any) -> Any:
                held, ages = state
                hit = held == key
                slot = jnp.where(jnp.any(hit), jnp.argmax(hit), jnp.argmax(ages))
                return (held.at[slot].set(key), (ages + 1).at[slot].set(0)), jnp.any(hit)

            return jax.tree.leaves(lax.scan(access, (jnp.full(3, -1), jnp.arange(3)), w))
        ring = lax.scan(lambda r, n: (lax.dynamic_update_slice(r, n[1][None], [n[0] % 4]), r.sum()),
                        jnp.zeros(4, x.dtype), (jnp.arange(size), x))  # fmt: skip
        windows = x[jnp.arange(max(size - 2, 1))[:, None] + jnp.arange(min(3, size))]
        return [*ring, windows.max(1), jnp.sort(windows, 1), lax.fori_loop(0, 5, lambda i, r: jnp.cumsum(r), w)]

    return function


def _games(p: Plan) -> Function:
    """Rows of 2048, queens by bits and a stack, an ant, a robot's walk, candidates, boxes that overlap."""
    kind, board = p.of(0, 1, 2, 3, 4), _drawn(p, 0, 4, (4, 4), "int32", "uint8")
    moves, boxes = _drawn(p, 0, 4, (p.of(1, 9, 25),), "int8", "int32"), _drawn(p, 0, 9, (p.of(1, 4, 9), 4))

    def slide(row: Any) -> Any:
        row = row[jnp.argsort(row == 0, stable=True)]

        def merge(i: Any, r: Any) -> Any:
            same = (r[i] == r[i + 1]) & (r[i] > 0)
            joined = jnp.concatenate([r[1:], r[:1] * 0])
            shifted = jnp.where(jnp.arange(4) > i, joined, r).at[i].add(1)
            return jnp.where(same, shifted, r)

        return lax.fori_loop(0, 3, merge, row)

    def queens(n: int) -> Any:
        def turn(state: Any) -> Any:
            depth, stack, found = state
            free, columns, left, right = stack[depth]
            bit = free & -free
            after = stack.at[depth, 0].set(free ^ bit)
            c, a, b = columns | bit, (left | bit) << 1, (right | bit) >> 1
            deeper = after.at[depth + 1].set(jnp.stack([~(c | a | b) & ((1 << n) - 1), c, a, b]))
            last = c == (1 << n) - 1
            return (
                jnp.where(free == 0, depth - 1, jnp.where(last, depth, depth + 1)),
                jnp.where(free == 0, stack, jnp.where(last, after, deeper)),
                found + ((free != 0) & last),
            )

        first = jnp.zeros((n + 1, 4), "int32").at[0, 0].set((1 << n) - 1)
        return lax.while_loop(lambda s: s[0] >= 0, turn, (jnp.int32(0), first, jnp.int32(0)))

    def function(v: Sequence[Any]) -> Sequence[Any]:
        if kind == 0:
            return [jax.vmap(slide)(v[board]), jax.vmap(slide, 1, 1)(v[board][::-1])[::-1], jnp.rot90(v[board])]
        if kind == 1:
            return list(queens(4))
        if kind == 2:

            def ant(state: Any, _: Any) -> Any:
                grid, place, way = state
                way = (way + jnp.where(grid[place[0], place[1]], 3, 1)) % 4
                grid = grid.at[place[0], place[1]].set(~grid[place[0], place[1]])
                return (grid, (place + jnp.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[way]) % 5, way), place

            return jax.tree.leaves(lax.scan(ant, (jnp.zeros((5, 5), bool), jnp.array([2, 2]), jnp.int32(0)), length=30))
        if kind == 3:
            step = jnp.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[v[moves]]
            path = jnp.cumsum(step, 0)
            seen = jnp.zeros((11, 11), "int32").at[path[:, 0] + 5, path[:, 1] + 5].add(1, mode="drop")
            return [path, seen, jnp.abs(path).sum(1).argmax(), jnp.unique(path, axis=0, size=5, fill_value=99)]
        low, high = v[boxes][:, :2], v[boxes][:, :2] + v[boxes][:, 2:]
        meet = jnp.clip(jnp.minimum(high[:, None], high) - jnp.maximum(low[:, None], low), 0).prod(-1)

        def keep(i: Any, kept: Any) -> Any:
            return jnp.where(kept[i] & (jnp.arange(len(kept)) > i) & (meet[i] > 2), False, kept)

        return [meet, lax.fori_loop(0, len(low), keep, jnp.ones(len(low), bool))]

    return function


MACHINES: tuple[Habit, ...] = (
    _virtual_machine, _stack_machine, _automaton, _text, _graph, _sorting, _bit_tricks, _tables, _games,
)  # fmt: skip
