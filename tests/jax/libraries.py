"""Programs of libraries on JAX that know nothing of hloforge: ``python -m tests.jax.libraries FILE NAME...``.

Each is short and does what the library is installed for. They write their results into the file. What a chain of random
states ends in depends on rounding: such results stand under ``about``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def optax() -> Any:
    """Optimizers, schedules and clipping on Rosenbrock's function, and L-BFGS with its line search."""
    import optax as ox

    def rosenbrock(x: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    start, found = jnp.array([-0.5, 0.3, 0.8]), {}
    schedule = ox.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 20)
    optimizers = {
        "adamw": ox.adamw(schedule),
        "lion": ox.lion(1e-3),
        "clipped": ox.chain(ox.clip_by_global_norm(1.0), ox.sgd(1e-3, momentum=0.9, nesterov=True)),
        "multi": ox.MultiSteps(ox.rmsprop(1e-3), 2),
    }
    for name, optimizer in optimizers.items():

        @jax.jit
        def step(x: Any, state: Any, optimizer: Any = optimizer) -> Any:
            changes, state = optimizer.update(jax.grad(rosenbrock)(x), state, x)
            return ox.apply_updates(x, changes), state

        x, state = start, optimizer.init(start)
        for _ in range(5):
            x, state = step(x, state)
        found[name] = x
    solver = ox.lbfgs()
    value_and_grad = ox.value_and_grad_from_state(rosenbrock)

    def turn(_: Any, carried: Any) -> Any:
        x, state = carried
        value, gradient = value_and_grad(x, state=state)
        changes, state = solver.update(gradient, state, x, value=value, grad=gradient, value_fn=rosenbrock)
        return ox.apply_updates(x, changes), state

    found["lbfgs"] = jax.jit(lambda x: jax.lax.fori_loop(0, 60, turn, (x, solver.init(x)))[0])(start)
    return found


def equinox() -> Any:
    """A vision transformer with convolutional patches, dropout, state of a batch norm, and saved leaves."""
    import equinox as eqx

    class Vit(eqx.Module):
        patches: Any
        norm: Any
        attention: Any
        mlp: Any
        head: Any

        def __init__(self, key: Any) -> None:
            keys = jax.random.split(key, 4)
            self.patches = eqx.nn.Conv2d(3, 16, 4, 4, key=keys[0])
            self.norm = eqx.nn.LayerNorm(16)
            self.attention = eqx.nn.MultiheadAttention(4, 16, key=keys[1])
            self.mlp = eqx.nn.MLP(16, 16, 32, 1, jax.nn.gelu, key=keys[2])
            self.head = eqx.nn.Linear(16, 10, key=keys[3])

        def __call__(self, x: Any) -> Any:
            x = self.patches(x).reshape(16, -1).T
            normed = jax.vmap(self.norm)(x)
            x = x + self.attention(normed, normed, normed)
            return self.head((x + jax.vmap(self.mlp)(x)).mean(0))

    model = Vit(jax.random.key(0))
    x, y = jax.random.normal(jax.random.key(1), (4, 3, 16, 16)), jnp.arange(4)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model: Any) -> Any:
        logits = jax.nn.log_softmax(jax.vmap(model)(x))
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    value, gradients = loss(model)
    with tempfile.TemporaryDirectory() as folder:
        eqx.tree_serialise_leaves(Path(folder) / "model", model)
        loaded = eqx.tree_deserialise_leaves(Path(folder) / "model", model)
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
    normed, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    checked = eqx.filter_jit(lambda v: eqx.error_if(v, v.sum() > 1e9, "large"))(x)
    return value, eqx.filter(gradients, eqx.is_array), jax.vmap(loaded)(x), normed, checked


def diffrax() -> Any:
    """An ordinary equation with adaptive steps, its gradient, a stiff one, and a stochastic one."""
    import diffrax as dx

    def field(t: Any, y: Any, parameters: Any) -> Any:
        a, b, c, d = parameters
        return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])

    def end(parameters: Any) -> Any:
        saves = dx.SaveAt(ts=jnp.linspace(0, 2, 5))
        control = dx.PIDController(rtol=1e-5, atol=1e-6)
        start = jnp.array([10.0, 5.0])
        return dx.diffeqsolve(
            dx.ODETerm(field), dx.Tsit5(), 0, 2, 0.05, start, parameters, saveat=saves, stepsize_controller=control
        ).ys

    parameters = jnp.array([1.1, 0.4, 0.4, 0.1])
    gradient = jax.jit(jax.grad(lambda p: jnp.log(end(p)).sum()))(parameters)

    def robertson(t: Any, y: Any, args: Any) -> Any:
        first, second, third = -0.04 * y[0] + 1e4 * y[1] * y[2], 3e7 * y[1] ** 2, 0.0
        return jnp.stack([first, -first - second, second + third])

    stiff = dx.diffeqsolve(
        dx.ODETerm(robertson),
        dx.Kvaerno5(),
        0.0,
        1.0,
        1e-4,
        jnp.array([1.0, 0.0, 0.0]),
        stepsize_controller=dx.PIDController(rtol=1e-4, atol=1e-7),
        max_steps=None,
    ).ys
    path = dx.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(0))
    terms = dx.MultiTerm(dx.ODETerm(lambda t, y, a: -y), dx.ControlTerm(lambda t, y, a: 0.1, path))
    noisy = dx.diffeqsolve(terms, dx.Euler(), 0.0, 1.0, 0.05, jnp.array(1.0)).ys
    return end(parameters), gradient, stiff, noisy


def optimistix() -> Any:
    """Least squares by Levenberg-Marquardt and Gauss-Newton, roots, fixed points, minimization, implicit gradients."""
    import optimistix as optx

    x = jnp.linspace(0, 2, 20)
    y = 2.5 * jnp.exp(-1.3 * x) + 0.1

    def residuals(p: Any, args: Any) -> Any:
        return p[0] * jnp.exp(-p[1] * x) + p[2] - y

    start = jnp.array([1.0, 1.0, 0.0])
    fits = [
        optx.least_squares(residuals, solver, start, max_steps=100).value
        for solver in (optx.LevenbergMarquardt(1e-5, 1e-5), optx.Dogleg(1e-5, 1e-5))
    ]
    root = optx.root_find(lambda v, a: jnp.stack([v[0] ** 2 + v[1] - 3, v[0] - v[1]]), optx.Newton(1e-6, 1e-6), x[1:3])
    solver = optx.Newton(1e-6, 1e-6)
    implicit = jax.grad(lambda a: optx.root_find(lambda v, a: v**3 - a, solver, jnp.array(1.0), args=a).value)(2.0)
    fixed = optx.fixed_point(lambda v, a: jnp.cos(v), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(0.5)).value
    least = optx.minimise(lambda v, a: ((v - 1) ** 2).sum() + (v**4).sum(), optx.BFGS(1e-5, 1e-5), start).value
    return fits, root.value, implicit, fixed, least


def lineax() -> Any:
    """Linear systems by factorizations and iterations, with gradients, of several kinds of operators."""
    import lineax as lx

    a = jax.random.normal(jax.random.key(0), (5, 5)) + 5 * jnp.eye(5)
    spd, b = a @ a.T / 25 + jnp.eye(5), jnp.arange(5.0) - 1
    positive = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
    general = lx.MatrixLinearOperator(a)
    found = [
        lx.linear_solve(general, b, solver).value for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(True))
    ]
    found += [lx.linear_solve(positive, b, solver).value for solver in (lx.Cholesky(), lx.CG(1e-5, 1e-5))]
    found.append(lx.linear_solve(positive, b, lx.BiCGStab(1e-4, 1e-4)).value)
    found.append(lx.linear_solve(general, b, lx.GMRES(1e-4, 1e-4)).value)
    diagonals = lx.TridiagonalLinearOperator(jnp.full(5, 4.0), jnp.ones(4), jnp.ones(4))
    found.append(lx.linear_solve(diagonals, b).value)
    slim = jax.random.normal(jax.random.key(1), (7, 3))
    found.append(lx.linear_solve(lx.MatrixLinearOperator(slim), jnp.arange(7.0), lx.QR()).value)

    def solved(m: Any) -> Any:
        return lx.linear_solve(lx.MatrixLinearOperator(m), b).value.sum()

    function = lx.JacobianLinearOperator(lambda v, args: v**3 + 3 * v, b)
    return found, jax.jit(jax.grad(solved))(a), lx.linear_solve(function, b).value


def jaxopt() -> Any:
    """Proximal gradients, L-BFGS, quadratic programs by OSQP, and derivatives through a solution."""
    import jaxopt as jo

    x = jax.random.normal(jax.random.key(0), (20, 4))
    y = x @ jnp.array([1.0, 0.0, -2.0, 0.0])

    def loss(w: Any, regularity: Any) -> Any:
        return ((x @ w - y) ** 2).mean() + regularity * (w**2).sum()

    def lasso(w: Any) -> Any:
        return ((x @ w - y) ** 2).mean()

    start = jnp.zeros(4)
    sparse = jo.ProximalGradient(lasso, jo.prox.prox_lasso, maxiter=100).run(start, hyperparams_prox=0.1).params
    fit = jo.LBFGS(loss, maxiter=50)
    program = jo.OSQP(tol=1e-4).run(
        params_obj=(jnp.array([[4.0, 1.0], [1.0, 2.0]]), jnp.ones(2)),
        params_eq=(jnp.ones((1, 2)), jnp.ones(1)),
        params_ineq=(-jnp.eye(2), jnp.zeros(2)),
    )
    slope = jax.grad(lambda r: fit.run(start, r).params.sum())(0.1)
    simplex = jo.projection.projection_simplex(jnp.array([0.3, 1.2, -0.4]))
    return sparse, fit.run(start, 0.1).params, program.params.primal, slope, simplex


def haiku() -> Any:
    """A network with batch norm, dropout and a transformer's attention, transformed with state."""
    import haiku as hk

    def network(x: Any, is_training: bool) -> Any:
        x = hk.Conv2D(4, 3)(x)
        x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training))
        x = x.reshape(len(x), -1, 4)
        x = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x)
        return hk.Linear(3)(hk.dropout(hk.next_rng_key(), 0.2, x.mean(1)))

    model = hk.transform_with_state(network)
    x = jax.random.normal(jax.random.key(0), (4, 6, 6, 2))
    parameters, state = model.init(jax.random.key(1), x, True)

    def loss(parameters: Any) -> Any:
        out, changed = model.apply(parameters, state, jax.random.key(2), x, True)
        return (out**2).mean(), changed

    return jax.jit(jax.value_and_grad(loss, has_aux=True))(parameters), parameters


def numpyro() -> Any:
    """NUTS and variational inference on a regression, and the predictions."""
    import numpyro as npr
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    x = jnp.linspace(-1, 1, 30)
    y = 1.5 * x - 0.5 + 0.1 * jnp.sin(20 * x)

    def model(x: Any, y: Any = None) -> None:
        a, b = npr.sample("a", dist.Normal(0, 2)), npr.sample("b", dist.Normal(0, 2))
        scale = npr.sample("scale", dist.HalfNormal(1))
        npr.sample("y", dist.Normal(a * x + b, scale), obs=y)

    chain = MCMC(NUTS(model), num_warmup=100, num_samples=200, progress_bar=False)
    chain.run(jax.random.key(0), x, y)
    samples = chain.get_samples()
    means = {name: values.mean() for name, values in samples.items()}
    drawn = Predictive(model, samples)(jax.random.key(1), x)["y"]
    guide = AutoNormal(model)
    inference = SVI(model, guide, npr.optim.Adam(0.05), Trace_ELBO())
    result = inference.run(jax.random.key(2), 200, x, y, progress_bar=False)
    return {"about": (means, drawn.mean(0)), "svi": guide.median(result.params)}


def blackjax() -> Any:
    """HMC and NUTS with their windows of adaption, and steps of Langevin."""
    import blackjax as bj

    def density(x: Any) -> Any:
        return -0.5 * (x["a"] ** 2).sum() - jnp.log(1 + (x["b"] - 1) ** 2)

    start = {"a": jnp.ones(3), "b": jnp.array(0.5)}
    hmc = bj.hmc(density, 0.1, jnp.ones(4), 5)
    state, states = hmc.init(start), []
    for key in jax.random.split(jax.random.key(0), 3):
        state, _ = jax.jit(hmc.step)(key, state)
        states.append(state.position)
    mala = bj.mala(density, 0.05)
    langevin, _ = jax.jit(mala.step)(jax.random.key(4), mala.init(start))
    (last, parameters), _ = bj.window_adaptation(bj.nuts, density).run(jax.random.key(1), start, 100)
    nuts = bj.nuts(density, **parameters)

    def turn(state: Any, key: Any) -> Any:
        state, _ = nuts.step(key, state)
        return state, state.position

    _, drawn = jax.lax.scan(turn, last, jax.random.split(jax.random.key(2), 400))
    return {"exact": (states, langevin.position), "about": jax.tree.map(lambda v: (v > 0).mean(0), drawn)}


def distrax() -> Any:
    """Distributions, a mixture, a flow of bijectors, and a divergence."""
    import distrax as dx

    key, x = jax.random.key(0), jnp.linspace(-2, 2, 7)
    normal = dx.MultivariateNormalTri(jnp.zeros(2), jnp.array([[1.0, 0.0], [0.5, 2.0]]))
    mixture = dx.MixtureSameFamily(dx.Categorical(jnp.arange(3.0)), dx.Normal(jnp.arange(3.0), jnp.ones(3)))
    flow = dx.Transformed(dx.Normal(0.0, 1.0), dx.Chain([dx.ScalarAffine(1.0, 2.0), dx.Tanh()]))
    spline = dx.RationalQuadraticSpline(jnp.linspace(-1, 1, 13), -3, 3)
    model = dx.HMM(dx.Categorical(jnp.ones(2)), dx.Categorical(jnp.eye(2)), dx.Normal(jnp.arange(2.0), jnp.ones(2)))
    return (
        *normal.sample_and_log_prob(seed=key, sample_shape=(4,)),
        mixture.log_prob(x),
        *flow.sample_and_log_prob(seed=key, sample_shape=3),
        *spline.forward_and_log_det(x),
        dx.Gamma(2.0, 3.0).sample(seed=key, sample_shape=5),
        dx.Normal(0.0, 1.0).kl_divergence(dx.Normal(1.0, 2.0)),
        model.forward(x),
        jax.grad(lambda loc: dx.Beta(loc, 2.0).entropy())(1.5),
    )


def chex() -> Any:
    """Data classes, checks of trees, variants of a test, ``chexify`` and fake devices."""
    import chex as cx

    @cx.dataclass
    class State:
        x: Any
        count: Any

    @cx.chexify
    @jax.jit
    def step(state: Any) -> Any:
        cx.assert_tree_all_finite(state)
        return state.replace(x=jnp.sin(state.x), count=state.count + 1)

    state = step(State(x=jnp.arange(3.0), count=jnp.array(0)))
    refused = 0
    try:
        step(State(x=jnp.array([jnp.nan]), count=jnp.array(0)))
        step.wait_checks()
    except Exception:
        refused = 1
    assert refused
    cx.assert_trees_all_close(state, state)
    cx.assert_max_traces(lambda x: x, n=2)(1)
    with cx.fake_pmap_and_jit():
        faked = jax.jit(lambda x: x + 1)(state.x)
    return state.x, state.count, faked


def orbax() -> Any:
    """Checkpoints written asynchronously, kept by a manager, and restored whole and into shapes."""
    import orbax.checkpoint as ocp

    tree = {
        "w": jnp.arange(12.0).reshape(3, 4),
        "n": jnp.array(3),
        "half": jnp.ones(3, jnp.bfloat16),
        "s": np.arange(2),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with ocp.StandardCheckpointer() as writer:
            writer.save(path / "one", tree)
        with ocp.StandardCheckpointer() as reader:
            shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
            restored = reader.restore(path / "one", shapes)
        assert restored["w"].sharding == tree["w"].sharding
        with ocp.CheckpointManager(path / "many", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
            for step in range(3):
                manager.save(step, args=ocp.args.StandardSave(jax.tree.map(lambda v, s=step: v + s, tree)))
            manager.wait_until_finished()
            assert manager.all_steps() == [1, 2]
            last = manager.restore(2, args=ocp.args.StandardRestore(shapes))
    return restored, last, jax.jit(lambda t: t["w"].sum() * t["n"])(last)


def jraph() -> Any:
    """A graph network with attention and its gradient on padded batches of graphs."""
    import jraph as jg

    random = np.random.default_rng(0)

    def graph(nodes: int, edges: int) -> Any:
        return jg.GraphsTuple(
            nodes=random.normal(size=(nodes, 4)).astype(np.float32),
            edges=random.normal(size=(edges, 2)).astype(np.float32),
            senders=random.integers(0, nodes, edges),
            receivers=random.integers(0, nodes, edges),
            n_node=np.array([nodes]),
            n_edge=np.array([edges]),
            globals=np.ones((1, 3), np.float32),
        )

    batch = jax.tree.map(jnp.asarray, jg.pad_with_graphs(jg.batch([graph(3, 5), graph(4, 6)]), 16, 16, 3))
    weights = {"edge": jnp.ones((13, 2)) / 7, "node": jnp.ones((11, 4)) / 7, "all": jnp.ones((9, 3)) / 7}

    def joined(*parts: Any) -> Any:
        return jnp.concatenate(jax.tree.leaves(parts), -1)

    def loss(weights: Any) -> Any:
        network = jg.GraphNetwork(
            lambda e, s, r, g: jnp.tanh(joined(e, s, r, g) @ weights["edge"]),
            lambda n, s, r, g: jnp.tanh(joined(n, r, s, g)[:, :11] @ weights["node"]),
            lambda n, e, g: joined(n, e, g) @ weights["all"],
        )
        out = network(batch)
        return (jnp.where(jg.get_graph_padding_mask(out)[:, None], out.globals, 0) ** 2).sum(), out.nodes

    soft = jg.segment_softmax(jnp.arange(6.0), jnp.array([0, 0, 1, 1, 1, 2]), 3)
    return jax.jit(jax.value_and_grad(loss, has_aux=True))(weights), soft


def e3nn() -> Any:
    """Spherical harmonics and tensor products, and that they turn with what they are of."""
    import e3nn_jax as e3

    x = e3.IrrepsArray("1o", jax.random.normal(jax.random.key(0), (6, 3)))
    harmonics = e3.spherical_harmonics("0e + 1o + 2e", x, normalize=True)
    product = e3.tensor_product(harmonics, x)
    gate = e3.gate(e3.IrrepsArray("2x0e + 1o", jnp.arange(10.0).reshape(2, 5) / 10))
    turned = harmonics.transform_by_angles(0.3, 0.5, 0.7)
    slope = jax.jit(jax.grad(lambda v: e3.spherical_harmonics("3o", e3.IrrepsArray("1o", v), True).array[..., 0].sum()))
    return harmonics.array, product.array, gate.array, turned.array, slope(x.array)


def mjx() -> Any:
    """A falling body and a pendulum of MuJoCo's MJX, stepped and differentiated."""
    import mujoco
    from mujoco import mjx as mx

    text = """
    <mujoco><option iterations="4" ls_iterations="4"/><worldbody>
      <geom type="plane" size="5 5 .1"/>
      <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .5 0 0"/></body>
      <body pos="1 0 .12"><freejoint/><geom type="sphere" size=".1"/></body>
    </worldbody></mujoco>"""
    model = mx.put_model(mujoco.MjModel.from_xml_string(text))
    data = mx.make_data(model)
    step = jax.jit(mx.step)
    for _ in range(10):
        data = step(model, data)
    return data.qpos, data.qvel


def flax() -> Any:
    """Linen's scan over time with an attention layer, and nnx's state split, merged and drawn by its streams."""
    import flax.linen as nn
    from flax import nnx, serialization

    class Reader(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.RNN(nn.GRUCell(8))(nn.Embed(11, 6)(x))
            x = x + nn.SelfAttention(2)(nn.LayerNorm()(x))
            return nn.DenseGeneral((2, 3))(nn.GroupNorm(4)(x))

    tokens = jnp.arange(12).reshape(2, 6) % 11
    variables = Reader().init(jax.random.key(0), tokens)
    copied = serialization.from_bytes(variables, serialization.to_bytes(variables))
    model = nnx.Sequential(nnx.Conv(2, 4, (3, 3), rngs=nnx.Rngs(0)), nnx.BatchNorm(4, rngs=nnx.Rngs(1)), nnx.relu)
    images = jax.random.normal(jax.random.key(1), (2, 5, 5, 2))
    out = nnx.jit(lambda m, x: m(x))(model, images)
    definition, state = nnx.split(model)
    again = nnx.merge(definition, state)(images)
    gradient = jax.jit(jax.grad(lambda v: (Reader().apply(v, tokens) ** 2).sum()))(copied)
    return gradient, out, again, jax.tree.leaves(nnx.state(model, nnx.BatchStat))


def brax() -> Any:
    """A cart and pole of Brax, reset and stepped in a scan."""
    from brax import envs

    environment = envs.get_environment("inverted_pendulum", backend="spring")
    state = jax.jit(environment.reset)(jax.random.key(0))

    def turn(state: Any, action: Any) -> Any:
        state = environment.step(state, action)
        return state, (state.obs, state.reward)

    return jax.jit(lambda s: jax.lax.scan(turn, s, jnp.zeros((5, environment.action_size)))[1])(state)


# By what a program imports.
PROGRAMS: dict[str, Callable[[], Any]] = {
    "flax": flax,
    "optax": optax,
    "equinox": equinox,
    "diffrax": diffrax,
    "optimistix": optimistix,
    "lineax": lineax,
    "jaxopt": jaxopt,
    "haiku": haiku,
    "numpyro": numpyro,
    "blackjax": blackjax,
    "distrax": distrax,
    "chex": chex,
    "orbax.checkpoint": orbax,
    "jraph": jraph,
    "e3nn_jax": e3nn,
    "brax": brax,
    "mujoco.mjx": mjx,
}


def main() -> None:
    found = {}
    for name in sys.argv[2:]:
        for path, leaf in jax.tree_util.tree_leaves_with_path(PROGRAMS[name]()):
            found[f"{name}{jax.tree_util.keystr(path)}"] = np.asarray(leaf, np.float32)
    np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
