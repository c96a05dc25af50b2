"""TransformerEngine's choice of experts against JAX's functions and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from tests.pipelines.library_calls.ffi_calls import run

jax = pytest.importorskip("jax")
jnp = jax.numpy

FORWARD, BACKWARD = "te_fused_topk_with_score_function_forward_ffi", "te_fused_topk_with_score_function_backward_ffi"
TOKENS, EXPERTS = 10, 12
NO_BIAS = np.zeros(0, np.float32)
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def draw(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=dims).astype(np.float32)


def settings(**more: Any) -> dict[str, Any]:
    found = {"topk": 4, "use_pre_softmax": 0, "num_groups": -1, "group_topk": -1, "scaling_factor": 2.5}
    return {**found, "score_function": 0, "compute_aux_scores": 0, "routing_map_format": 0, **more}


def of_gradient(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("num_groups", "group_topk")}


def scored(logits: Any, kind: int) -> Any:
    if kind == 0:
        return jax.nn.sigmoid(logits)
    return jax.nn.softmax(logits, -1) if kind == 1 else jnp.sqrt(jax.nn.softplus(logits))


def best(scores: Any, count: int) -> Any:
    """The largest of each row, the first of equal ones."""
    order = np.argsort(-np.asarray(scores), -1, kind="stable")[..., :count]
    found = np.zeros(np.shape(scores), bool)
    np.put_along_axis(found, order, True, -1)
    return found


def marks(logits: Any, bias: Any, given: dict[str, Any]) -> Any:
    kind, count, groups = given["score_function"], given["topk"], given["num_groups"]
    scores = np.asarray(logits if kind == 1 and not given["use_pre_softmax"] else scored(logits, kind))
    if len(bias) and kind != 1:
        scores = scores + bias
    if groups > 0:
        each = scores.reshape(len(logits), groups, -1)
        sums = np.sort(each, -1)[..., -(count // given["group_topk"]) :].sum(-1)
        scores = np.where(best(sums, given["group_topk"])[..., None], each, -np.inf).reshape(scores.shape)
    return best(scores, count)


def passed_on(logits: Any, is_chosen: Any, given: dict[str, Any]) -> Any:
    kind = given["score_function"]
    if kind == 1 and not given["use_pre_softmax"]:
        found = jax.nn.softmax(jnp.where(is_chosen, logits, -jnp.inf), -1)
    else:
        found = jnp.where(is_chosen, scored(logits, kind), 0)
    if kind != 1 and given["topk"] > 1:
        found = found / found.sum(-1, keepdims=True)
    return found * given["scaling_factor"]


@pytest.mark.wide(8)
@pytest.mark.parametrize("bits", [0, 1])
@pytest.mark.parametrize(
    "more",
    [
        {"score_function": 0},
        {"score_function": 0, "topk": 1},
        {"score_function": 0, "num_groups": 4, "group_topk": 2},
        {"score_function": 1},
        {"score_function": 1, "use_pre_softmax": 1},
        {"score_function": 2},
    ],
)
@pytest.mark.parametrize("is_biased", [False, True])
def test_choice_and_gradient(more: dict[str, Any], is_biased: bool, bits: int) -> None:
    given = settings(**more, routing_map_format=bits)
    logits, bias, weights = (
        draw(TOKENS, EXPERTS),
        draw(EXPERTS, seed=1) if is_biased else NO_BIAS,
        draw(TOKENS, EXPERTS, seed=2),
    )
    logits[:, 3] = logits[:, 5]
    is_chosen = marks(logits, bias, given)
    wanted = np.packbits(is_chosen, -1, bitorder="little") if bits else is_chosen
    form = f"u8[{TOKENS},2]" if bits else f"pred[{TOKENS},{EXPERTS}]"
    matrix = f"f32[{TOKENS},{EXPERTS}]"
    found, chosen, kept = run(FORWARD, [matrix, form, matrix], [logits, bias], given)
    np.testing.assert_array_equal(chosen, wanted)
    want, pull = jax.vjp(lambda logits: passed_on(logits, is_chosen, given), logits)
    np.testing.assert_allclose(found, want, **CLOSE)
    operands = [chosen, kept, weights]
    (found,) = run(BACKWARD, [matrix], operands, of_gradient(given))
    np.testing.assert_allclose(found, pull(jnp.asarray(weights))[0], **CLOSE)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_scores_of_the_loss(kind: int) -> None:
    given = settings(score_function=kind, compute_aux_scores=1)
    logits, weights = draw(2, 5, EXPERTS), draw(2, 5, EXPERTS, seed=2)

    def wanted(logits: Any) -> Any:
        scores = scored(logits, kind)
        return scores / scores.sum(-1, keepdims=True)

    cube = f"f32[2,5,{EXPERTS}]"
    found, chosen, kept = run(FORWARD, [cube, f"pred[2,5,{EXPERTS}]", cube], [logits, NO_BIAS], given)
    want, pull = jax.vjp(wanted, logits)
    np.testing.assert_allclose(found, want, **CLOSE)
    np.testing.assert_array_equal(chosen, best(want, 4))
    (found,) = run(BACKWARD, [cube], [chosen, kept, weights], of_gradient(given))
    np.testing.assert_allclose(found, pull(jnp.asarray(weights))[0], **CLOSE)


def test_loss() -> None:
    scores, tokens = np.abs(draw(TOKENS, EXPERTS)), np.arange(EXPERTS, dtype=np.int32)
    want = 0.1 * EXPERTS / (4 * TOKENS**2) * (scores.sum(0) * tokens).sum()
    found, kept = run(
        "te_fused_moe_aux_loss_forward_ffi", ["f32[]", "f32[2]"], [scores, tokens], {"topk": 4, "coeff": 0.1}
    )
    np.testing.assert_allclose(found, want, rtol=1e-5)
    operands = [kept, tokens, np.float32(3)]
    (found,) = run("te_fused_moe_aux_loss_backward_ffi", [f"f32[{TOKENS},{EXPERTS}]"], operands, {})
    wanted = np.broadcast_to(3 * 0.1 * EXPERTS / (4 * TOKENS**2) * tokens, (TOKENS, EXPERTS))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"score_function": 3}, "score function 3"),
        ({"routing_map_format": 2}, "format 2"),
        ({"num_groups": 5, "group_topk": 1}, "5 groups"),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, Any], message: str) -> None:
    matrix = f"f32[{TOKENS},{EXPERTS}]"
    with pytest.raises(UnsupportedError, match=message):
        run(FORWARD, [matrix, f"pred[{TOKENS},{EXPERTS}]", matrix], [draw(TOKENS, EXPERTS), NO_BIAS], settings(**more))
