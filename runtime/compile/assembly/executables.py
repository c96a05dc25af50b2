"""Executables and their host as texts: what the host sees of an executable, and binaries in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def without_code(text: str) -> list[str]:
    """Each executable of a module, in the order of its text, without what is inside its variants."""
    parts = re.split(rf"^  {EXECUTABLE} (?:public|private) ", text, flags=re.MULTILINE)[1:]
    return [f"  {EXECUTABLE} private {part[: part.index('      builtin.module')]}    }}\n  }}" for part in parts]


def renamed(host: str, names: Sequence[str]) -> str:
    """A host's text that calls the functions of executables by the names that all kernels have (``kernel_cache``)."""
    known = frozenset(names)

    def rename(match: re.Match[str]) -> str:
        return f"{match[1]}kernel{match[4]}" if match[2] in known and match[4][:1] in _ENDS else match[0]

    return re.sub(r"(@([\w$.]+)::@[\w$.]+::@)(\2)(\w*)", rename, host)


def with_binaries(text: str, binaries: dict[str, bytes], format_: str) -> str:
    """A host's text with its device looked up, and binaries in the place of its executables' variants."""
    lines, kept, name = [], True, ""
    for line in text.splitlines():
        if line.startswith(f"  {EXECUTABLE} private @"):
            name = line.split("@")[1].split(" ")[0].strip('"')
        if line.startswith("  util.global private @__device_0 ="):
            lines.append(_DEVICE.format(format=format_))
        elif line.startswith("    hal.executable.variant public @"):
            variant, data = line.split("@")[1].split(" ")[0], binaries[name]
            lines.append(
                f'"hal.executable.binary"() <{{data = dense<"0x{data.hex()}"> : vector<{len(data)}xi8>, '
                f'format = "{format_}", mime_type = "application/x-elf", sym_name = "{variant}"}}> : () -> ()'
            )
            kept = False
        elif kept:
            lines.append(line)
        elif line == "    }":
            kept = True
    return "\n".join(lines)
