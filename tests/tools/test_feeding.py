"""Infeed, outfeed and channels from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tools.command import Call, headings, values

# Takes a tuple and what comes on channel 7; gives the tuple back, and the other one on channel 8.
DIALOGUE = """HloModule dialogue
ENTRY e { t0 = token[] after-all()
  i = ((f32[3], s32[]), token[]) infeed(t0)
  d = (f32[3], s32[]) get-tuple-element(i), index=0
  t1 = token[] get-tuple-element(i), index=1
  x = f32[3] get-tuple-element(d), index=0
  o = token[] outfeed(d, t1), outfeed_shape=(f32[3], s32[])
  r = (f32[2], u32[], token[]) recv(o), channel_id=7, is_host_transfer=true
  rd = (f32[2], token[]) recv-done(r), channel_id=7, is_host_transfer=true
  y = f32[2] get-tuple-element(rd), index=0
  t2 = token[] get-tuple-element(rd), index=1
  s = (f32[2], u32[], token[]) send(y, t2), channel_id=8, is_host_transfer=true
  sd = token[] send-done(s), channel_id=8, is_host_transfer=true
  ROOT z = f32[3] negate(x) }
"""

# Sums two items, of types that differ, over the devices.
TWO = """HloModule two
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { t0 = token[] after-all()
  i = (f32[2], token[]) infeed(t0)
  x = f32[2] get-tuple-element(i), index=0
  t1 = token[] get-tuple-element(i), index=1
  j = (s32[], token[]) infeed(t1)
  n = s32[] get-tuple-element(j), index=0
  t2 = token[] get-tuple-element(j), index=1
  o = token[] outfeed(n, t2), outfeed_shape=s32[]
  s = f32[2] all-reduce(x), replica_groups={GROUPS}, to_apply=add
  ROOT t = (f32[2]) tuple(s) }
"""

ITEMS = ("--infeed=f32[3]=1 2 3; s32=7", "--channel=7=4 5")
GIVEN = ["3xf32=[-1 -2 -3]", "3xf32=[1 2 3]", "s32=7", "2xf32=[4 5]"]


@pytest.fixture
def dialogue(tmp_path: Path) -> Path:
    (tmp_path / "dialogue.hlo").write_text(DIALOGUE)
    return tmp_path / "dialogue.hlo"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.hlo").write_text(TWO.replace("GROUPS", "{0}"))
    return tmp_path / "two.hlo"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    (tmp_path / "both.hlo").write_text(TWO.replace("GROUPS", "{0,1}"))
    return tmp_path / "both.hlo"


def test_items_in_and_out(call: Call, dialogue: Path) -> None:
    result = call("run", dialogue, *ITEMS)
    assert result.exit_code == 0, result.stderr
    assert values(result) == GIVEN
    assert headings(result) == ["result:", "outfeed[0]{0}:", "outfeed[0]{1}:", "channel 8[0]:"]


def test_files_in_and_out_of_a_vmfb(call: Call, dialogue: Path, tmp_path: Path) -> None:
    vmfb, random = tmp_path / "dialogue.vmfb", np.random.default_rng(0)
    assert call("compile", dialogue, "-o", vmfb).exit_code == 0
    x, y = random.normal(size=3).astype(np.float32), random.normal(size=2).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    np.save(tmp_path / "y.npy", y)
    names = [tmp_path / f"{number}.npy" for number in range(4)]
    items = (f"--infeed=@{tmp_path}/x.npz:x; iota", f"--channel=7=2xf32=@{tmp_path}/y.npy")
    result = call("run", vmfb, *items, *(f"--output=@{name}" for name in names))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    for name, expected in zip(names, (-x, x, np.int32(0), y), strict=True):
        np.testing.assert_array_equal(np.load(name), expected)


def test_what_comes_out_of_feeds_is_checked_after_the_results(call: Call, dialogue: Path) -> None:
    expected = [f"--expected-output={literal}" for literal in GIVEN]
    assert call("run", dialogue, *ITEMS, *expected).exit_code == 0
    wrong = call("run", dialogue, *ITEMS, *expected[:3], "--expected-output=4 6")
    assert wrong.exit_code == 1
    assert wrong.stderr == "error: 1 of 4 results differ from the expected output: channel 8[0]\n"


def test_every_call_that_is_timed_gets_the_items(call: Call, dialogue: Path) -> None:
    result = call("run", dialogue, *ITEMS, "--time", "--repeat=3")
    assert values(result) == GIVEN
    assert "3 calls on local-sync" in result.stderr


def test_items_of_several_types_are_told_by_what_they_fit(call: Call, two: Path) -> None:
    result = call("run", two, "--infeed=1 2", "--infeed=s32[]=7", "--infeed=3xf32=0")
    assert result.exit_code == 1
    assert "infeed[2]: '3xf32=0' fits none of the items that the program takes: f32[2] and s32[]" in result.stderr
    result = call("run", two, "--infeed=1 2", "--infeed=7")
    assert "infeed[1]: '7' fits several of the items" in result.stderr
    assert "note: write types" in result.stderr
    result = call("run", two, "--infeed=1 2", "--infeed=s32[]=7", "--infeed=s32[]=8")
    assert values(result) == ["2xf32=[1 2]", "s32=7"]
    assert "note: infeed: the program took 2 of 3 items" in result.stderr


@pytest.mark.parametrize("more", [[], ["--fold-replicas"]], ids=["threads", "folded"])
def test_each_device_takes_its_part_of_an_item(call: Call, both: Path, more: list[str]) -> None:
    result = call("run", both, "--replicas=2", "--infeed=2x2xf32=1 2 3 4", "--infeed=2xs32=7 8", *more)
    assert result.exit_code == 0, result.stderr
    assert values(result) == ["2x2xf32=[4 6][4 6]", "s32=7", "s32=8"]
    assert headings(result)[1:] == ["outfeed[0] of replica 0:", "outfeed[0] of replica 1:"]
    short = call("run", both, "--replicas=2", "--infeed=2x2xf32=1", *more)
    assert short.exit_code == 1
    assert re.search(r"infeed of replica \d: the program takes more items than were given: 1", short.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "infeed: the program takes more items than were given: 0\nnote: every --infeed=… gives one item"),
        (["--infeed=1;2"], "channel 7: the program takes more items than were given: 0\nnote: every --channel=7=…"),
        (["--infeed=1"], "infeed[0]: '1' has 1 arrays, and the item 2: (f32[3], s32[])\nnote: write ; between"),
        (["--infeed=1 2; 3"], "item 'infeed[0]{0}' (f32[3]): '1 2': 2 values for 3 elements"),
        (["--infeed=1;2", "--channel=7=zeros", "--channel=7=3xf32=1"], "item 'channel 7[1]' (f32[2]): '3xf32=1':"),
        (["--infeed=1;2", "--channel=8=1"], "the program receives nothing from its host on channel 8\nnote: it takes "),
        ([*ITEMS, *["--output=-"] * 5], "5 outputs for 4 results"),
        ([*ITEMS, *["--expected-output=zeros"] * 5], "5 expected outputs for 4 results"),
        ([*ITEMS, "--reference=interpreter"], "--reference=interpreter does not support programs with infeed"),
    ],
)
def test_what_does_not_fit_is_one_error(call: Call, dialogue: Path, arguments: list[str], message: str) -> None:
    result = call("run", dialogue, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and message in result.stderr


def test_a_program_without_feeds_takes_none(call: Call, add_vmfb: Path) -> None:
    result = call("run", add_vmfb, "--input=zeros", "--infeed=1")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: the program has no infeed\nnote: it takes no items at all\n",
    )


@pytest.mark.parametrize("value", ["7", "x=1", "=1"])
def test_a_channel_has_a_number(call: Call, add_vmfb: Path, value: str) -> None:
    result = call("run", add_vmfb, "--input=zeros", f"--channel={value}")
    assert result.exit_code == 2
    assert "names no channel; write 7=2xf32=1 2" in result.stderr
