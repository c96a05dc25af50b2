"""Whatever a text holds, what looks through it takes time that is linear in its size."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from hloforge.dialect.errors import Error
from hloforge.dialect.nesting import check_brackets
from hloforge.dialect.program import Alias
from hloforge.dialect.shape_text import parse_layout, parse_shape
from hloforge.importers import elided, hlo_text
from hloforge.importers.detect import _detect
from hloforge.importers.hlo_proto import Computation, Instruction
from hloforge.runtime.compile.diagnostics import failure
from hloforge.runtime.debug.reproducer import recorded_inputs

# What texts are made of by repetition: pieces of both grammars, and what a pattern begins or ends at.
PIECES = [
    *(
        "a",
        ".1",
        "-",
        "%",
        " ",
        "\n",
        "=",
        ",",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "->",
        '"',
        "\\",
        '\\"',
        "/*",
        "*/",
    ),
    *("//", "f32[4]", "f32[", " add(", "ENTRY ", "metadata={", "constant(", "...", "module", "x: ", "error: ", "loc("),
    *("HloModule m\n", "k=1", "{0}: (0, {}", "T(", "SC(1:2", "#", "!", "dense<", "func.func"),
]
SMALL, TIMES = 3_000, 8


def reader(text: str) -> None:
    """All that looks through a text before XLA or MLIR does, and what reads pieces of it."""
    data = text.encode()
    for look in (
        lambda: _detect(data),
        lambda: hlo_text.computations(text),
        lambda: hlo_text.replication(text),
        lambda: hlo_text.drop_from_metadata(text, "k"),
        lambda: hlo_text.drop_attribute(text, "k", text.count("\n") + 1, 0),
        lambda: hlo_text._base(text),
        lambda: parse_shape(text),
        lambda: parse_layout("{" + text),
        lambda: Alias.parse(text),
        lambda: check_brackets(data, "f"),
        lambda: elided.refuse_mlir(text, "f"),
        lambda: recorded_inputs(data, "f"),
        lambda: failure(text, "failed"),
    ):
        with suppress(Error, ValueError):
            look()


def seconds(function: Callable[[], object]) -> float:
    """Of this process's own time, so that others on the machine do not count."""
    start = time.process_time()
    function()
    return time.process_time() - start


def grows_too_fast(text: Callable[[int], str], look: Callable[[str], None]) -> bool:
    """Whether eight times the text takes far more than eight times as long: 64 times, if it is quadratic."""
    for _ in range(3):
        small, large = seconds(lambda: look(text(SMALL))), seconds(lambda: look(text(SMALL * TIMES)))
        if large < 3 * TIMES * small + 0.05:
            return False
    return True


def repeated(pieces: list[str]) -> Callable[[int], str]:
    """Texts of about a number of characters, with and without an end that fits."""
    head, *middle = pieces
    tail = middle.pop() if len(middle) > 1 else ""
    unit = "".join(middle) or head
    return lambda size: head + unit * (size // len(unit)) + tail


KNOWN = [
    ["", "a", "{(="],
    ["", "a=f[", ""],
    ["", "a=f[]", ""],
    ['{"', '\\"', ""],
    ["{", "/*", ""],
    ["{", "a()->\n", ""],
    ["x", ".1", "x{"],
    ["{", "metadata={", ""],
    ["T(", "/*", ""],
    ["HloModule m\n", 'metadata={k="', ""],
]


@pytest.mark.parametrize("pieces", KNOWN, ids=lambda pieces: repr("".join(pieces)))
def test_texts_that_took_quadratic_time(pieces: list[str]) -> None:
    assert not grows_too_fast(repeated(pieces), reader)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 300))])
def test_texts_of_repeated_pieces(seed: int) -> None:
    generator = random.Random(seed)
    pieces = generator.choices(PIECES, k=generator.randint(1, 5))
    assert not grows_too_fast(repeated(pieces), reader), pieces


def test_the_check_sees_a_quadratic_pattern() -> None:
    import re

    pattern = re.compile(r"\w+\s*=")
    assert grows_too_fast(lambda size: "a" * (size // 4), lambda text: list(pattern.finditer(text)) and None)


def test_many_computations_are_paired_with_their_text_in_linear_time() -> None:
    def pair(text: str) -> None:
        names = [f"c.{number}" for number in reversed(range(len(text) // 20))]
        parsed = [Computation(name, [Instruction("r", "constant", 0, 0, "", "", 0)]) for name in names]
        found, _ = hlo_text.positions("".join(f"{name} {{\n r = f32[] constant(0)\n}}\n" for name in names), parsed)
        assert len(found) == len(names)

    assert not grows_too_fast(lambda size: " " * size, pair)
