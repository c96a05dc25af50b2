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


def _torchvision(name: str, shape: tuple[int, ...], **options: Any) -> Callable[[], Model]:
    def make() -> Model:
        import torch
        import torchvision

        model = torchvision.models.get_model(name, weights=None, **options)
        return model, {"x": torch.randn(shape)}

    return make


def _flow() -> Model:
    import torch
    import torchvision

    model = torchvision.models.get_model("raft_small", weights=None)
    return model, {"image1": torch.randn(1, 3, 128, 128), "image2": torch.randn(1, 3, 128, 128), "num_flow_updates": 2}


def _diffusers(kind: str, given: Callable[[], dict[str, Any]], **options: Any) -> Callable[[], Model]:
    def make() -> Model:
        import diffusers

        return getattr(diffusers, kind)(**options), {**given(), "return_dict": False}

    return make


def _geometric(kind: str) -> Callable[[], Model]:
    """Three layers over 2,000 nodes with 10,000 edges."""

    def make() -> Model:
        import torch
        import torch_geometric.nn

        model = getattr(torch_geometric.nn, kind)(64, 64, 3, 16)
        return model, {"x": torch.randn(2000, 64), "edge_index": torch.randint(0, 2000, (2, 10000))}

    return make


def _noisy() -> dict[str, Any]:
    import torch

    words = torch.randn(2, 16, 32)
    return {"sample": torch.randn(2, 4, 32, 32), "timestep": torch.tensor(3), "encoder_hidden_states": words}


def _picture() -> dict[str, Any]:
    import torch

    return {"sample": torch.randn(1, 3, 64, 64)}


def _classified() -> dict[str, Any]:
    import torch

    latents = torch.randn(2, 4, 32, 32)
    return {"hidden_states": latents, "timestep": torch.tensor([3, 5]), "class_labels": torch.tensor([1, 2])}


def _packed() -> dict[str, Any]:
    import torch

    return {
        "hidden_states": torch.randn(1, 256, 16),
        "encoder_hidden_states": torch.randn(1, 32, 64),
        "pooled_projections": torch.randn(1, 64),
        "timestep": torch.tensor([0.5]),
        "img_ids": torch.randint(0, 16, (256, 3)).float(),
        "txt_ids": torch.zeros(32, 3),
    }


_LEVELS = {"block_out_channels": (32, 64), "norm_num_groups": 8}
_ATTENTION = {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2}

LIBRARY_MODELS: dict[str, tuple[str, Callable[[], Model]]] = {
    "ResNet-18": ("timm", _timm("resnet18")),
    "EfficientNet-B0": ("timm", _timm("efficientnet_b0")),
    "ConvNeXt": ("timm", _timm("convnext_atto")),
    "MobileViT": ("timm", _timm("mobilevit_xxs")),
    "DeepLabV3": (
        "torchvision",
        _torchvision("deeplabv3_mobilenet_v3_large", (1, 3, 128, 128), weights_backbone=None),
    ),
    "R3D-18, video": ("torchvision", _torchvision("r3d_18", (1, 3, 8, 64, 64))),
    "Swin-T": ("torchvision", _torchvision("swin_t", (1, 3, 224, 224))),
    "RAFT, optical flow": ("torchvision", _flow),
    "U-Net, diffusion": (
        "diffusers",
        _diffusers(
            "UNet2DConditionModel",
            _noisy,
            **_LEVELS,
            sample_size=32,
            layers_per_block=1,
            cross_attention_dim=32,
            attention_head_dim=4,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        ),
    ),
    "VAE": (
        "diffusers",
        _diffusers(
            "AutoencoderKL",
            _picture,
            **_LEVELS,
            latent_channels=4,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
    ),
    "DiT": (
        "diffusers",
        _diffusers("DiTTransformer2DModel", _classified, **_ATTENTION, sample_size=32, num_embeds_ada_norm=10),
    ),
    "Flux": (
        "diffusers",
        _diffusers(
            "FluxTransformer2DModel",
            _packed,
            **{**_ATTENTION, "num_layers": 1},
            num_single_layers=1,
            in_channels=16,
            joint_attention_dim=64,
            pooled_projection_dim=64,
            axes_dims_rope=(4, 4, 8),
        ),
    ),
    "GAT": ("torch_geometric", _geometric("GAT")),
    "GCN": ("torch_geometric", _geometric("GCN")),
    "GraphSAGE": ("torch_geometric", _geometric("GraphSAGE")),
    "GIN": ("torch_geometric", _geometric("GIN")),
}
