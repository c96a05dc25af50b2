"""``python -m tests.torch.zoo [--ways=…] [--out=FILE] [MODEL…]``: each model in each way, beside eager PyTorch in f64.

Ways are inference, training, bf16, dynamic and command_line (every second model). ``--out`` keeps what was judged, so
that a later call goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from tests.torch.zoo import ENTRIES, judge
from tests.torch.zoo.entries import Entry

WAYS: dict[str, Callable[[Entry], str]] = {
    "inference": judge.inference,
    "training": judge.training,
    "bf16": lambda entry: judge.inference(entry, torch.bfloat16),
    "dynamic": judge.dynamic,
    "command_line": judge.command_line,
}


def applies(number: int, entry: Entry, way: str) -> bool:
    """Whether a model is tried in a way."""
    return {
        "training": entry.trains,
        "dynamic": bool(entry.opens),
        "command_line": number % 2 == 0 and entry.is_whole,
        "bf16": number % 3 == 0,
    }.get(way, True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.torch.zoo", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    done = {}
    if asked.out and asked.out.exists():
        done = {tuple(row[:2]): row for row in map(json.loads, asked.out.read_text().splitlines())}
    for number, (name, entry) in enumerate(ENTRIES.items()):
        if asked.models and name not in asked.models:
            continue
        for way in asked.ways.split(","):
            if (name, way) in done or not applies(number, entry, way):
                continue
            start, spent = time.perf_counter(), time.process_time()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    message = WAYS[way](entry)
                except Exception as error:  # of any kind: that is what the sweep looks for
                    message = f"{type(error).__name__}: {error}"
            notes = sorted(
                {
                    str(each.message)[:300]
                    for each in said
                    if "hloforge" in str(each.message) or "compiled for" in str(each.message)
                }
            )
            row = [
                name,
                way,
                message,
                round(time.perf_counter() - start, 1),
                round(time.process_time() - spent, 1),
                notes,
            ]
            print(
                f"{name:32} {way:12} {row[3]:6} s {row[4]:6} s  {message[:1500] or 'ok'}  {' | '.join(notes)}",
                flush=True,
            )
            if asked.out:
                with asked.out.open("a") as file:
                    print(json.dumps(row), file=file)


if __name__ == "__main__":
    main()
