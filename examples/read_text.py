"""A page of digits, read by PP-OCRv4: where its lines are, which side is up, and what they say.

    pip install '.[onnx]' onnxruntime && pip install --no-deps rapidocr-onnxruntime
    python examples/read_text.py

Source of the models: PaddleOCR, PP-OCRv4, as rapidocr-onnxruntime ships them. The page is drawn with digits.py's font,
so that nothing but numpy is needed; the recognizer knows 6,623 characters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from digits import glyphs
from numpy.typing import NDArray
from onnx_ways import Call, both, compare, shipped

Image = NDArray[np.float32]
LINE, WIDTH = 48, 320
LINES = ("3141592653", "2718281828")


def drawn(text: str) -> Image:
    """A line of digits on white paper, with soft edges: [48, 320]."""
    font = glyphs()
    ink = np.concatenate([np.pad(font[int(digit)], ((0, 0), (0, 1))) for digit in text], 1).repeat(4, 0).repeat(4, 1)
    for axis in (0, 1):
        ink = (np.roll(ink, 1, axis) + 2 * ink + np.roll(ink, -1, axis)) / 4
    paper = np.ones((LINE, WIDTH), np.float32)
    top = (LINE - ink.shape[0]) // 2
    paper[top : top + ink.shape[0], 16 : 16 + ink.shape[1]] -= ink
    return paper


def batch(image: Image) -> Image:
    """An image as the networks want it: three equal channels from -1 to 1, [1, 3, h, w]."""
    return np.ascontiguousarray(((image - 0.5) / 0.5)[None, None].repeat(3, 1), np.float32)


def rows_of(ink: NDArray[np.bool_]) -> Iterator[slice]:
    """The runs of rows in which the detector sees text."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], ink.any(1).astype(int), [0]])))
    for top, bottom in edges.reshape(-1, 2):
        middle = (top + bottom) // 2
        yield slice(middle - LINE // 2, middle + LINE // 2)


def text_of(likely: NDArray[np.float32], characters: list[str]) -> str:
    """The characters of [places, characters], of which the first is a gap between equal ones."""
    best = likely.argmax(1)
    return "".join(characters[n] for before, n in zip([0, *best[:-1]], best, strict=True) if n and n != before)


def upright(line: Image, classify: Call) -> Image:
    """A line turned around if the classifier says that it stands on its head."""
    return line[::-1, ::-1] if classify(batch(line[:, :192]))[0][0].argmax() else line


def main() -> None:
    """Reads a page whose second line is upside down, and compares the runtimes."""
    page = np.ones((160, WIDTH), np.float32)
    page[16:64] = drawn(LINES[0])
    page[96:144] = drawn(LINES[1])[::-1, ::-1]
    models = [
        shipped("rapidocr_onnxruntime", "models", name)
        for name in (
            "ch_PP-OCRv4_det_infer.onnx",
            "ch_ppocr_mobile_v2.0_cls_infer.onnx",
            "ch_PP-OCRv4_rec_infer.onnx",
        )
    ]
    metadata = {entry.key: entry.value for entry in onnx.load(models[2]).metadata_props}
    characters = ["", *metadata["character"].splitlines(), " "]
    examples = [batch(page), batch(page[:LINE, :192]), batch(page[:LINE])]
    detect, classify, recognize = (both(model, example) for model, example in zip(models, examples, strict=True))
    found = detect[0](examples[0])[0][0, 0]
    read = []
    for rows in rows_of(found > 0.3):
        line = upright(page[rows], classify[0])
        read.append(text_of(recognize[0](batch(line))[0][0], characters))
    print(f"the page says {read}")
    assert read == list(LINES)
    compare(f"PP-OCRv4 detection, {page.shape[0]} x {WIDTH}", detect, examples[0])
    compare("PP-OCR orientation, 48 x 192", classify, batch(drawn(LINES[0])[:, :192]))
    compare(f"PP-OCRv4 recognition, {LINE} x {WIDTH}", recognize, batch(drawn(LINES[0])))


if __name__ == "__main__":
    main()
