"""``hloforge.torch.compile``: calls, state, sizes, random numbers, errors; expected values are PyTorch's own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save_file

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402

nn = torch.nn
# Arguments that are no tensors: constants of the program.
OTHERS = {"scale": 3.0, "nothing": None}


class Everything(nn.Module):
    """Weights, buffers of both kinds, a lifted constant, nested arguments and results, integers and other types."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.register_buffer("offset", torch.ones(4, 1, 1), persistent=False)

    def forward(self, x: Any, *, more: dict[str, Any], scale: float = 2.0, nothing: Any = None) -> dict[str, Any]:
        hidden = self.norm(self.conv(x)) + self.offset
        values, places = hidden.flatten(1).topk(3)
        return {
            "hidden": nn.functional.silu(hidden).mean((2, 3)) @ torch.eye(4),
            "top": (values, places),
            "integers": more["n"] * 3 + (1 << 40),
            "double": more["d"].sin(),
            "half": more["h"] + scale,
            "flags": more["n"] > 2,
            "inverse": torch.linalg.inv(more["d"].diag() + torch.eye(5, dtype=torch.float64)),
            "none": None,
            "constant": 5,
        }


def _arguments(batch: int = 2) -> tuple[Any, dict[str, Any]]:
    torch.manual_seed(0)
    more = {
        "n": torch.arange(4),
        "d": torch.linspace(0, 9, 5, dtype=torch.float64),
        "h": torch.linspace(0, 3, 5, dtype=torch.bfloat16),
    }
    return torch.randn(batch, 3, 6, 6), more


@pytest.fixture(scope="module")
def compiled() -> tuple[Any, Any, Any]:
    torch.manual_seed(1)
    module = Everything().train()
    reference = copy.deepcopy(module)
    x, more = _arguments()
    return module, reference, hloforge.torch.compile(module, (x,), {"more": more, **OTHERS})


def _check(actual: Any, expected: Any) -> None:
    from torch.utils import _pytree as pytree

    right, spec = pytree.tree_flatten(expected)
    found, own = pytree.tree_flatten(actual)
    assert own == spec
    for a, e in zip(found, right, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e.detach(), rtol=1e-4, atol=1e-5)
        else:
            assert a == e


def test_a_call_gives_the_module_s_results_and_updates_its_buffers(compiled: Any) -> None:
    module, reference, program = compiled
    x, more = _arguments()
    for _ in range(2):
        _check(program(x, more=more, **OTHERS), reference(x, more=more, **OTHERS))
    for (name, own), other in zip(module.named_buffers(), reference.buffers(), strict=True):
        torch.testing.assert_close(own, other, msg=name)
    assert module.norm.num_batches_tracked == 2


def test_weights_are_parameters_by_name_and_follow_the_module(compiled: Any) -> None:
    module, reference, program = compiled
    names = [parameter.name for parameter in program.session.signature.parameters]
    assert names[:4] == ["conv.weight", "conv.bias", "norm.weight", "norm.bias"]
    assert {"norm.running_mean", "offset"} < set(names)
    with torch.no_grad():
        for each in (module, reference):
            each.conv.weight.mul_(2)
    x, more = _arguments()
    _check(program(x, more=more, **OTHERS), reference(x, more=more, **OTHERS))


def test_other_arguments_are_refused(compiled: Any) -> None:
    x, more = _arguments()
    with pytest.raises(hloforge.ArgumentError, match="structure"):
        compiled[2](x)
    with pytest.raises(hloforge.ArgumentError):
        compiled[2](x[:1], more=more, **OTHERS)
    with pytest.raises(hloforge.ArgumentError, match=r"compiled for 3\.0"):
        compiled[2](x, more=more, scale=4.0, nothing=None)


def test_sizes_may_be_left_open() -> None:
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    batch = torch.export.Dim("batch")
    program = hloforge.torch.compile(module, (torch.randn(2, 4),), dynamic_shapes=({0: batch},))
    for size in (1, 5):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), module(x).detach())


class Noise(nn.Module):
    def forward(self, x: Any) -> Any:
        return nn.functional.dropout(x, 0.25, training=True), torch.randn(1000), torch.bernoulli(x / 4)


def test_random_numbers_follow_the_seed_and_differ_from_call_to_call() -> None:
    program = hloforge.torch.compile(Noise(), (torch.ones(4000),))
    x = torch.ones(4000)
    torch.manual_seed(3)
    first, second = program(x), program(x)
    torch.manual_seed(3)
    again = program(x)
    for a, b, c in zip(first, second, again, strict=True):
        assert torch.equal(a, c) and not torch.equal(a, b)
    dropped, normal, flips = first
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert abs((dropped == 0).float().mean() - 0.25) < 0.05
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.2
    assert abs(flips.mean() - 0.25) < 0.05


class Loops(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops import while_loop

        doubled = torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))
        count, total = while_loop(lambda n, t: n < 3, lambda n, t: (n + 1, t + x), (torch.tensor(0), doubled))
        return doubled, count, total


def test_control_flow() -> None:
    x = torch.arange(4.0)
    program = hloforge.torch.compile(Loops(), (x,))
    for given in (x, -x - 1):
        _check(program(given), Loops()(given))


class Unsupported(nn.Module):
    def forward(self, x: Any) -> Any:
        rows = torch.hash_tensor(x)
        return rows, torch.linalg.ldl_factor(x[:, None] * x).LD, torch.pdist(x[x > 0][:, None])


def test_an_error_names_all_operators_that_are_missing_with_their_lines() -> None:
    with pytest.raises(hloforge.UnsupportedError) as caught:
        hloforge.torch.compile(Unsupported(), (torch.ones(3),))
    text = str(caught.value)
    line = Unsupported.forward.__code__.co_firstlineno
    assert f"{Path(__file__).name}:{line + 1}" in text and f"{Path(__file__).name}:{line + 2}" in text
    assert "hash_tensor" in text and "ldl_factor" in text and "pdist" in text and "a size depends on elements" in text


def _counted(x: Any) -> Any:
    return torch.bincount(x.long(), minlength=3)[:3]


def _ranged(x: Any) -> Any:
    return torch.arange(int(x.sum()))


@pytest.mark.parametrize(("function", "message"), [(_counted, "how large it may be"), (_ranged, "how large it may be")])
def test_a_size_without_bound_is_refused_at_its_line(function: Any, message: str) -> None:
    compiled = torch.compile(function, backend="hloforge", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message) as caught:
        compiled(torch.ones(3))
    line = function.__code__.co_firstlineno
    assert f"{Path(__file__).name}:{line + 1}" in str(caught.value)


def test_operations_stand_at_the_user_s_lines() -> None:
    exported = torch.export.export(Everything().eval(), _arguments()[:1], {"more": _arguments()[1]})
    text = hloforge.as_program(exported).text(locations=True)
    line = Everything.forward.__code__.co_firstlineno
    assert f'{Path(__file__).name}":{line + 1}' in text
    assert "conv" in text


def test_weights_can_stand_in_a_file(tmp_path: Path) -> None:
    module = nn.Linear(64, 64)
    x = torch.randn(2, 64)
    save_file(
        {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}, tmp_path / "w.safetensors"
    )
    program = hloforge.torch.compile(module, (x,), weights=tmp_path / "w.safetensors")
    assert [parameter.name for parameter in program.session.signature.parameters] == ["input"]
    torch.testing.assert_close(program(x), module(x).detach(), rtol=1e-4, atol=1e-5)
