"""Tensors that are handed over as they are, and the threads that PyTorch computes with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from hloforge.runtime.native import team  # noqa: E402
from hloforge.runtime.session.session import Session  # noqa: E402
from hloforge.torch.direct import pytorch  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each call was given tensors."""
    calls: list[bool] = []
    write = Session.write

    def noted(self: Session, arguments: Any, results: Any, *others: Any) -> bool:
        calls.append(all(isinstance(each, torch.Tensor) for each in (*arguments, *results)))
        return write(self, arguments, results, *others)

    monkeypatch.setattr(Session, "write", noted)
    yield calls


@pytest.fixture
def threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_tensors_like_those_of_the_first_call_are_no_arrays(given: list[bool]) -> None:
    f = torch.compile(lambda x, y: (x * 2 + y, (x + y).T), backend="hloforge", dynamic=False)
    for number in range(3):
        x, y = torch.full((3, 4), float(number)), torch.ones(3, 4)
        one, two = f(x, y)
        assert (one == 2 * number + 1).all() and (two == number + 1).all()
        assert one.stride() == (4, 1) and two.stride() == (1, 4)
    assert given == [True] * 3


def test_gradients_and_modes(given: list[bool]) -> None:
    model = torch.nn.Linear(4, 4)
    compiled = torch.compile(model, backend="hloforge", dynamic=False)
    for _ in range(2):
        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(x), model(x))
        model.zero_grad()
        compiled(x).sum().backward()
        torch.testing.assert_close(model.weight.grad, x.sum(0).expand(4, 4))
        with torch.inference_mode():
            torch.testing.assert_close(compiled(x), model(x))
    assert all(given)


def test_what_programs_cannot_read_as_it_lies(given: list[bool]) -> None:
    f = torch.compile(lambda x: x * 2 + 1, backend="hloforge", dynamic=False)
    x = torch.randn(3, 4)
    odd = torch.frombuffer(bytearray(b"-" + x.numpy().tobytes()), dtype=torch.float32, offset=1).view(3, 4)
    for tensor in (x, odd, x):
        torch.testing.assert_close(f(tensor), x * 2 + 1)
    assert given[0] and given[-1]
    g = torch.compile(lambda x, y: x * 2 + y, backend="hloforge", dynamic=False)
    empty = torch.empty(0, 4)
    assert g(empty, empty).shape == (0, 4)


def test_the_threads_of_pytorch_help(threads: Any) -> None:
    """As many as it is to use now, in calls from several of Python's threads, and ours where it has one."""
    f = torch.compile(lambda x, y: (x @ y).sin().sum(0) + x, backend="hloforge", dynamic=False)
    x, y = torch.randn(320, 320), torch.randn(320, 320)
    threads(1)
    wanted = f(x, y)
    torch.testing.assert_close(wanted, (x @ y).sin().sum(0) + x, rtol=1e-3, atol=1e-3)

    def call() -> None:
        for _ in range(10):
            assert torch.equal(f(x, y), wanted)

    for number in (1, 2, 3):
        threads(number)
        call()
    failed: list[Any] = []
    hook, threading.excepthook = threading.excepthook, failed.append
    several = [threading.Thread(target=call) for _ in range(3)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    threading.excepthook = hook
    assert not failed


def test_a_child_process_does_without_them(threads: Any) -> None:
    """GCC's OpenMP would wait for threads that the child does not have."""
    threads(2)
    assert pytorch().parallel or "libgomp" not in torch.__config__.show()
    memory = team.team().memory
    usable = np.array(memory)
    team.team()._forget()
    try:
        f = torch.compile(lambda x: x @ x, backend="hloforge", dynamic=False)
        x = torch.eye(256)
        assert torch.equal(f(x), x) and torch.equal(f(x), x)
    finally:
        memory[:] = usable
