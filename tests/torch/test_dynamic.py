"""One program for a range of sizes under ``torch.compile(dynamic=True)``, with whatever lies in the padding.

Expected values, gradients and strides are those of eager PyTorch.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from hloforge.torch import backend, graph_program  # noqa: E402
from hloforge.torch.open_sizes import OpenSizes, end_of  # noqa: E402

pytestmark = [pytest.mark.usefixtures("fresh_dynamo"), pytest.mark.wide(3)]


@pytest.fixture(autouse=True)
def recurrent_layers_in_graphs() -> Iterator[None]:
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


# Padding of integers are positions in tables.
_INTEGER = 1


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graph programs that are compiled from here on, which get NaN in all padding."""
    made: list[Any] = []

    class Counted(backend.GraphProgram):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    def padded(tensor: Any, like: Any) -> Any:
        found = real(tensor, like)
        if found is tensor:
            return found
        hidden = torch.full_like(found, torch.nan if found.is_floating_point() else _INTEGER)
        hidden[tuple(slice(0, size) for size in tensor.shape)] = tensor.detach()
        return hidden

    real = graph_program.padded
    monkeypatch.setattr(backend, "GraphProgram", Counted)
    monkeypatch.setattr(graph_program, "padded", padded)
    return made


def _agree(model: Any, calls: Sequence[tuple[Any, ...]], *, backward: bool, in_buckets: bool = True) -> None:
    """Calls of one compiled model give what eager mode gives, and so do the gradients."""
    twin = copy.deepcopy(model)
    fast = torch.compile(model, backend="hloforge", dynamic=True)
    with warnings.catch_warnings():
        if in_buckets:
            warnings.filterwarnings("error", message=".*graph is compiled for ")
        for call in calls:
            given = [[_leaf(each, backward) for each in call] for _ in range(2)]
            with torch.set_grad_enabled(backward):
                found, expected = (_flat(m(*g)) for m, g in zip((fast, twin), given, strict=True))
            for one, other in zip(found, expected, strict=True):
                _assert_same(one, other)
                assert not isinstance(one, torch.Tensor) or one.stride() == other.stride()
            if backward:
                for results in (found, expected):
                    sum((r * r).sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad).backward()
                for one, other in zip([*model.parameters(), *given[0]], [*twin.parameters(), *given[1]], strict=True):
                    if isinstance(other, torch.Tensor) and other.grad is not None:
                        _assert_same(one.grad, other.grad)


def _leaf(value: Any, backward: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone().requires_grad_(backward and value.is_floating_point())


def _flat(results: Any) -> list[Any]:
    leaves: list[Any] = torch.utils._pytree.tree_leaves(results)
    return leaves


def _assert_same(found: Any, expected: Any) -> None:
    if not isinstance(expected, torch.Tensor):
        assert found == expected and type(found) is type(expected)
        return
    scale = max(1.0, float(expected.detach().abs().max())) if expected.numel() else 1.0
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5 * scale)


class _Language(nn.Module):
    """A decoder with its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 30)

    def forward(self, tokens: Any) -> Any:
        length = tokens.shape[1]
        mask = torch.triu(torch.full((length, length), -torch.inf), 1)
        x = self.head(self.layer(self.words(tokens) + self.places(torch.arange(length)), src_mask=mask))
        return x, functional.cross_entropy(x[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class _Gates(nn.Module):
    """A recurrent layer as the operator that Dynamo's graphs keep for it."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.GRU(6, 8, 2, bidirectional=True)._flat_weights)

    def forward(self, x: Any, state: Any) -> Any:
        return torch.ops.hloforge.recurrent(x, [state], list(self.weights), "gru", True, 2, True, False)


class _Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


def _rows(*sizes: int) -> list[tuple[Any, ...]]:
    return [(torch.randn(size, 8),) for size in sizes]


def _images(*sizes: tuple[int, int, int]) -> list[tuple[Any, ...]]:
    return [(torch.randn(batch, 3, high, wide),) for batch, high, wide in sizes]


def _tokens(*sizes: tuple[int, int]) -> list[tuple[Any, ...]]:
    return [(torch.randint(0, 30, size),) for size in sizes]


def _convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def _up_and_down() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose2d(8, 3, 2, 2), nn.AvgPool2d(2)
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Sequence[tuple[Any, ...]]], int]] = {
    # What makes it, calls, and how many buckets they need.
    "dense": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)),
        lambda: _rows(5, 6, 7, 3, 11, 8),
        3,
    ),
    "over rows": (lambda: _Of(lambda x: (x.softmax(0) * x.cumsum(0), x.std(0))), lambda: _rows(5, 7, 11, 13), 2),
    "a language model": (_Language, lambda: _tokens((3, 5), (4, 7), (3, 8), (5, 9), (7, 12)), 2),
    "convolutions": (_convolutions, lambda: _images((5, 16, 18), (6, 12, 17), (7, 20, 14), (6, 30, 11)), 2),
    "flattened images": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.MaxPool2d(2), nn.Flatten()),
        lambda: _images((5, 8, 8), (6, 8, 8), (7, 8, 8)),
        1,
    ),
    "transposed convolutions": (_up_and_down, lambda: _images((5, 8, 8), (6, 8, 8), (7, 8, 8)), 1),
    "bags": (
        lambda: nn.EmbeddingBag(30, 4, mode="mean", padding_idx=2),
        lambda: _tokens((3, 5), (4, 7), (4, 6)),
        1,
    ),
    "joined": (
        lambda: _Of(lambda x, y: (torch.cat([x, y]).cumsum(0), x.sum(0) + y.mean(0), y.sort(0)[0])),
        lambda: [(torch.randn(a, 4), torch.randn(b, 4)) for a, b in ((3, 5), (4, 7), (2, 6))],
        2,
    ),
    "recurrent": (
        lambda: nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True),
        lambda: [(torch.randn(rows, length, 6),) for rows, length in ((3, 5), (4, 7), (3, 8))],
        1,
    ),
    "of gates": (
        _Gates,
        lambda: [(torch.randn(length, rows, 6), torch.randn(4, rows, 8)) for rows, length in ((3, 5), (4, 7), (3, 8))],
        1,
    ),
    "written into": (
        lambda: _Of(lambda x: torch.select_scatter(torch.slice_scatter(x, x[1:-1] * 2, 0, 2), x[0] * 3, 0, -1)),
        lambda: _rows(5, 7, 6),
        1,
    ),
}


class _Windows(nn.Module):
    """Attention within windows; PyTorch says ``s0//(s0//4)`` for 4."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        rows, length, size = x.shape
        parts = x.view(rows, length // 4, 4, size).reshape(-1, 4, size)
        found = (parts @ parts.transpose(1, 2)).softmax(-1) @ parts
        return self.layer(found.view(rows, length // 4, 4, size).reshape(rows, length, size))


def _pooled(x: Any) -> Any:
    pool = functional.adaptive_avg_pool2d
    return (
        *(pool(x, (3, 2)), pool(x, (None, 1)), functional.adaptive_avg_pool1d(x.flatten(2), 1)),
        functional.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    )


def _of_diagonals(x: Any) -> Any:
    squares = (x @ x.transpose(1, 2)).clone()
    squares.diagonal(dim1=1, dim2=2).zero_()
    above = x.clone()
    above.diagonal(1, 1, 2).mul_(3)
    return squares, above, x.diagonal(-1, 1, 2), torch.diag_embed(x[..., 0]), torch.trace(x[0])


def _written(x: Any) -> Any:
    found = x * 1.0
    found[:, 1:] += x[:, :-1]
    found[:, -2:] = 0
    found[:, 1:-1] *= 2
    return found


def _ranked(x: Any) -> Any:
    whole = (x * 2).long()
    return (
        x.median(1),
        x.median(),
        x.kthvalue(2, 1),
        whole.mode(1).values,
        whole.median(1).values,
        x.nanmedian(1).values,
    )


def _grown(x: Any) -> Any:
    return (
        functional.interpolate(x, scale_factor=1.5),
        functional.interpolate(x, scale_factor=2, mode="bilinear"),
        functional.pad(x, (2, 1, 0, 3), mode="replicate"),
    )


def _sequences(*sizes: tuple[int, int]) -> list[tuple[Any, ...]]:
    return [(torch.randn(*size, 8),) for size in sizes]


MODELS |= {
    "windows": (_Windows, lambda: _sequences((3, 12), (4, 16), (3, 20)), 2),
    "pixels": (
        lambda: nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 8, 3, padding=1), nn.PixelShuffle(2)),
        lambda: _images((5, 12, 10), (6, 14, 16)),
        1,
    ),
    "pools": (lambda: _Of(_pooled), lambda: _images((5, 11, 9), (6, 14, 16), (5, 10, 13)), 1),
    "diagonals": (lambda: _Of(_of_diagonals), lambda: _sequences((3, 5), (4, 7)), 1),
    "written to the end": (lambda: _Of(_written), lambda: _sequences((3, 5), (4, 7)), 1),
    "ranks": (lambda: _Of(_ranked), lambda: _sequences((3, 5), (4, 8), (3, 7)), 1),
    "distances": (
        lambda: _Of(lambda x: (torch.cdist(x, x * 2 + 1), torch.cdist(x, x[:, 1:] + 3, p=1))),
        lambda: _sequences((3, 5), (4, 7)),
        1,
    ),
    "grown": (lambda: _Of(_grown), lambda: _images((5, 10, 9), (6, 14, 16)), 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str, programs: list[Any]) -> None:
    model, calls, buckets = MODELS[name]
    _agree(model().eval(), calls(), backward=False)
    assert len(programs) == buckets


# Of the recurrent model half a minute.
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "recurrent")) for n in MODELS])
def test_gradients(name: str, programs: list[Any]) -> None:
    model, calls, buckets = MODELS[name]
    _agree(model(), calls(), backward=True)
    # Dynamo makes one graph for each length of an LSTM's sequence if there are gradients.
    assert name == "recurrent" or len(programs) == 2 * buckets


def test_attention_by_functions_sees_no_padding(programs: list[Any]) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def attended(q: Any, k: Any) -> Any:
        bias = k[:, 0, :, 0].contiguous()
        return flex_attention(
            q, k, k * 2, score_mod=lambda score, b, h, i, j: torch.where(i >= j, score + bias[b, j], 0)
        )

    calls = [
        (torch.randn(rows, 2, length, 4), torch.randn(rows, 2, length + 2, 4)) for rows, length in ((3, 5), (4, 6))
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without")
        _agree(_Of(attended), calls, backward=False)
    assert len(programs) == 1


def test_results_of_one_row_have_the_strides_of_one(programs: list[Any]) -> None:
    fast = torch.compile(lambda x: x * 2, backend="hloforge", dynamic=True)
    for length in (5, 6):
        assert fast(torch.randn(1, length, 8)).stride() == (length * 8, 8, 1)
    assert len(programs) == 1


def test_what_shares_memory_numbers_and_other_orders_of_memory(programs: list[Any]) -> None:
    def views(x: Any) -> Any:
        return x.t(), x[1:], x.reshape(-1), x.shape[0] * 2, x.unsqueeze(0), (x * 2).t()

    for x in (torch.randn(5, 8), torch.randn(8, 7).t(), torch.randn(14, 16)[::2, ::2]):
        _agree(_Of(views), [(x,), (torch.cat([x, x])[:6],)], backward=False)
    assert len(programs) == 2


def test_a_number_that_sizes_follow_from(programs: list[Any]) -> None:
    def counted(x: Any, n: int) -> Any:
        return x * n + torch.arange(n).sum(), torch.zeros(n)

    _agree(_Of(counted), [(torch.randn(4), n) for n in (5, 6, 7, 8)], backward=False)
    assert len(programs) == 1


def test_results_can_be_changed_in_place(programs: list[Any]) -> None:
    layer = nn.Linear(8, 4)
    fast = torch.compile(layer, backend="hloforge", dynamic=True)
    x = torch.randn(5, 8)
    found = fast(x)
    found.mul_(2)
    found.sum().backward()
    torch.testing.assert_close(layer.weight.grad, 2 * x.sum(0).expand(4, 8), rtol=1e-5, atol=1e-5)


def test_dropped_elements_are_those_of_the_forward_pass(programs: list[Any]) -> None:
    fast = torch.compile(lambda x: functional.dropout(x, 0.5), backend="hloforge", dynamic=True)
    for size in (50, 60):
        x = torch.ones(size, 10, requires_grad=True)
        found = fast(x)
        found.sum().backward()
        assert torch.equal(x.grad, found.detach()) and 0.3 < float((found > 0).float().mean()) < 0.7
    assert len(programs) == 2


def test_ends_of_buckets() -> None:
    assert [end_of(size) for size in (1, 2, 3, 5, 33, 64)] == [1, 2, 4, 8, 64, 64]
    assert [end_of(size) for size in (65, 80, 81, 112, 113, 129, 224, 288, 1000)] == [
        80,
        80,
        96,
        112,
        128,
        160,
        224,
        320,
        1024,
    ]
    assert all(
        size <= end_of(size) <= 1.25 * size + 1 and end_of(end_of(size)) == end_of(size) for size in range(65, 5000)
    )


def test_buckets_of_the_users_choice_and_none(programs: list[Any]) -> None:
    def rows(x: Any) -> Any:
        return x.softmax(0)

    for buckets, count in (([6, 30], 2), (False, 4)):
        torch._dynamo.reset()
        programs.clear()
        fast = torch.compile(rows, backend="hloforge", dynamic=True, options={"buckets": buckets})
        for size in (5, 6, 7, 25):
            x = torch.randn(size, 3)
            _assert_same(fast(x), rows(x))
        assert len(programs) == count


def test_sizes_that_come_again_get_a_program_of_their_own(programs: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.Softmax(0))
    sizes = [(5, 3), (5, 3), (6, 3), (5, 3), (5, 3), (5, 3), (6, 3), (5, 3), (8, 4), (8, 4), (8, 4)]
    _agree(model, [(torch.randn(*size, 6),) for size in sizes], backward=True)
    # A bucket of 8 by 4, forward and backward, and 5 by 3 at its third call in a row.
    assert len(programs) == 4


@pytest.mark.parametrize(("size", "repeats"), [(5, 3), (8, 3), (8, 0)])
def test_calls_of_the_same_sizes_look_nothing_up(size: int, repeats: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with a program of their own nor where they fill their bucket, which pads and cuts nothing then."""

    def rows(x: Any) -> Any:
        return x.softmax(0), x.t().sigmoid()

    def refuse(*_: Any) -> Any:
        raise AssertionError

    fast = torch.compile(rows, backend="hloforge", dynamic=True, options={"repeats": repeats})
    x = torch.randn(size, 4)
    for _ in range(4):
        fast(x)
    with monkeypatch.context() as patch:
        patch.setattr(OpenSizes, "bucket", refuse)
        patch.setattr(graph_program, "padded", refuse)
        patch.setattr(graph_program, "cut", refuse)
        found = fast(x)
    assert [each.stride() for each in found] == [each.stride() for each in rows(x)]
    for other in (size, size + 1, size, size - 1, size, size):
        x = torch.randn(other, 4)
        for one, expected in zip(fast(x), rows(x), strict=True):
            _assert_same(one, expected)


@pytest.mark.parametrize(("repeats", "count"), [(1, 2), (2, 2), (0, 1)])
def test_after_how_many_calls_is_the_users_choice(repeats: int, count: int, programs: list[Any]) -> None:
    def rows(x: Any) -> Any:
        return x.softmax(0)

    fast = torch.compile(rows, backend="hloforge", dynamic=True, options={"repeats": repeats})
    for size in (5, 6, 6):
        x = torch.randn(size, 3)
        _assert_same(fast(x), rows(x))
    assert len(programs) == count
    with pytest.raises(Exception, match="repeats=-1 must be 0 or more"):
        torch.compile(lambda x: x + 1, backend="hloforge", options={"repeats": -1})(x)


def test_random_numbers_keep_the_sizes_of_the_bucket(programs: list[Any]) -> None:
    fast = torch.compile(functional.dropout, backend="hloforge", dynamic=True)
    for _ in range(4):
        fast(torch.ones(5, 3))
    assert len(programs) == 1


def test_what_has_no_rule_is_compiled_for_each_size_and_named(programs: list[Any]) -> None:
    fast = torch.compile(lambda x: torch.fft.fft(x, dim=0).abs(), backend="hloforge", dynamic=True)
    x = torch.randn(5, 3)
    with pytest.warns(UserWarning, match=r"compiled for the sizes of each call.*fft"):
        found = fast(x)
    _assert_same(found, torch.fft.fft(x, dim=0).abs())
    x = torch.randn(6, 3)
    _assert_same(fast(x), torch.fft.fft(x, dim=0).abs())
    assert len(programs) == 2


class _Spectrum(nn.Module):
    """A layer, and a transform along a size that has no rule for padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return torch.fft.rfft(self.layer(x), dim=1).abs().cumsum(0) * x.shape[0] + x.shape[1]


@pytest.mark.parametrize("backward", [False, True])
def test_the_first_size_has_buckets_if_not_all_sizes_can(backward: bool, programs: list[Any]) -> None:
    calls = [(torch.randn(b, n, 6),) for b, n in ((5, 9), (6, 9), (8, 9), (3, 9), (7, 11), (1, 9), (5, 11))]
    model = _Spectrum()
    with pytest.warns(UserWarning, match=r"compiled for each choice of sizes but the first one.*(fft).*test_dynamic"):
        _agree(model, calls, backward=backward, in_buckets=False)
    # Buckets of 8 and 4 for nine columns and of 8 for eleven; the size 1 is another graph of Dynamo's.
    assert len(programs) == (2 if backward else 1) * 4
