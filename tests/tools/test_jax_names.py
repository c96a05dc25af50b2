"""Names of arguments and results that JAX writes into modules and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from hloforge.importers.reader import read
from tests.tools.command import Call

PARAMETERS = {"dense": {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}, "out": [jnp.ones((2, 1))]}
STATE = {"count": jnp.int32(0), "m": jax.tree.map(jnp.zeros_like, PARAMETERS)}
X = jnp.ones((4, 3))


def step(params: Any, opt: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ p["dense"]["kernel"] + p["dense"]["bias"]) @ p["out"][0] - 1) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, opt["m"], gradients)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, m)
    return params, {"count": opt["count"] + 1, "m": m}, {"loss": value}


def names(function: Any, *arguments: Any, donate: Any = (), **options: Any) -> tuple[list[str], list[str]]:
    """Of the arguments and results of an export."""
    exported = export.export(jax.jit(function, donate_argnums=donate), **options)(*arguments)
    signature = read(bytes(exported.serialize())).signature
    return [parameter.name for parameter in signature.parameters], list(signature.result_names)


def paths(tree: Any, root: str) -> list[str]:
    return [root + jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]


STATE_PATHS = [*paths(PARAMETERS, "params"), *paths(STATE, "opt")]


@pytest.mark.parametrize("options", [{}, {"platforms": ["cpu", "cuda"]}], ids=["one platform", "two platforms"])
def test_donated_state_has_the_names_of_its_arguments(options: Any) -> None:
    taken, given = names(step, PARAMETERS, STATE, X, donate=(0, 1), **options)
    assert taken == [*STATE_PATHS, "x"]
    assert given == [*STATE_PATHS, "result[2]['loss']"]


def test_symbolic_sizes_keep_names() -> None:
    (size,) = export.symbolic_shape("b")
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), (PARAMETERS, STATE))
    taken, given = names(step, *state, jax.ShapeDtypeStruct((size, 3), np.float32), donate=(0, 1))
    assert taken == [*STATE_PATHS, "x"]
    assert given == [*STATE_PATHS, "result[2]['loss']"]


def test_what_is_not_donated_keeps_the_place_of_the_result() -> None:
    _, given = names(step, PARAMETERS, STATE, X)
    assert given[: len(paths(PARAMETERS, ""))] == paths(PARAMETERS, "result[0]")
    # Gradients have the structure of the parameters, and are not their next value.
    _, given = names(lambda params: jax.tree.map(lambda p: 2 * p, params), PARAMETERS)
    assert given == paths(PARAMETERS, "result")


def test_trees_count_and_not_the_buffers_that_donation_pairs() -> None:
    def reordered(params: Any, opt: Any, x: Any) -> Any:
        params, opt, metrics = step(params, opt, x)
        return metrics["loss"], opt, params

    _, given = names(reordered, PARAMETERS, STATE, X, donate=(0, 1))
    assert given == ["result[0]", *paths(STATE, "opt"), *paths(PARAMETERS, "params")]


def test_trees_within_an_argument() -> None:
    def of_carry(carry: Any) -> Any:
        params, opt, metrics = step(carry["params"], carry["opt"], carry["x"])
        return metrics["loss"], {"params": params, "opt": opt}

    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        taken, given = names(of_carry, {"params": PARAMETERS, "opt": STATE, "x": X}, donate=0)
    assert given[0] == "result[0]"
    assert set(given[1:]) == set(taken) - {"carry['x']"}


def test_a_donated_array_is_not_taken_for_a_metric() -> None:
    def counted(scale: Any, x: Any) -> Any:
        return {"loss": (x * scale).sum(), "scale": scale * 2}

    _, given = names(counted, jnp.float32(1), X, donate=0)
    assert given == ["result['loss']", "scale"]


def test_modules_without_names_have_numbers() -> None:
    text = jax.jit(step, donate_argnums=(0, 1)).lower(PARAMETERS, STATE, X).as_text()
    signature = read(text).signature
    assert [parameter.name for parameter in signature.parameters[:2]] == ["arg0", "arg1"]
    assert signature.result_names[0] == "result[0]['dense']['bias']"
    assert read(text.replace("jax.result_info", "jax.other")).signature.result_names == ()


def test_state_goes_from_step_to_step(call: Call, tmp_path: Path) -> None:
    exported = export.export(jax.jit(step, donate_argnums=(0, 1)))(PARAMETERS, STATE, X)
    (tmp_path / "step.jax_export").write_bytes(exported.serialize())
    state = tmp_path / "state.npz"
    leaves = jax.tree.leaves((PARAMETERS, STATE))
    np.savez(state, **dict(zip(STATE_PATHS, map(np.asarray, leaves), strict=True)))
    np.savez(tmp_path / "batch.npz", x=np.asarray(X))
    expected = PARAMETERS, STATE
    for _ in range(2):
        result = call(
            "run",
            tmp_path / "step.jax_export",
            f"--input=@{state}",
            f"--input=@{tmp_path}/batch.npz",
            f"--output=@{state}",
        )
        assert result.exit_code == 0, result.output
        expected = step(*expected, X)[:2]
    with np.load(state) as found:
        for name, leaf in zip(STATE_PATHS, jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(found[name], leaf, rtol=1e-5, atol=1e-6)
