"""Models as people write them, in small sizes and with random weights: what ``python -m tests.torch.zoo`` judges."""

from __future__ import annotations

from tests.torch.zoo import generative, language, learning, vision
from tests.torch.zoo.entries import Entry

ENTRIES: dict[str, Entry] = {**vision.ENTRIES, **language.ENTRIES, **generative.ENTRIES, **learning.ENTRIES}
