"""Cutting arrays into the parts of devices and putting them together, against numpy's own cuts."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.shards import Sharded, Sharding

BLOCKS = Sharding((4, 6), (2, 3), (5, 0, 1, 2, 3, 4))
SUMS = Sharding((4, 6), (1, 2), (0, 0, 1, 1), (0, 1, 0, 1))
PAIRS = Sharding((4, 6), (1, 2), (0, 1, 0, 1))
SHORT = Sharding((5,), (4,), (0, 1, 2, 3))


def test_each_device_has_its_block() -> None:
    array = np.arange(24.0).reshape(4, 6)
    blocks = [block for row in np.split(array, 2) for block in np.split(row, 3, axis=1)]
    for device, place in enumerate(BLOCKS.places):
        np.testing.assert_array_equal(BLOCKS.part(array, device), blocks[place])


@pytest.mark.parametrize(
    "sharding",
    [
        BLOCKS,
        PAIRS,
        SHORT,
        SUMS,
        Sharding((2, 3), (4, 1), (3, 2, 1, 0)),
        Sharding((), (), (0, 0)),
        Sharding((0, 3), (2, 1), (0, 1)),
    ],
    ids=["blocks", "pairs", "short", "sums", "more parts than rows", "scalar", "empty"],
)
def test_parts_make_the_whole(sharding: Sharding) -> None:
    array = np.random.default_rng(0).integers(1, 9, size=sharding.sizes)
    parts = [sharding.part(array, device) for device in range(len(sharding.places))]
    assert {part.shape for part in parts} == {sharding.local}
    np.testing.assert_array_equal(sharding.whole(parts), array)


def test_zeros_fill_the_last_parts() -> None:
    array = np.arange(1, 6)
    assert [SHORT.part(array, device).tolist() for device in range(4)] == [[1, 2], [3, 4], [5, 0], [0, 0]]


def test_the_first_device_of_those_with_one_part_counts() -> None:
    parts = [np.full((4, 3), device) for device in range(4)]
    assert PAIRS.whole(parts)[0].tolist() == [0, 0, 0, 1, 1, 1]


def test_terms_of_a_part_are_added() -> None:
    parts = [np.full((4, 3), 10**device) for device in range(4)]
    assert SUMS.whole(parts)[0].tolist() == [11] * 3 + [1100] * 3
    assert SUMS.part(np.ones((4, 6)), 2).all()
    assert not SUMS.part(np.ones((4, 6)), 3).any()


def test_a_module_remembers_it_and_the_signatures_follow() -> None:
    sharded = Sharded((BLOCKS, SHORT), (PAIRS,))
    module = parse_module("")
    assert Sharded.of(module) is None
    sharded.attach(module)
    assert Sharded.of(module) == sharded
    f32 = [Shape.parse(text) for text in ("f32[4,6]{0,1}", "f32[5]", "f32[4,6]")]
    whole = Signature((Parameter("x", Shape.tuple_of(*f32[:2])),), f32[2])
    local = sharded.local(whole)
    assert str(local) == "(x: (f32[2,2]{0,1}, f32[2])) -> f32[4,3]"
    assert str(sharded.whole(local)) == "(x: (f32[4,6]{0,1}, f32[5])) -> f32[4,6]"
