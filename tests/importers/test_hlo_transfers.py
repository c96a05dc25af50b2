"""Sends and receives that a loop carries, as XLA pipelines them: what each device ends with."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hloforge

_PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}"


def _pipeline(array: str, turns: int, recv_channel: str = ", channel_id=7") -> str:
    """Each turn passes on what it has received, to the next of three devices, and begins the next transfers."""
    state, carried = f"({array}, u32[], token[])", f"(u32[], ({array}, u32[], token[]), ({array}, u32[], token[]))"
    starts = f"""  s = {state} send(x, t), channel_id=7, {_PAIRS}
  r = {state} recv(t){recv_channel}, {_PAIRS}"""
    dones = f"""  sd = token[] send-done(s0), channel_id=7
  rd = ({array}, token[]) recv-done(r0){recv_channel}
  x = {array} get-tuple-element(rd), index=0"""
    return f"""HloModule pipeline, num_partitions=3
go {{ c = {carried} parameter(0)
  i = u32[] get-tuple-element(c), index=0
  n = u32[] constant({turns})
  ROOT less = pred[] compare(i, n), direction=LT }}
turn {{ c = {carried} parameter(0)
  i = u32[] get-tuple-element(c), index=0
  s0 = {state} get-tuple-element(c), index=1
  r0 = {state} get-tuple-element(c), index=2
{dones}
  t = token[] after-all(sd)
{starts}
  one = u32[] constant(1)
  j = u32[] add(i, one)
  ROOT next = {carried} tuple(j, s, r) }}
ENTRY e {{
  x = {array} parameter(0)
  t = token[] after-all()
{starts}
  zero = u32[] constant(0)
  first = {carried} tuple(zero, s, r)
  last = {carried} while(first), condition=go, body=turn
  s0 = {state} get-tuple-element(last), index=1
  r0 = {state} get-tuple-element(last), index=2
{dones.replace("  x =", "  ROOT y =")}
}}"""


@pytest.mark.parametrize("turns", [0, 1, 4])
@pytest.mark.parametrize(
    ("array", "element"), [("f32[4]", np.float32), ("bf16[]", ml_dtypes.bfloat16), ("pred[2,3]", np.bool_)]
)
def test_transfers_that_a_loop_carries(array: str, element: type, turns: int) -> None:
    sizes = tuple(int(size) for size in array[array.index("[") + 1 : -1].split(",") if size)
    x = np.random.default_rng(0).integers(0, 9, (3, *sizes)).astype(element)
    got = hloforge.replicate(_pipeline(array, turns).encode(), partitions=3)(x)
    np.testing.assert_array_equal(got, np.roll(x, turns + 1, 0))


def test_transfers_on_channels_of_their_own_meet_by_their_devices() -> None:
    """XLA's GPU backend does not look at channels."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for channel in (", channel_id=8", ""):
        got = hloforge.replicate(_pipeline("f32[4]", 2, channel).encode(), partitions=3)(x)
        np.testing.assert_array_equal(got, x)


def test_an_error_of_a_transfer_is_at_its_line() -> None:
    with pytest.raises(hloforge.Error) as caught:
        hloforge.compile(_pipeline("f32[4]", 1).replace(", num_partitions=3", "").encode())
    assert caught.value.location is not None
    assert caught.value.location.line
