"""``python -m benchmarks.families [NAME...]``: models as libraries ship them, by family, into docs/models.md.

Weights are random and sizes small: what is asked is whether a family comes in, whether it is right, and how a call
compares with the framework's own engine. Calls of both alternate, and the ratio is that of the best ones. With names,
only these are measured, and nothing is written.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from hloforge.dialect.errors import Error

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"
_TURNS, _SECONDS = 100, 2.0
_HEAD = """\
# Families of models

`python -m benchmarks.families` measures this table; it needs the extras `torch`, `onnx` and `ml`, transformers and
onnxruntime. Weights are random and sizes small (hidden sizes of 64, two layers; 100 trees and 1,000 rows). *Error* is
the largest difference from the engine's result, relative to its largest number. *Compile* includes the export.
*Ratio* is hloforge's best time of a call by the engine's, calls of both alternating: below 1, hloforge is faster.

| family | way in | engine | error | compile, s | ratio |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Pair:
    """One model, in the framework's engine and compiled.

    Attributes:
        theirs, ours: a call of each, with equal arguments; they return arrays.
        seconds: that hloforge took to make a program of the model.
    """

    theirs: Callable[[], list[Any]]
    ours: Callable[[], list[Any]]
    seconds: float


@dataclass(frozen=True)
class Family:
    name: str
    way: str
    engine: str
    pair: Callable[[], Pair]


def main(names: list[str]) -> None:
    """Measure the families and write the page."""
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        # Nothing was compiled before.
        os.environ["HLOFORGE_CACHE_DIR"] = cache
        for family in families():
            if names and family.name not in names:
                continue
            row = _row(family)
            print(row, flush=True)
            rows.append(row)
    if not names:
        PAGE.write_text(_HEAD + "\n".join(rows) + "\n")


def _row(family: Family) -> str:
    start = f"| {family.name} | {family.way} | {family.engine} |"
    try:
        pair = family.pair()
        errors = [_error(*each) for each in zip(pair.ours(), pair.theirs(), strict=True)]
    except Error as error:
        return f"{start} refused: {error.message.splitlines()[0]} | – | – |"
    except Exception as error:
        # Of the framework, as where a library lacks a class or cannot export it.
        return f"{start} not measured: {type(error).__name__}: {str(error).splitlines()[0]:.90} | – | – |"
    return f"{start} {max(errors):.1e} | {pair.seconds:.1f} | {_ratio(pair):.2f} |"


def _error(found: Any, wanted: Any) -> float:
    if isinstance(wanted, list):
        # Maps from classes to scores, a row each.
        wanted = [list(row.values()) for row in wanted]
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30))


def _ratio(pair: Pair) -> float:
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + _SECONDS
    turns = 0
    while turns < _TURNS and (time.perf_counter() < end or turns < 5):
        for number, call in enumerate((pair.ours, pair.theirs)):
            begin = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - begin)
        turns += 1
    return best[0] / best[1]


def families() -> Iterator[Family]:
    """All of them; what a library lacks is told in its row."""
    for name, estimator in _ESTIMATORS.items():
        yield Family(name, "skl2onnx, onnxmltools", "onnxruntime", lambda estimator=estimator: _of_onnx(estimator))
    for number, (name, (kind, configuration, options)) in enumerate(_TRANSFORMERS.items()):
        # Every second one in bf16 as well.
        for dtype in ("float32", "bfloat16")[: 2 - number % 2]:
            title = name if dtype == "float32" else f"{name}, bf16"
            arguments = (kind, configuration, options, dtype)
            yield Family(
                title,
                "torch.export",
                "PyTorch eager, 1 thread",
                lambda arguments=arguments: _of_transformers(*arguments),
            )


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
    return Pair(lambda: session.run(None, {name: x}), lambda: _listed(program(x)), seconds)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


# Transformers -------------------------------------------------------------------------------------------------------

_TEXT = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
_HEADS = {"num_attention_heads": 4}
_GROUPED = {**_TEXT, **_HEADS, "num_key_value_heads": 2}
_PICTURES = {**_HEADS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "image_size": 32}
# The class of the model, that of its configuration, its sizes.
_TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**_GROUPED, "head_dim": 16}),
    "Gemma": ("GemmaForCausalLM", "GemmaConfig", {**_GROUPED, "head_dim": 16}),
    "Phi": ("PhiForCausalLM", "PhiConfig", {**_TEXT, **_HEADS}),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GROUPED, "num_local_experts": 4}),
    "Qwen3-MoE": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**_GROUPED, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64},
    ),
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4}),
    "BERT": ("BertModel", "BertConfig", {**_TEXT, **_HEADS}),
    "ModernBERT": ("ModernBertModel", "ModernBertConfig", {**_TEXT, **_HEADS, "pad_token_id": 0}),
    "Mamba": ("MambaForCausalLM", "MambaConfig", {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2}),
    "ViT": ("ViTModel", "ViTConfig", {**_PICTURES, "patch_size": 8}),
    "CLIP, vision": ("CLIPVisionModel", "CLIPVisionConfig", {**_PICTURES, "patch_size": 8}),
}


def _of_transformers(kind: str, configuration: str, options: dict[str, Any], dtype: str) -> Pair:
    import torch
    import transformers

    import hloforge.torch

    # With more threads, models of these sizes wait for each other's barriers.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, configuration)(**options))
    model = model.eval().to(getattr(torch, dtype))
    if "image_size" in options:
        given: dict[str, Any] = {"pixel_values": torch.randn(2, 3, 32, 32).to(model.dtype)}
    else:
        given = {"input_ids": torch.randint(1, 256, (2, 64))}
    if "CausalLM" in kind or "LMHead" in kind:
        given["use_cache"] = False
    begin = time.perf_counter()
    program = hloforge.torch.compile(model, (), given)
    seconds = time.perf_counter() - begin

    def run(call: Any) -> list[Any]:
        with torch.no_grad():
            return [call(**given)[0].float().numpy()]

    return Pair(lambda: run(model), lambda: run(program), seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
