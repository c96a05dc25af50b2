"""Graphs that change their inputs, such as steps of optimizers, write into these where they lie."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from hloforge.torch.graph_program import GraphProgram  # noqa: E402

# Elements from which on a result may lie in an argument.
LARGE = 160


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[GraphProgram]:
    """All programs that are made."""
    made: list[GraphProgram] = []
    init = GraphProgram.__init__

    def noting(self: Any, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(GraphProgram, "__init__", noting)
    return made


def _inside(programs: list[GraphProgram]) -> int:
    """How many results lie in arguments."""
    return sum(len(program._loaded.session.overwrites) for program in programs if program._loaded is not None)


def _agree(function: Callable[..., Any], *arguments: Any, calls: int = 3) -> list[Any]:
    """Results and arguments after some calls are eager mode's."""
    given, twins = copy.deepcopy(arguments), copy.deepcopy(arguments)
    compiled = torch.compile(function, backend="hloforge", dynamic=False)
    for _ in range(calls):
        with torch.no_grad():
            found, expected = compiled(*given), function(*twins)
        torch.testing.assert_close((found, given), (expected, twins))
    return list(given)


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_steps_of_optimizers(name: str, programs: list[GraphProgram]) -> None:
    options = {"momentum": 0.9} if name == "SGD" else {}
    models = [torch.nn.Linear(LARGE, LARGE) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [getattr(torch.optim, name)(model.parameters(), 1e-2, **options) for model in models]
    steps = [torch.compile(lambda: optimizers[0].step(), backend="hloforge"), optimizers[1].step]
    places = [p.data_ptr() for p in models[0].parameters()]
    for _ in range(4):
        x = torch.randn(4, LARGE)
        for model, step in zip(models, steps, strict=True):
            model(x).square().sum().backward()
            step()
            model.zero_grad()
    assert [p.data_ptr() for p in models[0].parameters()] == places
    torch.testing.assert_close(models[0].state_dict(), models[1].state_dict())
    assert _inside(programs) >= (2 if name == "SGD" else 3)


def test_a_new_value_that_is_returned_and_read(programs: list[GraphProgram]) -> None:
    def function(x: Any, y: Any) -> Any:
        old = x.sum()
        x.mul_(0.5).add_(y.roll(1, 0))
        y.copy_(x.T)
        return old, x + y

    _agree(function, torch.randn(LARGE, LARGE), torch.randn(LARGE, LARGE))
    assert _inside(programs) > 0


def test_inputs_that_exchange_their_values() -> None:
    def function(x: Any, y: Any) -> None:
        z = x.clone()
        x.copy_(y)
        y.copy_(z + 1)

    _agree(function, torch.randn(LARGE, LARGE), torch.randn(LARGE, LARGE))


def test_one_value_for_two_inputs() -> None:
    def function(x: Any, y: Any, z: Any) -> None:
        value = z @ z
        x.copy_(value)
        y.copy_(value)

    _agree(function, *(torch.randn(LARGE, LARGE) / 16 for _ in range(3)))


def test_views_of_one_memory() -> None:
    """A part that is changed, beside the whole that is read."""

    def function(x: Any) -> Any:
        part = x[: LARGE // 2]
        return change(part, x)

    def change(part: Any, whole: Any) -> Any:
        part.add_(whole[LARGE // 2 :])
        return whole.sum(0)

    _agree(function, torch.randn(LARGE, LARGE))
    compiled = torch.compile(change, backend="hloforge", dynamic=False)
    one, other = torch.randn(2, LARGE, LARGE).unbind()
    other.copy_(one)
    with torch.no_grad():
        torch.testing.assert_close(compiled(one[: LARGE // 2], one), change(other[: LARGE // 2], other))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("order", ["transposed", "strided", "small"])
def test_other_orders_and_sizes(order: str) -> None:
    x, y = torch.randn(2 * LARGE, LARGE), torch.randn(LARGE, LARGE)
    given = {"transposed": x[:LARGE].T, "strided": x[::2], "small": x[:4]}[order]

    def function(x: Any, y: Any) -> Any:
        x.add_(y[: len(x)]).tanh_()
        return x.sum()

    twin = given.clone()
    compiled = torch.compile(function, backend="hloforge", dynamic=False)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(compiled(given, y), function(twin, y))
        torch.testing.assert_close(given, twin)
