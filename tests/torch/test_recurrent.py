"""Recurrent layers with projections, and with dropout between layers, against eager mode."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from tests.torch.families import Recurrent  # noqa: E402
from tests.torch.test_models import ROUTES, assert_close, by_backend  # noqa: E402

nn, pytree = torch.nn, torch.utils._pytree
KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    # Dynamo leaves recurrent layers to eager mode unless it is told not to.
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def assert_equal_gradients(model: Any, x: Any) -> None:
    """Results and gradients of the compiled module and of its copy in eager mode."""
    twin = copy.deepcopy(model)
    found, expected = by_backend(model, (x,))(x), twin(x)
    assert_close(found, expected)
    weights = [torch.randn_like(leaf) for leaf in pytree.tree_leaves(expected)]
    for results in (found, expected):
        sum((w * leaf).sum() for w, leaf in zip(weights, pytree.tree_leaves(results), strict=True)).backward()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(one.grad, other.grad, 1e-4)


@pytest.mark.parametrize("route", [pytest.param("backend"), pytest.param("compile", marks=pytest.mark.slow)])
@pytest.mark.parametrize("bidirectional", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_projections(route: str, bidirectional: bool) -> None:
    model = Recurrent(nn.LSTM, num_layers=2, proj_size=3, bidirectional=bidirectional, bias=bidirectional).eval()
    x = torch.randn(2, 5, 6)
    with torch.no_grad():
        assert_close(ROUTES[route](model, (x,))(x), model(x))


@pytest.mark.slow
@pytest.mark.parametrize("bidirectional", [False, True])
def test_gradients_of_projections(bidirectional: bool) -> None:
    model = Recurrent(nn.LSTM, num_layers=2, proj_size=3, bidirectional=bidirectional, dropout=1.0)
    assert_equal_gradients(model.train(), torch.randn(2, 5, 6))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:dropout option adds dropout")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("dropout", "training"), [(0.5, False), (0.0, True), (1.0, True)])
def test_dropout_without_chance(kind: str, route: str, dropout: float, training: bool) -> None:
    """No dropout, and of everything."""
    model = Recurrent(KINDS[kind], num_layers=3, dropout=dropout, bidirectional=kind == "gru").train(training)
    x = torch.randn(2, 5, 6)
    with torch.no_grad():
        assert_close(ROUTES[route](model, (x,))(x), model(x))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_behind_dropout_of_everything(kind: str) -> None:
    assert_equal_gradients(Recurrent(KINDS[kind], num_layers=2, dropout=1.0).train(), torch.randn(2, 5, 6))


def _copying(dropout: float) -> Any:
    """Two layers of which the first returns ones, and the second what it is given."""
    model = nn.RNN(3, 32, 2, nonlinearity="relu", dropout=dropout)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    nn.init.ones_(model.bias_ih_l0)
    nn.init.eye_(model.weight_ih_l1)
    return model.train()


@pytest.mark.parametrize("route", [pytest.param("backend"), pytest.param("compile", marks=pytest.mark.slow)])
def test_dropout_between_layers_is_drawn(route: str) -> None:
    x = torch.zeros(20, 8, 3)
    model = _copying(0.25)
    run: Callable[..., Any] = ROUTES[route](model, (x,))
    with torch.no_grad():
        (first, _), (second, _) = run(x), run(x)
    for found in (first, second):
        kept = found != 0
        torch.testing.assert_close(found[kept], torch.full_like(found[kept], 4 / 3))
        # 5,120 draws: five standard deviations.
        assert abs(float(kept.float().mean()) - 0.75) < 0.03
    assert not torch.equal(first, second)
