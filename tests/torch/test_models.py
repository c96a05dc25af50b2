"""Model families of PyTorch: both ways to compile them agree with eager mode, forward and in training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge.torch  # noqa: E402
from tests.torch.families import FAMILIES, CausalLm, cnn  # noqa: E402

pytree = torch.utils._pytree
QUICK = {("encoder, padded", "backend"), ("cnn", "compile")}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    # Dynamo leaves recurrent layers to eager mode unless it is told not to.
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def by_backend(model: Any, inputs: tuple[Any, ...]) -> Callable[..., Any]:
    return torch.compile(model, backend="hloforge", dynamic=False)


ROUTES: dict[str, Callable[..., Any]] = {"backend": by_backend, "compile": hloforge.torch.compile}


def assert_close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """Equal within a part of the largest element of each tensor."""
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        scale = max(1.0, float(other.detach().abs().max()))
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance * scale)


def cases() -> list[Any]:
    return [
        pytest.param(family, route, marks=() if (family, route) in QUICK else pytest.mark.slow, id=f"{family}-{route}")
        for family in FAMILIES
        for route in ROUTES
    ]


@pytest.mark.parametrize(("family", "route"), cases())
def test_inference(family: str, route: str) -> None:
    model, inputs = FAMILIES[family].make().eval(), FAMILIES[family].inputs()
    with torch.no_grad():
        assert_close(ROUTES[route](model, inputs)(*inputs), model(*inputs))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_and_updated_statistics(family: str) -> None:
    model, inputs = FAMILIES[family].make().train(), FAMILIES[family].inputs()
    twin = copy.deepcopy(model)
    found, expected = by_backend(model, inputs)(*inputs), twin(*inputs)
    assert_close(found, expected)
    weights = [torch.randn_like(leaf) for leaf in pytree.tree_leaves(expected)]
    for results in (found, expected):
        sum((w * leaf).sum() for w, leaf in zip(weights, pytree.tree_leaves(results), strict=True)).backward()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            assert_close(one.grad, other.grad, 1e-4)
    assert_close(dict(model.named_buffers()), dict(twin.named_buffers()))


@pytest.mark.slow
def test_training_statistics_without_gradients_are_updated_by_compile() -> None:
    model = cnn().train()
    twin, x = copy.deepcopy(model), torch.randn(4, 3, 16, 16)
    fast = hloforge.torch.compile(model, (x,))
    for _ in range(2):
        with torch.no_grad():
            assert_close(fast(x), twin(x))
    assert_close(dict(model.named_buffers()), dict(twin.named_buffers()))


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_a_language_model_decodes_with_a_cache_as_it_reads_a_whole_text(route: str) -> None:
    model, tokens = CausalLm().eval(), torch.randint(24, (2, 8))
    with torch.no_grad():
        whole, _ = model(tokens, model.cache(2), torch.arange(8))
        prefill = ROUTES[route](model, (tokens[:, :5], model.cache(2), torch.arange(5)))
        logits, cache = prefill(tokens[:, :5], model.cache(2), torch.arange(5))
        assert_close(logits, whole[:, :5])
        torch._dynamo.reset()
        step = ROUTES[route](model, (tokens[:, 5:6], cache, torch.tensor([5])))
        for place in (5, 6, 7):
            logits, cache = step(tokens[:, place : place + 1], cache, torch.tensor([place]))
            assert_close(logits[:, 0], whole[:, place])


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_steps_of_training_bring_the_loss_down_as_in_eager_mode(optimizer: str) -> None:
    """Adam turns the rounding of gradients that are zero into whole steps, so losses are compared, not weights."""
    model, (x,) = FAMILIES["mlp"].make(), FAMILIES["mlp"].inputs()
    twin, target = copy.deepcopy(model), torch.randn(4, 3)
    losses = []
    for each in (by_backend(model, (x,)), twin):
        step = getattr(torch.optim, optimizer)((model if each is not twin else twin).parameters(), 0.02)
        seen = []
        for _ in range(20):
            step.zero_grad()
            loss = torch.nn.functional.mse_loss(each(x), target)
            loss.backward()
            step.step()
            seen.append(loss.item())
        losses.append(torch.tensor(seen))
    assert_close(losses[0], losses[1], 1e-3)
    assert losses[0][-1] < losses[0][0]


def test_views_of_attention_that_its_decomposition_does_not_allow() -> None:
    """PyTorch's own decomposition of attention returns other strides than the operator, and fails at the view."""

    class Attention(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            heads = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).transpose(1, 2)
            return heads.reshape(2, 6, 8).view(-1, 8) * 2

    x = torch.randn(2, 2, 6, 4, generator=torch.Generator().manual_seed(0))
    exported = torch.export.export(Attention(), (x,))
    found = hloforge.torch.compile(exported)(x)
    torch.testing.assert_close(found, Attention()(x), rtol=1e-5, atol=1e-6)
