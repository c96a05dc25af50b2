"""The first calls of JAX's programs run without a compiler, and later ones in compiled code, with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import OptionError
from hloforge.importers.reader import read
from hloforge.jax.plugin import tiers
from hloforge.jax.plugin.tiers import Tiered
from hloforge.pipelines.evaluation.plans import plan_of
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.devices.devices import device, rt
from hloforge.runtime.session.arrays import MEMORY, USAGE

_SUM = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = stablehlo.add %a, %b : tensor<4xf32>
  return %r, %a : tensor<4xf32>, tensor<4xf32>
}"""
_COUNTER = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %zero) : tensor<i32>, tensor<i32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.xor %x, %j : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}"""


class _Compiler:
    """Compiles a program, and tells how often it was asked to."""

    def __init__(self, text: str) -> None:
        self.program = read(text)
        self.count = 0
        self.done = threading.Event()

    def __call__(self) -> Executable:
        self.count += 1
        made = hloforge.compile(self.program)
        self.done.set()
        return made

    def tiered(self) -> Tiered:
        plan = plan_of(self.program)
        assert plan is not None
        return Tiered(plan, self.program.signature, self)


def _view(array: np.ndarray[Any, Any]) -> Any:
    host = device("local-sync")
    kind = {"float32": rt.HalElementType.FLOAT_32, "int32": rt.HalElementType.INT_32}[array.dtype.name]
    return host.allocator.allocate_buffer_copy(MEMORY, USAGE, host, array, int(kind))


def _array(view: Any) -> Any:
    return np.array(view.map().asarray(view.shape, np.dtype(np.float32)))


def test_what_runs_often_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_SECONDS", 1e9)
    compiler = _Compiler(_SUM)
    tiered = compiler.tiered()
    a, b = np.array([1, 2, np.inf, -0.0], np.float32), np.array([0.5, 1e-3, 1, -0.0], np.float32)
    for _ in range(tiers._CALLS - 1):
        found, same = tiered.call_views([_view(a), _view(b)])
        assert _array(found).tobytes() == (a + b).tobytes()
        assert _array(same).tobytes() == a.tobytes()
    assert compiler.count == 0
    tiered.call_views([_view(a), _view(b)])
    assert compiler.done.wait(60)
    for _ in range(tiers._CALLS):
        found, same = tiered.call_views([_view(a), _view(b)])
        assert _array(found).tobytes() == (a + b).tobytes()
    assert compiler.count == 1
    assert tiered.compiled.vmfb
    assert compiler.count == 1


def test_a_long_loop_is_compiled_at_its_first_call() -> None:
    compiler = _Compiler(_COUNTER)
    (found,) = compiler.tiered().call_views([_view(np.array(100_000, np.int32))])
    assert compiler.count == 1
    # 1 xor 2 xor … xor n is n where 4 divides n.
    assert int(np.array(found.map().asarray(found.shape, np.dtype(np.int32)))) == 100_000


def test_results_are_memory_of_their_own() -> None:
    tiered = _Compiler(_SUM).tiered()
    a = _view(np.ones(4, np.float32))
    _, same = tiered.call_views([a, a])
    a.map().asarray([4], np.dtype(np.float32))[:] = 7
    assert _array(same).tolist() == [1, 1, 1, 1]


def test_the_variable_takes_two_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tiers.VARIABLE, raising=False)
    assert not tiers.waits_for_code()
    monkeypatch.setenv(tiers.VARIABLE, "best")
    assert tiers.waits_for_code()
    monkeypatch.setenv(tiers.VARIABLE, "fastest")
    with pytest.raises(OptionError, match="fastest is no choice"):
        tiers.waits_for_code()


_SCRIPT = """
import jax, jax.numpy as jnp
keys = jax.random.split(jax.random.key(7), 3)
x = jnp.arange(12.0).reshape(3, 4) * 0.1
parts = [jax.random.bits(keys[0], (5,)), x[1:, ::-1], jnp.where(x > 0.5, x, 0), x.at[1].set(2.0), x.argmax(1),
         jnp.concatenate([x, x.T.reshape(3, 4)]), (x > 0.3).sum(), x[jnp.array([2, 0, 9])]]
print([part.tolist() for part in parts])
"""


def _printed(folder: Path, **variables: str) -> str:
    environment = os.environ | {"JAX_PLATFORMS": "hloforge", "HLOFORGE_CACHE_DIR": str(folder)} | variables
    done = subprocess.run([sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_eager_jax_compiles_nothing_that_runs_once(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    at_once = _printed(tmp_path / "fast")
    assert not list((tmp_path / "fast").rglob("*.cached"))
    assert at_once == _printed(tmp_path / "cpu", JAX_PLATFORMS="cpu")
    assert at_once == _printed(tmp_path / "best", HLOFORGE_JIT="best")
    assert len(list((tmp_path / "best").rglob("*.cached"))) > 10
