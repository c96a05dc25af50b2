"""Handwriting of a sort: digits from a 5x7 font, shifted and noisy, as 16x16 images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE = 16

_FONT = """
 ###    #    ###   ###     #  #####  ###  #####  ###   ###
#   #  ##   #   # #   #   ##  #     #         # #   # #   #
#  ##   #       #     #  # #  ####  #        #  #   # #   #
# # #   #      #    ##  #  #      # ####    #    ###   ####
##  #   #     #       # #####     # #   #   #   #   #     #
#   #   #    #    #   #    #  #   # #   #   #   #   #     #
 ###   ###  #####  ###     #   ###   ###    #    ###   ###
"""


def glyphs() -> NDArray[np.float32]:
    """The ten digits: [10, 7, 5], ink is 1."""
    rows = [row.ljust(60) for row in _FONT.strip("\n").split("\n")]
    return np.array([[[row[6 * d + x] == "#" for x in range(5)] for row in rows] for d in range(10)], np.float32)


def draw(labels: NDArray[np.int64], seed: int) -> NDArray[np.float32]:
    """One image for each label: doubled in size, at a random place, with noise. Returns [n, 16, 16, 1]."""
    random = np.random.default_rng(seed)
    images = np.zeros((len(labels), SIZE, SIZE, 1), np.float32)
    large = glyphs().repeat(2, axis=1).repeat(2, axis=2)
    for image, label in zip(images, labels, strict=True):
        top, left = random.integers(0, 3), random.integers(0, 7)
        image[top : top + 14, left : left + 10, 0] = large[label]
    return images + 0.15 * random.standard_normal(images.shape).astype(np.float32)


def picture(image: NDArray[np.float32]) -> str:
    """An image as text, two pixel rows a line."""
    upper, lower = image[0::2, :, 0] > 0.5, image[1::2, :, 0] > 0.5
    return "\n".join(
        "".join(" ▄▀█"[2 * int(a) + int(b)] for a, b in zip(*pair, strict=True))
        for pair in zip(upper, lower, strict=True)
    )
