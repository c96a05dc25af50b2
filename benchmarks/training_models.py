"""Steps of training by ``torch.compile``: a loss and its gradients, by the names of their rows in docs/models.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.pairs import Pair, pytorch_engines


def _classifier(features: int, shape: tuple[int, ...]) -> Callable[[], tuple[Any, Any, Any]]:
    def make() -> tuple[Any, Any, Any]:
        import torch

        wide = [torch.nn.Linear(features, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Dropout(0.0)]
        return torch.nn.Sequential(*wide, torch.nn.Linear(512, 10)), torch.randn(shape), torch.arange(shape[0]) % 10

    return make


def _convolutional() -> tuple[Any, Any, Any]:
    import torch

    def block(taken: int, made: int, stride: int) -> list[Any]:
        normal = torch.nn.BatchNorm2d(made)
        return [torch.nn.Conv2d(taken, made, 3, stride, 1, bias=False), normal, torch.nn.ReLU()]

    layers = [*block(3, 16, 1), *block(16, 32, 2), *block(32, 64, 2)]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(*layers, *head), torch.randn(16, 3, 32, 32), torch.arange(16) % 10


def _encoder() -> tuple[Any, Any, Any]:
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True, norm_first=True)
            self.words = torch.nn.Embedding(1000, 128)
            self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Linear(128, 10)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.layers(self.words(tokens)).mean(1))

    return Encoder(), torch.randint(0, 1000, (8, 64)), torch.arange(8) % 10


def _language() -> tuple[Any, Any, Any]:
    import torch
    import transformers

    sizes = {"vocab_size": 1000, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2}
    configuration = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, use_cache=False)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.LlamaForCausalLM(configuration)

        def forward(self, tokens: Any) -> Any:
            return self.model(input_ids=tokens).logits.flatten(0, 1)

    tokens = torch.randint(0, 1000, (4, 64))
    return Model(), tokens, tokens.roll(-1, 1).flatten()


TRAINING: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "MLP": _classifier(784, (64, 784)),
    "CNN": _convolutional,
    "encoder": _encoder,
    "Llama": _language,
}


def training(make: Callable[[], tuple[Any, Any, Any]]) -> Pair:
    """The cross entropy of a model's results and all its gradients; ``seconds`` is the first step."""
    import torch

    torch.manual_seed(0)
    torch._dynamo.reset()
    model, given, labels = make()

    def step(call: Any, threads: int) -> list[Any]:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        model.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(call(given), labels)
        loss.backward()
        gradients = torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])
        return [loss.detach().numpy(), gradients.numpy()]

    ours = torch.compile(model, backend="hloforge")
    begin = time.perf_counter()
    step(ours, 1)
    seconds = time.perf_counter() - begin
    return Pair(pytorch_engines(model, step), lambda: step(ours, 1), seconds)
