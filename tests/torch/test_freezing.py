"""``options={"freezing": True}``: weights that the loaded program holds, and how they change after all."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from hloforge.torch import backend  # noqa: E402

nn = torch.nn


class Model(nn.Module):
    """A convolution with a batch norm, a layer whose matrix is used both ways, half a precision, and a lone result."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 4)
        self.small = nn.Parameter(torch.randn(4, dtype=torch.bfloat16))
        self.table = nn.Parameter(torch.randn(64, 128))

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.norm(self.conv(x)).mean((2, 3))
        return self.head(hidden) @ self.head.weight + self.small, self.table.relu()


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def frozen(model: Any) -> Any:
    return torch.compile(model, backend="hloforge", dynamic=False, options={"freezing": True})


def assert_same(found: Any, expected: Any) -> None:
    for each, right in zip(found, expected, strict=True):
        torch.testing.assert_close(each, right, rtol=1e-4, atol=1e-5)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graph programs that are compiled from here on."""
    made: list[Any] = []

    class Counted(backend.GraphProgram):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(backend, "GraphProgram", Counted)
    return made


def test_weights_are_no_arguments_and_their_changes_are_noticed(programs: list[Any]) -> None:
    model = Model().eval()
    with torch.no_grad():
        fast = frozen(model)
        x = torch.randn(2, 3, 8, 8)
        assert_same(fast(x), model(x))
        (program,) = programs
        assert len(program.executable.manifest.signature.parameters) == 1
        loaded = program._loaded
        assert_same(fast(2 * x), model(2 * x))
        assert program._loaded is loaded
        for change in (
            lambda: model.head.weight.mul_(2),
            lambda: model.norm.running_mean.add_(1),
            lambda: model.load_state_dict({name: 3 * value for name, value in model.state_dict().items()}),
            lambda: setattr(model.conv.weight, "data", torch.randn(4, 3, 3, 3)),
            lambda: setattr(model.head, "bias", nn.Parameter(torch.ones(4))),
        ):
            change()
            assert_same(fast(x), model(x))
        assert programs == [program]


def test_results_of_weights_alone_are_the_callers(programs: list[Any]) -> None:
    model = Model().eval()
    with torch.inference_mode():
        fast = frozen(model)
        x = torch.randn(2, 3, 8, 8)
        fast(x)[1].zero_()
        assert_same(fast(x), model(x))


def test_buffers_that_a_call_changes_are_arguments(programs: list[Any]) -> None:
    model, same = Model(), Model()
    same.load_state_dict(model.state_dict())
    with torch.no_grad():
        fast = frozen(model)
        x = torch.randn(2, 3, 8, 8)
        for _ in range(2):
            assert_same(fast(x), same(x))
        assert_same(model.buffers(), same.buffers())
    assert len(programs) == 1


@pytest.mark.slow
def test_gradients_are_those_of_weights_that_change() -> None:
    model, same = Model(), Model()
    same.load_state_dict(model.state_dict())
    fast = frozen(model)
    for _ in range(2):
        x = torch.randn(2, 3, 8, 8)
        for each, run in ((model, fast), (same, same)):
            run(x)[0].square().sum().backward()
            with torch.no_grad():
                for parameter in each.parameters():
                    parameter.sub_(0.1 * (parameter.grad if parameter.grad is not None else 0))
        assert_same(model.parameters(), same.parameters())


@pytest.mark.slow
def test_each_choice_of_sizes_has_the_weights() -> None:
    model = Model().eval()
    with torch.no_grad():
        fast = torch.compile(model, backend="hloforge", dynamic=True, options={"freezing": True})
        for size in (2, 3, 2):
            x = torch.randn(size, 3, 8, 8)
            assert_same(fast(x), model(x))
            model.head.weight.mul_(2)
