"""Gradients of recurrent layers by what the forward pass keeps, against PyTorch in f64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge.torch  # noqa: E402, F401
from hloforge.torch.recurrent_operators import one_by_one  # noqa: E402

nn, pytree = torch.nn, torch.utils._pytree
LAYERS = {
    "lstm": lambda: nn.LSTM(5, 7),
    "lstm, bidirectional": lambda: nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True),
    "lstm, without biases": lambda: nn.LSTM(5, 7, 2, bias=False),
    "lstm, projected": lambda: nn.LSTM(5, 7, 2, proj_size=3, bidirectional=True),
    "gru": lambda: nn.GRU(5, 7, batch_first=True),
    "gru, bidirectional": lambda: nn.GRU(5, 7, 2, bidirectional=True, bias=False),
    "tanh": lambda: nn.RNN(5, 7, 2, bidirectional=True),
    "relu": lambda: nn.RNN(5, 7, nonlinearity="relu", batch_first=True),
}
QUICK = {"lstm, projected", "gru, bidirectional"}
ONE = "hloforge.recurrent_layer.default"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def _states(layer: Any, rows: int) -> Any:
    """First states, which have gradients too."""
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    hidden = torch.randn(count, rows, layer.proj_size or layer.hidden_size, requires_grad=True)
    if not isinstance(layer, nn.LSTM):
        return hidden
    return hidden, torch.randn(count, rows, layer.hidden_size, requires_grad=True)


def _found(run: Any, layer: Any, x: Any, states: Any) -> list[Any]:
    """Results, and gradients of a function of all of them, for everything."""
    given = [x, *pytree.tree_leaves(states), *layer.parameters()]
    results = pytree.tree_leaves(run(x, states))
    total = sum((n + 1.0) * result.sin().sum() for n, result in enumerate(results))
    return [*results, *torch.autograd.grad(total, given)]


def _as_doubles(layer: Any, x: Any, states: Any) -> list[Any]:
    x, states = pytree.tree_map(lambda each: each.detach().double().requires_grad_(), (x, states))
    layer = layer.double()
    return _found(layer, layer, x, states)


def _agree(found: list[Any], exact: list[Any], tolerance: float) -> None:
    for one, other in zip(found, exact, strict=True):
        assert one.shape == other.shape
        scale = float(other.detach().abs().max())
        torch.testing.assert_close(one.double(), other, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LAYERS])
def test_all_gradients(name: str) -> None:
    layer = LAYERS[name]()
    x, states = torch.randn(4, 3, 5, requires_grad=True), _states(layer, 4 if LAYERS[name]().batch_first else 3)
    found = _found(torch.compile(layer, backend="hloforge", dynamic=False), layer, x, states)
    _agree(found, _as_doubles(layer, x, states), 2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types(dtype: Any) -> None:
    layer = nn.GRU(5, 7, 2, bidirectional=True).to(dtype)
    x = torch.randn(4, 3, 5, dtype=dtype, requires_grad=True)
    states = torch.randn(4, 3, 7, dtype=dtype, requires_grad=True)
    found = _found(torch.compile(layer, backend="hloforge", dynamic=False), layer, x, states)
    _agree(found, _as_doubles(layer, x, states), 1e-12 if dtype == torch.float64 else 0.05)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_autocast(kind: str) -> None:
    """The element types are eager mode's."""
    layer = getattr(nn, kind)(5, 7, 2)

    def call(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)

    x = torch.randn(4, 3, 5)
    try:
        expected = call(x)
    except RuntimeError as error:
        # PyTorch's own kernel needs AVX-512.
        pytest.skip(f"eager mode does not run it: {str(error).splitlines()[0]}")
    found = torch.compile(call, backend="hloforge", dynamic=False)(x)
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_open_sizes(kind: str) -> None:
    """Lengths and batches of one bucket; states of the reverse direction begin behind the padding's beginning."""
    layer = getattr(nn, kind)(5, 7, bidirectional=True)

    def call(x: Any, states: Any) -> Any:
        given = pytree.tree_leaves(states)
        settings = (kind.lower(), True, 1, True, False)
        return torch.ops.hloforge.recurrent(x, given, list(layer._flat_weights), *settings)

    run = torch.compile(call, backend="hloforge", dynamic=True)
    for length, rows in ((5, 3), (7, 4), (6, 3)):
        x, states = torch.randn(length, rows, 5, requires_grad=True), _states(layer, rows)
        found = _found(run, layer, x, states)
        _agree(found, _as_doubles(layer, x, states), 3e-6)
        layer.float()


def test_the_forward_pass_is_not_made_again() -> None:
    """A graph with gradients has one loop, one without keeps nothing."""
    graphs: list[Any] = []
    layer = nn.LSTM(5, 7, 2)

    def note(graph: Any, inputs: Any) -> Any:
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    from functools import partial

    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    from hloforge.torch.recurrent import keep_recurrent

    compiler = aot_autograd(
        fw_compiler=lambda g, i: _boxed(note(g, i)),
        bw_compiler=lambda g, i: _boxed(note(g, i)),
        inference_compiler=lambda g, i: _boxed(note(g, i)),
        partition_fn=partial(min_cut_rematerialization_partition),
    )

    def backend(graph: Any, inputs: Any) -> Any:
        keep_recurrent(graph)
        return compiler(graph, inputs)

    run = torch.compile(layer, backend=backend, dynamic=False)
    x = torch.randn(4, 3, 5)
    run(x)[0].sum().backward()
    with torch.no_grad():
        run(x)
    forward, backward, inference = graphs
    assert forward.count(ONE) == 2
    assert ONE not in backward and backward.count("hloforge.recurrent_layer_backward.default") == 2
    assert ONE not in inference and "hloforge.recurrent.default" in inference


def _boxed(function: Any) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(function)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_relu"])
def test_the_operators_in_pytorch(kind: str) -> None:
    """What a graph that runs in PyTorch, with ``fallback``, calls."""
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    x = torch.randn(2, 4, 3, requires_grad=True)
    states = [torch.randn(2, 2, 5, requires_grad=True) for _ in range(2 if kind == "lstm" else 1)]
    sizes = [(gates * 5, 3), (gates * 5, 5), (gates * 5,), (gates * 5,)] * 2
    weights = [torch.randn(size, requires_grad=True) for size in sizes]
    arguments = (x, states, weights, kind, True, True, True)
    torch.library.opcheck(torch.ops.hloforge.recurrent_layer, arguments, test_utils=("test_schema", "test_faketensor"))
    output, *_ = torch.ops.hloforge.recurrent_layer(*arguments)
    own = torch.autograd.grad(output.sin().sum(), [x, *states[:1], *weights])
    expected, *_ = getattr(torch, kind)(
        x, states if kind == "lstm" else states[0], weights, True, 1, 0, False, True, True
    )
    for one, other in zip(own, torch.autograd.grad(expected.sin().sum(), [x, *states[:1], *weights]), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_is_kept_is_the_same_in_pytorch(kind: str) -> None:
    """A forward graph may run in PyTorch, and its backward graph not."""
    layer = nn.LSTM(3, 5, bidirectional=True) if kind == "lstm" else nn.GRU(3, 5, bidirectional=True)
    x, states = torch.randn(4, 2, 3), [torch.randn(2, 2, 5) for _ in range(2 if kind == "lstm" else 1)]

    def call(x: Any) -> Any:
        weights = [weight.detach() for weight in layer._flat_weights]
        return torch.ops.hloforge.recurrent_layer(x, states, weights, kind, True, True, False)

    found = torch.compile(call, backend="hloforge", dynamic=False)(x)
    expected = call(x)
    assert len(found) > 8
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_layers_one_by_one() -> None:
    """The states of each layer are its own, and something happens between layers only."""
    seen: list[Any] = []

    def one(x: Any, first: list[Any], chosen: list[Any]) -> list[Any]:
        seen.append((first[0].tolist(), [float(each) for each in chosen]))
        return [x + 1, first[0] * 2]

    weights = [torch.tensor(float(n)) for n in range(4)]
    found = one_by_one(one, torch.zeros(()), [torch.tensor([1.0, 2.0])], weights, 2, lambda x: x * 10)
    assert seen == [([1.0], [0.0, 1.0]), ([2.0], [2.0, 3.0])]
    assert float(found[0]) == 11 and found[1].tolist() == [2.0, 4.0]
