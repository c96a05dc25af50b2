"""Dispatches for GPUs bind no more arrays than IREE's runtime takes, or the program is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import CompileError
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.pipelines.workarounds.many_arguments import LegalizeManyArguments
from hloforge.runtime.compile import bindings
from tests.engines import interpret

_XS = [np.random.default_rng(n).normal(size=(3, 4)).astype(np.float32) for n in range(12)]


def _total(*xs: Any) -> Any:
    return sum(jnp.tanh(x) for x in xs)


def _program() -> Program:
    return hloforge.as_program(jax.jit(_total).lower(*_XS))


def test_a_dispatch_with_too_many_arrays_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime said so when the vmfb was loaded: ``habits`` 920035."""
    monkeypatch.setattr(bindings, "MOST", 6)
    compiled = hloforge.compile(_program(), target="cuda:sm_80", cache=False)
    attempts = compiled.manifest.attempts
    assert attempts is not None
    assert "with few arrays" in attempts.compiled
    assert all("arrays, and its runtime takes 6" in reason for _, reason in attempts.failed)


def test_what_cannot_be_split_is_refused_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "MOST", 1)
    with pytest.raises(CompileError, match=r"reads and writes .* arrays, and its runtime takes 1") as caught:
        hloforge.compile(_program(), target="cuda:sm_80", cache=False)
    assert caught.value.location is not None
    assert "for the CPU" in caught.value.hint


@pytest.mark.parametrize("most", [3, 8])
def test_all_arrays_count_after_every_other_pass(most: int) -> None:
    program = _program()
    lower(program.module, target="cuda")
    before = str(program.module).count("optimization_barrier")
    LegalizeManyArguments(most=most, of_all=True).run(program.module)
    assert str(program.module).count("optimization_barrier") > before
    (got,) = interpret(program.module, *_XS)
    np.testing.assert_allclose(got, sum(np.tanh(x.astype(np.float64)) for x in _XS), rtol=1e-5, atol=1e-5)


_LAYOUT = "#hal.pipeline.layout<bindings = [{}], flags = Indirect>"
_EXPORT = (
    "      hal.executable.export public @k ordinal(0) layout({}) count(%arg0: !hal.device) -> (index, index, index) {{"
)


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("count", [16, 17])
def test_arrays_are_counted_in_either_form_of_the_text(count: int, is_named: bool) -> None:
    one = '#hal.pipeline.binding<storage_buffer, "ReadOnly|Indirect">'
    layout = _LAYOUT.format(", ".join([one] * count))
    text = _EXPORT.format("#pipeline_layout1" if is_named else layout)
    if is_named:
        text = f"#pipeline_layout1 = {layout}\n{text}"
    if count <= bindings.MOST:
        bindings.check(text.encode(), _program())
        return
    with pytest.raises(bindings.TooManyArraysError, match=r"17 arrays, and its runtime takes 16 \(k\)"):
        bindings.check(text.encode(), _program())
