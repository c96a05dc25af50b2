"""The layers of Keras, each with a small configuration and an input, and how to find out that none is missing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tests.tensorflow.cases import BOOLEANS, IMAGE, LABELS, POSITIVE, SEQUENCE, UNIT, VOLUME, Case, X

L = keras.layers
# Base classes, what takes no tensors of numbers, and what wraps other frameworks.
_OTHERS = {
    *("Layer", "Wrapper", "InputLayer", "RNN", "StackedRNNCells", "FlaxLayer", "JaxLayer", "TorchModuleWrapper"),
    *("TFSMLayer", "MaxNumBoundingBoxes", "Pipeline", "Lambda", "InputSpec"),
    *("StringLookup", "IntegerLookup", "TextVectorization", "Hashing", "HashedCrossing", "MelSpectrogram"),
    *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "ConvLSTM1D", "ConvLSTM3D"),
}
_PAIR: tuple[Any, ...] = ([X, X * 0.5 + 1],)
_MAKERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Activation": (lambda: L.Activation("mish"), X),
    "ActivityRegularization": (lambda: L.ActivityRegularization(0.1), X),
    "AdaptiveAveragePooling1D": (lambda: L.AdaptiveAveragePooling1D(3), SEQUENCE),
    "AdaptiveAveragePooling2D": (lambda: L.AdaptiveAveragePooling2D(3), IMAGE),
    "AdaptiveAveragePooling3D": (lambda: L.AdaptiveAveragePooling3D(2), VOLUME),
    "AdaptiveMaxPooling1D": (lambda: L.AdaptiveMaxPooling1D(3), SEQUENCE),
    "AdaptiveMaxPooling2D": (lambda: L.AdaptiveMaxPooling2D(3), IMAGE),
    "AdaptiveMaxPooling3D": (lambda: L.AdaptiveMaxPooling3D(2), VOLUME),
    "AdditiveAttention": (L.AdditiveAttention, [SEQUENCE, SEQUENCE + 1]),
    "Attention": (L.Attention, [SEQUENCE, SEQUENCE + 1]),
    "BatchNormalization": (L.BatchNormalization, IMAGE),
    "Bidirectional": (lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)), SEQUENCE),
    "CategoryEncoding": (lambda: L.CategoryEncoding(5, output_mode="one_hot"), LABELS),
    "CenterCrop": (lambda: L.CenterCrop(4, 5), IMAGE),
    "Conv1D": (lambda: L.Conv1D(3, 3, padding="causal"), SEQUENCE),
    "Conv2D": (lambda: L.Conv2D(6, 3, groups=3, strides=2), IMAGE),
    "Conv3D": (lambda: L.Conv3D(3, 2), VOLUME),
    "Conv2DTranspose": (lambda: L.Conv2DTranspose(4, 3, strides=2), IMAGE),
    "Conv1DTranspose": (lambda: L.Conv1DTranspose(4, 3, strides=2), SEQUENCE),
    "Conv3DTranspose": (lambda: L.Conv3DTranspose(2, 2), VOLUME),
    "ConvLSTM2D": (lambda: L.ConvLSTM2D(3, 3), np.stack([IMAGE, IMAGE * 0.5], 1)),
    "Cropping1D": (lambda: L.Cropping1D(1), SEQUENCE),
    "Cropping2D": (lambda: L.Cropping2D(1), IMAGE),
    "Cropping3D": (lambda: L.Cropping3D(1), VOLUME),
    "Dense": (lambda: L.Dense(5, activation="gelu"), X),
    "DepthwiseConv1D": (lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SEQUENCE),
    "DepthwiseConv2D": (lambda: L.DepthwiseConv2D(3, depth_multiplier=2), IMAGE),
    "Discretization": (lambda: L.Discretization([-1.0, 0.0, 1.0]), X),
    "Dot": (lambda: L.Dot(1), [X, X + 1]),
    "EinsumDense": (lambda: L.EinsumDense("abc,cd->abd", (None, 5)), SEQUENCE),
    "Embedding": (lambda: L.Embedding(9, 4), LABELS),
    "Flatten": (L.Flatten, IMAGE),
    "GRU": (lambda: L.GRU(5), SEQUENCE),
    "GRUCell": (lambda: L.RNN(L.GRUCell(5)), SEQUENCE),
    "GroupedQueryAttention": (lambda: L.GroupedQueryAttention(4, 4, 2), (SEQUENCE, SEQUENCE)),
    "GroupNormalization": (lambda: L.GroupNormalization(1), IMAGE),
    "Identity": (L.Identity, X),
    "LSTM": (lambda: L.LSTM(5, return_sequences=True), SEQUENCE),
    "LSTMCell": (lambda: L.RNN(L.LSTMCell(5)), SEQUENCE),
    "Masking": (L.Masking, SEQUENCE),
    "MultiHeadAttention": (lambda: L.MultiHeadAttention(2, 4), (SEQUENCE, SEQUENCE)),
    "Normalization": (lambda: L.Normalization(mean=1.0, variance=2.0), X),
    "Permute": (lambda: L.Permute((2, 1)), SEQUENCE),
    "PReLU": (L.PReLU, X),
    "RepeatVector": (lambda: L.RepeatVector(3), X),
    "Rescaling": (lambda: L.Rescaling(0.5, 1.0), X),
    "Reshape": (lambda: L.Reshape((3, -1)), X),
    "Resizing": (lambda: L.Resizing(4, 5), IMAGE),
    "ReversibleEmbedding": (lambda: L.ReversibleEmbedding(9, 4), LABELS),
    "RMSNormalization": (L.RMSNormalization, X),
    "SeparableConv1D": (lambda: L.SeparableConv1D(5, 3), SEQUENCE),
    "SeparableConv2D": (lambda: L.SeparableConv2D(5, 3), IMAGE),
    "SimpleRNN": (lambda: L.SimpleRNN(5), SEQUENCE),
    "SimpleRNNCell": (lambda: L.RNN(L.SimpleRNNCell(5)), SEQUENCE),
    "SpectralNormalization": (lambda: L.SpectralNormalization(L.Dense(4)), X),
    "STFTSpectrogram": (lambda: L.STFTSpectrogram(frame_length=4, frame_step=2, fft_length=4), SEQUENCE),
    "TimeDistributed": (lambda: L.TimeDistributed(L.Dense(3)), SEQUENCE),
    "UnitNormalization": (L.UnitNormalization, X),
    "UpSampling1D": (lambda: L.UpSampling1D(2), SEQUENCE),
    "UpSampling2D": (lambda: L.UpSampling2D(2, interpolation="bilinear"), IMAGE),
    "UpSampling3D": (lambda: L.UpSampling3D(2), VOLUME),
    "ZeroPadding1D": (lambda: L.ZeroPadding1D(1), SEQUENCE),
    "ZeroPadding2D": (lambda: L.ZeroPadding2D(1), IMAGE),
    "ZeroPadding3D": (lambda: L.ZeroPadding3D(1), VOLUME),
}


def names() -> list[str]:
    """The layers that are tried: all of ``keras.layers`` but base classes and those that take no numbers."""
    # Not the second names, such as Convolution2D.
    found = {name for name, value in vars(L).items() if inspect.isclass(value) and issubclass(value, L.Layer)}
    found = {name for name in found if getattr(L, name).__name__ == name}
    return sorted(found - _OTHERS | _MAKERS.keys() & found)


def layers() -> list[Case]:
    """The layers, built; those that act in training alone are called as Keras calls them in inference."""
    return [_case(name) for name in names()]


def _case(name: str) -> Case:
    keras.utils.set_random_seed(5)
    layer, given = _layer(name)
    arguments = given if isinstance(given, tuple) else (given,)
    layer(*arguments)

    def call(*tensors: Any) -> Any:
        return layer(*tensors)

    return Case(f"layers.{name}", call, arguments, 2e-5)


def _layer(name: str) -> tuple[Any, Any]:
    """A layer and its input; those that are not listed need no configuration, or one of a kind."""
    if name in _MAKERS:
        make, given = _MAKERS[name]
        return make(), given
    kind = getattr(L, name)
    if "Pooling" in name:
        by_rank = {"1D": SEQUENCE, "2D": IMAGE, "3D": VOLUME}
        return kind() if name.startswith("Global") else kind(2), by_rank[name[-2:]]
    if issubclass(kind, L.Add.__mro__[1]):
        return kind(), [X, X * 0.5 + 1]
    if name.startswith(
        (
            "Random",
            "AutoContrast",
            "AugMix",
            "CutMix",
            "MixUp",
            "Solarization",
            "Equalization",
            "RandAugment",
            "Contrast",
        )
    ):
        return _augmentation(kind), IMAGE
    if "Dropout" in name or name == "GaussianNoise":
        rank = name[-2:]
        return kind(0.3), {"1D": SEQUENCE, "2D": IMAGE, "3D": VOLUME}.get(rank, X)
    return kind(), X


def _augmentation(kind: Any) -> Any:
    """One of Keras's augmentations with 0.1 for what it cannot do without; in inference it changes nothing."""
    needed = [p for p in inspect.signature(kind).parameters.values() if p.default is inspect.Parameter.empty]
    required = [p.name for p in needed if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    values = (
        {"height": 4, "width": 4} if "Crop" in kind.__name__ else {"factor": 4} if "Poster" in kind.__name__ else {}
    )
    return kind(**{name: values.get(name, 0.1) for name in required})


__all__ = ["BOOLEANS", "POSITIVE", "UNIT", "layers", "names"]
