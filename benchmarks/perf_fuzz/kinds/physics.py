"""Fields and waves: relaxation in colours, multigrid, lattice gases, quantum circuits, higher orders in time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("physics")
def red_black_relaxation(draw: Draw) -> Drawn:
    height, width = draw.image(2e4)
    steps = draw.size(2, 30)

    def function(u: Any, f: Any) -> Any:
        colour = jnp.add.outer(jnp.arange(height), jnp.arange(width)) % 2

        def half(u: Any, which: int) -> Any:
            p = jnp.pad(u, 1)
            mean = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - f)
            return jnp.where(colour == which, mean, u)

        return jax.lax.fori_loop(0, steps, lambda _, u: half(half(u, 0), 1), u)

    return drawn(function, normal(height, width), normal(height, width))


@kind("physics")
def multigrid_cycle(draw: Draw) -> Drawn:
    levels = draw.size(2, 4)
    side = draw.size(1, 12) * 2**levels
    smooth = draw.size(1, 3)

    def relax(u: Any, f: Any) -> Any:
        for _ in range(smooth):
            p = jnp.pad(u, 1)
            u = u + 0.2 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u - f)
        return u

    def cycle(u: Any, f: Any, level: int) -> Any:
        u = relax(u, f)
        if level == 0:
            return u
        p = jnp.pad(u, 1)
        rest = f - (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)
        n = rest.shape[0] // 2
        coarse = rest.reshape(n, 2, n, 2).mean((1, 3)) * 4
        fix = cycle(jnp.zeros_like(coarse), coarse, level - 1)
        return relax(u + jnp.repeat(jnp.repeat(fix, 2, 0), 2, 1), f)

    return drawn(lambda u, f: cycle(u, f, levels), normal(side, side), normal(side, side))


@kind("physics")
def lattice_boltzmann(draw: Draw) -> Drawn:
    """D2Q9: streaming by rolls, collision."""
    height, width = draw.image(6e3)
    steps = draw.size(1, 12)
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    shares = [4 / 9, *[1 / 9] * 4, *[1 / 36] * 4]

    def function(f: Any) -> Any:
        w = jnp.array(shares)[:, None, None]
        cx, cy = (jnp.array(part, jnp.float32)[:, None, None] for part in zip(*ways, strict=True))

        def step(_: Any, f: Any) -> Any:
            f = jnp.stack([jnp.roll(f[n], way, (0, 1)) for n, way in enumerate(ways)])
            rho = f.sum(0)
            u, v = (f * cx).sum(0) / rho, (f * cy).sum(0) / rho
            cu = 3 * (cx * u + cy * v)
            return f - 0.6 * (f - w * rho * (1 + cu + 0.5 * cu * cu - 1.5 * (u * u + v * v)))

        return jax.lax.fori_loop(0, steps, step, f)

    return drawn(function, uniform(9, height, width, low=0.9, high=1.1))


@kind("physics")
def quantum_circuit(draw: Draw) -> Drawn:
    """Gates of one and two qubits on a state vector."""
    qubits, layers = draw.size(3, 12), draw.size(1, 4)

    def function(state: Any, angles: Any) -> Any:
        state = state.reshape((2,) * qubits)
        for layer in range(layers):
            for qubit in range(qubits):
                c, s = jnp.cos(angles[layer, qubit]), jnp.sin(angles[layer, qubit])
                gate = jnp.array([[c, -1j * s], [-1j * s, c]])
                state = jnp.moveaxis(jnp.tensordot(gate, state, axes=(1, qubit)), 0, qubit)
            for qubit in range(qubits - 1):
                phase = jnp.array([[1, 1], [1, -1]]).reshape(
                    [2 if n in (qubit, qubit + 1) else 1 for n in range(qubits)]
                )
                state = state * phase
        return jnp.square(jnp.abs(state)).reshape(-1)

    return drawn(function, normal(2**qubits, dtype="complex64", scale=2 ** (-qubits / 2)), normal(layers, qubits))


@kind("physics", gradient=True)
def runge_kutta(draw: Draw) -> Drawn:
    """Fourth order, of pendulums, predators or a chain."""
    count, steps = draw.size(1, 3000), draw.size(3, 100)
    which = draw.pick("pendulum", "predators", "chain")

    def rate(y: Any) -> Any:
        a, b = y
        if which == "pendulum":
            return jnp.stack([b, -jnp.sin(a) - 0.1 * b])
        if which == "predators":
            return jnp.stack([a * (1.1 - 0.4 * b), b * (0.1 * a - 0.4)])
        return jnp.stack([b, jnp.roll(a, 1) + jnp.roll(a, -1) - 2 * a])

    def function(y: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            k1 = rate(y)
            k2 = rate(y + 0.005 * k1)
            k3 = rate(y + 0.005 * k2)
            k4 = rate(y + 0.01 * k3)
            y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y[0].mean()

        return jax.lax.scan(step, y, None, length=steps)

    return drawn(function, uniform(2, count))


@kind("physics")
def split_step_wave(draw: Draw) -> Drawn:
    """Schroedinger's equation: phases in space and in frequency by turns."""
    size, steps = draw.pick(64, 100, 128, 256, 500, 1024), draw.size(1, 20)

    def function(wave: Any, potential: Any) -> Any:
        k = jnp.fft.fftfreq(size) * (2 * jnp.pi)
        move, turn = jnp.exp(-0.05j * k * k), jnp.exp(-0.1j * potential)

        def step(_: Any, wave: Any) -> Any:
            return jnp.fft.ifft(jnp.fft.fft(wave * turn) * move)

        return jnp.square(jnp.abs(jax.lax.fori_loop(0, steps, step, wave)))

    return drawn(function, normal(size, dtype="complex64"), uniform(size))


@kind("physics")
def long_convolution(draw: Draw) -> Drawn:
    """By transforms of twice the length."""
    rows, length = draw.size(1, 32), draw.size(8, 3000)

    def function(x: Any, h: Any) -> Any:
        n = 2 ** (2 * length - 1).bit_length()
        return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(h, n), n)[..., :length]

    return drawn(function, normal(rows, length), normal(length, scale=length**-0.5))


@kind("physics")
def fluid_projection(draw: Draw) -> Drawn:
    """Stable fluids: advection by interpolation, pressure by Jacobi's steps."""
    side, steps = draw.size(8, 100), draw.size(2, 20)

    def function(u: Any, v: Any) -> Any:
        y, x = jnp.mgrid[0:side, 0:side].astype(jnp.float32)

        def sampled(field: Any) -> Any:
            py, px = jnp.clip(y - v, 0, side - 1.001), jnp.clip(x - u, 0, side - 1.001)
            iy, ix = py.astype(jnp.int32), px.astype(jnp.int32)
            fy, fx = py - iy, px - ix
            return (
                field[iy, ix] * (1 - fy) * (1 - fx) + field[iy, ix + 1] * (1 - fy) * fx
                + field[iy + 1, ix] * fy * (1 - fx) + field[iy + 1, ix + 1] * fy * fx
            )  # fmt: skip

        a, b = sampled(u), sampled(v)
        spread = 0.5 * (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1) + jnp.roll(b, -1, 0) - jnp.roll(b, 1, 0))

        def relax(_: Any, p: Any) -> Any:
            around = jnp.roll(p, 1, 0) + jnp.roll(p, -1, 0) + jnp.roll(p, 1, 1) + jnp.roll(p, -1, 1)
            return 0.25 * (around - spread)

        p = jax.lax.fori_loop(0, steps, relax, jnp.zeros_like(a))
        return a - 0.5 * (jnp.roll(p, -1, 1) - jnp.roll(p, 1, 1)), b - 0.5 * (jnp.roll(p, -1, 0) - jnp.roll(p, 1, 0))

    return drawn(function, normal(side, side), normal(side, side))


@kind("physics", gradient=True)
def gaussian_process(draw: Draw) -> Drawn:
    """A covariance, its factor, mean and variance at other points."""
    seen, asked, rank = draw.size(3, 120), draw.size(2, 120), draw.size(1, 6)

    def function(x: Any, y: Any, z: Any) -> Any:
        def kernel(a: Any, b: Any) -> Any:
            return jnp.exp(-0.5 * jnp.sum(jnp.square(a[:, None] - b[None]), -1))

        factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(seen))
        solved = jax.scipy.linalg.solve_triangular(factor, jnp.column_stack([kernel(x, z), y]), lower=True)
        return solved[:, :-1].T @ solved[:, -1], 1 - jnp.sum(jnp.square(solved[:, :-1]), 0)

    return drawn(function, normal(seen, rank), normal(seen), normal(asked, rank))


@kind("physics")
def complex_products(draw: Draw) -> Drawn:
    """Matrices of complex numbers, and their adjoint."""
    m, k, n = draw.sizes(draw.work(1e3, 2e7), 3, least=2)
    return drawn(
        lambda a, b: jnp.conj(a @ b).T * 0.5j, normal(m, k, dtype="complex64"),
        normal(k, n, dtype="complex64", scale=k**-0.5),
    )  # fmt: skip


@kind("physics")
def finite_elements(draw: Draw) -> Drawn:
    """Element stiffness by gathers, small products, and a scatter of the results."""
    nodes, elements = draw.size(6, 3000), draw.size(4, 6000)

    def function(u: Any, place: Any, corners: Any) -> Any:
        p = place[corners]
        a, b = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
        area = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        grads = jnp.stack([a - b, jnp.stack([b[:, 1], -b[:, 0]], -1), jnp.stack([-a[:, 1], a[:, 0]], -1)], 1)
        stiffness = jnp.einsum("eid,ejd->eij", grads, grads) / (jnp.abs(area) + 0.1)[:, None, None]
        forces = jnp.einsum("eij,ej->ei", stiffness, u[corners])
        return jnp.zeros(nodes).at[corners].add(forces)

    return drawn(function, normal(nodes), normal(nodes, 2), integers(elements, 3, high=nodes))
