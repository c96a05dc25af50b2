"""When somebody speaks, by Silero's voice activity detector, whose weights are on PyPI.

    pip install '.[onnx]' onnxruntime && pip install --no-deps silero-vad
    python examples/speech.py

Source of the model: Silero Team, silero-vad. The voice is made here, of pulses through resonances (Klatt, 1980), so
that no recording is needed: noise, three vowels of a falling and rising voice, noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from onnx_ways import Call, both, compare, shipped

RATE, CHUNK, BEFORE = 16000, 512, 64
# The resonances of the vowels in "father", "see" and "bought", in Hz.
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (570, 840, 2410))
MODELS = ("silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx")


def resonance(signal: NDArray[np.float64], frequency: float, width: float) -> NDArray[np.float64]:
    """A signal behind a filter of two poles."""
    radius = np.exp(-np.pi * width / RATE)
    turn, decay = 2 * radius * np.cos(2 * np.pi * frequency / RATE), radius * radius
    result = np.zeros(len(signal) + 2)
    for n, sample in enumerate(signal):
        result[n + 2] = sample + turn * result[n + 1] - decay * result[n]
    return result[2:]


def voice(seconds: float = 1.5) -> NDArray[np.float64]:
    """Vowels in syllables, at a pitch around 120 Hz."""
    time = np.arange(int(seconds * RATE)) / RATE
    turns = np.cumsum(120 * (1 + 0.15 * np.sin(2 * np.pi * 2.5 * time)) / RATE)
    parts = []
    for pulses, formants in zip(np.array_split(np.diff(np.floor(turns), prepend=0), len(VOWELS)), VOWELS, strict=True):
        for frequency, width in zip(formants, (80, 100, 120), strict=True):
            pulses = resonance(pulses, frequency, width)
        parts.append(pulses / np.abs(pulses).max())
    return 0.5 * np.concatenate(parts) * np.clip(3 * np.sin(2 * np.pi * 3 * time) + 1, 0.05, 1)


def chunks(audio: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Steps of 32 ms, each with the 4 ms before it: [1, 576]."""
    padded = np.pad(audio, (BEFORE, 0))
    for start in range(0, len(audio) - CHUNK + 1, CHUNK):
        yield padded[None, start : start + BEFORE + CHUNK]


def likely_speech(detect: Call, audio: NDArray[np.float32], *rest: NDArray[np.int64]) -> NDArray[np.float32]:
    """How likely each step is speech; a state goes from one to the next."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for chunk in chunks(audio):
        likely, state = detect(chunk, state, *rest)
        found.append(likely[0, 0])
    return np.array(found)


def main() -> None:
    """Finds the voice between noise, by three forms of the model."""
    hiss = 0.002 * np.random.default_rng(0).normal(size=(2, RATE))
    audio = np.concatenate([hiss[0], voice(), hiss[1]]).astype(np.float32)
    first, state = next(chunks(audio)), np.zeros((2, 1, 128), np.float32)
    for name in MODELS:
        # The smallest form knows one rate; the others are told.
        rest = () if "half" in name else (np.array(RATE),)
        ways = both(shipped("silero_vad", "data", name), first, state, *rest)
        found, expected = (likely_speech(way, audio, *rest) for way in ways)
        np.testing.assert_allclose(found, expected, atol=1e-3)
        print("".join("▁▂▃▄▅▆▇█"[min(int(8 * p), 7)] for p in found))
        spoken = np.flatnonzero(found > 0.5) * CHUNK / RATE
        print(f"speech from {spoken[0]:.2f} s to {spoken[-1]:.2f} s")
        assert abs(spoken[0] - 1.0) < 0.1 and abs(spoken[-1] - 2.5) < 0.2
        compare(f"{name}, 32 ms of audio", ways, first, state, *rest)


if __name__ == "__main__":
    main()
