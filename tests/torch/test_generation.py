"""A language model as one file of two functions: its tokens are PyTorch's, and its cache stays where it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import generate

    yield generate
    del sys.modules["generate"]


@pytest.mark.wide(2)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
def test_tokens_are_pytorchs(example: Any, kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = example.Llama(example.Sizes(2, 64, 4, 2, 96, 150, 128)).eval().requires_grad_(False).to(kind)
    prompt = torch.randint(0, 150, (7,)).tolist()
    own, _, _ = example.in_hloforge(model, len(prompt), tmp_path)
    expected = example.in_pytorch(model, model.cache)
    # Scores, because equal ones of 16 bits have no best token.
    scores, cache = own.prefill(prompt, own.cache(), 0)
    wanted, kept = expected.prefill(prompt, model.cache(), 0)
    place = cache.host.__array_interface__["data"][0]
    for number in range(20):
        np.testing.assert_allclose(scores, wanted, atol=2e-2 if kind is torch.bfloat16 else 1e-5)
        token = [int(wanted.argmax())]
        scores, cache = own.decode(token, cache, len(prompt) + number)
        wanted, kept = expected.decode(token, kept, len(prompt) + number)
        assert cache.host.__array_interface__["data"][0] == place, "the cache is copied"


def test_random_tokens_are_likely_ones(example: Any) -> None:
    choose = example.sampled(seed=1, most=3)
    scores = np.array([0, 5, 4.5, -3, 4, 1], np.float32)
    assert {choose(scores) for _ in range(100)} == {1, 2, 4}
