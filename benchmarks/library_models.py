"""Models of PyTorch's libraries, with random weights, by the names of their rows in docs/models.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

# A module, and its arguments by name.
Model: TypeAlias = tuple[Any, dict[str, Any]]


def _timm(name: str) -> Callable[[], Model]:
    def make() -> Model:
        import timm
        import torch

        model = timm.create_model(name, pretrained=False)
        size = model.default_cfg["input_size"][-1]
        return model, {"x": torch.randn(1, 3, size, size)}

    return make


LIBRARY_MODELS: dict[str, tuple[str, Callable[[], Model]]] = {
    "ResNet-18": ("timm", _timm("resnet18")),
    "EfficientNet-B0": ("timm", _timm("efficientnet_b0")),
}
