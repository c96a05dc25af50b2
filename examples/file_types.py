"""What kind of file it is, by Magika's network, whose weights are on PyPI.

    pip install '.[onnx]' onnxruntime && pip install --no-deps magika
    python examples/file_types.py [FILE ...]

Source of the model: Fratantonio et al., Magika: AI-Powered Content-Type Detection, 2024.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx_ways import both, compare, shipped

MODEL = "models", "standard_v3_3"
# The first and the last kilobyte of a file without its outer white space; 256 stands for what is not there.
EDGE, BLOCK, NOTHING = 1024, 4096, 256


def features(content: bytes) -> NDArray[np.int32]:
    """What the network sees of a file: [1, 2048]."""
    first, last = content[:BLOCK].lstrip(), content[-BLOCK:].rstrip()
    if len(content) <= BLOCK:
        first = last = content.strip()
    seen = np.full((1, 2 * EDGE), NOTHING, np.int32)
    head, tail = np.frombuffer(first[:EDGE], np.uint8), np.frombuffer(last[-EDGE:], np.uint8)
    seen[0, : len(head)] = head
    seen[0, 2 * EDGE - len(tail) :] = tail
    return seen


def main(files: list[Path]) -> None:
    """Names the kind of each file, by both runtimes."""
    labels = json.loads(shipped("magika", *MODEL, "config.min.json").read_text())["target_labels_space"]
    known = [features(file.read_bytes()) for file in files]
    ways = both(shipped("magika", *MODEL, "model.onnx"), known[0])
    for file, seen in zip(files, known, strict=True):
        likely, expected = (way(seen)[0][0] for way in ways)
        assert likely.argmax() == expected.argmax()
        print(f"{labels[likely.argmax()]:>10} {likely.max():6.1%}  {file.name}")
    compare("Magika, one file", ways, known[0])


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    some = [here / "digits.py", here / "model.hlo", *(here.parent / name for name in ("README.md", "pyproject.toml"))]
    main([Path(name) for name in sys.argv[1:]] or [*some, Path(sys.executable).resolve()])
