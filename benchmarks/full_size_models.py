"""Models of transformers and diffusers in the sizes that people run, by the names of their rows in docs/models.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.library_models import Model

_NO_CACHE = {"use_cache": False}
_EXPERTS = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "vocab_size": 8000}
_WHISPER = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "use_cache": False}
_LLAMA = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "vocab_size": 32000}


def _tokens(rows: int, length: int) -> Any:
    import torch

    return torch.randint(3, 1000, (rows, length))


def _text(rows: int, length: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"input_ids": _tokens(rows, length)}


def _decoded(length: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"input_ids": _tokens(1, length), **_NO_CACHE}


def _image(size: int) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        import torch

        return {"pixel_values": torch.randn(1, 3, size, size)}

    return make


def _recording() -> dict[str, Any]:
    """Thirty seconds, as Whisper takes them, and eight tokens."""
    import torch

    return {"input_features": torch.randn(1, 80, 3000), "decoder_input_ids": _tokens(1, 8)}


def _second() -> dict[str, Any]:
    import torch

    return {"input_values": torch.randn(1, 16000)}


def _of(kind: str, given: Callable[[], dict[str, Any]], configuration: str, **options: Any) -> Callable[[], Model]:
    def make() -> Model:
        import transformers

        return getattr(transformers, kind)(getattr(transformers, configuration)(**options)), given()

    return make


def _decoder() -> Model:
    """From 32x32 latent pixels to an image of 128x128."""
    import diffusers
    import torch

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
    model = diffusers.AutoencoderKL(block_out_channels=(64, 128, 256), layers_per_block=1, latent_channels=4, **blocks)

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, z: Any) -> Any:
            return self.model.decode(z, return_dict=False)[0]

    return Decoder(), {"z": torch.randn(1, 4, 32, 32)}


FULL_SIZE_MODELS: dict[str, Callable[[], Model]] = {
    "BERT-base, 128 tokens": _of("BertModel", _text(1, 128), "BertConfig"),
    "DistilBERT, 8x64 tokens": _of("DistilBertModel", _text(8, 64), "DistilBertConfig"),
    "GPT-2, 16 tokens": _of("GPT2LMHeadModel", _decoded(16), "GPT2Config"),
    "Llama of 160 M, 128 tokens": _of(
        "LlamaForCausalLM", _decoded(128), "LlamaConfig", num_attention_heads=12, **_LLAMA
    ),
    "Mixtral of 8x6 M, 64 tokens": _of(
        "MixtralForCausalLM", _decoded(64), "MixtralConfig", num_attention_heads=8, num_key_value_heads=4, **_EXPERTS
    ),
    "T5-small, 64 tokens": _of(
        "T5ForConditionalGeneration",
        lambda: {**_decoded(64)(), "decoder_input_ids": _tokens(1, 16)},
        "T5Config",
    ),
    "ViT-base, 224x224": _of("ViTModel", _image(224), "ViTConfig"),
    "CLIP ViT-B/32": _of("CLIPVisionModel", _image(224), "CLIPVisionConfig"),
    "SegFormer-B0, 512x512": _of("SegformerForSemanticSegmentation", _image(512), "SegformerConfig"),
    "Whisper-tiny, 30 s": _of(
        "WhisperModel",
        _recording,
        "WhisperConfig",
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        **_WHISPER,
    ),
    "wav2vec2-base, 1 s": _of("Wav2Vec2Model", _second, "Wav2Vec2Config"),
    "VAE decoder, 128x128": _decoder,
}
