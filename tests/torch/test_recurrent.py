"""Recurrent layers with projections, and with dropout between layers, against eager mode."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge.torch  # noqa: E402
from hloforge.torch.recurrent import keep_recurrent  # noqa: E402
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
    _assert_three_quarters_are_kept(first)
    _assert_three_quarters_are_kept(second)
    assert not torch.equal(first, second)


def _assert_three_quarters_are_kept(found: Any) -> None:
    kept = found != 0
    torch.testing.assert_close(found[kept], torch.full_like(found[kept], 4 / 3))
    # At least 2,560 draws: five standard deviations.
    assert abs(float(kept.float().mean()) - 0.75) < 0.043


def _by_names(model: Any, x: Any) -> Any:
    settings = {"has_biases": True, "num_layers": 2, "dropout": 0.25, "train": True}
    states, others = torch.zeros(2, 8, 32), {"bidirectional": False, "batch_first": False}
    return torch.rnn_relu(x, states, model._flat_weights, **settings, **others)[0]


def _by_operator(model: Any, x: Any) -> Any:
    states, settings = torch.zeros(2, 8, 32), (True, 2, 0.25, True, False, False)
    return torch.ops.aten.rnn_relu.input(x, states, model._flat_weights, *settings)[0]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda model, x: model(x)[0], {"fallback": True}),
        pytest.param(_by_names, {}, marks=pytest.mark.slow),
        pytest.param(_by_operator, {}, marks=pytest.mark.slow),
    ],
    ids=["fallback", "names", "operator"],
)
def test_dropout_is_drawn_however_the_layer_is_called(function: Any, options: dict[str, Any]) -> None:
    model = _copying(0.25)
    run = torch.compile(lambda x: function(model, x), backend="hloforge", dynamic=False, options=options)
    with torch.no_grad():
        _assert_three_quarters_are_kept(run(torch.zeros(20, 8, 3)))


@pytest.mark.slow
def test_a_checkpointed_layer_draws_the_same_again() -> None:
    """The second layer's gradient is the first's output behind the dropout of the forward pass."""
    model = _copying(0.25)

    def run(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(lambda x: model(x)[0], x, use_reentrant=False)

    found = torch.compile(run, backend="hloforge", dynamic=False)(torch.zeros(20, 8, 3, requires_grad=True))
    _assert_three_quarters_are_kept(found)
    found.sum().backward()
    active = (found != 0).flatten(0, 1).float()
    assert_close(model.weight_ih_l1.grad, active.T @ found.detach().flatten(0, 1), 1e-4)


class _Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = _copying(0.25)

    def forward(self, data: Any, sizes: Any, states: Any) -> Any:
        return torch.rnn_relu(data, sizes, states, self.layer._flat_weights, True, 2, 0.25, True, False)


def test_packed_sequences_in_a_graph() -> None:
    """The call is replaced; PyTorch's own function of one layer computes what comes of it."""
    graph = torch.fx.symbolic_trace(_Packed())
    keep_recurrent(graph)
    assert all(node.target is not torch.rnn_relu for node in graph.graph.nodes)
    found, states = graph(torch.zeros(160, 3), torch.full((20,), 8), torch.zeros(2, 8, 32))
    _assert_three_quarters_are_kept(found)
    assert states.shape == (2, 8, 32)


def test_the_gradient_of_the_operator_in_pytorch() -> None:
    """What a graph that runs in PyTorch, with ``fallback``, calls."""
    layer = nn.LSTM(3, 4, 2, bidirectional=True)
    x, states = torch.randn(5, 2, 3), [torch.randn(4, 2, 4), torch.randn(4, 2, 4)]
    leaves = [x, *states, *(weight.detach() for weight in layer._flat_weights)]
    results = []
    for function in (torch.ops.hloforge.recurrent, None):
        given = [leaf.clone().requires_grad_() for leaf in leaves]
        if function is None:
            outputs = torch.lstm(given[0], given[1:3], given[3:], True, 2, 0.0, False, True, False)
        else:
            outputs = function(given[0], given[1:3], given[3:], "lstm", True, 2, True, False)
        results.append(torch.autograd.grad(sum(output.sin().sum() for output in outputs), given))
    for one, other in zip(*results, strict=True):
        assert_close(one, other)


def test_settings_that_dynamo_takes_for_numbers_that_may_change() -> None:
    """``dynamic=True`` makes a symbol of the dropout; a new value is another graph."""
    model = _copying(0.25)
    run = torch.compile(lambda x: model(x)[0], backend="hloforge", dynamic=True)
    with torch.no_grad():
        _assert_three_quarters_are_kept(run(torch.zeros(20, 8, 3)))
        model.dropout = 0.0
        x = torch.randn(20, 8, 3)
        assert_close(run(x), model(x)[0], 1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sequences_of_dynamic_length_are_exported(kind: str) -> None:
    """``torch.export`` alone takes the length for a constant."""
    model = getattr(nn, kind)(5, 7, 2, batch_first=True, bidirectional=True).eval()
    sizes = {"input": {0: torch.export.Dim("rows", min=2, max=8), 1: torch.export.Dim("length", min=2, max=16)}}
    program = hloforge.torch.compile(model, (torch.randn(3, 6, 5),), dynamic_shapes=sizes, buckets="all")
    with torch.no_grad():
        for rows, length in ((3, 6), (4, 7), (3, 8), (8, 16)):
            x = torch.randn(rows, length, 5)
            for found, expected in zip(pytree.tree_leaves(program(x)), pytree.tree_leaves(model(x)), strict=True):
                assert_close(found, expected, 1e-5)
    assert len([bucket for bucket in program.session.buckets if bucket.is_compiled]) == 2
