"""Operators of libraries: decomposed, lowered, or called in PyTorch by the program; and products of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402
from hloforge.torch.decompositions import decompositions  # noqa: E402
from hloforge.torch.operators.grouped import declare_operators  # noqa: E402

nn = torch.nn


@pytest.fixture(scope="module")
def library() -> Any:
    """A library with an operator that has a composite kernel, and one that nobody can look into."""
    # The table of decompositions is older than the library.
    decompositions()
    made = torch.library.Library("hloforge_tests", "DEF")
    made.define("doubled(Tensor x) -> Tensor")
    made.impl("doubled", lambda x: torch.relu(x) * 2, "CompositeImplicitAutograd")
    made.define("ordered(Tensor x, int factor) -> (Tensor, Tensor)")
    made.impl("ordered", _ordered, "CPU")
    torch.library.register_fake("hloforge_tests::ordered", _ordered_like, lib=made)
    made.define("found(Tensor x) -> Tensor")
    torch.library.register_fake("hloforge_tests::found", _found_like, lib=made)
    yield torch.ops.hloforge_tests
    made._destroy()


def _ordered(x: Any, factor: int) -> Any:
    values = np.sort(x.float().numpy(), axis=-1) * factor
    return torch.from_numpy(values).to(x.dtype), x.argmax(-1)


def _ordered_like(x: Any, factor: int) -> Any:
    return torch.empty_like(x), x.new_empty(x.shape[:-1], dtype=torch.int64)


def _found_like(x: Any) -> Any:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_program_calls_pytorch_for_an_operator(library: Any, dtype: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            values, best = library.ordered(library.doubled(x) + 1, 3)
            return values + library.ordered(x, -1)[0], best

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    program = hloforge.torch.compile(Model(), (x,))
    for found, wanted in zip(program(x), Model()(x), strict=True):
        torch.testing.assert_close(found, wanted)
    assert program.host_operators == (
        "hloforge_tests.ordered.default(_, -1)",
        "hloforge_tests.ordered.default(_, 3)",
    )


def test_unknown_sizes_are_refused_with_the_reason(library: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            return library.found(x)

    with pytest.raises(hloforge.UnsupportedError, match=r"sizes of its result are not known when it is compiled"):
        hloforge.torch.compile(Model(), (torch.ones(3),))


@pytest.mark.parametrize("shapes", [((40, 16), (4, 16, 24)), ((4, 16, 8), (8, 40)), ((16, 40), (40, 8))])
def test_products_of_groups(shapes: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Any, weights: Any, ends: Any) -> Any:
            return torch._grouped_mm(x, weights, offs=ends)

    random = torch.Generator().manual_seed(0)
    x, weights = (torch.randn(shape, generator=random).bfloat16() for shape in shapes)
    ends = torch.tensor([8, 8, 32, 40], dtype=torch.int32)
    found = hloforge.torch.compile(Model(), (x, weights, ends))(x, weights, ends)
    torch.testing.assert_close(found, Model()(x, weights, ends), rtol=1e-2, atol=1e-2)


def test_gradients_of_products_of_groups() -> None:
    """What transformers calls in backward passes; rows behind the last end have none."""
    declare_operators()

    class Model(nn.Module):
        def forward(self, x: Any, weights: Any, ends: Any, gradient: Any) -> Any:
            return torch.ops.transformers.grouped_mm_fallback_backward(x, weights, ends, gradient)

    random = torch.Generator().manual_seed(0)
    x, weights, gradient = (torch.randn(shape, generator=random) for shape in ((40, 16), (4, 16, 24), (40, 24)))
    ends = torch.tensor([8, 8, 30, 36])
    compiled = hloforge.torch.compile(Model(), (x, weights, ends, gradient))
    assert not compiled.host_operators
    rows, matrices = compiled(x, weights, ends, gradient)
    wanted, sums, start = torch.zeros(40, 16).double(), torch.zeros(4, 16, 24).double(), 0
    for group, end in enumerate(ends.tolist()):
        own = slice(start, end)
        wanted[own] = gradient[own].double() @ weights[group].double().T
        sums[group] = x[own].double().T @ gradient[own].double()
        start = end
    torch.testing.assert_close(rows, wanted.float(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(matrices, sums.float(), rtol=1e-5, atol=1e-5)
