"""Known methods of numbers as people write them in JAX: solvers, filters, models of probability, layers, derivatives.

Arguments are far from where a method is ill-conditioned, so that results have digits; what compares, compares
integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.prove.jax_habits import Function, Habit, Plan


def _reals(p: Plan, shape: tuple[int, ...], *kinds: str) -> int:
    """The place of an argument of numbers from -1 to 1 with six bits."""
    return p.put(p.numbers().integers(-32, 33, shape) / 32, p.of(*(kinds or ("float32", "float32", "float64"))))


def _counts(p: Plan, high: int, shape: tuple[int, ...]) -> int:
    return p.put(p.numbers().integers(0, high, shape), p.of("int32", "int32", "int8"))


def _steps_of_time(p: Plan) -> Function:
    """Runge and Kutta, leapfrog of bodies, heat in explicit and implicit steps, waves, a walk by dynamic steps."""
    n, turns, kind = p.of(1, 2, 5, 9), p.of(1, 3, 8), p.of(0, 1, 2, 3, 4)
    x = _reals(p, (n, 3))
    y = p.put(p.numbers().integers(-8, 9, (n, 3)) / 8, p.arguments[x].dtype.name)

    def slope(s: Any, t: Any) -> Any:
        return jnp.stack([s[:, 1], -s[:, 0] + 0.1 * t, s[:, 0] * s[:, 1]], 1)

    def kutta(s: Any, t: Any) -> Any:
        h = 0.1
        a = slope(s, t)
        b = slope(s + h / 2 * a, t + h / 2)
        c = slope(s + h / 2 * b, t + h / 2)
        return s + h / 6 * (a + 2 * b + 2 * c + slope(s + h * c, t + h)), s[:, 0].sum()

    def pull(q: Any) -> Any:
        apart = q[None] - q[:, None]
        cubed = (jnp.sum(apart**2, -1) + 0.5) ** 1.5
        return jnp.einsum("ijk,ij->ik", apart, 1 / cubed)

    def thomas(a: Any, b: Any, c: Any, d: Any) -> Any:
        def down(state: Any, row: Any) -> Any:
            upper, right = state
            pivot = row[1] - row[0] * upper
            made = (row[2] / pivot, (row[3] - row[0] * right) / pivot)
            return made, made

        zero = jnp.zeros((), d.dtype)
        _, (upper, right) = lax.scan(down, (zero, zero), (a, b, c, d))
        return lax.scan(lambda z, row: (row[1] - row[0] * z,) * 2, zero, (upper, right), reverse=True)[1]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        q, u = v[x], v[y]
        if kind == 0:
            return list(lax.scan(kutta, q, jnp.arange(turns, dtype=q.dtype) * 0.1))
        if kind == 1:
            leap = lambda _, s: (s[0] + 0.1 * (s[1] + 0.05 * pull(s[0])), s[1] + 0.1 * pull(s[0]))  # noqa: E731
            return list(lax.fori_loop(0, turns, leap, (q, u)))
        if kind == 2:
            line = q.ravel()
            warm = lax.fori_loop(0, turns, lambda _, t: t.at[1:-1].add(0.2 * (t[2:] - 2 * t[1:-1] + t[:-2])), line)
            ones = jnp.ones_like(line)
            return [warm, thomas(-0.3 * ones, 2 + 0 * ones, -0.4 * ones, line), lax.linalg.tridiagonal_solve(
                (-0.3 * ones).at[0].set(0), 2 * ones, (-0.4 * ones).at[-1].set(0), line[:, None])]  # fmt: skip
        if kind == 3:
            wave = lambda s, _: ((s[1], 2 * s[1] - s[0] + 0.1 * (jnp.roll(s[1], 1, 0) - s[1])), s[1][0])  # noqa: E731
            return jax.tree.leaves(lax.scan(wave, (q, u), length=turns))

        def walk(state: Any) -> Any:
            place, count = state
            return place * 0.75 + 0.125 * u, count + 1

        return list(lax.while_loop(lambda s: (s[1] < turns) & (jnp.abs(s[0]).max() < 4), walk, (q, 0)))

    return function


def _solvers(p: Plan) -> Function:
    """Elimination with pivots, Gram and Schmidt, conjugate gradients, Newton, Jacobi's rotations, powers, bisection."""
    n, kind = p.of(1, 2, 3, 5, 8), p.of(0, 1, 2, 3, 4, 5, 6)
    a = _reals(p, (n, n), "float64", "float32")
    b = _reals(p, (n,), p.arguments[a].dtype.name)

    def eliminate(m: Any, r: Any) -> Any:
        t = jnp.concatenate([m, r[:, None]], 1)

        def column(k: Any, s: Any) -> Any:
            best = jnp.argmax(jnp.where(jnp.arange(n) >= k, jnp.abs(s[:, k]), -1))
            pair = jnp.stack([jnp.int32(k), best.astype("int32")])
            s = s.at[pair].set(s[pair[::-1]])
            factor = jnp.where(jnp.arange(n) > k, s[:, k] / s[k, k], 0)
            return s - factor[:, None] * s[k]

        t = lax.fori_loop(0, n, column, t)

        def back(k: Any, z: Any) -> Any:
            i = n - 1 - k
            return z.at[i].set((t[i, -1] - t[i, :-1] @ z) / t[i, i])

        return lax.fori_loop(0, n, back, jnp.zeros_like(r))

    def gradients(m: Any, r: Any) -> Any:
        def turn(s: Any) -> Any:
            z, rest, way, size, count = s
            image = m @ way
            step = size / (way @ image)
            rest = rest - step * image
            after = rest @ rest
            return z + step * way, rest, rest + after / size * way, after, count + 1

        start = (jnp.zeros_like(r), r, r, r @ r + 1e-30, 0)
        return lax.while_loop(lambda s: (s[4] < 2 * n) & (s[3] > 1e-9), turn, start)[0]

    def schmidt(m: Any) -> Any:
        def column(k: Any, q: Any) -> Any:
            w = m[:, k] - q @ (q.T @ m[:, k])
            return q.at[:, k].set(w / jnp.sqrt(w @ w))

        return lax.fori_loop(0, n, column, jnp.zeros_like(m))

    def function(v: Sequence[Any]) -> Sequence[Any]:
        m, r = v[a] + 2 * n * jnp.eye(n, dtype=v[a].dtype), v[b]
        even = m @ m.T / n
        if kind == 0:
            return [eliminate(m, r), jnp.linalg.solve(m, r), m @ eliminate(m, r)]
        if kind == 1:
            return [gradients(even, r), jax.scipy.sparse.linalg.cg(lambda z: even @ z, r, maxiter=3)[0]]
        if kind == 2:
            q = schmidt(m)
            return [q, q.T @ m, jnp.linalg.qr(m)[1] ** 2]
        if kind == 3:
            root = lambda _, z: z - (z**3 + z - 2 - r) / (3 * z**2 + 1)  # noqa: E731
            inverse = lambda _, z: (z @ (2 * jnp.eye(n, dtype=m.dtype) - m @ z)).astype(m.dtype)  # noqa: E731
            start = m.T / jnp.linalg.norm(m) ** 2
            return [lax.fori_loop(0, 6, root, jnp.ones_like(r)), lax.fori_loop(0, 8, inverse, start)]
        if kind == 4:
            power = lambda _, z: (even @ z) / jnp.linalg.norm(even @ z)  # noqa: E731
            z = lax.fori_loop(0, 3, power, jnp.ones_like(r))
            return [z @ even @ z, jnp.linalg.eigvalsh(even), jnp.linalg.slogdet(m)[1], jnp.linalg.inv(m)]
        if kind == 5:

            def halve(_: Any, s: Any) -> Any:
                low, high = s
                middle = (low + high) / 2
                above = middle * middle > 2
                return jnp.where(above, low, middle), jnp.where(above, middle, high)

            return list(lax.fori_loop(0, 12, halve, (jnp.zeros_like(r), 2 * jnp.ones_like(r))))
        lu, pivots, order = lax.linalg.lu(m)
        lower = jnp.tril(lu, -1) + jnp.eye(n, dtype=m.dtype)
        cho = jnp.linalg.cholesky(even)
        by_rule = lax.custom_linear_solve(lambda z: m @ z, r, lambda _, c: jnp.linalg.solve(m, c))
        return [lower @ jnp.triu(lu), pivots, order, jax.scipy.linalg.cho_solve((cho, True), r), by_rule]

    return function


def _signals(p: Plan) -> Function:
    """Filters by windows, medians, integral images, spectra, convolutions by transforms, interpolation, histograms."""
    n, kind = p.of(1, 2, 5, 8, 12), p.of(0, 1, 2, 3, 4, 5)
    image, mode = (
        _reals(p, (n, n + 3) if kind != 1 else (n + 2, n + 3)),
        p.of("reflect", "edge", "wrap", "symmetric", "constant", "linear_ramp"),
    )
    numbers, width = _counts(p, 50, (p.of(1, 9, 30),)), p.of(1, 2, 3)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        x = v[image]
        if kind == 0:
            padded = jnp.pad(x, width if mode != "reflect" or n > width else 0, mode=mode)
            parts = [jnp.roll(padded, (i, j), (0, 1)) for i in range(width) for j in range(2)]
            return [padded, jnp.median(jnp.stack(parts), 0), jnp.stack(parts).max(0) - jnp.stack(parts).min(0)]
        if kind == 1:
            whole = jnp.pad(jnp.cumsum(jnp.cumsum(x, 0), 1), ((1, 0), (1, 0)))
            box = whole[1:, 2:] - whole[:-1, 2:] - whole[1:, :-2] + whole[:-1, :-2]
            kernel = jnp.asarray([[1, 0, -1], [2, 0, -2], [1, 0, -1]], x.dtype)
            edges = jax.scipy.signal.convolve2d(x, kernel, mode="same")
            return [box, edges, lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME")]
        if kind == 2:
            spectrum = jnp.fft.rfft(x, axis=-1)
            kept = jnp.where(jnp.arange(spectrum.shape[-1]) <= 1, spectrum, 0)
            turned = jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(x[:1]))
            return [jnp.fft.irfft(kept, n=n + 3), jnp.abs(spectrum) ** 2, turned.real, jnp.fft.fftshift(x)]
        if kind == 3:
            grid = jnp.asarray([-1, -0.5, 0.25, 1], x.dtype)
            place = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, 2)
            part = (x - grid[place]) / (grid[place + 1] - grid[place])
            made = grid[::-1][place] * (1 - part) + grid[::-1][place + 1] * part
            return [made, jnp.interp(x, grid, grid[::-1]), jnp.polyval(jnp.asarray([1, 0.5, -1], x.dtype), x)]
        if kind == 4:
            c = v[numbers].astype("int32")
            counts = jnp.bincount(c, length=50)
            level = (jnp.cumsum(counts) * 49) // len(c)
            return [level[c], counts, jnp.histogram(c, 5, (-0.5, 49.5))[0], jnp.percentile(c.astype("float32"), 50)]
        smooth = lambda s, e: ((s + e) / 2,) * 2  # noqa: E731
        pole = lambda s, e: ((e - 0.5 * s[0] + 0.25 * s[1], s[0]), s[0])  # noqa: E731
        zero = jnp.zeros_like(x[0])
        return [lax.scan(smooth, x[0], x)[1], lax.scan(pole, (zero, zero), x, reverse=True)[1],
                lax.associative_scan(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (x * 0 + 0.5, x))[1]]  # fmt: skip

    return function


def _probability(p: Plan) -> Function:
    """Kalman's filter, Viterbi, forward and backward sums, CTC, k means, mixtures, beams, sums in logarithms."""
    n, states, kind = p.of(1, 3, 6), p.of(2, 3, 5), p.of(0, 1, 2, 3, 4, 5)
    scores, steps = _reals(p, (n, states), "float64"), _reals(p, (states, states), "float64")
    whole = p.put(p.numbers().integers(0, 40, (n, states)), "int32")
    moves = p.put(p.numbers().integers(0, 40, (states, states)), "int32")
    labels = p.put(p.numbers().integers(1, states, (2,)), "int32")

    def viterbi(emitted: Any, moved: Any) -> Any:
        def forward(best: Any, row: Any) -> Any:
            total = best[:, None] + moved
            return total.max(0) + row, total.argmax(0)

        last, places = lax.scan(forward, emitted[0], emitted[1:])
        end = jnp.argmax(last)
        return last, lax.scan(lambda s, row: (row[s],) * 2, end, places, reverse=True)[1], end

    def ctc(emitted: Any, marks: Any) -> Any:
        row = jnp.zeros(5, "int32").at[1::2].set(marks)
        skip = jnp.concatenate([jnp.zeros(2, bool), (row[2:] != row[:-2]) & (row[2:] != 0)])
        logs = jax.nn.log_softmax(emitted)[:, row]

        def turn(alpha: Any, one: Any) -> Any:
            once = jnp.pad(alpha, (1, 0), constant_values=-1e5)[:-1]
            twice = jnp.where(skip, jnp.pad(alpha, (2, 0), constant_values=-1e5)[:-2], -1e5)
            return jnp.logaddexp(jnp.logaddexp(alpha, once), twice) + one, alpha.max()

        return lax.scan(turn, jnp.full(5, -1e5, logs.dtype).at[:2].set(logs[0, :2]), logs[1:])[0]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        x, m = v[scores], v[steps]
        if kind == 0:
            return list(viterbi(v[whole], v[moves]))
        if kind == 1:
            a = jax.nn.log_softmax(m)
            forward = lambda s, row: (jax.nn.logsumexp(s[:, None] + a, 0) + row,) * 2  # noqa: E731
            back = lambda s, row: (jax.nn.logsumexp(a + row + s, 1),) * 2  # noqa: E731
            return [lax.scan(forward, x[0], x[1:])[1], lax.scan(back, x[0] * 0, x, reverse=True)[1],
                    jax.grad(lambda y: jax.nn.logsumexp(lax.scan(forward, y[0], y[1:])[0]))(x)]  # fmt: skip
        if kind == 2:
            return [ctc(x, v[labels]), jax.grad(lambda y: jax.nn.logsumexp(ctc(y, v[labels])[-2:]))(x)]
        if kind == 3:
            eye = jnp.eye(states, dtype=x.dtype)

            def turn(state: Any, seen: Any) -> Any:
                mean, spread = state
                mean, spread = m @ mean / 2, m @ spread @ m.T / 4 + eye
                gain = jnp.linalg.solve(spread + eye, spread).T
                return (mean + gain @ (seen - mean), (eye - gain) @ spread), mean

            return jax.tree.leaves(lax.scan(turn, (x[0], eye), x))
        if kind == 4:
            points, centers = v[whole], v[moves]

            def assign(_: Any, c: Any) -> Any:
                near = jnp.argmin(((points[:, None] - c) ** 2).sum(-1), 1)
                total = jax.ops.segment_sum(points, near, states)
                count = jax.ops.segment_sum(jnp.ones_like(near), near, states)
                return jnp.where(count[:, None] > 0, total // jnp.maximum(count, 1)[:, None], c).astype(c.dtype)

            return [lax.fori_loop(0, 3, assign, centers), *lax.top_k(-((points[:, None] - centers) ** 2).sum(-1), 2)]

        def beam(state: Any, row: Any) -> Any:
            total, words = state
            best, place = lax.top_k((total[:, None] * states * 50 + row).ravel() % 9973, 2)
            after = jnp.roll(words[place // states], 1, 1).at[:, 0].set(place % states)
            return (best, after.astype(words.dtype)), place

        return jax.tree.leaves(lax.scan(beam, (jnp.zeros(2, "int32"), jnp.full((2, 4), -1, "int32")), v[whole]))

    return function


def _layers(p: Plan) -> Function:
    """Cells, attention with masks and a cache, rotations, experts, optimizers over trees, quantization, pruning."""
    n, width, kind = p.of(1, 3, 5), p.of(2, 4, 6), p.of(0, 1, 2, 3, 4, 5)
    x, w = _reals(p, (2, n, width), "float32"), _reals(p, (width, 3 * width), "float32", "bfloat16")
    start = p.put(p.numbers().integers(0, n + 1, (2,)), "int32")

    def attention(q: Any, k: Any, values: Any, mask: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / width**0.5
        return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ values

    def function(v: Sequence[Any]) -> Sequence[Any]:
        y, weights = v[x], v[w].astype("float32")
        q, k, values = jnp.split(y @ weights, 3, -1)
        if kind == 0:
            causal = jnp.tril(jnp.ones((n, n), bool))
            own = jnp.arange(n) <= v[start][:, None]
            slope = jax.grad(lambda a: attention(a, k, values, causal).sum())(q)
            return [attention(q, k, values, causal & own[:, None]), slope]
        if kind == 1:

            def token(cache: Any, i: Any) -> Any:
                keys = lax.dynamic_update_slice_in_dim(cache[0], lax.dynamic_slice_in_dim(k, i, 1, 1), i, 1)
                held = lax.dynamic_update_slice_in_dim(cache[1], lax.dynamic_slice_in_dim(values, i, 1, 1), i, 1)
                one = lax.dynamic_slice_in_dim(q, i, 1, 1)
                return (keys, held), attention(one, keys, held, jnp.arange(n) <= i)

            return jax.tree.leaves(lax.scan(token, (jnp.zeros_like(k), jnp.zeros_like(values)), jnp.arange(n)))
        if kind == 2:

            def cell(h: Any, row: Any) -> Any:
                r, z, c = jnp.split(row @ weights, 3, -1)
                h = (1 - jax.nn.sigmoid(z)) * jnp.tanh(c + jax.nn.sigmoid(r) * h) + h / 2
                return h, h.astype("bfloat16")

            loss = lambda a: lax.scan(cell, jnp.zeros((2, width)), a.swapaxes(0, 1))[0].sum()  # noqa: E731
            return [loss(y), jax.grad(loss)(y), jax.jacfwd(loss)(y)]
        if kind == 3:
            place = jnp.argmax(jnp.round(y * 32).astype("int32") @ jnp.arange(width * 3).reshape(width, 3) % 17, -1)
            chosen = jax.nn.one_hot(place, 3)
            position = jnp.cumsum(chosen.reshape(-1, 3), 0) * chosen.reshape(-1, 3)
            sent = jnp.einsum("bne,bnd->ed", chosen, y)
            return [place, position, sent, jnp.einsum("bne,ed->bnd", chosen, sent * 2)]
        if kind == 4:
            tree = {"a": y, "b": [weights, {"c": y[0]}]}
            moments = jax.tree.map(lambda t: (t * 0.1, t * t * 0.01), tree)
            step = lambda t, m: t - 0.1 * m[0] / (jnp.sqrt(m[1]) + 1e-2)  # noqa: E731
            after = jax.tree.map(step, tree, moments)
            size = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(after)))
            return jax.tree.leaves(jax.tree.map(lambda t: jnp.where(size > 1, t / size, t), after))
        scale = jnp.max(jnp.abs(y), -1, keepdims=True) / 127 + 2**-10
        half = jnp.concatenate([-y[..., 1::2], y[..., ::2]], -1)
        blocks = y.reshape(2 * n, -1).at[v[start] % (2 * n)].multiply(2.0)
        return [(y / scale) * scale, half, blocks, jnp.where(jnp.abs(y) >= jnp.sort(jnp.abs(y).ravel())[-1], y, 0)]

    return function


def _derivatives(p: Plan) -> Function:
    """Hessians, derivatives of loops in both directions, products with vectors, roots by a rule, branches by rows."""
    n, kind, turns = p.of(1, 2, 4), p.of(0, 1, 2, 3, 4, 5), p.of(1, 3)
    x = _reals(p, (n,), "float64", "float32")
    y = _reals(p, (n,), p.arguments[x].dtype.name)

    def energy(a: Any, b: Any) -> Any:
        chained = lax.fori_loop(0, turns, lambda _, c: jnp.sin(c) * a + b, a)
        branch = lax.cond(b[0] > 0, lambda c: c.sum(), lambda c: (c * c).sum(), a)
        return jnp.sum(chained**2) + jnp.prod(1 + a / 4) + branch

    @jax.custom_vjp
    def root(a: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 8, lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1), (a, 0))[0]

    root.defvjp(lambda a: (root(a), root(a)), lambda r, g: (g / (2 * r),))

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a, b = v[x], v[y]
        if kind == 0:
            return [jax.hessian(energy)(a, b), jax.jacrev(jax.grad(energy, 1), 0)(a, b)]
        if kind == 1:
            loop = lambda c: lax.scan(lambda s, r: (jnp.tanh(s * r + b), s), c, jnp.stack([a, b, a]))[0]  # noqa: E731
            return [jax.jacfwd(loop)(a), jax.jacrev(loop)(a), jax.jvp(jax.grad(lambda c: loop(c).sum()), (a,), (b,))[1]]
        if kind == 2:
            value, back = jax.vjp(lambda c: (root(2 + c), c * b), a)
            return [*value, *back((a, b)), jax.vmap(jax.grad(lambda c: root(2 + c)))(a)]
        if kind == 3:
            cube = lambda e: lax.fori_loop(0, 2, lambda _, f: f * e, e)  # noqa: E731
            row = lambda c, d: lax.cond(d > 0, jnp.sin, cube, c)  # noqa: E731
            pairs = jax.vmap(lambda c: jax.vmap(row, (None, 0))(c, b))(a)
            return [jax.vmap(row)(a, b), jax.vmap(jax.grad(row))(a, b), pairs]
        if kind == 4:
            value, linear = jax.linearize(lambda c: energy(c, b), a)
            turn = lambda s: (s[0] * 0.5, s[1] + 1)  # noqa: E731
            goes_on = lambda s: (jnp.abs(s[0]).max() > 0.125) & (s[1] < 9)  # noqa: E731
            ended = lambda c: lax.while_loop(goes_on, turn, (c, 0))[0]  # noqa: E731
            return [value, linear(b), *jax.jvp(ended, (a,), (b,))]
        checked = jax.checkpoint(lambda c: jnp.sin(energy(c, b)) + jnp.cumprod(1 + c / 8)[-1])
        return [jax.grad(checked)(a), jax.grad(lambda c: jnp.sort(c)[0] + jnp.max(c) * 2 + jnp.cumsum(c)[n // 2])(a)]

    return function


METHODS: tuple[Habit, ...] = (_steps_of_time, _solvers, _signals, _probability, _layers, _derivatives)
