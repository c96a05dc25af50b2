"""One program for a range of sizes gives what PyTorch gives at each of them, whatever lies in the padding."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.wide(3)

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
jax = pytest.importorskip("jax", reason="needs the extra `torch`")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402
from hloforge.runtime.bucket_sizes import normalized, powers  # noqa: E402
from hloforge.torch.bounded.expressions import Choices  # noqa: E402
from hloforge.torch.bounded.sizes import opened  # noqa: E402
from hloforge.torch.exported import names_of, prepared  # noqa: E402
from hloforge.torch.importer import Graph, graph_of  # noqa: E402
from hloforge.torch.types import to_numpy, to_torch  # noqa: E402

FEATURES, ROWS, LENGTH = 8, 3, 9
Layer = Callable[[Any], Any]


class _Model(nn.Module):
    """Layers one after the other, and what they give."""

    def __init__(self, layers: Sequence[Any], head: Layer) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layer if isinstance(layer, nn.Module) else _Plain(layer) for layer in layers)
        self.head = head

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class _Plain(nn.Module):
    def __init__(self, function: Layer) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class _Attention(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.projection, self.out, self.causal = (
            nn.Linear(FEATURES, 3 * FEATURES),
            nn.Linear(FEATURES, FEATURES),
            causal,
        )

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = self.projection(x).chunk(3, -1)
        q, k, v = (part.view(batch, length, 2, FEATURES // 2).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return x + self.out(found.transpose(1, 2).reshape(batch, length, FEATURES))


class _Masked(nn.Module):
    """Attention in plain operators, whose mask hides what is negative."""

    def forward(self, x: Any) -> Any:
        scores = x @ x.transpose(1, 2) / 3
        mask = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)) & (x[:, None, :, 0] > -0.5)
        mask = mask | torch.eye(x.shape[1], dtype=torch.bool)
        return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ x


class _Convolution(nn.Module):
    """Along the length, which stays."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(FEATURES, FEATURES, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return functional.gelu(self.convolution(x.transpose(1, 2)).transpose(1, 2))


class _Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(LENGTH, FEATURES)

    def forward(self, x: Any) -> Any:
        return x + self.positions(torch.arange(x.shape[1]))


def _dominant(x: Any) -> Any:
    return x @ x.mT + torch.eye(x.shape[1], dtype=x.dtype) * 2


def _systems(x: Any) -> Any:
    matrix = _dominant(x)
    right = torch.linalg.solve(matrix, x.mT, left=False)
    factored = torch.cholesky_solve(x, torch.linalg.cholesky(matrix))
    size = torch.linalg.slogdet(matrix)[1].sigmoid().view(-1, 1, 1)
    return torch.linalg.solve(matrix, x) + right.mT + factored * size + torch.linalg.inv(matrix) @ x


def _rows(x: Any) -> Any:
    return x.reshape(-1, FEATURES).cumsum(0).reshape(x.shape)


# Each takes and gives [rows, length, features].
LAYERS: dict[str, Callable[[], Any]] = {
    "dense": lambda: nn.Sequential(nn.Linear(FEATURES, 11), nn.SiLU(), nn.Linear(11, FEATURES)),
    "layer norm": lambda: nn.LayerNorm(FEATURES),
    "rms norm": lambda: nn.RMSNorm(FEATURES),
    "attention": lambda: _Attention(False),
    "causal attention": lambda: _Attention(True),
    "masked attention": _Masked,
    "convolution": _Convolution,
    "positions": _Embedding,
    "sums": lambda: lambda x: x.cumsum(1) / 4,
    "sort": lambda: lambda x: x.sort(1)[0],
    "descending": lambda: lambda x: x.sort(1, descending=True)[0],
    "softmax over rows": lambda: lambda x: x.softmax(0) * x,
    "centred": lambda: lambda x: x - x.mean((0, 1), keepdim=True) / 2,
    "scaled": lambda: lambda x: x / (1 + x.std(1, keepdim=True, correction=0)),
    "greatest": lambda: lambda x: x - x.amax(1, keepdim=True),
    "flip": lambda: lambda x: x.flip(1) + x,
    "roll": lambda: lambda x: torch.roll(x, 2, 1),
    "shifted": lambda: lambda x: torch.cat([x[:, :1], x[:, :-1]], 1),
    "padded": lambda: lambda x: functional.pad(x, (0, 0, 2, 0))[:, 1:-1],
    "pooled": lambda: lambda x: functional.max_pool2d(x[:, None], (3, 1), 1, (1, 0))[:, 0],
    "averaged": lambda: lambda x: functional.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2),
    "merged": lambda: _rows,
    "heads": lambda: (
        lambda x: (
            x.view(x.shape[0], x.shape[1], 2, 4)
            .permute(0, 2, 1, 3)
            .flatten(2)
            .view(x.shape[0], 2, x.shape[1], 4)
            .transpose(1, 2)
            .flatten(2)
        )
    ),
    "turned": lambda: lambda x: (x.transpose(0, 1) * 2).transpose(0, 1),
    "counted": lambda: lambda x: x * x.shape[1] / (x.shape[0] + 1),
    "systems": lambda: _systems,
    "substituted": lambda: lambda x: torch.linalg.solve_triangular(_dominant(x).tril(), x, upper=False),
    "histogram": lambda: lambda x: x + torch.histc(x, FEATURES, -1, 2) / 10 + torch.histc(x, 2)[0] / 20,
    "ranked": lambda: lambda x: x - x.kthvalue(3, -1, True)[0] + x.median(-1, True)[0],
    "distances": lambda: lambda x: torch.cdist(x, x.flip(0)) @ x / 9,
    "unfolded": lambda: lambda x: functional.pad(x, (0, 0, 1, 0)).unfold(1, 2, 1).mean(-1),
    "sampled": lambda: lambda x: x + functional.grid_sample(x[:, None], x[:, :1, None, :2])[:, 0],
    "chosen": lambda: lambda x: torch.where(torch.arange(x.shape[1])[:, None] % 2 == 0, x, -x),
}
HEADS: dict[str, Layer] = {
    "all": lambda x: x,
    "mean": lambda x: (x.mean(1), x.sum((0, 1)), x.shape[1] * 2),
    "last": lambda x: (x[:, -1], x[:, 0], x.flatten(0, 1)),
    "extremes": lambda x: (x.gather(1, x.argmax(1, keepdim=True)), x.amin(0), x.topk(2, -1)[0]),
    "places": lambda x: (
        x.argmax(),
        x[:, :, 0].argmin(),
        functional.max_pool2d(x.transpose(1, 2), 2, (2, 1), return_indices=True),
    ),
    "found": lambda x: (
        torch.bucketize(x, torch.arange(-2.0, 2.0, dtype=x.dtype)),
        torch.searchsorted(x[0].T.contiguous().sort(1)[0], x[0].T.contiguous()),
    ),
    "half": lambda x: (x[:, ::2], x.transpose(0, 1)),
}


def _exported(model: Any, arguments: tuple[Any, ...], shapes: Any) -> Graph:
    exported = prepared(torch.export.export(model, arguments, dynamic_shapes=shapes))
    state = {**exported.state_dict, **exported.constants}
    graph = graph_of(exported.graph_module, names=names_of(exported))
    graph.state = [to_numpy(state[spec.target]) for spec in exported.graph_signature.input_specs if spec.target]  # type: ignore[attr-defined]
    return graph


def _run(graph: Graph, extents: Sequence[int]) -> Callable[..., list[Any]]:
    """The graph's padded form on JAX's CPU client, of user arguments whose padding is NaN, or large."""
    bounded = graph._bounded()
    largest = {symbol: extent for (symbol, _), extent in zip(bounded, extents, strict=True)}
    function = jax.jit(graph.function({}, largest))
    choices = Choices({symbol: (1, extent) for symbol, extent in largest.items()})

    def call(*arguments: np.ndarray[Any, Any]) -> list[Any]:
        given = [*graph.state, *arguments]  # type: ignore[attr-defined]
        shapes = [each.shape for each in given]
        numbers = [size.number(shapes) for _, size in bounded]
        for (_, size), extent in zip(bounded, extents, strict=True):
            for place in size.places:
                array, dimension = given[place.parameter], place.dimension
                missing = place.factor * extent + place.rest - array.shape[dimension]
                widths = [(0, missing if d == dimension else 0) for d in range(array.ndim)]
                given[place.parameter] = np.pad(array, widths, constant_values=np.nan if array.dtype.kind == "f" else 7)
        with jax.enable_x64(True), opened(choices):
            found = [np.asarray(each) for each in function(*given, *(np.int64(number) for number in numbers))]
            cuts = graph._cuts()
        results, sizes = found[: len(found) - len(cuts)], found[len(found) - len(cuts) :]
        for (number, dimension), size in zip(cuts, sizes, strict=True):
            results[number] = results[number].take(range(int(size)), dimension)
        return results

    return call


def _agree(model: Any, shapes: Any, sizes: Sequence[tuple[int, int]], extents: Sequence[int]) -> None:
    # In f64, where chains of layers make no errors of rounding that count.
    model.eval().double()
    with torch.no_grad():
        example = torch.randn(ROWS, LENGTH, FEATURES, dtype=torch.float64)
        run = _run(_exported(model, (example,), shapes), extents)
        for size in sizes:
            x = torch.randn(*size, FEATURES, dtype=torch.float64)
            expected = model(x)
            expected = torch.utils._pytree.tree_leaves(expected)
            for found, wanted in zip(run(to_numpy(x)), expected, strict=True):
                wanted = torch.as_tensor(wanted)
                torch.testing.assert_close(to_torch(np.array(found)), wanted, rtol=1e-7, atol=1e-9, check_dtype=False)


BOTH = {"x": {0: Dim("rows", min=1, max=ROWS + 1), 1: Dim("length", min=4, max=LENGTH)}}
SIZES = [(1, 4), (1, 9), (2, 5), (3, 8), (4, 9), (4, 6)]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_sees_no_padding(name: str) -> None:
    torch.manual_seed(len(name))
    _agree(_Model([LAYERS[name]()], HEADS["all"]), BOTH, SIZES, (ROWS + 1, LENGTH))


@pytest.mark.parametrize("name", HEADS)
def test_results_are_cut(name: str) -> None:
    torch.manual_seed(len(name))
    _agree(_Model([LAYERS["dense"]()], HEADS[name]), BOTH, SIZES, (ROWS + 1, LENGTH))


class _Experts(nn.Module):
    """Rows in the order of the expert that a router chooses, each by its expert's matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(FEATURES, 3)
        self.experts = nn.Parameter(torch.randn(3, FEATURES, FEATURES, dtype=torch.bfloat16))

    def forward(self, x: Any) -> Any:
        rows = x.reshape(-1, FEATURES)
        chosen = self.router(rows).argmax(-1)
        order = chosen.argsort(stable=True)
        ends = torch.histc(chosen.float(), 3, 0, 2).cumsum(0, dtype=torch.int32)
        found = functional.grouped_mm(rows[order].bfloat16(), self.experts, offs=ends)
        sums = functional.grouped_mm(rows[order].bfloat16().T, found, offs=ends)
        return found[order.argsort()].reshape(x.shape), sums


def test_experts_see_no_padding() -> None:
    torch.manual_seed(3)
    model = _Experts().eval()
    with torch.no_grad():
        run = _run(_exported(model, (torch.randn(ROWS, LENGTH, FEATURES),), BOTH), (ROWS + 1, LENGTH))
        for size in SIZES:
            x = torch.randn(*size, FEATURES)
            for found, wanted in zip(run(to_numpy(x)), model(x), strict=True):
                torch.testing.assert_close(to_torch(np.array(found)), wanted, rtol=2e-2, atol=2e-2)


def generated(seed: int) -> _Model:
    """Some layers by chance."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    names = [chance.choice(list(LAYERS)) for _ in range(4)]
    # Places of equal elements, and of those that rounding makes so, are anybody's choice.
    heads = [head for head in HEADS if head not in ("places", "found")]
    return _Model([LAYERS[name]() for name in names], HEADS[chance.choice(heads)])


@pytest.mark.parametrize("seed", range(6))
def test_generated_programs_see_no_padding(seed: int) -> None:
    _agree(generated(seed), BOTH, SIZES[1:5], (ROWS + 1, LENGTH))


def test_the_smallest_bucket_computes() -> None:
    torch.manual_seed(0)
    model = _Model([LAYERS["causal attention"](), LAYERS["sort"]()], HEADS["mean"]).eval()
    program = hloforge.torch.compile(
        model, (torch.randn(ROWS, LENGTH, FEATURES),), dynamic_shapes=BOTH, buckets={"x.0": [2, 4], "x.1": "4..9"}
    )
    buckets = program.session.buckets
    assert [tuple(bucket.sizes.values()) for bucket in buckets] == [(2, 4), (2, 8), (2, 9), (4, 4), (4, 8), (4, 9)]
    with torch.no_grad():
        for size in ((1, 4), (2, 4), (1, 5), (2, 8), (2, 9)):
            x = torch.randn(*size, FEATURES)
            torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    assert [bucket.calls for bucket in buckets] == [2, 2, 1, 0, 0, 0]
    assert [bucket.is_compiled for bucket in buckets] == [True, True, True, False, False, False]
    with pytest.raises(hloforge.ArgumentError, match="out of the bounds"):
        program(torch.randn(5, 4, FEATURES))


def test_equal_and_derived_sizes_are_checked() -> None:
    class Pair(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return (x * y[::2]).sum(0), x.cumsum(0)

    size = Dim("size", min=1, max=8)
    arguments = torch.randn(3, 2), torch.randn(6, 2)
    program = hloforge.torch.compile(
        Pair(), arguments, dynamic_shapes={"x": {0: size}, "y": {0: 2 * size}}, buckets="all"
    )
    assert [bucket.sizes["x.0"] for bucket in program.session.buckets] == [1, 2, 4, 8]
    for n in (1, 3, 5, 8):
        arguments = torch.randn(n, 2), torch.randn(2 * n, 2)
        torch.testing.assert_close(program(*arguments), Pair()(*arguments))
    for wrong in ((3, 5), (3, 8)):
        with pytest.raises(hloforge.ArgumentError):
            program(torch.randn(wrong[0], 2), torch.randn(wrong[1], 2))


def test_what_has_no_rule_is_compiled_for_each_size_with_a_note() -> None:
    class Cut(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.fft(x, dim=0).abs()

    x = torch.randn(5, 9)
    with pytest.warns(UserWarning, match=r"no buckets, because padding might change results: stablehlo\."):
        program = hloforge.torch.compile(Cut(), (x,), dynamic_shapes={"x": {0: Dim("n", max=8)}}, buckets="all")
    assert program.session.buckets == ()
    for n in (4, 6, 7):
        x = torch.randn(n, 9)
        torch.testing.assert_close(program(x), Cut()(x))


def test_unbounded_sizes_need_buckets_by_name() -> None:
    x = torch.randn(5, 3)
    shapes = {"x": {0: Dim("n")}}
    model = _Plain(lambda x: x.softmax(0))
    with pytest.raises(hloforge.OptionError, match=r"nothing bounds the size x\.0"):
        hloforge.torch.compile(model, (x,), dynamic_shapes=shapes, buckets="all")
    with pytest.raises(hloforge.OptionError, match=r"no open size is called 'y\.0'"):
        hloforge.torch.compile(model, (x,), dynamic_shapes=shapes, buckets={"y.0": "1..4"})
    program = hloforge.torch.compile(model, (x,), dynamic_shapes=shapes, buckets={"x.0": "4..8"})
    for n in (0, 3, 8, 11):  # none, two in buckets, and one that is compiled for itself
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), x.softmax(0))
    assert [bucket.calls for bucket in program.session.buckets] == [1, 1]


def test_buckets_are_powers_of_two_up_to_the_bound() -> None:
    assert powers(1, 512) == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    assert powers(3, 9) == (4, 8, 9)
    assert powers(5, 5) == (5,)
    assert normalized({"x.0": "1..8", "y.1": "64,16"}) == {"x.0": (1, 2, 4, 8), "y.1": (16, 64)}
    assert normalized(True) == normalized("all") == "all"
    for wrong in ("", "8..1", "0", "a"):
        with pytest.raises(hloforge.OptionError, match="no buckets"):
            normalized({"x.0": wrong})


def test_static_programs_have_no_buckets() -> None:
    with pytest.raises(hloforge.OptionError, match="open sizes"), warnings.catch_warnings():
        hloforge.torch.compile(_Plain(lambda x: x * 2), (torch.randn(3),), buckets="all")
