"""The notes in a recording, by basic-pitch: one network that its package ships three times, by three importers.

    pip install '.[onnx,tflite,tensorflow]' onnxruntime && pip install --no-deps basic-pitch
    python examples/notes.py

Source of the model: Bittner et al., A Lightweight Instrument-Agnostic Model for Polyphonic Note Transcription, 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from beside import beside
from numpy.typing import NDArray
from onnx_ways import both, shipped

import hloforge

RATE, SAMPLES, FRAMES = 22050, 43844, 172
NAMES = ("A", "A#", "B", "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#")
# C major, arpeggiated and then together: (note above the lowest key of a piano, from when, to when), in seconds.
SONG = ((39, 0.1, 0.6), (43, 0.6, 1.1), (46, 1.1, 1.9), (39, 1.2, 1.9))


def played() -> NDArray[np.float32]:
    """Two seconds of plucked strings: [1, 43844, 1]."""
    time = np.arange(SAMPLES) / RATE
    audio = np.zeros(SAMPLES)
    for note, start, end in SONG:
        since = time - start
        envelope = np.where((since > 0) & (time < end), np.exp(-1.5 * np.maximum(since, 0)), 0)
        frequency = 27.5 * 2 ** (note / 12)
        audio += 0.2 * envelope * sum(np.sin(2 * np.pi * n * frequency * since) / n for n in range(1, 6))
    return audio.astype(np.float32)[None, :, None]


def heard(notes: NDArray[np.float32]) -> list[str]:
    """The notes that sound for a tenth of a second at least, of [frames, keys]."""
    keys = np.flatnonzero((notes > 0.5).sum(0) > 0.1 * FRAMES * RATE / SAMPLES)
    return [f"{NAMES[key % 12]}{(key + 9) // 12}" for key in keys]


def importers(audio: NDArray[np.float32]) -> dict[str, Callable[[], NDArray[np.float32]]]:
    """How likely each key sounds, by onnxruntime and by three imports of the network."""
    folder = shipped("basic_pitch", "saved_models", "icassp_2022")
    onnx, onnxruntime = both(folder / "nmp.onnx", audio)
    tflite = hloforge.compile(folder / "nmp.tflite").load()
    ways: dict[str, Callable[[], Any]] = {
        "onnxruntime": lambda: notes_of(onnxruntime(audio)),
        "hloforge, ONNX": lambda: notes_of(onnx(audio)),
        "hloforge, TFLite": lambda: notes_of(tflite(audio)),
    }
    if find_spec("tensorflow") is None:
        print("without TensorFlow there is no importer of SavedModels")
        return ways
    from hloforge import tensorflow

    saved = tensorflow.compile(str(folder / "nmp"), example_kwargs={"input_2": audio})
    ways["hloforge, SavedModel"] = lambda: saved(input_2=audio)["note"]
    return ways


def notes_of(outputs: Any) -> NDArray[np.float32]:
    """Of three outputs, the one of notes: as wide as the keys of a piano, like that of their beginnings behind it."""
    found: NDArray[np.float32] = [np.asarray(entry) for entry in outputs if entry.shape[-1] == 88][1]
    return found


def main() -> None:
    """Writes down what is played, by each importer, and compares them."""
    audio = played()
    ways = importers(audio)
    for name, way in ways.items():
        names = heard(np.asarray(way())[0])
        print(f"{name}: {' '.join(names)}")
        assert names == ["C4", "E4", "G4"]
    apart = beside("basic-pitch, two seconds of audio", ways)
    if max(apart.values()) > 1e-3:
        raise SystemExit("the answers differ")


if __name__ == "__main__":
    main()
