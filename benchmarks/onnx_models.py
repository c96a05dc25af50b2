"""timm's models as ONNX Runtime takes them, in floats and quantized, by the names of their rows in docs/models.md."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from benchmarks.pairs import Pair

# Which are quantized by ONNX Runtime: pairs of QuantizeLinear and DequantizeLinear around what bytes compute.
ONNX: dict[str, tuple[str, bool]] = {
    "ResNet-18, float": ("resnet18", False),
    "MobileNetV3": ("mobilenetv3_small_100", False),
    "ViT, tiny": ("vit_tiny_patch16_224", False),
    "ResNet-18, QDQ": ("resnet18", True),
    "MobileNetV2, QDQ": ("mobilenetv2_100", True),
}


def exported(name: str, quantize: bool) -> Pair:
    """A call of one image beside ONNX Runtime with one thread and with one a processor."""
    import onnxruntime
    import timm
    import torch

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False).eval()
    images = torch.randn(1, *model.default_cfg["input_size"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(model, (images,), path, input_names=["x"], dynamo=True, external_data=False, verbose=False)
        if quantize:
            path = _quantized(path, images.numpy())
        data = path.read_bytes()
    given = images.numpy()

    def session(threads: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        made = onnxruntime.InferenceSession(data, options)
        return lambda: made.run(None, {"x": given})

    begin = time.perf_counter()
    program = hloforge.compile(data).load()
    seconds = time.perf_counter() - begin
    counts = sorted({1, os.cpu_count() or 1})
    theirs = {f"onnxruntime, {count} thread{'s' * (count > 1)}": session(count) for count in counts}
    return Pair(theirs, lambda: [program(given)], seconds)


def _quantized(path: Path, given: Any) -> Path:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.samples = iter([{"x": given}, {"x": np.ascontiguousarray(given[..., ::-1])}])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.samples, None)

    prepared, result = path.with_name("prepared.onnx"), path.with_name("quantized.onnx")
    quant_pre_process(path, prepared)
    quantize_static(
        *(prepared, result, Reader()),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    return result
