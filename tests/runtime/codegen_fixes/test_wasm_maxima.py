"""What WebAssembly computes instead of ``fmax`` and ``fmin``, on this machine's processor."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.runtime.codegen_fixes.wasm_maxima import with_own_maxima
from hloforge.runtime.compile import by_iree
from tests.engines import shared_reference

_SOFTMAX = """
func.func @main(%x: tensor<6x10xf32>) -> tensor<6x10xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<6xf32>) -> tensor<6x10xf32>
  %d = stablehlo.subtract %x, %b : tensor<6x10xf32>
  %e = stablehlo.exponential %d : tensor<6x10xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<6xf32>) -> tensor<6x10xf32>
  %r = stablehlo.divide %e, %t : tensor<6x10xf32>
  return %r : tensor<6x10xf32>
}
"""


def test_selections_are_the_library_s_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")

    def amended(code: bytes) -> bytes:
        seen.append(with_own_maxima(code))
        assert b"llvm.intr.maxnum" in code and b"llvm.intr.maxnum" not in seen[-1]
        return seen[-1]

    monkeypatch.setattr(by_iree, "_amendment", lambda target: amended)
    session = hloforge.compile(_SOFTMAX, "cpu:generic", cache=False).load()
    assert seen
    x = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    x[1, 2] = np.inf
    want = shared_reference("xla").prepare(hloforge.read(_SOFTMAX))(x)
    np.testing.assert_allclose(session(x), want, rtol=1e-6)


def test_webassembly_needs_no_library() -> None:
    assert b"system-wasm-wasm_32" in hloforge.compile(_SOFTMAX, "cpu:wasm32", cache=False).vmfb


@pytest.mark.parametrize(("which", "type_", "flags"), [("max", "f32", "i1"), ("min", "vector<4xf64>", "vector<4xi1>")])
def test_text(which: str, type_: str, flags: str) -> None:
    call = f"  %7 = llvm.intr.{which}num(%5, %arg0) : ({type_}, {type_}) -> {type_}"
    text = with_own_maxima(f"  %5 = a\n{call}\n  %8 = b".encode()).decode().split("\n")
    assert text[0] == "  %5 = a" and text[-1] == "  %8 = b"
    assert text[1] == f'  %first_7 = llvm.fcmp "uno" %5, %5 : {type_}'
    assert text[-2] == f"  %7 = llvm.select %first_7, %arg0, %one_7 : {flags}, {type_}"
