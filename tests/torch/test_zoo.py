"""A model of each kind of the zoo as near to f64 as eager PyTorch; ``python -m tests.torch.zoo`` judges all of them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from tests.torch.zoo import ENTRIES, judge  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fresh_dynamo")]


@pytest.mark.parametrize("name", ["MobileViT", "RWKV", "Glow", "GAT"])
def test_steps_of_training(name: str) -> None:
    assert not judge.training(ENTRIES[name])


def test_sizes_that_change() -> None:
    assert not judge.dynamic(ENTRIES["MLA with YaRN"])


def test_a_process_without_the_framework() -> None:
    assert not judge.command_line(ENTRIES["paged cache"])
