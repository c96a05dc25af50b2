"""Sizes that depend on elements: padded arrays with counts give what PyTorch gives, whatever the elements."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.wide(3)

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode  # noqa: E402

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402

Model = Callable[..., Any]
ROWS, COLUMNS = 7, 4


class _Module(torch.nn.Module):
    def __init__(self, function: Model) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def _samples() -> list[tuple[Any, Any]]:
    """Arrays with some, all and no positive first columns."""
    torch.manual_seed(0)
    found = [(torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)) for _ in range(4)]
    found[2] = (found[2][0].abs(), found[2][1])
    return [*found[:3], (-found[3][0].abs(), found[3][1])]


def _agrees(function: Model, samples: list[tuple[Any, ...]]) -> None:
    """One program gives PyTorch's results for all samples, in values, sizes and types."""
    program = hloforge.torch.compile(_Module(function), samples[0])
    for sample in samples:
        torch.testing.assert_close(program(*sample), function(*sample), equal_nan=True, rtol=1e-5, atol=1e-5)


def _shapes(x: Any, y: Any) -> Any:
    m = x[:, 0] > 0
    a, b = x[m], y[m]
    pair = torch.stack([a, b], 1)
    both = torch.cat([a, x, b])
    return (
        *(a, b, both, pair, pair.flatten(0, 1), a.T, a.T.reshape(-1), a.reshape(-1), a[:, None] * b, a.flip(0)),
        *(a[:3], a[1:], a[:, 1:3], both[2:-2], torch.nn.functional.pad(a, (1, 0, 2, 1), value=3.0), a.repeat(2, 3)),
        *(a.unsqueeze(1).expand(-1, 2, -1), a.shape[0] * 2, pair.permute(2, 0, 1), a.double() + 1),
        *(torch.zeros(a.shape[0], 2), torch.arange(a.shape[0]) * 2, torch.ones_like(a), torch.full((a.shape[0],), 3.0)),
    )


def _reductions(x: Any, y: Any) -> Any:
    m = x[:, 0] > 0
    a, b = torch.cat([x[m], x[:1]]), torch.cat([y[m], y[:1]])
    return (
        *(a.sum(0), a.mean(0), a.mean(), a.sum(1), a.prod(0), a.amax(0), a.min(0), a.max(), a.argmax(0), a.argmin(0)),
        *(
            a.T.argmax(1),
            a.median(0).values,
            a.median(),
            a.kthvalue(1, 0).values,
            (2 * a).long().mode(0).values,
            a.T @ b,
            a @ b.T,
            a.softmax(0),
            a.log_softmax(0),
            a.logsumexp(0),
            (a > 0).any(0),
            a.norm(dim=0),
        ),
        *((a > 0).all(0), a.std(0), a.var(1), a.cumsum(0), a.sort(0), a.sort(0, descending=True), a[:, 0].argsort()),
        *((a > 0).sum(), x[:, 0] * a.shape[0], torch.nn.functional.layer_norm(a, (COLUMNS,)), a.long().sort(0)),
    )


def _indices(x: Any, y: Any) -> Any:
    m = x[:, 0] > 0
    n = torch.nonzero(m).squeeze(1)
    a = x[m]
    rows, columns = torch.where(x > y)
    places = torch.arange(ROWS) % 3
    changed = x.clone()
    changed[m] = y[m] + 1
    row = x.clone()
    row[m] = y[0]
    return (
        *(
            n,
            x[n],
            y.index_select(0, n),
            rows,
            columns,
            x[rows, columns],
            x.masked_select(x > y),
            x[x > 1],
            torch.nonzero(a > 0),
        ),
        *(changed, row, torch.zeros(3, COLUMNS).index_add(0, places[n], a), a[a[:, 1] > 0], a[:, 1][a[:, 1] > 0].sum()),
        *(
            torch.zeros(3).scatter_add(0, places[m], a[:, 0]),
            x.index_put((n,), y[n], accumulate=True),
            x[m, 1:].mean(1),
        ),
        *(
            torch.zeros(3).scatter_reduce(0, places[m], a[:, 0], "amax", include_self=False),
            x.masked_scatter(m[:, None], a),
        ),
        *(torch.searchsorted(torch.sort(a[:, 0])[0], y[:, 0].contiguous()), a.gather(1, (a[:, :1] > 1).long())),
    )


def _updates(x: Any, y: Any) -> Any:
    """Chosen elements that are read and written in place, some of as many as PyTorch can tell only by the sum."""
    rows, places, columns = x.clone(), x.clone(), x.clone()
    rows[y[:, 0] > 0] -= 1
    places[y > 0] *= places[y > 0].sum()
    columns[:, x[0] > 0] += y[:, :1]
    either = torch.cat([x[x[:, 0] > 0], x[x[:, 0] <= 0], y])
    either = either[: ROWS + ROWS]
    either[torch.cat([x[:, 0] > 0, x[:, 0] <= 0])] += y
    return rows, places, columns, either


def _equal(x: Any, y: Any) -> Any:
    whole = (x * 2).long()
    some = whole[x[:, 0] > 0]
    times = torch.repeat_interleave(y, whole[:, 0].clamp(0, 2), 0)
    torch._check(times.shape[0] <= 2 * ROWS)
    return (
        *(whole.unique(), *whole.unique(return_inverse=True, return_counts=True), *some.unique(return_counts=True)),
        *(
            *torch.unique_consecutive(whole[:, 0].sort()[0], return_counts=True),
            torch.unique(whole[:, :2], dim=0),
            times,
        ),
    )


def _loops(x: Any, y: Any) -> Any:
    """Messages of a graph whose edges a mask chooses, as PyTorch Geometric sends them."""
    source, target = torch.where(x[:, :, None] > y.T[None, :COLUMNS, :])[0::2]
    source, target = source[source != target], target[source != target]
    sent = torch.zeros(ROWS, COLUMNS).index_add(0, target, x[source])
    degree = torch.zeros(ROWS).scatter_add(0, target, torch.ones(target.shape[0]))
    score = (x[source] * y[target]).sum(1)
    most = torch.full((ROWS,), -torch.inf).scatter_reduce(0, target, score, "amax")
    weight = (score - most[target]).exp()
    return sent / degree.clamp(min=1)[:, None], weight / torch.zeros(ROWS).index_add(0, target, weight)[target]


def _library() -> Any:
    """torchvision's operators of detection; as PyTorch's own code where torchvision is not installed."""
    with contextlib.suppress(ImportError, RuntimeError):
        import torchvision  # noqa: F401
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
        " int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", _nms, "CPU")
    library.impl("roi_align", _roi_align, "CPU")
    torch.library.register_fake("torchvision::nms", _nms_sizes, lib=library)
    torch.library.register_fake("torchvision::roi_align", _roi_align_sizes, lib=library)
    return library


def _nms_sizes(boxes: Any, scores: Any, limit: float) -> Any:
    count = torch.library.get_ctx().new_dynamic_size(min=0, max=None)
    return boxes.new_empty(count, dtype=torch.long)


def _roi_align_sizes(x: Any, regions: Any, scale: float, rows: int, columns: int, ratio: int, aligned: bool) -> Any:
    return x.new_empty(regions.shape[0], x.shape[1], rows, columns)


def _nms(boxes: Any, scores: Any, limit: float) -> Any:
    kept: list[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for number in scores.argsort(stable=True, descending=True).tolist():
        corners = torch.maximum(boxes[kept, :2], boxes[number, :2]), torch.minimum(boxes[kept, 2:], boxes[number, 2:])
        common = (corners[1] - corners[0]).clamp(min=0).prod(1)
        if not (common / (area[kept] + area[number] - common) > limit).any():
            kept.append(number)
    return torch.tensor(kept, dtype=torch.long)


def _roi_align(x: Any, regions: Any, scale: float, rows: int, columns: int, ratio: int, aligned: bool) -> Any:
    """Sample by sample, in f64."""
    found = torch.zeros(len(regions), x.shape[1], rows, columns, dtype=torch.float64)
    for number, (image, *corners) in enumerate(regions.double().tolist()):
        left, top, right, bottom = (corner * scale - (0.5 if aligned else 0) for corner in corners)
        width, height = (side if aligned else max(side, 1) for side in (right - left, bottom - top))
        down = ratio or math.ceil(height / rows)
        across = ratio or math.ceil(width / columns)
        for row, column in itertools.product(range(rows), range(columns)):
            for step, inner in itertools.product(range(down), range(across)):
                y = top + height / rows * (row + (step + 0.5) / down)
                at = left + width / columns * (column + (inner + 0.5) / across)
                found[number, :, row, column] += _bilinear(x[int(image)].double(), y, at) / (down * across)
    return found.to(x.dtype)


def _bilinear(x: Any, y: float, at: float) -> Any:
    height, width = x.shape[1:]
    if not (-1 <= y <= height and -1 <= at <= width):
        return torch.zeros(len(x), dtype=x.dtype)
    y, at = min(max(y, 0), height - 1), min(max(at, 0), width - 1)
    top, left = int(y), int(at)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = x[:, top, left] * (1 - at + left) + x[:, top, right] * (at - left)
    lower = x[:, bottom, left] * (1 - at + left) + x[:, bottom, right] * (at - left)
    return upper * (1 - y + top) + lower * (y - top)


def _detector(features: Any, boxes: Any, scores: Any) -> Any:
    """A head as detection models have it: by class, the best boxes, and what is seen in them."""
    value, label = scores.max(1)
    chosen = value > 0.4
    boxes, value, label = boxes[chosen], value[chosen], label[chosen]
    apart = boxes + (label * 100)[:, None]
    kept = torch.ops.torchvision.nms(apart, value, 0.4)[:6]
    regions = torch.cat([torch.zeros(kept.shape[0], 1), boxes[kept]], 1)
    seen = torch.ops.torchvision.roi_align(features, regions, 0.5, 2, 3, 0, False)
    again = torch.ops.torchvision.roi_align(features, regions, 0.5, 2, 2, 2, True)
    return boxes[kept], value[kept], label[kept], seen.flatten(1) @ torch.ones(24, 2), again


def test_detection() -> None:
    library = _library()  # noqa: F841  operators are gone with it
    samples = []
    for seed in range(4):
        torch.manual_seed(seed)
        corners = torch.rand(20, 2) * 15
        boxes = torch.cat([corners, corners + torch.rand(20, 2) * 12], 1)
        samples.append((torch.randn(1, 4, 12, 14), boxes, torch.rand(20, 3) * (0.3 if seed == 3 else 1)))
    _agrees(_detector, samples)


@pytest.mark.parametrize(
    "function", [_shapes, _reductions, _indices, _updates, _equal, _loops], ids=lambda each: each.__name__
)
def test_operators_on_sizes_that_depend_on_elements(function: Model) -> None:
    _agrees(function, _samples())


def test_sizes_of_calls_and_of_elements_meet() -> None:
    def chosen(x: Any) -> Any:
        return torch.cat([x[x[:, 0] > 0], x]).sum(1)

    batch = torch.export.Dim("batch", min=2, max=50)
    first = torch.randn(5, 3)
    program = hloforge.torch.compile(_Module(chosen), (first,), dynamic_shapes=(({0: batch},),))
    for sample in (first, torch.randn(9, 3)):
        torch.testing.assert_close(program(sample), chosen(sample))


def test_torch_compile_gives_exact_sizes() -> None:
    def found(x: Any) -> Any:
        rows = x[x[:, 0] > 0]
        return rows, rows.T, rows.sum(0), rows.shape[0], torch.nonzero(x > 1)

    compiled = torch.compile(found, backend="hloforge", fullgraph=True)
    for x, _ in _samples():
        torch.testing.assert_close(compiled(x), found(x))


class _Asking(torch.nn.Module):
    """Asks for the special case of no rows, as torchvision's detectors do."""

    def forward(self, x: Any) -> Any:
        rows = x[x[:, 0] > 0]
        return rows.sum(0) if rows.numel() == 0 else (rows * 2).sum(0)


def test_questions_about_sizes_are_answered_where_the_caller_says_so() -> None:
    x = torch.tensor([[1.0, 2], [-1, 3], [2, 1]])
    with pytest.raises(GuardOnDataDependentSymNode):
        hloforge.torch.compile(_Asking(), (x,))
    program = hloforge.torch.compile(_Asking(), (x,), assume_nonempty=True)
    assert program.assumed == ("Eq(2*u0, 0) is False",)
    for sample in (x, -x.abs()):
        torch.testing.assert_close(program(sample), _Asking()(sample))


class _Counting(torch.nn.Module):
    """Makes an array for as many rows as there are, as the pooler of torchvision's detectors does."""

    def forward(self, x: Any) -> Any:
        rows = x[x[:, 0] > 0]
        return torch.ones(len(rows)) + rows[:, 1]


def test_a_length_is_a_size_where_questions_are_answered() -> None:
    x = torch.tensor([[1.0, 2], [-1, 3], [2, 1]])
    with pytest.raises(GuardOnDataDependentSymNode):
        hloforge.torch.compile(_Counting(), (x,))
    program = hloforge.torch.compile(_Counting(), (x,), assume_nonempty=True)
    for sample in (x, -x.abs()):
        torch.testing.assert_close(program(sample), _Counting()(sample))


def test_topk_of_a_mask() -> None:
    def best(x: Any) -> Any:
        found = x[x > 0]
        count = min(found.shape[0], 3) if not torch.compiler.is_compiling() else torch.sym_min(found.shape[0], 3)
        return found.topk(count)

    _agrees(best, [(torch.tensor([1.0, -1, 5, 3, 2]),), (torch.tensor([1.0, -1, -5, -3, 2]),), (-torch.ones(5),)])


def test_a_branch_may_read_them() -> None:
    def both(x: Any) -> Any:
        found = x[x > 0]
        return torch.cond(x[0] > 0, lambda a: a.sum(), lambda a: a.sum() * 2, (found,))

    _agrees(both, [(torch.tensor([1.0, -1, 5]),), (torch.tensor([-1.0, -1, 5]),)])


def test_operators_without_rule_are_named() -> None:
    def pairs(x: Any) -> Any:
        return torch.pdist(x[x[:, 0] > 0])

    message = r"(?s)test_bounded\.py:\d+.*_pdist_forward.*depends on elements"
    with pytest.raises(hloforge.UnsupportedError, match=message):
        hloforge.torch.compile(_Module(pairs), (torch.randn(5, 3),))


def test_a_size_without_bound_says_the_way_out() -> None:
    def repeated(x: Any) -> Any:
        return torch.repeat_interleave(x, x.long().abs())

    with pytest.raises(hloforge.UnsupportedError, match="how large it may be") as caught:
        hloforge.torch.compile(_Module(repeated), (torch.randn(5),))
    assert "torch._check" in str(caught.value.hint)


def _checked(x: Any) -> Any:
    count = (x > 0).sum().item()
    torch._check(count <= 20)
    rows = x[x[:, 0] > 0]
    torch._check(rows.shape[0] <= 5)
    return rows.sum(0) + torch.arange(count).sum()


@pytest.mark.parametrize("options", [{}, {"flags": ["--iree-opt-level=O1"]}], ids=["own code", "IREE"])
def test_a_check_that_does_not_hold_ends_the_call(options: dict[str, Any]) -> None:
    torch.manual_seed(3)
    x = torch.randn(7, 4)
    x[:3, 0] = x[:3, 0].abs()
    x[3:, 0] = -x[3:, 0].abs()
    program = hloforge.torch.compile(_Module(_checked), (x,), **options)
    torch.testing.assert_close(program(x), _checked(x))
    for wrong, said in ((x.abs(), "u0 <= 20"), (torch.cat([x[:, :1].abs(), -x[:, 1:].abs()], 1), "u1 <= 5")):
        with pytest.raises(RuntimeError, match=said):
            torch.export.export(_Module(_checked), (x,)).module()(wrong)
        with pytest.raises(hloforge.ArgumentError, match=said):
            program(wrong)
    torch.testing.assert_close(program(x), _checked(x))


def test_checks_that_always_hold_cost_nothing() -> None:
    def function(x: Any) -> Any:
        rows = x[x[:, 0] > 0]
        torch._check(rows.shape[0] <= 7)
        return rows.sum(0)

    program = hloforge.torch.compile(_Module(function), (torch.randn(7, 4),))
    assert not program.session.manifest.host_calls


def test_a_check_of_all_elements_reads_no_padding() -> None:
    """As ``torch._check_tensor_all`` writes it."""

    class Checked(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            torch._check_tensor_all(x > -100)
            rows = x[x[:, 0] > 0]
            return rows * 2, torch.ops.aten._is_any_true(rows > 1), torch.ops.aten._is_all_true(rows > 0)

    x = torch.randn(9, 3)
    program = hloforge.torch.compile(Checked(), (x,))
    for given in (x, x.abs(), x.abs() + 2, -x.abs()):
        for found, expected in zip(program(given), Checked()(given), strict=True):
            assert torch.equal(found, expected)
    with pytest.raises(hloforge.ArgumentError):
        program(x - 1000)


def test_an_assertion_of_a_tensor_ends_the_call() -> None:
    def function(x: Any) -> Any:
        torch._assert_async((x < 10).all(), "x is too large")
        return x * 2

    x = torch.randn(7, 4)
    program = hloforge.torch.compile(_Module(function), (x,))
    torch.testing.assert_close(program(x), x * 2)
    with pytest.raises(hloforge.ArgumentError, match="x is too large"):
        program(x + 100)
