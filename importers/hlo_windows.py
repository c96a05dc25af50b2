"""Windows of library convolutions, kept for the decomposition of the call.

Before: a custom call of ``__cudnn$convForward`` has its window, dimension numbers and groups in fields of the
instruction, which XLA's converter to StableHLO drops; after: they also are in its backend configuration, as
``{"hloforge": {"window": …, "dim_labels": "b01f_01io->b01f", "feature_group_count": 1}, …}``.

Field numbers: xla/service/hlo.proto (HloInstructionProto), xla/xla_data.proto (Window, ConvolutionDimensionNumbers).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hloforge.dialect.protobuf import encode, fields, first, rewrite, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_WINDOW, _NUMBERS, _TARGET, _CONFIGURATION, _GROUPS, _BATCH_GROUPS = 15, 16, 28, 43, 50, 58
_LIBRARIES = (b"__cudnn$conv", b"__onednn$convolution", b"DynamicConvolution")
_SIDES = {"size": 1, "stride": 2, "low": 3, "high": 4, "window_dilation": 5, "base_dilation": 6, "reversal": 7}
# Fields of the batch (or output feature), the feature, and the spatial dimensions of an array.
_INPUT, _KERNEL, _OUTPUT = (7, 8, 11), (4, 3, 6), (9, 10, 12)


def with_kept_windows(module: bytes) -> bytes:
    """The ``HloModuleProto`` whose calls of convolutions tell their windows in their configuration.

    Raises:
        ValueError: the bytes are not a module.
    """
    if not any(name in module for name in _LIBRARIES):
        return module
    return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, _kept))


def _kept(instruction: memoryview) -> bytes | memoryview:
    target, numbers = first(instruction, _TARGET), first(instruction, _NUMBERS)
    if target is None or numbers is None or not bytes(target.payload).startswith(_LIBRARIES):
        return instruction
    given = first(instruction, _CONFIGURATION)
    try:
        configuration = json.loads(given.text) if given and given.text else {}
    except json.JSONDecodeError:
        return instruction
    window = first(instruction, _WINDOW)
    configuration["hloforge"] = {
        "window": _window(window.payload if window else memoryview(b"")),
        "dim_labels": _labels(numbers.payload),
        "feature_group_count": _number(instruction, _GROUPS) or 1,
        "batch_group_count": _number(instruction, _BATCH_GROUPS) or 1,
    }
    rest = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _CONFIGURATION]
    return b"".join([*rest, encode(_CONFIGURATION, json.dumps(configuration).encode())])


def _window(message: memoryview) -> dict[str, list[int]]:
    dimensions = [one.payload for one in fields(message) if one.number == 1]
    return {name: [_number(dimension, number) for dimension in dimensions] for name, number in _SIDES.items()}


def _labels(message: memoryview) -> str:
    """The dimension numbers as XLA prints them: ``b01f_01io->b01f``."""
    side, kernel, result = (
        _places(message, letters, numbers) for letters, numbers in (("bf", _INPUT), ("oi", _KERNEL), ("bf", _OUTPUT))
    )
    return f"{side}_{kernel}->{result}"


def _places(message: memoryview, letters: str, numbers: Sequence[int]) -> str:
    spatial = first(message, numbers[2])
    places = {_number(message, number): letter for letter, number in zip(letters, numbers[:2], strict=True)}
    places |= {place: str(index) for index, place in enumerate(unpack(spatial.payload) if spatial else [])}
    return "".join(places[place] for place in sorted(places))


def _number(message: memoryview, number: int) -> int:
    """A signed number, which protos leave out where it is 0."""
    entry = first(message, number)
    value = entry.value if entry and isinstance(entry.value, int) else 0
    return value - (1 << 64) if value >= 1 << 63 else value
