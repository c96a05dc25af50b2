"""Loops, branches and functions with rules of their own, as programs and under ``grad``, ``jvp`` and ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import jet, ode
from jax.scipy import optimize

from tests.jax.sweep.table import rows
from tests.sweep.case import Case, array

_SOME = ("float32", "int32", "bfloat16", "bool", "complex64", "int8", "float64")


def cases() -> Iterator[Case]:
    yield from _scans()
    yield from _while()
    yield from _counted()
    yield from _branches()
    yield from _solved()
    yield from _own_rules()
    yield from _kept()
    yield from _mapped()


def _scans() -> Iterator[Case]:
    def step(carry: Any, x: Any) -> Any:
        return jnp.tanh(carry * 0.9 + x.sum()), (carry - x, carry[0])

    for name, options in {
        "plain": {},
        "reverse": {"reverse": True},
        "unroll": {"unroll": 2},
        "unroll_odd": {"unroll": 3, "reverse": True},
        "unroll_all": {"unroll": True},
        "transposed_split": {"_split_transpose": True},
    }.items():
        f = partial(lax.scan, step, **options)
        yield from rows("scan", lambda c, x, f=f: f(c, x), array(3), array(5, 3), dtypes=(name,))
        yield from rows(
            "scan_grad",
            lambda c, x, f=f: [
                jax.grad(lambda c, x: sum(v.sum() for v in jax.tree.leaves(f(c, x))), (0, 1))(c, x),
                jax.jvp(f, (c, x), (c, x))[1],
                jax.jacfwd(lambda c: f(c, x)[0])(c),
                jax.hessian(lambda c: f(c, x)[0].sum())(c),
            ],
            array(3, kind="unit"),
            array(5, 3, kind="unit"),
            dtypes=(name,),
        )
        for axes in ((0, None), (None, 0), (0, 1), (1, 2)):
            yield from rows(
                "scan_vmap",
                lambda c, x, f=f, axes=axes: jax.vmap(f, axes)(
                    c if axes[0] is None else jnp.stack([c, c + 1], axes[0]),
                    x if axes[1] is None else jnp.stack([x, -x], axes[1]),
                ),
                array(3),
                array(5, 3),
                dtypes=(f"{name}-{axes}",),
            )
    for dtype in _SOME:
        yield from rows(
            "scan_types",
            lambda x: [
                lax.scan(lambda c, v: (v, c), x[0], x),
                lax.scan(lambda c, v: (c + v, (c, v)), x[0], x, reverse=True),
                lax.scan(lambda c, _: (c[::-1], c), x[0], None, length=3),
                lax.scan(lambda c, v: (None, v), None, x),
                lax.scan(lambda c, v: (c, None), x[0], x[:0]),
                lax.scan(lambda c, v: ((c[1], c[0]), None), (x[0], x[1]), x),
            ],
            array(4, 3, dtype=dtype),
            dtypes=(dtype,),
        )
    yield from rows(
        "scan_indexed",
        lambda x: [
            lax.scan(lambda c, i: (c.at[i].add(c[i - 1]), c[i]), x, np.arange(1, 6)),
            lax.scan(
                lambda c, i: (lax.dynamic_update_slice(c, c[:2] * 2, (i,)), lax.dynamic_slice(c, (i,), (2,))),
                x,
                np.arange(4),
            ),
            lax.scan(lambda c, v: (jnp.sort(c * v), jnp.argmax(c)), x, x),
            lax.scan(lambda c, v: (c @ jnp.eye(6, dtype=c.dtype) + v, jnp.linalg.norm(c)), x, x),
            lax.scan(lambda key, _: tuple(jax.random.split(key)), jax.random.key(3), None, length=4)[1],
            lax.scan(lambda c, v: lax.scan(lambda d, w: (d + w * v, d), c, x), x[0], x),
        ],
        array(6),
        dtypes=("float32", "float64"),
    )
    yield from rows(
        "map",
        lambda x: [
            lax.map(jnp.sin, x),
            lax.map(lambda v: {"a": v, "b": (v[0], v.sum())}, x),
            lax.map(jnp.cumsum, x, batch_size=2),
            lax.map(jnp.cumsum, x, batch_size=5),
        ],
        array(5, 3),
    )


def _while() -> Iterator[Case]:
    yield from rows(
        "while",
        lambda x, n: [
            lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) + c[0]), (0, x)),
            lax.while_loop(lambda c: (c**2).sum() > 1, lambda c: c / 2, x),
            lax.while_loop(lambda c: False, lambda c: c + 1, x),
            lax.while_loop(lambda c: c["n"] > 0, lambda c: {"n": c["n"] - 1, "v": c["v"][::-1]}, {"n": n, "v": x}),
            lax.while_loop(lambda c: (c[0] < n) & (c[1].max() < 9), lambda c: (c[0] + 1, c[1] * 2, c[1]), (0, x, x)),
            lax.while_loop(lambda c: jnp.any(c > 0.5), lambda c: jnp.where(c > 0.5, c - 0.25, c), x),
            lax.while_loop(
                lambda c: c[0] < 3,
                lambda c: (
                    c[0] + 1,
                    lax.while_loop(lambda d: d[0] < c[0], lambda d: (d[0] + 1, d[1] + d[0]), (0, c[1]))[1],
                ),
                (0, x),
            ),
        ],
        array(4),
        np.int32(5),
    )
    for axes in ((0, None), (None, 0), (0, 0)):
        yield from rows(
            "while_vmap",
            lambda x, n, axes=axes: jax.vmap(
                lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5 + c[0]), (0, x)), axes
            )(x if axes[0] == 0 else x[0], n if axes[1] == 0 else n[0]),
            array(4, 3),
            np.array([3, 0, 5, 1], np.int32),
            dtypes=(f"{axes}",),
        )
        yield from rows(
            "while_vmap_condition",
            lambda x, n, axes=axes: jax.vmap(
                lambda x, n: lax.while_loop(lambda c: jnp.sum(c**2) > n, lambda c: jnp.sin(c) * 0.7, x), axes
            )(x if axes[0] == 0 else x[0], n if axes[1] == 0 else n[0]),
            array(4, 3),
            np.array([3, 0.25, 5, 1], np.float32),
            dtypes=(f"{axes}",),
        )
    yield from rows(
        "while_jvp",
        lambda x: jax.jvp(
            lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1], (x,), (x,)
        ),
        array(4),
    )


def _counted() -> Iterator[Case]:
    for name, (low, high) in {"up": (0, 4), "none": (3, 1), "from": (2, 7), "negative": (-3, 2)}.items():
        yield from rows(
            "fori",
            lambda x, low=low, high=high: [
                lax.fori_loop(low, high, lambda i, c: c * 2 + i, x),
                lax.fori_loop(np.int8(low), np.int8(high), lambda i, c: c + i.astype(c.dtype), x),
                lax.fori_loop(low, high, lambda i, c: c.at[i].set(i), x),
                lax.fori_loop(low, high, lambda i, c: (c[1], c[0] + 1), (x, x * 2)),
                lax.fori_loop(low, high, lambda i, c: c + lax.fori_loop(0, i, lambda j, d: d + j, 0), x),
                jax.grad(lambda x: lax.fori_loop(low, high, lambda i, c: jnp.sin(c) * x, x).sum())(x),
                lax.fori_loop(low, high, lambda i, c: jnp.sin(c) + i, x, unroll=2),
            ],
            array(4),
            dtypes=(name,),
        )
        yield from rows(
            "fori_traced",
            lambda x, a, b: [
                lax.fori_loop(a, b, lambda i, c: c * 2 + i, x),
                jax.vmap(lambda n, v: lax.fori_loop(a, n.astype(a.dtype), lambda i, c: jnp.sin(c) + i, v))(
                    jnp.arange(4), x
                ),
                jax.jvp(lambda x: lax.fori_loop(a, b, lambda i, c: jnp.sin(c) * x, x), (x,), (x,))[1],
            ],
            array(4),
            np.int32(low),
            np.int32(high),
            dtypes=(name,),
        )


def _branches() -> Iterator[Case]:
    def both(x: Any, p: Any) -> Any:
        return [
            lax.cond(p, jnp.sin, lambda v: v * 2, x),
            lax.cond(p, lambda a, b: (a, {"k": b}), lambda a, b: (b, {"k": a}), x, x[::-1]),
            lax.cond(p, lambda: x, lambda: jnp.zeros_like(x)),
            lax.cond(p, lambda v: lax.cond(v[0] > 0, jnp.cos, jnp.exp, v), lambda v: v, x),
            lax.cond(p, lambda v: lax.fori_loop(0, 3, lambda i, c: c + v, v), lambda v: v[::-1], x),
        ]

    for value in (True, False):
        yield from rows("cond", both, array(4), np.bool_(value), dtypes=(f"{value}",))
        yield from rows("cond_constant", lambda x, v=value: both(x, v), array(4), dtypes=(f"{value}",))
        yield from rows(
            "cond_grad",
            lambda x, p: [
                jax.grad(lambda x: lax.cond(p, jnp.sin, lambda v: v * 2, x).sum())(x),
                jax.jvp(lambda x: lax.cond(p, jnp.sin, lambda v: v * 2, x), (x,), (x,))[1],
                jax.hessian(lambda x: lax.cond(p, jnp.sin, lambda v: v**3, x).sum())(x),
                jax.linearize(lambda x: lax.cond(p, jnp.sin, lambda v: v * 2, x), x)[1](x),
                jax.grad(lambda x: lax.cond(x[0] > 0, lambda v: v[0] * v[1], lambda v: v.sum(), x))(x),
            ],
            array(4),
            np.bool_(value),
            dtypes=(f"{value}",),
        )
    yield from rows(
        "cond_vmap",
        lambda x: [
            jax.vmap(lambda v, p: lax.cond(p, jnp.sin, lambda v: v * 2, v))(x, x[:, 0] > 0),
            jax.vmap(lambda v: lax.cond(x[0, 0] > 0, jnp.sin, lambda v: v * 2, v), 1, 1)(x),
            jax.vmap(lambda p: lax.cond(p, lambda: x, lambda: -x))(x[:, 0] > 0),
            jax.vmap(jax.grad(lambda v: lax.cond(v[0] > 0, lambda v: (v**2).sum(), lambda v: v.prod(), v)))(x),
        ],
        array(4, 3),
    )
    for number in (-1, 0, 2, 9):
        yield from rows(
            "switch",
            lambda x, n: [
                lax.switch(n, [jnp.sin, jnp.cos, lambda v: v * v], x),
                lax.switch(n, [lambda v: (v, 1), lambda v: (v + 1, 2)], x),
                lax.switch(n, [jnp.sin], x),
                jax.grad(lambda x: lax.switch(n, [jnp.sin, jnp.cos, lambda v: v * v], x).sum())(x),
                jax.vmap(lambda i, v: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * v], v))(jnp.arange(4) - 1 + n, x),
                lax.switch(n.astype("uint8"), [jnp.sin, jnp.cos, lambda v: v * v], x),
            ],
            array(4),
            np.int32(number),
            dtypes=(f"{number}",),
        )
    for dtype in _SOME:
        yield from rows(
            "cond_types",
            lambda x: [
                lax.cond(jnp.any(x != 0), lambda v: v[::-1], lambda v: v, x),
                lax.switch(jnp.sum(x != 0) - 3, [lambda v: v[0], lambda v: v[1], lambda v: v[2]], x),
            ],
            array(4, dtype=dtype),
            dtypes=(dtype,),
        )
    yield from rows(
        "platform_dependent",
        lambda x: lax.platform_dependent(x, cuda=lambda v: v - 9, default=lambda v: v + 1),
        array(4),
    )


def _solved() -> Iterator[Case]:
    def newton(f: Callable[..., Any], start: Any) -> Any:
        slope = jax.vmap(jax.grad(lambda v: f(v).sum()))
        return lax.while_loop(lambda c: (jnp.abs(f(c)) > 1e-4).any(), lambda c: c - f(c) / slope(c), start)

    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda v: v**3 - a, jnp.ones_like(a) * 2, newton, lambda g, y: jnp.linalg.solve(jax.jacobian(g)(y), y)
        )

    def solved(a: Any, b: Any, symmetric: bool) -> Any:
        matrix = a @ a.T + 3 * jnp.eye(4, dtype=a.dtype) if symmetric else a + 4 * jnp.eye(4, dtype=a.dtype)
        return lax.custom_linear_solve(
            lambda v: matrix @ v,
            b,
            lambda f, v: jnp.linalg.solve(jax.jacobian(f)(v), v),
            transpose_solve=lambda f, v: jnp.linalg.solve(jax.jacobian(f)(v), v),
            symmetric=symmetric,
        )

    yield from rows(
        "custom_root",
        lambda a: [root(a + 1), jax.jacobian(root)(a + 1), jax.jvp(root, (a + 1,), (a,))[1]],
        array(3, kind="positive"),
    )
    for symmetric in (False, True):
        f = partial(solved, symmetric=symmetric)
        yield from rows(
            "custom_linear_solve",
            lambda a, b, f=f: [
                f(a, b),
                jax.grad(lambda a, b: f(a, b).sum(), (0, 1))(a, b),
                jax.jvp(f, (a, b), (a, b))[1],
                jax.vmap(f)(jnp.stack([a, -a]), jnp.stack([b, b + 1])),
            ],
            array(4, 4, kind="unit"),
            array(4),
            dtypes=(f"{symmetric}",),
        )
    for name in ("cg", "bicgstab", "gmres"):
        yield from rows(
            f"sparse_{name}",
            lambda a, b, n=name: getattr(jax.scipy.sparse.linalg, n)(a @ a.T + 3 * jnp.eye(4, dtype=a.dtype), b)[0],
            array(4, 4, kind="unit"),
            array(4),
        )
    yield from rows(
        "odeint",
        lambda y: ode.odeint(lambda y, t: -y * t, y, jnp.linspace(0.0, 1.0, 4, dtype=y.dtype)),
        array(3),
        dtypes=("float32",),
    )
    yield from rows(
        "minimize",
        lambda x: optimize.minimize(lambda v: ((v - 1) ** 2).sum() + (v**4).sum(), x, method="BFGS").x,
        array(3, kind="unit"),
        dtypes=("float32",),
    )


def _own_rules() -> Iterator[Case]:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return jnp.sin(x)

    clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(g, -0.5, 0.5) * x,))

    @jax.custom_jvp
    def steep(x: Any, y: Any) -> Any:
        return x * y

    steep.defjvp(lambda p, t: (steep(*p), 3 * t[0] + t[1] * p[0]))

    @jax.custom_batching.custom_vmap
    def batched(x: Any) -> Any:
        return x + 1

    batched.def_vmap(lambda size, mapped, x: (x * 2, True))
    yield from rows(
        "custom_rules",
        lambda x: [
            jax.vmap(jax.grad(clipped))(x),
            jax.grad(lambda x: lax.scan(lambda c, v: (clipped(c * v), None), x[0], x)[0])(x),
            jax.jvp(steep, (x, x + 1), (x, x))[1],
            jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: steep(c, x), x).sum())(x),
            batched(x),
            jax.vmap(batched)(x),
            jax.jit(jax.vmap(jax.grad(lambda v: steep(clipped(v), v))))(x),
        ],
        array(5),
    )


def _kept() -> Iterator[Case]:
    def layers(x: Any, w: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "h") @ w).sum()

    policies = jax.checkpoint_policies
    for name, policy in {
        "none": None,
        "dots": policies.dots_saveable,
        "nothing": policies.nothing_saveable,
        "everything": policies.everything_saveable,
        "names": policies.save_only_these_names("h"),
    }.items():
        f = jax.checkpoint(layers, policy=policy)
        yield from rows(
            "checkpoint",
            lambda x, w, f=f: [
                jax.grad(f, (0, 1))(x, w),
                jax.grad(lambda w: lax.scan(lambda c, v: (c + f(v[None], w), None), jnp.zeros((), w.dtype), x)[0])(w),
                jax.vmap(jax.grad(f), (0, None))(x[:, None], w),
            ],
            array(3, 4),
            array(4, 4),
            dtypes=(name,),
        )


def _mapped() -> Iterator[Case]:
    yield from rows(
        "vmap_axes",
        lambda x, y: [
            jax.vmap(lambda a, b: a @ b, (0, 2))(x, y.transpose(1, 2, 0)),
            jax.vmap(lambda d: d["a"] * d["b"], ({"a": 0, "b": None},))({"a": x, "b": 2.0}),
            jax.vmap(lambda a: (a, 1.0), out_axes=(1, None))(x),
            jax.vmap(lambda a: lax.psum(a, "i"), axis_name="i")(x),
            jax.vmap(lambda a: [lax.pmean(a, "i"), lax.pmax(a, "i"), lax.axis_index("i")], axis_name="i")(x),
            jax.vmap(lambda a: lax.all_gather(a, "i", axis=1), axis_name="i", out_axes=2)(x),
            jax.vmap(lambda a: lax.ppermute(a, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(x),
            jax.vmap(lambda a: lax.all_to_all(a[:3], "i", 0, 0), axis_name="i")(x),
            jax.vmap(lambda a: lax.psum_scatter(a[:3], "i"), axis_name="i")(x),
            jnp.vectorize(lambda a, b: a @ b, signature="(n,k),(k,m)->(n,m)")(x, y),
        ],
        array(3, 4, 2),
        array(3, 2, 4),
        dtypes=("float32",),
    )
    yield from rows(
        "derivatives",
        lambda x: [
            jax.jacrev(lambda v: jnp.sin(v) * v[::-1])(x),
            jax.jacfwd(lambda v: jnp.cumprod(v))(x),
            jax.hessian(lambda v: jnp.exp(v).prod())(x * 0.1),
            jax.value_and_grad(lambda v: (v**3).sum(), has_aux=False)(x),
            jax.grad(lambda v: ((v**2).sum(), {"aux": v}), has_aux=True)(x),
            jax.vjp(lambda v: (v, v * 2), x)[1]((x, x)),
            jax.linear_transpose(lambda v: jnp.flip(v) * 3, x)(x),
            jax.grad(lambda v: jax.grad(lambda w: (jnp.sin(w) * v).sum())(v).sum())(x),
            jax.jvp(jax.jit(lambda v: jnp.sort(v) @ v), (x,), (jnp.ones_like(x),)),
            jet.jet(jnp.sin, (x,), ((jnp.ones_like(x), x, x),)),
            jax.jacfwd(jax.jacrev(jnp.linalg.norm))(x),
        ],
        array(4),
    )
    yield from rows(
        "derivatives_complex",
        lambda x: [
            jax.grad(lambda v: jnp.abs(v).sum())(x),
            jax.grad(lambda v: (v**2).sum(), holomorphic=True)(x),
            jax.jacfwd(jnp.sin, holomorphic=True)(x),
            jax.vjp(lambda v: jnp.fft.fft(v), x)[1](x),
            jax.grad(lambda v: jnp.linalg.norm(jnp.outer(v, v.conj())))(x),
        ],
        array(4),
        dtypes=("complex64", "complex128"),
    )
