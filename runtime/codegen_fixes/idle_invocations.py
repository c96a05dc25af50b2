"""Remove invocations that repeat others' work in Vulkan's programs, between two runs of IREE's compiler.

IREE 3.13 chooses a workgroup's size for a dispatch, and may give its operations to fewer dimensions of
the workgroup. Where nothing reads an invocation's position along a dimension, as many invocations as its size do the
same: products that are summed in the workgroup's memory were summed twice. Such a dimension gets the size 1.
Source: SPIR-V, "LocalSize", "LocalInvocationId".
"""

from __future__ import annotations

import re

__all__ = ["without_idle_invocations"]

_MODULE = re.compile(rb"^( *)spirv\.module .*?^\1\}", re.MULTILINE | re.DOTALL)
_SIZES = re.compile(rb'("LocalSize", )(\d+), (\d+), (\d+)')
_INPUT = re.compile(rb"built_in\(\"(\w+)\"\)")
_RESULT = re.compile(rb"^ *(%[\w$.-]+) = ")
# Three numbers, of which those that are read are taken out one by one.
_PLACE = re.compile(rb'spirv\.Load "Input" %__builtin__LocalInvocationId__\w* : vector<3xi32>')
_NUMBER = re.compile(rb"spirv\.CompositeExtract (%[\w$.-]+)\[(\d) : i32\] : vector<3xi32>")
_NAME = re.compile(rb"%[\w$.-]+")
# What tells invocations of a workgroup apart by one number, or counts them.
_COUNTED = re.compile(rb"spirv\.(?:GroupNonUniform|KHR\.\w*Cooperative|KHR\.Subgroup|Atomic)")
_KNOWN_INPUTS = {b"LocalInvocationId", b"WorkgroupId", b"NumWorkgroups"}


def without_idle_invocations(code: bytes) -> bytes:
    """The text of IREE's module, where it has written SPIR-V, with workgroups of as many dimensions as are read."""
    return _MODULE.sub(lambda found: _in_module(found[0]), code)


def _in_module(text: bytes) -> bytes:
    if _COUNTED.search(text) or not set(_INPUT.findall(text)) <= _KNOWN_INPUTS:
        return text
    read = _dimensions_read(text)
    if read is None:
        return text
    return _SIZES.sub(lambda sizes: sizes[1] + b", ".join(_sizes(sizes, read)), text)


def _dimensions_read(text: bytes) -> set[int] | None:
    """The dimensions along which invocations know their positions; None if not all that is done with those is known."""
    read: set[int] = set()
    places: set[bytes] = set()
    for line in text.split(b"\n"):
        result = _RESULT.match(line)
        number = _NUMBER.search(line)
        if number and number[1] in places:
            read.add(int(number[2]))
        elif places.intersection(_NAME.findall(line[result.end() :] if result else line)):
            return None
        if result and _PLACE.search(line):
            places.add(result[1])
        elif result:
            # Regions beside each other use the same names again.
            places.discard(result[1])
    return read


def _sizes(sizes: re.Match[bytes], read: set[int]) -> list[bytes]:
    return [sizes[dimension + 2] if dimension in read else b"1" for dimension in range(3)]
