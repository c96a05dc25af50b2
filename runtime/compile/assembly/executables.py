"""Executables and their host as texts: what the host sees of an executable, and binaries in its place."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence

EXECUTABLE = "hal.executable"
# What may follow the name of an executable in that of its function.
_ENDS = ("", "_")
# As ``iree-hal-initialize-devices`` writes it for a device of this machine, whose registry text cannot name.
_DEVICE = """
util.global private @__device_0 : !hal.device
util.initializer {{
  %unavailable = arith.constant 18 : i32
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %null = util.null : !hal.device
  %count = hal.devices.count : index
  cf.br ^look(%c0, %null : index, !hal.device)
^look(%number: index, %found: !hal.device):
  %none = util.cmp.eq %found, %null : !hal.device
  %more = arith.cmpi slt, %number, %count : index
  %goes_on = arith.andi %none, %more : i1
  cf.cond_br %goes_on, ^named, ^end
^named:
  %device = hal.devices.get %number : !hal.device
  %ok, %local = hal.device.query<%device : !hal.device> key("hal.device.id" :: "local*") : i1, i1 = false
  cf.cond_br %local, ^loads, ^next(%false : i1)
^loads:
  %known, %format = hal.device.query<%device : !hal.device> key("hal.executable.format" :: "{format}") : i1, i1 = false
  cf.br ^next(%format : i1)
^next(%is_it: i1):
  %chosen = arith.select %is_it, %device, %null : !hal.device
  %following = arith.addi %number, %c1 : index
  cf.br ^look(%following, %chosen : index, !hal.device)
^end:
  cf.cond_br %none, ^absent, ^store
^absent:
  util.status.check_ok %unavailable, "HAL device `__device_0` not found or unavailable: {format}"
  cf.br ^store
^store:
  util.global.store %found, @__device_0 : !hal.device
  util.return
}}
"""


def joined(executables: Sequence[str]) -> str:
    """Executables without code, as MLIR prints them, as one of the name ``library``, as IREE links them.

    Raises:
        ValueError: what they are compiled for differs, or they have constants of their own.
    """
    variants = [executable.splitlines()[1:-2] for executable in executables]
    (target,) = {variant[0] for variant in variants}
    functions = "\n".join(line for variant in variants for line in variant[1:])
    if "hal.executable.constant.block" in functions:
        raise ValueError("constants")
    number = itertools.count()
    functions = re.sub(r"(?<= ordinal\()\d+(?=\) layout\()", lambda _: str(next(number)), functions)
    return f"  {EXECUTABLE} private @library {{\n{target}\n{functions}\n    }}\n  }}"


def moved(host: str, places: Mapping[str, Sequence[str]]) -> str:
    """A host's text that calls the functions of executables in libraries.

    Args:
        places: of each executable the library and the name there, with which its functions' names begin.
    """

    def move(match: re.Match[str]) -> str:
        name, variant, function, rest = match.groups()
        if name not in places:
            return match[0]
        library, kernel = places[name]
        is_renamed = function == name and rest[:1] in _ENDS
        return f"@{library}::@{variant}::@{kernel if is_renamed else function}{rest}"

    return re.sub(r"@([\w$.]+)::@([\w$.]+)::@(\1|)([\w$.]*)", move, host)


def named(host: str, key: str, names: Mapping[str, str]) -> str:
    """A host's text whose function says these names where it says what it is (``iree.reflection``)."""
    said = json.dumps(names).replace('"', "\\22")
    return host.replace("iree.reflection = {", f'iree.reflection = {{{key} = "{said}", ', 1)


def with_marks(host: str, format_: str) -> str:
    """A host's text with its device looked up, and in the place of its executables' variants bytes that name them."""
    lines, kept, name = [], True, ""
    for line in host.splitlines():
        if line.startswith(f"  {EXECUTABLE} private @"):
            name = line.split("@")[1].split(" ")[0].strip('"')
        if line.startswith("  util.global private @__device_0 ="):
            lines.append(_DEVICE.format(format=format_))
        elif line.startswith("    hal.executable.variant public @"):
            variant = line.split("@")[1].split(" ")[0]
            lines.append(
                f'"hal.executable.binary"() <{{data = {_mark(name)}, format = "{format_}", '
                f'mime_type = "application/x-elf", sym_name = "{variant}"}}> : () -> ()'
            )
            kept = False
        elif kept:
            lines.append(line)
        elif line == "    }":
            kept = True
    return "\n".join(lines)


def with_binaries(host: str, binaries: Mapping[str, bytes]) -> str:
    """A text with each executable's binary in the place of its mark.

    Raises:
        ValueError: a mark is not there.
    """
    for name, code in binaries.items():
        mark = _mark(name)
        if mark not in host:
            raise ValueError(name)
        host = host.replace(mark, _elements(code))
    return host


def _mark(name: str) -> str:
    # More than a hundred, which MLIR prints as such a string.
    return _elements(hashlib.sha256(name.encode()).digest() * 8)


def _elements(data: bytes) -> str:
    return f'dense<"0x{data.hex().upper()}"> : vector<{len(data)}xi8>'
