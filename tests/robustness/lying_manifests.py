"""A vmfb whose manifest is exchanged for another text, and texts that lie in every field."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

from hloforge.importers.reader import read
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions

# Room for a longer manifest, and what tells where it stands.
_ROOM, _MARK = 4096, b'{"device": '
_STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 10**9, 2**70, 0.5, "", "x", "../x", "\x1b[31m", [], [[]], {}, {"x": 1}, [None], ["x"]),
    *("f32[4]", "f32[5]", "s32[4]", "f32[2,2]", "f32[1000000000000]", "(f32[4])", "()", "f32[4]{0:T(0,0)}", "token[]"),
    *("f32[?]", "f32[<=9]", "f64[2]", "f32[2]{1,0}", "{0}: (7, {}, may-alias)", "{9}: (0, {3}, must-alias)", [[[0]]]),
)


def compiled(text: str) -> bytes:
    """A vmfb without check sums that has room for a longer manifest."""
    to_json = Manifest.to_json
    with mock.patch.object(Manifest, "to_json", lambda self: to_json(self) + " " * _ROOM):
        options = CompileOptions(flags=("--iree-vm-emit-polyglot-zip=false",), cache=False)
        return compile_program(read(text), "cpu:generic", options).vmfb


def manifest_of(vmfb: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = json.JSONDecoder().raw_decode(vmfb[vmfb.index(_MARK) :].decode(errors="replace"))[0]
    return fields


def with_manifest(vmfb: bytes, fields: Any) -> bytes:
    """The file with another manifest in the place of its own."""
    start = vmfb.index(_MARK)
    end = vmfb.index(b" " * _ROOM, start) + _ROOM
    text = json.dumps(fields).encode()
    assert len(text) <= end - start
    return vmfb[:start] + text.ljust(end - start) + vmfb[end:]


def lies(fields: dict[str, Any], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Manifests of which one value, anywhere, is exchanged, removed or repeated."""
    random_ = random.Random(seed)
    for _ in range(count):
        made = copy.deepcopy(fields)
        places = list(_places(made))
        holder, key = random_.choice(places)
        change = random_.random()
        if change < 0.1:
            del holder[key]
        elif change < 0.2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[key] = random_.choice(_STRANGE)
        yield made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(entries):
        yield value, key
        yield from _places(member)
