"""Operators that take functions, under ``torch.compile``; expected values are eager PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from torch._higher_order_ops import scan, while_loop  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

import hloforge.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def test_flex_attention_with_scores_masks_groups_and_rows_without_keys() -> None:
    """A bias that is captured, two heads a key, and a mask that leaves the first rows nothing to look at."""
    bias = torch.randn(4)
    mask = create_block_mask(lambda b, h, q, k: q >= k + 5, None, None, 20, 12, device="cpu")

    def attend(q: Any, k: Any, v: Any) -> Any:
        changed = flex_attention(
            q, k, v, lambda s, b, h, i, j: torch.tanh(s) * 5 + bias[h] - (i - j) * 0.1, mask, 0.3, enable_gqa=True
        )
        return changed, flex_attention(q, k, v, enable_gqa=True)

    given = torch.randn(2, 4, 20, 8), torch.randn(2, 2, 12, 8), torch.randn(2, 2, 12, 6)
    expected = attend(*given)
    found = torch.compile(attend, backend="hloforge")(*given)
    assert (expected[0][:, :, :5] == 0).all()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_loop_that_counts_with_a_number_of_python_returns_one() -> None:
    def powers(x: Any) -> Any:
        return while_loop(lambda n, a: n < 5, lambda n, a: (n + 1, a * 1.5), (0, x))

    x = torch.randn(3)
    count, last = torch.compile(powers, backend="hloforge")(x)
    assert isinstance(count, int) and count == 5
    torch.testing.assert_close(last, x * 1.5**5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_loops_whose_elements_say_how_many_turns_they_make(dynamic: bool) -> None:
    """Judged by Python's own loop. The second call makes more turns than a program keeps at first, the third fewer."""

    def grow(x: Any, w: Any, end: Any) -> Any:
        start = torch.zeros((), dtype=torch.int64), x
        return while_loop(lambda n, y: y.norm() < end, lambda n, y: (n + 1, torch.tanh(y @ w) * 0.1 + y * 1.05), start)

    def unrolled(x: Any, w: Any, end: Any) -> Any:
        n = 0
        while x.norm() < end:
            n, x = n + 1, torch.tanh(x @ w) * 0.1 + x * 1.05
        return torch.tensor(n), x

    fast = torch.compile(grow, backend="hloforge", fullgraph=True, dynamic=dynamic)
    counts = []
    for rows, end in ((3, 6.0), (3, 40.0), (2, 3.0)):
        x, w = torch.randn(rows, 4), torch.randn(4, 4)
        results = []
        for function in (fast, unrolled):
            given = x.clone().requires_grad_(), w.clone().requires_grad_()
            number, last = function(*given, torch.tensor(end))
            last.square().sum().backward()
            results.append((number, last.detach(), *(each.grad for each in given)))
        counts.append(int(results[1][0]))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    assert counts[1] > 32 > max(counts[0], counts[2]) > 0


_WEIGHTS = torch.linspace(-0.4, 0.5, 16).reshape(4, 4)


def _step(y: Any) -> Any:
    return torch.tanh(y @ _WEIGHTS) * 0.1 + y * 1.05


def _by_operators(kind: str, end: float) -> Any:
    """A loop whose elements say how many turns it makes, within a branch, a map, a loop, or loops of loops."""

    def loop(x: Any) -> Any:
        return while_loop(lambda n, y: y.norm() < end, lambda n, y: (n + 1, _step(y)), (torch.tensor(0), x))[1]

    def thrice(inner: Any) -> Any:
        return lambda x: while_loop(lambda m, z: m < 3, lambda m, z: (m + 1, inner(z) * 0.7), (torch.tensor(0), x))[1]

    return {
        "branch": lambda x: torch.cond(x.sum() > 0, lambda x: loop(x), lambda x: loop(x * 0.5) * 3, (x,)),
        "map": lambda x: torch._higher_order_ops.map(loop, x),
        "loop": thrice(loop),
        "loops of loops": thrice(thrice(loop)),
    }[kind]


def _in_python(kind: str, end: float) -> Any:
    def loop(x: Any) -> Any:
        while x.norm() < end:
            x = _step(x)
        return x

    def thrice(inner: Any) -> Any:
        def turned(x: Any) -> Any:
            for _ in range(3):
                x = inner(x) * 0.7
            return x

        return turned

    return {
        "branch": lambda x: loop(x) if x.sum() > 0 else loop(x * 0.5) * 3,
        "map": lambda x: torch.stack([loop(row) for row in x]),
        "loop": thrice(loop),
        "loops of loops": thrice(thrice(loop)),
    }[kind]


@pytest.mark.wide(4)
@pytest.mark.parametrize("kind", ["branch", "map", "loop", "loops of loops"])
def test_gradients_of_loops_within_other_control_flow(kind: str) -> None:
    """The second end takes more turns than a program keeps at first."""
    for end in (6.0, 60.0):
        fast = torch.compile(_by_operators(kind, end), backend="hloforge", fullgraph=True, dynamic=False)
        slow = _in_python(kind, end)
        for sign in (1, -1):
            given = [(torch.linspace(0.2, 1.5, 12).reshape(3, 4) * sign).requires_grad_() for _ in range(2)]
            found, expected = fast(given[0]), slow(given[1])
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            for result in (found, expected):
                result.square().sum().backward()
            torch.testing.assert_close(given[0].grad, given[1].grad, rtol=1e-3, atol=1e-3)


def test_loops_over_rows_that_elements_choose() -> None:
    """A scan over a number of rows that is no constant, and a loop that carries such rows."""

    class Chosen(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            rows = x[x[:, 0] > 0]
            last, sums = scan(lambda carry, row: (carry * 0.5 + row, carry + row), torch.ones(3), rows)
            _, turned = while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2 + 1), (torch.tensor(0), rows))
            return last, sums, turned

    x = torch.randn(9, 3)
    program = hloforge.torch.compile(Chosen(), (x,), assume_nonempty=True)  # torch.scan asks
    for given in (x, -x, x.abs()):
        rows, carry, sums = given[given[:, 0] > 0], torch.ones(3), []
        for row in rows:
            carry, total = carry * 0.5 + row, carry + row
            sums.append(total)
        torch.testing.assert_close(program(given), (carry, torch.stack(sums), rows * 8 + 7))


def test_checked_operators_take_tokens_that_a_call_does_not_bring() -> None:
    """PyTorch threads a token through operators that raise for some elements, as Cholesky factors."""

    def factor(a: Any, b: Any) -> Any:
        return torch.linalg.cholesky(a) @ b

    a, b = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.randn(2, 2)
    torch.testing.assert_close(torch.compile(factor, backend="hloforge")(a, b), factor(a, b))


def test_second_derivatives_by_transforms() -> None:
    """The residual of a differential equation, whose graph has numbers where tensors were."""
    from torch.func import grad, vmap

    weights = torch.randn(8, generator=torch.Generator().manual_seed(0))

    def solution(x: Any, t: Any) -> Any:
        return torch.tanh(torch.stack([x, t]).sum() * weights).sum()

    def residual(x: Any, t: Any) -> Any:
        first, second = grad(solution, 0)(x, t), grad(grad(solution, 0), 0)(x, t)
        return grad(solution, 1)(x, t) + solution(x, t) * first - 0.01 * second

    x, t = torch.linspace(-1, 1, 5), torch.linspace(0, 1, 5)
    found = torch.compile(vmap(residual), backend="hloforge", dynamic=False)(x, t)
    torch.testing.assert_close(found, vmap(residual)(x, t))
