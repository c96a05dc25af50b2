"""Collectives of HLO without replica_groups: one group of all replicas, or of all partitions."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import UnsupportedError

HEADER = """HloModule m
add { a = u32[] parameter(0)
  b = u32[] parameter(1)
  ROOT c = u32[] add(a, b) }
ENTRY e {
  p = u32[6] parameter(0)
  """
ALL_TO_ALL = HEADER + "ROOT r = u32[6] all-to-all(p), dimensions={0}%s\n}"
ASYNC = HEADER + "s = ((u32[6]), u32[6]) all-to-all-start(p), dimensions={0}%s\n  ROOT r = u32[6] all-to-all-done(s)\n}"


def numbers(devices: int) -> np.ndarray:
    return np.arange(6 * devices, dtype=np.uint32).reshape(devices, 6)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("text", [ALL_TO_ALL, ASYNC])
@pytest.mark.parametrize("groups", ["", ", replica_groups={}"])
@pytest.mark.parametrize("count", [2, 3])
def test_all_to_all_exchanges_among_all_replicas(text: str, groups: str, count: int, fold: bool) -> None:
    x = numbers(count)
    # Block j of replica i becomes block i of replica j.
    expected = x.reshape(count, count, -1).transpose(1, 0, 2).reshape(count, 6)
    np.testing.assert_array_equal(hloforge.replicate(text % groups, replicas=count, fold=fold)(x), expected)


def test_a_channel_means_all_partitions() -> None:
    x = numbers(2)
    run = hloforge.replicate(ALL_TO_ALL % ", channel_id=1", partitions=2)
    np.testing.assert_array_equal(run(x), x.reshape(2, 2, 3).transpose(1, 0, 2).reshape(2, 6))


def test_on_one_device_nothing_is_exchanged() -> None:
    np.testing.assert_array_equal(hloforge.compile(ALL_TO_ALL % "").load()(numbers(1)[0]), numbers(1)[0])


def test_rows_that_cannot_be_shared_out_are_refused_at_their_line() -> None:
    with pytest.raises(UnsupportedError, match="it splits 6 rows among 4 members") as caught:
        hloforge.replicate(ALL_TO_ALL % "", replicas=4)
    assert str(caught.value.location) == "<string>:7:8"


def test_a_tuple_is_exchanged_among_as_many_as_it_has_elements() -> None:
    text = HEADER + "q = u32[6] multiply(p, p)\n  ROOT r = (u32[6], u32[6]) all-to-all(p, q)\n}"
    x = numbers(2)
    first, second = hloforge.replicate(text, replicas=2)(x)
    np.testing.assert_array_equal(first, [x[0], x[0] * x[0]])
    np.testing.assert_array_equal(second, [x[1], x[1] * x[1]])


REST = {
    "ROOT r = u32[6] all-reduce(p), to_apply=add": lambda x: np.stack([x.sum(0)] * len(x)),
    "ROOT r = u32[12] all-gather(p), dimensions={0}": lambda x: np.stack([x.reshape(-1)] * len(x)),
    "ROOT r = u32[3] reduce-scatter(p), to_apply=add, dimensions={0}": lambda x: x.sum(0).reshape(2, 3),
    "ROOT r = u32[6] collective-broadcast(p)": lambda x: np.stack([x[0]] * len(x)),
}


@pytest.mark.parametrize("line", REST)
def test_other_collectives_are_among_all_replicas(line: str) -> None:
    x = numbers(2)
    np.testing.assert_array_equal(hloforge.replicate(f"{HEADER}{line}\n}}", replicas=2)(x), REST[line](x))
