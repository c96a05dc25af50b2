"""``python -m benchmarks.families [NAME...]``: models as libraries ship them, by family, into docs/models.md.

Weights are random and sizes small: what is asked is whether a family comes in, whether it is right, and how a call
compares with the framework's own engines. With names, only these are measured, and only their rows are replaced.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from benchmarks.full_size_models import FULL_SIZE_MODELS
from benchmarks.library_models import LIBRARY_MODELS
from benchmarks.onnx_models import ONNX, exported
from benchmarks.pairs import Family, Pair, pytorch_engines
from benchmarks.tensorflow_models import APPLICATIONS, QUANTIZED, application, quantized
from benchmarks.training_models import TRAINING, training
from hloforge.dialect.errors import Error
from hloforge.runtime.tuning.timing import interleaved

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"
_SECONDS = 5.0
_HEAD = """\
# Families of models

`python -m benchmarks.families` measures this table; it needs the extras `torch`, `onnx`, `tensorflow` and `ml`,
onnxruntime, onnxscript, transformers and the libraries that are named in brackets. Weights are random and sizes small
(hidden sizes of 64, two layers; 100 trees and 1,000 rows), but timm's and Keras's models have their own, and one image
of their own; those of the other libraries are in `benchmarks/library_models.py`, and rows that name tokens, pixels or
seconds have the sizes that people run (`benchmarks/full_size_models.py`). *Error* is the largest difference from
the engine's result, relative to its largest number; of a step of training, that of its loss or its gradients. *Compile*
includes the export. Engines have one thread, and one a processor: onnxruntime for ONNX, eager PyTorch and
`torch.compile` (Inductor) for PyTorch, `tf.function` without and with XLA for Keras, TFLite's interpreter (XNNPACK) for
bytes. *Ratio* is hloforge's time of a call by that of the fastest engine, which is named: medians of calls in
alternation, each once the threads of the others sleep. Below 1, hloforge is faster. Most rows from MLP to GAT are
older: quotients of the best calls, some beside other work; rows of "PyTorch eager, 1 thread" were measured beside that
engine alone.

| family | way in | fastest engine | error | compile, s | ratio |
|---|---|---|---|---|---|
"""


def main(names: list[str]) -> None:
    """Measure the families and write the page."""
    warnings.simplefilter("ignore")
    lines = PAGE.read_text().splitlines() if PAGE.is_file() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}
    known = {}
    with tempfile.TemporaryDirectory() as cache:
        # Nothing was compiled before.
        os.environ["HLOFORGE_CACHE_DIR"] = cache
        for family in families():
            if names and family.name not in names:
                known |= {name: row for name, row in rows.items() if name == family.name}
                continue
            known[family.name] = _row(family)
            print(known[family.name], flush=True)
            # What was measured stays if the rest is interrupted.
            found = rows | known
            PAGE.write_text(_HEAD + "\n".join(found[one.name] for one in families() if one.name in found) + "\n")
    ratios = [float(found[1]) for row in known.values() if (found := re.search(r"\| ([\d.]+) \|$", row))]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else 0.0
    print(f"{mean:.2f} in the geometric mean, {max(ratios, default=0):.2f} at worst, of {len(ratios)}")


def _row(family: Family) -> str:
    """A line of the table."""
    start = f"| {family.name} | {family.way} |"
    try:
        pair = family.pair()
        errors = [_error(*each) for each in zip(pair.ours(), next(iter(pair.theirs.values()))(), strict=True)]
    except Error as error:
        return f"{start} – | refused: {error.message.splitlines()[0]} | – | – |"
    except Exception as error:
        # Of the framework, as where a library lacks a class or cannot export it.
        said = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]:.90}"
        return f"{start} – | not measured: {said} | – | – |"
    fastest, ratio = _ratio(pair)
    return f"{start} {fastest} | {max(errors):.1e} | {pair.seconds:.1f} | {ratio:.2f} |"


def _error(found: Any, wanted: Any) -> float:
    if isinstance(wanted, list):
        # Maps from classes to scores, a row each.
        wanted = [list(row.values()) for row in wanted]
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30))


def _ratio(pair: Pair) -> tuple[str, float]:
    """The fastest engine, and our time by its: medians of calls in alternation, each once the others' threads sleep."""
    found = {name: latency.median for name, latency in interleaved({"": pair.ours, **pair.theirs}, _SECONDS).items()}
    own = found.pop("")
    fastest = min(found, key=lambda name: found[name])
    return fastest, own / found[fastest]


def families() -> Iterator[Family]:
    """All of them; what a library lacks is told in its row."""
    for name, estimator in _ESTIMATORS.items():
        yield Family(name, "skl2onnx, onnxmltools", lambda estimator=estimator: _of_onnx(estimator))
    for name, module in _MODULES.items():
        yield Family(name, "torch.export", lambda module=module: _of_module(module))
    for number, (name, (kind, configuration, options)) in enumerate(_TRANSFORMERS.items()):
        # Every second one in bf16 as well.
        for dtype in ("float32", "bfloat16")[: 2 - number % 2]:
            title = name if dtype == "float32" else f"{name}, bf16"
            arguments = (kind, configuration, options, dtype)
            yield Family(
                title,
                "torch.export",
                lambda arguments=arguments: _of_transformers(*arguments),
            )
    for name, (library, make) in LIBRARY_MODELS.items():
        yield Family(f"{name} ({library})", "torch.export", lambda make=make: _of_module(make))
    for name, make in FULL_SIZE_MODELS.items():
        yield Family(name, "torch.export", lambda make=make: _of_module(make))
    for name, make in TRAINING.items():
        yield Family(f"{name}, training", "torch.compile", lambda make=make: training(make))
    for name, (model, quantize) in ONNX.items():
        yield Family(f"{name} (timm)", "ONNX", lambda model=model, quantize=quantize: exported(model, quantize))
    for name in APPLICATIONS:
        yield Family(f"{name} (Keras)", "TensorFlow", lambda name=name: application(name))
    for name in QUANTIZED:
        yield Family(f"{name}, int8", "TFLite", lambda name=name: quantized(name))


# Classic machine learning -------------------------------------------------------------------------------------------


def _ensemble(kind: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn import ensemble

        return getattr(ensemble, kind)(random_state=0, **options)

    return make


def _of_library(library: str, kind: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from importlib import import_module

        return getattr(import_module(library), kind)(**options)

    return make


_ESTIMATORS: dict[str, Callable[[], Any]] = {
    "random forest": _ensemble("RandomForestClassifier", max_depth=8),
    "gradient boosting": _ensemble("GradientBoostingRegressor"),
    "LightGBM": _of_library("lightgbm", "LGBMClassifier", n_estimators=100, verbose=-1),
    "XGBoost": _of_library("xgboost", "XGBClassifier", n_estimators=100, max_depth=6),
    "SVM, RBF": _of_library("sklearn.svm", "SVC"),
    "logistic regression": _of_library("sklearn.linear_model", "LogisticRegression"),
    "nearest neighbours": _of_library("sklearn.neighbors", "KNeighborsClassifier", n_neighbors=3),
}


def _of_onnx(estimator: Callable[[], Any]) -> Pair:
    import onnxruntime
    from onnxmltools import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from skl2onnx import to_onnx

    random = np.random.default_rng(0)
    x = random.normal(size=(1000, 20)).astype(np.float32)
    model = estimator()
    model.fit(x, 2 * x[:, 0] if "Regressor" in type(model).__name__ else np.digitize(x[:, 0] + x[:, 1], [-0.5, 0.5]))
    library = type(model).__module__.partition(".")[0]
    if library == "sklearn":
        options = {"zipmap": False} if hasattr(model, "predict_proba") else None
        converted = to_onnx(model, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    else:
        convert = convert_lightgbm if library == "lightgbm" else convert_xgboost
        others = {"zipmap": False} if library == "lightgbm" else {}
        converted = convert(model, initial_types=[("X", FloatTensorType([None, 20]))], target_opset=15, **others)
    data = converted.SerializeToString()
    session = onnxruntime.InferenceSession(data)
    name = session.get_inputs()[0].name
    begin = time.perf_counter()
    program = hloforge.compile(data, shapes={name: x.shape}).load()
    seconds = time.perf_counter() - begin
    return Pair({"onnxruntime": lambda: session.run(None, {name: x})}, lambda: _listed(program(x)), seconds)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


# PyTorch ------------------------------------------------------------------------------------------------------------


def _by_pytorch(model: Any, given: dict[str, Any]) -> Pair:
    """A module called with tensors by name: eagerly, by Inductor, and compiled."""
    import torch

    import hloforge.torch

    begin = time.perf_counter()
    program = hloforge.torch.compile(model, (), given)
    seconds = time.perf_counter() - begin

    def run(call: Any, threads: int) -> list[Any]:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        with torch.no_grad():
            return [_first(call(**given)).float().numpy()]

    return Pair(pytorch_engines(model, run), lambda: run(program, 1), seconds)


def _first(results: Any) -> Any:
    """The first tensor of what a model returns."""
    while not hasattr(results, "float"):
        results = next(iter(results.values())) if isinstance(results, dict) else results[0]
    return results


def _mlp() -> tuple[Any, dict[str, Any]]:
    import torch

    wide = [torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU()]
    return torch.nn.Sequential(*wide, torch.nn.Linear(1024, 10)), {"input": torch.randn(64, 784)}


def _encoder() -> tuple[Any, dict[str, Any]]:
    import torch

    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, activation="gelu")
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), {"src": torch.randn(2, 128, 256)}


def _cnn() -> tuple[Any, dict[str, Any]]:
    import torch

    def block(taken: int, made: int, stride: int) -> list[Any]:
        normal = torch.nn.BatchNorm2d(made)
        return [torch.nn.Conv2d(taken, made, 3, stride, 1, bias=False), normal, torch.nn.ReLU()]

    layers = [*block(3, 32, 2), *block(32, 64, 1), *block(64, 128, 2), *block(128, 128, 1)]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 100)]
    return torch.nn.Sequential(*layers, *head), {"input": torch.randn(4, 3, 64, 64)}


def _lstm() -> tuple[Any, dict[str, Any]]:
    import torch

    return torch.nn.LSTM(64, 128, 2, batch_first=True), {"input": torch.randn(8, 64, 64)}


_MODULES: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "MLP": _mlp,
    "encoder": _encoder,
    "CNN": _cnn,
    "LSTM": _lstm,
}


def _of_module(make: Callable[[], tuple[Any, dict[str, Any]]]) -> Pair:
    import torch

    torch.manual_seed(0)
    model, given = make()
    return _by_pytorch(model.eval(), given)


# Transformers -------------------------------------------------------------------------------------------------------

_TEXT = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
_HEADS = {"num_attention_heads": 4}
_GROUPED = {**_TEXT, **_HEADS, "num_key_value_heads": 2}
_PICTURES = {**_HEADS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "image_size": 32}
_SOUND = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
# The class of the model, that of its configuration, its sizes.
_TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**_GROUPED, "head_dim": 16}),
    "Gemma": ("GemmaForCausalLM", "GemmaConfig", {**_GROUPED, "head_dim": 16}),
    "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", {**_GROUPED, "head_dim": 16}),
    "Phi": ("PhiForCausalLM", "PhiConfig", {**_TEXT, **_HEADS}),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GROUPED, "num_local_experts": 4}),
    "Qwen3-MoE": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", {**_GROUPED, "head_dim": 16, **_EXPERTS}),
    "DeepSeek-V3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **_TEXT,
            **_HEADS,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 32,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 32,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
        },
    ),
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4}),
    "BERT": ("BertModel", "BertConfig", {**_TEXT, **_HEADS}),
    "ModernBERT": ("ModernBertModel", "ModernBertConfig", {**_TEXT, **_HEADS, "pad_token_id": 0}),
    "T5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": 256, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_SOUND,
            "vocab_size": 256,
            "num_mel_bins": 16,
            "max_source_positions": 32,
            "decoder_attention_heads": 4,
            "decoder_ffn_dim": 128,
            "encoder_ffn_dim": 128,
            "max_target_positions": 64,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
    ),
    "wav2vec2": (
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {**_TEXT, **_HEADS, "conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
        | {"num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    ),
    "Mamba": ("MambaForCausalLM", "MambaConfig", {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2}),
    "Mamba 2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 16, "n_groups": 2}
        | {"state_size": 16, "chunk_size": 16},
    ),
    "ViT": ("ViTModel", "ViTConfig", {**_PICTURES, "patch_size": 8}),
    "CLIP, vision": ("CLIPVisionModel", "CLIPVisionConfig", {**_PICTURES, "patch_size": 8}),
    "CLIP, text": ("CLIPTextModel", "CLIPTextConfig", {**_TEXT, **_HEADS, "max_position_embeddings": 64}),
    "DINOv2": ("Dinov2Model", "Dinov2Config", {**_PICTURES, "patch_size": 8}),
    "SegFormer": ("SegformerModel", "SegformerConfig", {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1]}),
    "DETR": (
        "DetrForObjectDetection",
        "DetrConfig",
        {**_SOUND, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_queries": 10},
    ),
    "SAM, vision": (
        "SamVisionModel",
        "SamVisionConfig",
        {**_PICTURES, "image_size": 64, "patch_size": 8, "output_channels": 32, "window_size": 4, "mlp_dim": 128}
        | {"global_attn_indexes": [1]},
    ),
    "Gemma 3": ("Gemma3ForCausalLM", "Gemma3TextConfig", {**_GROUPED, "head_dim": 16, "sliding_window": 16}),
    "OLMo 2": ("Olmo2ForCausalLM", "Olmo2Config", _GROUPED),
    "GLM-4": ("Glm4ForCausalLM", "Glm4Config", {**_GROUPED, "head_dim": 16, "pad_token_id": 0}),
    "gpt-oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_GROUPED, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16},
    ),
    "Qwen3-Next": (
        "Qwen3NextForCausalLM",
        "Qwen3NextConfig",
        {**_GROUPED, "head_dim": 16, **_EXPERTS, "shared_expert_intermediate_size": 64, "linear_num_key_heads": 2}
        | {"linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16}
        | {"layer_types": ["linear_attention", "full_attention"]},
    ),
    "HuBERT": (
        "HubertModel",
        "HubertConfig",
        {**_TEXT, **_HEADS, "conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
        | {"num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    ),
    "DINOv3": ("DINOv3ViTModel", "DINOv3ViTConfig", {**_PICTURES, "patch_size": 8}),
    "SigLIP, vision": ("SiglipVisionModel", "SiglipVisionConfig", {**_PICTURES, "patch_size": 8}),
    "Swin": (
        "SwinModel",
        "SwinConfig",
        {"image_size": 64, "patch_size": 4, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
}


def _of_transformers(kind: str, configuration: str, options: dict[str, Any], dtype: str) -> Pair:
    import torch
    import transformers

    torch.manual_seed(0)
    if "Detr" in kind:
        backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1])
        backbone.out_features = ["stage2"]
        options = {**options, "backbone_config": backbone, "use_timm_backbone": False, "use_pretrained_backbone": False}
    model = getattr(transformers, kind)(getattr(transformers, configuration)(**options))
    model = model.eval().to(getattr(torch, dtype))
    return _by_pytorch(model, _arguments(kind, options, model.dtype))


def _arguments(kind: str, options: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """Random inputs of a kind of model."""
    import torch

    tokens = torch.randint(3, 256, (2, 64))
    if "Whisper" in kind:
        return {
            "input_features": torch.randn(2, 16, 64).to(dtype),
            "decoder_input_ids": tokens[:, :8],
            "use_cache": False,
        }
    if "Wav2Vec2" in kind or "Hubert" in kind:
        return {"input_values": torch.randn(2, 4000).to(dtype)}
    if "image_size" in options or kind in ("SegformerModel", "DetrForObjectDetection"):
        size = options.get("image_size", 64)
        return {"pixel_values": torch.randn(2, 3, size, size).to(dtype)}
    given: dict[str, Any] = {"input_ids": tokens}
    if "T5" in kind:
        given["decoder_input_ids"] = tokens[:, :16]
    if "CausalLM" in kind or "LMHead" in kind or "T5" in kind:
        given["use_cache"] = False
    return given


if __name__ == "__main__":
    main(sys.argv[1:])
