"""Intel's registers for tiles (AMX) in software, for kernels that use them on processors without them.

Each instruction is a call of a function of numpy on registers of 16x64 bytes. Rows and bytes beyond what a register was
configured for are neither read nor written. Products of bf16 are exact in f32, and each is added by itself.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 ("TDPBSSD", "TDPBF16PS", "TILELOADD").
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

_REGISTERS, _ROWS, _BYTES = 8, 16, 64
_INTRINSIC = re.compile(r"@llvm\.x86\.(ldtilecfg|tile\w+|tdp\w+)")
_PERMISSION = re.compile(r'call i64 asm sideeffect "syscall", "[^"]*"\(i64 \d+, i64 (\d+), i64 \d+\)')
# arch_prctl's request, ARCH_REQ_XCOMP_PERM; Linux refuses any other.
_REQUEST = 0x1023

_registers = np.zeros((_REGISTERS, _ROWS, _BYTES), np.uint8)
# Of each register, rows and bytes.
_shape = np.zeros((_REGISTERS, 2), int)


def emulated(text: str) -> str:
    """A kernel's text with calls for its instructions on tiles, and for its question whether Linux lends registers."""
    if not _INTRINSIC.search(text):
        return text
    text = _PERMISSION.sub(lambda asked: f"add i64 0, {int(int(asked[1]) != _REQUEST)}", text)
    # Called where they are, because objects are linked with helpers of kernels alone.
    return _INTRINSIC.sub(lambda named: f"inttoptr (i64 {_address(named[1])} to ptr)", text)


def _kinds(name: str) -> list[str]:
    """LLVM's types of an instruction's operands."""
    if name == "tilerelease":
        return []
    if name == "ldtilecfg":
        return ["ptr"]
    return {"tilezero": ["i8"], "tileloadd64": ["i8", "ptr", "i64"], "tilestored64": ["i8", "ptr", "i64"]}.get(
        name, ["i8"] * 3
    )


@cache
def _address(name: str) -> int:
    types = {"i8": ctypes.c_int8, "i64": ctypes.c_int64, "ptr": ctypes.c_void_p}
    called = ctypes.CFUNCTYPE(None, *(types[kind] for kind in _kinds(name)))(_function(name))
    # A kernel may call it as long as the process lives.
    _kept.append(called)
    address = ctypes.cast(called, ctypes.c_void_p).value
    assert address
    return address


_kept: list[Any] = []


def _function(name: str) -> Callable[..., None]:
    named: dict[str, Callable[..., None]] = {
        "ldtilecfg": _configure,
        "tilerelease": lambda: _shape.fill(0),
        "tilezero": lambda number: _registers[number].fill(0),
        "tileloadd64": _load,
        "tilestored64": _store,
        "tdpbf16ps": _add_pairs,
    }
    if name in named:
        return named[name]
    left, right = (np.int8 if sign == "s" else np.uint8 for sign in re.fullmatch("tdpb(.)(.)d", name).groups())  # type: ignore[union-attr]
    return lambda total, rows, columns: _add_bytes(total, rows, columns, left, right)


def _bytes_at(address: int, size: int) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _configure(address: int) -> None:
    table = _bytes_at(address, _BYTES)
    assert table[0] == 1, "the only palette"
    _shape[:, 0] = table[48 : 48 + _REGISTERS]
    _shape[:, 1] = table[16 : 16 + 2 * _REGISTERS].view(np.uint16)


def _load(number: int, address: int, stride: int) -> None:
    rows, size = _shape[number]
    _registers[number].fill(0)
    for row in range(rows):
        _registers[number, row, :size] = _bytes_at(address + row * stride, size)


def _store(number: int, address: int, stride: int) -> None:
    rows, size = _shape[number]
    for row in range(rows):
        _bytes_at(address + row * stride, size)[:] = _registers[number, row, :size]


def _operands(total: int, rows: int, columns: int, left: Any, right: Any) -> tuple[Any, Any]:
    """Of each row its terms, and of each column; groups of terms lie next to each other in a row of ``columns``."""
    assert _shape[rows, 1] == 4 * _shape[columns, 0]
    assert (_shape[total, 0], _shape[total, 1]) == (_shape[rows, 0], _shape[columns, 1])
    terms = _registers[columns].view(right).reshape(_ROWS, _ROWS, -1)
    return _registers[rows].view(left), terms.transpose(1, 0, 2).reshape(_ROWS, -1)


def _add_bytes(total: int, rows: int, columns: int, left: Any, right: Any) -> None:
    one, other = _operands(total, rows, columns, left, right)
    _registers[total].view(np.int32)[:] += one.astype(np.int32) @ other.astype(np.int32).T


def _add_pairs(total: int, rows: int, columns: int) -> None:
    one, other = _operands(total, rows, columns, ml_dtypes.bfloat16, ml_dtypes.bfloat16)
    sums = _registers[total].view(np.float32)
    for term in range(one.shape[1]):
        sums += np.outer(one[:, term].astype(np.float32), other[:, term].astype(np.float32))
