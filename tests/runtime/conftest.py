"""Small programs, compiled once a test process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hloforge.importers.reader import read
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.compiler import compile_program


@functools.cache
def _compiled(text: str) -> Executable:
    return compile_program(read(text))


def _aligned(shape: tuple[int, ...], order: Any = "C", offset: int = 0) -> np.ndarray[Any, Any]:
    """Random f32 at an address that is ``offset`` beyond a multiple of 64."""
    size = 4 * int(np.prod(shape))
    raw = np.empty(size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    array = raw[start : start + size].view(np.float32).reshape(shape, order=order)
    array[...] = np.random.default_rng(0).normal(size=shape)
    return array


@pytest.fixture(scope="session")
def aligned() -> Callable[..., np.ndarray[Any, Any]]:
    """Makes arrays that IREE can use in place."""
    return _aligned


@pytest.fixture(scope="session")
def compiled() -> Callable[[str], Executable]:
    """The executable of a program text."""
    return _compiled


@pytest.fixture(scope="session")
def add() -> Executable:
    """``add(x: f32[4], y: f32[4])``."""
    return _compiled("""HloModule add
      ENTRY main { x = f32[4] parameter(0)
                   y = f32[4] parameter(1)
                   ROOT sum = f32[4] add(x, y) }""")


@pytest.fixture(scope="session")
def layouts() -> Executable:
    """Two results of arrays with layouts; square and large enough for IREE to use the caller's memory."""
    return _compiled("""HloModule layouts, entry_computation_layout={
      (f32[64,64]{0,1}, f32[64,64]{1,0})->(f32[64,64]{0,1}, f32[64,64]{1,0})}
      ENTRY main { w = f32[64,64]{0,1} parameter(0)
                   x = f32[64,64]{1,0} parameter(1)
                   difference = f32[64,64]{0,1} subtract(w, x)
                   double = f32[64,64]{1,0} add(x, x)
                   ROOT both = (f32[64,64]{0,1}, f32[64,64]{1,0}) tuple(difference, double) }""")


@pytest.fixture(scope="session")
def swap() -> Executable:
    """Returns its arguments as they came, in the other order."""
    return _compiled("""func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>)
        -> (tensor<64x64xf32>, tensor<64x64xf32>) {
      return %b, %a : tensor<64x64xf32>, tensor<64x64xf32> }""")


@pytest.fixture(scope="session")
def scalars() -> Executable:
    """Returns one scalar of each kind as it came."""
    names = "%f, %i, %p, %u, %h, %c"
    types = ["tensor<f32>", "tensor<i32>", "tensor<i1>", "tensor<ui4>", "tensor<f16>", "tensor<complex<f32>>"]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names.split(", "), types, strict=True))
    listed = ", ".join(types)
    return _compiled(f"func.func @main({parameters}) -> ({listed}) {{ return {names} : {listed} }}")
