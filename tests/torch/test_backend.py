"""``torch.compile(model, backend="hloforge")``, judged by PyTorch's eager mode."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from hloforge.torch import backend  # noqa: E402
from hloforge.torch.memory import dense_order, inverse  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64"]
TYPES += ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


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


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="hloforge", **{"dynamic": False} | options)


def assert_same(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * scale)


def test_dynamo_finds_the_backend_by_its_entry_point() -> None:
    assert entry_points(group="torch_dynamo_backends")["hloforge"].load() is backend.hloforge


@pytest.mark.parametrize(
    ("sizes", "strides", "order"),
    [
        ((2, 3, 4), (12, 4, 1), (0, 1, 2)),
        ((2, 3, 4), (1, 2, 6), (2, 1, 0)),
        ((2, 3, 4, 5), (60, 1, 15, 3), (0, 2, 3, 1)),
        ((2, 1, 3), (3, 77, 1), (1, 0, 2)),
        ((2, 3), (6, 2), (0, 1)),
        ((2, 3), (0, 1), (0, 1)),
        ((0, 3), (3, 1), (0, 1)),
        ((), (), ()),
    ],
)
def test_dense_order(sizes: tuple[int, ...], strides: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert dense_order(sizes, strides) == order
    assert [inverse(order)[d] for d in order] == list(range(len(order)))


def test_tensors_of_all_types_and_strides_cross_and_what_is_returned_as_it_came_is_no_copy() -> None:
    """Both small tensors and such as keep their memory, in one program."""

    def twice(*given: Any) -> Any:
        doubled = [x ^ True if x.dtype is torch.bool else x + x for x in given]
        return [x.transpose(0, 1) for x in doubled], given[0], given[-1].reshape(-1), None, 3

    tensors = []
    for size in (3, 150):
        tensors += [torch.randint(0, 2, (size, size + 1)).to(getattr(torch, name)) for name in TYPES]
        tensors += [
            torch.randn(size + 1, size).t(),
            torch.randn(2 * size, size + 1)[::2],
            torch.randn(size, 1).expand(size, size + 1),
            torch.randn(size * (size + 1) + 1)[1:].view(size, size + 1),
            torch.randn(0, 2),
        ]
    with torch.no_grad():
        found, expected = compiled(twice)(*tensors), twice(*tensors)
    for one, other in zip([*found[0], found[2]], [*expected[0], expected[2]], strict=True):
        assert one.dtype == other.dtype and (one.stride() == other.stride() or not one.numel())
        assert torch.equal(one, other)
    assert found[1].data_ptr() == tensors[0].data_ptr() and found[3:] == (None, 3)
    changed = found[0][-6]
    changed.zero_()
    assert not torch.equal(found[0][-6], expected[0][-6]) and torch.equal(tensors[-6] + tensors[-6], expected[0][-6].T)


def test_a_model_with_batch_normalization_trains_as_in_eager_mode() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    twin = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    twin.load_state_dict(model.state_dict())
    fast = compiled(model)
    steps = [torch.optim.SGD(each.parameters(), 0.1, momentum=0.9) for each in (model, twin)]
    for _ in range(3):
        x, target = torch.randn(4, 6), torch.randn(4, 3)
        for each, step in zip((fast, twin), steps, strict=True):
            step.zero_grad()
            functional.mse_loss(each(x), target).backward()
            step.step()
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            assert_same(one.grad, other.grad)
    for name, tensor in model.state_dict().items():
        assert_same(tensor, twin.state_dict()[name])


def test_symbolic_sizes_are_compiled_for_each_choice_and_the_oldest_is_forgotten(programs: list[Any]) -> None:
    def rows(x: Any) -> Any:
        return x.softmax(-1).sum(0) * x.shape[0], x.shape[0]

    fast = compiled(rows, dynamic=True, options={"sizes": 2, "buckets": False})
    for size in (3, 5, 3, 5, 7, 3):
        x = torch.randn(size, 4)
        found, expected = fast(x), rows(x)
        assert_same(found[0], expected[0])
        assert found[1] == size
    assert len(programs) == 4


@torch.library.custom_op("hloforge_tests::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    return x.flip(0)


opaque.register_fake(torch.empty_like)


def through_opaque(x: Any) -> Any:
    return opaque(x + 1) * 2


def test_an_operator_of_a_library_is_called_by_the_program(programs: list[Any]) -> None:
    x = torch.randn(4)
    assert torch.equal(compiled(through_opaque)(x), through_opaque(x))
    assert len(programs) == 1


def factored(x: Any) -> Any:
    return torch.linalg.ldl_factor(x @ x.T)[0] * 2


def test_an_unknown_operator_is_named_with_its_line_or_runs_in_pytorch_if_wanted() -> None:
    x = torch.randn(4, 4)
    line = factored.__code__.co_firstlineno + 1
    with pytest.raises(Exception, match=r"aten\.linalg_ldl_factor_ex") as raised:
        compiled(factored)(x)
    assert f"{Path(__file__).name}:{line}" in str(raised.value)
    with pytest.warns(UserWarning, match=r"aten\.linalg_ldl_factor_ex"):
        found = compiled(factored, options={"fallback": True})(x)
    assert_same(found, factored(x))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "max-autotune"}, "max-autotune"),
        ({"options": {"sizes": 0}}, "sizes=0"),
        ({"options": {"colour": "red"}}, "colour"),
    ],
)
def test_malformed_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        compiled(lambda x: x + 1, **settings)(torch.randn(3))


def test_random_numbers_follow_the_seed_and_the_gradient_sees_those_of_the_forward_pass() -> None:
    def dropped(x: Any) -> Any:
        return functional.dropout(x, 0.5)

    fast = compiled(dropped)
    x = torch.ones(2000, requires_grad=True)
    torch.manual_seed(3)
    first, second = fast(x), fast(x)
    torch.manual_seed(3)
    assert torch.equal(fast(x), first) and not torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 2.0} and 0.4 < (first > 0).float().mean() < 0.6
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())


def test_numbers_and_tensors_that_stand_in_a_function() -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        y[0] = 5.0
        y[:, torch.tensor([2, 0])] += torch.tensor([1.0, -1.0])
        return y

    x = torch.randn(3, 4)
    assert_same(compiled(function, fullgraph=True)(x), function(x))


@pytest.mark.slow
def test_operators_on_lists() -> None:
    def function(some: list[Any], others: list[Any]) -> list[Any]:
        found = [*torch._foreach_add(some, others, alpha=2), *torch._foreach_norm(some, 1)]
        found += torch._foreach_addcmul(some, some, others, [1.0, 2.0])
        found += torch._foreach_addcdiv(some, some, others, 0.5)
        found += [*torch._foreach_pow(2.0, some), *torch._foreach_maximum(some, 0.0)]
        torch._foreach_copy_(some, others)
        torch._foreach_zero_(others)
        return [*found, *some, *others]

    given = [[torch.randn(3), torch.randn(2, 2)] for _ in range(2)]
    twins = [[each.clone() for each in row] for row in given]
    for one, other in zip(compiled(function, fullgraph=True)(*given), function(*twins), strict=True):
        assert_same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_steps_of_optimizers(kind: str) -> None:
    layers = [nn.Linear(4, 3), nn.Linear(4, 3)]
    layers[1].load_state_dict(layers[0].state_dict())
    settings = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.01}}[kind]
    optimizers = [getattr(torch.optim, kind)(layer.parameters(), **settings) for layer in layers]
    steps = [compiled(optimizers[0].step), optimizers[1].step]
    for _ in range(3):
        x = torch.randn(5, 4)
        for layer, step in zip(layers, steps, strict=True):
            layer.zero_grad()
            layer(x).square().sum().backward()
            nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            step()
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        assert_same(one.detach(), other.detach())


@pytest.mark.slow
def test_views_by_symbolic_sizes_show_the_memory_of_the_input() -> None:
    """AOTAutograd makes them by the strides and the offset of what the program returns."""

    def half(x: torch.Tensor) -> torch.Tensor:
        return x.split(x.shape[1] // 2, 1)[1]

    fast = compiled(half, dynamic=True)
    for rows, columns in ((3, 5), (4, 7)):
        x = torch.randn(rows + 1, columns)[1:]
        result, expected = fast(x), half(x)
        torch.testing.assert_close(result, expected)
        assert (result.data_ptr(), result.stride()) == (expected.data_ptr(), expected.stride())


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_computed_again_draws_the_same_numbers(dynamic: bool) -> None:
    def dropped(x: Any) -> Any:
        return functional.dropout(functional.dropout(x.sin(), 0.5).exp(), 0.3)

    def function(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(dropped, x, use_reentrant=False)

    fast = compiled(function, dynamic=dynamic)
    x = torch.ones(2000, requires_grad=True)
    found = fast(x)
    found.sum().backward()
    # exp(0) behind the first dropout has no gradient.
    kept = found > 1.2 / 0.7
    assert torch.equal(x.grad != 0, kept) and 0.25 < kept.float().mean() < 0.45


def test_arguments_that_a_function_changes_are_changed() -> None:
    def step(cache: Any, rows: Any, place: Any) -> Any:
        cache[:, place] = rows
        return cache.sum(1)

    caches = [torch.zeros(2, 200, 40) for _ in range(2)]
    rows, place = torch.randn(2, 40), torch.tensor(5)
    with torch.no_grad():
        assert_same(compiled(step)(caches[0], rows, place), step(caches[1], rows, place))
    assert torch.equal(*caches)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inference_mode", "no_grad", "autocast"])
def test_modes(mode: str) -> None:
    model = nn.Sequential(nn.Linear(40, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 5)).eval()
    x = torch.randn(3, 40)
    context = torch.autocast("cpu", torch.bfloat16) if mode == "autocast" else getattr(torch, mode)()
    with context:
        assert_same(compiled(model)(x), model(x), 2e-2 if mode == "autocast" else 2e-5)


@pytest.mark.slow
def test_training_under_autocast() -> None:
    model = nn.Sequential(nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 5))
    x = torch.randn(3, 40)
    gradients = []
    for each in (compiled(model), model):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = each(x).float().square().mean()
        loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        assert_same(one, other, 2e-2)


@pytest.mark.slow
def test_graph_breaks_and_several_gradients_of_one_graph() -> None:
    def function(x: Any) -> Any:
        y = (x * x).sin()
        torch._dynamo.graph_break()
        return (y @ y.T).tanh().sum()

    gradients = []
    for each in (compiled(function), function):
        x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        loss = each(x)
        gradients.append([torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(2)])
    assert torch.equal(*gradients[0])
    assert_same(gradients[0][0], gradients[1][0])


@pytest.mark.slow
def test_calls_from_several_threads(programs: list[Any]) -> None:
    model = nn.Linear(200, 200)
    fast = compiled(model)
    inputs = [torch.randn(50, 200) for _ in range(4)]
    with torch.no_grad():
        fast(inputs[0])
    wrong: list[str] = []

    def run(x: Any) -> None:
        with torch.no_grad():
            expected = model(x)
            for _ in range(20):
                if not torch.allclose(fast(x), expected, atol=1e-4):
                    wrong.append("differs")

    threads = [threading.Thread(target=run, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(programs) == 1


@pytest.mark.slow
def test_what_was_compiled_comes_from_the_cache_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path))
    x = torch.randn(3, 4)
    for _ in range(2):
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            compiled(lambda x: x.exp().sum(0))(x)
        assert len(list(tmp_path.glob("*.cached"))) == 1


@pytest.mark.wide(4)
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("chosen", [0, 1, 3, 5])
def test_values_for_the_true_elements_of_a_mask_come_from_outside(chosen: int, accumulate: bool) -> None:
    """After a graph break the number of values is a size of an argument; rows and elements are chosen."""

    def put(x: Any, mask: Any, values: Any) -> Any:
        x = x.clone()
        x.index_put_((mask,), values, accumulate)
        return x

    fast = torch.compile(put, backend="hloforge", fullgraph=True, dynamic=False)
    mask = torch.zeros(5, dtype=torch.bool)
    mask[torch.randperm(5)[:chosen]] = True
    for x, values in (
        (torch.randn(5), torch.randn(chosen)),
        (torch.randn(5, 4), torch.randn(chosen, 4)),
        (torch.randn(5, 4), torch.randn(4)),
        (torch.randn(5, 4), torch.randn(chosen, 1)),
    ):
        torch.testing.assert_close(fast(x, mask, values), put(x, mask, values))


@pytest.mark.parametrize("dynamic", [False, True])
def test_outputs_with_elements_in_common_lie_in_one_memory(dynamic: bool) -> None:
    fast = compiled(lambda x: (lambda y: (y[0], y, y, y.t()))(x.sin()), dynamic=dynamic)
    parts = compiled(lambda x: (lambda y: (y[:2], y[1:]))(x.sin()), dynamic=dynamic)
    for rows in (3, 5):
        x = torch.randn(rows, 4)
        row, whole, again, turned = fast(x)
        torch.testing.assert_close(whole, x.sin())
        assert whole is again and turned.stride() == (1, 4)
        whole.zero_()
        assert not row.any() and not turned.any()
        first, last = parts(x)
        torch.testing.assert_close(last, x.sin()[1:])
        first[1].fill_(7)
        assert (last[0] == 7).all()


def test_inputs_that_overlap_are_changed_one_after_the_other() -> None:
    def changed(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x.mul_(2), y.add_(1), x + y

    fast = compiled(changed)
    one, other = torch.arange(8.0).reshape(4, 2), torch.arange(8.0).reshape(4, 2)
    found, expected = fast(one[:3], one[1:]), changed(other[:3], other[1:])
    torch.testing.assert_close((one, *found), (other, *expected))
    assert found[1].data_ptr() == one[1:].data_ptr()


@pytest.mark.parametrize("gradients", [False, True])
def test_nested_tensors(gradients: bool) -> None:
    layer = nn.Linear(4, 3)
    fast = compiled(lambda x: layer(x).relu())
    for lengths in ((2, 3), (4, 1), (2, 5, 3)):
        rows = [torch.randn(length, 4) for length in lengths]
        one, other = (torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=gradients) for _ in range(2))
        found, expected = fast(one), layer(other).relu()
        torch.testing.assert_close(found.values(), expected.values(), rtol=1e-4, atol=1e-5)
        assert torch.equal(found.offsets(), expected.offsets())
        if gradients:
            found.values().square().sum().backward()
            expected.values().square().sum().backward()
            torch.testing.assert_close(one.grad.values(), other.grad.values(), rtol=1e-4, atol=1e-5)


def test_gradients_of_no_images() -> None:
    """Reshapes to -1 have no meaning there."""
    fast = compiled(lambda x: functional.max_pool2d(x, 2).sum())
    for count in (0, 2):
        x = torch.randn(count, 3, 4, 4, requires_grad=True)
        fast(x).backward()
        assert x.grad is not None and x.grad.shape == x.shape and float(x.grad.sum()) == count * 12
