"""Measure the peaks of a device with two short programs.

A product of two matrices shows its arithmetic, sums over more than its caches hold show its memory. Both are compiled
as any other program is, and run by the same threads: the roofline is what this compiler reaches here, not what a data
sheet says, so that a program's fraction of it tells what there is to gain.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.profiling.result import Roofline
from hloforge.runtime.session.session import load

_SIZE = 512
_ROWS, _COLUMNS = 4096, 8192
_PRODUCT = f"""func.func @main(%x: tensor<{_SIZE}x{_SIZE}xf32>) -> tensor<{_SIZE}x{_SIZE}xf32> {{
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<{_SIZE}x{_SIZE}xf32>, tensor<{_SIZE}x{_SIZE}xf32>) -> tensor<{_SIZE}x{_SIZE}xf32>
  return %0 : tensor<{_SIZE}x{_SIZE}xf32>
}}"""
_SUMS = f"""func.func @main(%x: tensor<{_ROWS}x{_COLUMNS}xf32>) -> tensor<{_ROWS}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<{_ROWS}x{_COLUMNS}xf32>, tensor<f32>) -> tensor<{_ROWS}xf32>
  return %0 : tensor<{_ROWS}xf32>
}}"""
# The best of so many runs, or of so many seconds: short ones, that some are undisturbed on a busy machine.
_RUNS, _SECONDS = 200, 0.5


def measured_roofline(target: Target, device: str, threads: int | Sequence[int] | None) -> Roofline:
    """The rates that a device reaches; measured once in a process.

    Raises:
        CompileError: the probe cannot be compiled for the target.
        LoadError: the device is not there.
    """
    several = threads if isinstance(threads, int) or threads is None else tuple(threads)
    return _measured(target, device, several)


@lru_cache(maxsize=16)
def _measured(target: Target, device: str, threads: int | tuple[int, ...] | None) -> Roofline:
    product = _best(_PRODUCT, (_SIZE, _SIZE), target, device, threads)
    sums = _best(_SUMS, (_ROWS, _COLUMNS), target, device, threads)
    return Roofline(2 * _SIZE**3 / product / 1e9, 4 * _ROWS * _COLUMNS / sums / 1e9, "measured")


def _best(
    text: str, sizes: tuple[int, int], target: Target, device: str, threads: int | tuple[int, ...] | None
) -> float:
    """The seconds of a program's fastest call."""
    options = CompileOptions()
    place = cache.entry(text.encode(), {"file": "roofline"}, target, options)
    executable = place.find()
    if executable is None:
        module = parse_module(text)
        executable = compile_program(Program(module, Signature.of(module), "roofline", "roofline"), target, options)
        place.store(executable)
    session = load(executable, device=device, threads=threads)
    argument = session.put(np.full(sizes, 0.5, np.float32), 0)
    session.call_device(argument)
    taken: list[float] = []
    while len(taken) < _RUNS and sum(taken) < _SECONDS:
        start = time.perf_counter()
        session.call_device(argument)
        taken.append(time.perf_counter() - start)
    return min(taken)
