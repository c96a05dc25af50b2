"""Shrunk programs are those that JAX writes at the smaller sizes, but for the numbers in them (divisors of means)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hloforge.dialect.errors import OptionError
from hloforge.importers.reader import read
from hloforge.tools.shrinking import Dims, shrink
from tests.tools.command import Call, values

Case: TypeAlias = tuple[Callable[..., Any], tuple[tuple[int, ...], ...], str]


def _attention(x: Any, w: Any, o: Any) -> Any:
    """x: [batch, time, model]; w: [model, 3, heads, width]."""
    q, k, v = jnp.moveaxis(jnp.einsum("btm,mchw->cbhtw", x, w), 0, 0)
    scores = jnp.where(jnp.tril(jnp.ones(q.shape[2:3] * 2, bool)), q @ jnp.swapaxes(k, 2, 3), -1e9)
    heads = jax.nn.softmax(scores) @ v
    return x + jnp.swapaxes(heads, 1, 2).reshape(*x.shape[:2], -1) @ o


def _rope(x: Any) -> Any:
    half = x.shape[-1] // 2
    return jnp.concatenate([-x[..., half:], x[..., :half]], -1) * jnp.arange(x.shape[-2])[:, None]


def _layers(x: Any, weights: Any) -> Any:
    return lax.scan(lambda carry, w: (jnp.tanh(carry @ w), carry.sum(-1)), x, weights)


def _loss(x: Any, w: Any, b: Any) -> Any:
    return (jax.nn.log_softmax(jnp.maximum(x @ w, 0) + b) ** 2).mean()


def _pool(x: Any, k: Any) -> Any:
    y = lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").reshape(x.shape[0], -1)


def _depthwise(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=x.shape[-1]
    )


CASES: dict[str, Case] = {
    "attention": (_attention, ((3, 11, 20), (20, 3, 5, 4), (20, 20)), "11=7,20=12,5=3"),
    "attention by the model": (_attention, ((3, 11, 20), (20, 3, 5, 4), (20, 20)), "20=8,5=2,11=11"),
    "rope": (_rope, ((3, 13, 24),), "24=8"),
    "scan": (_layers, ((3, 14), (9, 14, 14)), "9=4,14=6"),
    "gradient": (jax.grad(_loss, (0, 1, 2)), ((6, 22), (22, 17), (17,)), "22=5,17=9,6=2"),
    "pooling": (_pool, ((2, 24, 24, 3), (3, 3, 3, 10)), "24=16,10=4"),
    "gradient of pooling": (
        jax.grad(lambda x, k: (_pool(x, k) ** 2).sum(), (0, 1)),
        ((2, 24, 24, 3), (3, 3, 3, 10)),
        "24=16,10=4",
    ),
    "depthwise": (_depthwise, ((2, 15, 15, 12), (3, 3, 1, 12)), "12=4,15=9"),
    "running sum": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0)), ((19, 30),), "19=8,30=12"),
    "split": (lambda x: [y.sum(0) for y in jnp.split(x, 3, 1)], ((5, 30),), "30=12"),
    "shifts": (lambda x: x[:, 1:] - x[:, :-1] + jnp.pad(x[:, 2:], ((0, 0), (1, 0))), ((4, 29),), "29=12"),
    "every other": (lambda x: x[::2] + x[1::2], ((26, 4),), "26=10"),
    "table": (lambda t, i: t[i.astype(int) % 3], ((101, 18), (4, 23)), "101=11,18=6,23=9"),
    "updates": (lambda t, i, u: t.at[i.astype(int) % 3].add(u), ((101, 18), (23,), (23, 18)), "101=11,18=6,23=9"),
    "sorted": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1)), ((21, 33),), "21=8,33=12"),
    "largest": (lambda x: lax.top_k(x, 4), ((21, 33),), "21=8,33=12"),
    "transform": (lambda x, w: jnp.abs(jnp.fft.rfft(x)) @ w, ((5, 32), (17, 3)), "32=16,17=9"),
    "inverse transform": (lambda x: jnp.fft.irfft(x), ((5, 17),), "17=9"),
    "linear algebra": (
        lambda a, b: lax.linalg.triangular_solve(jnp.linalg.cholesky(a), b, left_side=True),
        ((25, 25), (25, 7)),
        "25=6",
    ),
    "branches": (lambda x: lax.cond(x[0, 0] > 0, lambda y: y.sum(0), lambda y: y.max(0), x), ((5, 31),), "31=6"),
    "calls": (lambda x: jax.jit(jnp.outer)(x, x) + jax.nn.relu(x), ((37,),), "37=6"),
    "normalization": (lambda x: (x - x.mean((0, 1))) * lax.rsqrt(x.var((0, 1)) + 1), ((6, 10, 27),), "27=5,6=4"),
    "one hot": (lambda i, x: jax.nn.one_hot(i.astype(int), x.shape[0]) @ x, ((13,), (41, 5)), "41=7,13=6"),
    "rolled": (lambda x: jnp.roll(x, 1, 0) + jnp.flip(x, 1), ((28, 12),), "28=9"),
}


def _smaller(shape: tuple[int, ...], dims: str) -> tuple[int, ...]:
    sizes = {int(old): int(new) for old, new in (part.split("=") for part in dims.split(","))}
    return tuple(sizes.get(size, size) for size in shape)


def _lowered(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> str:
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return str(jax.jit(function).lower(*arguments).as_text())


def _structure(text: str) -> list[str]:
    """The program's lines without the numbers of scalar constants."""
    text = re.sub(r", sdy.sharding_rule = #sdy.op_sharding_rule<.*?custom>", "", text)
    text = re.sub(r"^module .*$|\{result_info = .*?\}|jax.result_info = \"[^\"]*\"", "", text, flags=re.MULTILINE)
    return re.sub(r"dense<[-+\w.]*> : (?=tensor<\w+>)", "constant of ", text).splitlines()


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_jax_writes_at_these_sizes(name: str) -> None:
    function, shapes, dims = CASES[name]
    smaller = shrink(read(_lowered(function, shapes)), Dims.parse([dims]))
    direct = read(_lowered(function, tuple(_smaller(shape, dims) for shape in shapes)))
    assert _structure(smaller.text()) == _structure(direct.text())
    assert smaller.signature.parameters == direct.signature.parameters
    assert smaller.signature.result == direct.signature.result


PROGRAM = """HloModule m, entry_computation_layout={(f32[64,3]{0,1}, f32[3,64])->(f32[64,64]{0,1}, f32[64])}
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,3]{0,1} parameter(0)
  y = f32[3,64] parameter(1)
  p = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  s = f32[64] reduce(p, z), dimensions={1}, to_apply=add
  ROOT t = (f32[64,64]{0,1}, f32[64]) tuple(p, s)
}
"""


def test_a_dimension_of_a_parameter_takes_what_belongs_to_it_along() -> None:
    smaller = shrink(read(PROGRAM), Dims.parse(["y[1]=5"]))
    assert str(smaller.signature) == ("(x: f32[64,3]{0,1}, y: f32[3,5]{1,0}) -> (f32[64,5]{0,1}, f32[64]{0})")


@pytest.mark.parametrize("form", ["stablehlo", "hlo"])
def test_the_command_writes_a_program_that_runs(call: Call, tmp_path: Path, form: str) -> None:
    (tmp_path / "m.hlo").write_text(PROGRAM)
    small = tmp_path / "small"
    result = call("shrink", tmp_path / "m.hlo", "--dims=64=2", f"--to={form}", "-o", small)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "parameters: 1.5 KiB → 48 B\n"
    ran = call("run", small, "--input=2x3xf32=1 2 3 4 5 6", "--input=3x2xf32=1 0 0 1 1 1")
    assert values(ran) == ["2x2xf32=[4 5][10 11]", "2xf32=[9 21]"]


REFUSALS = {
    "no such size": ("65=2", r"no dimension of the program has the size 65\nnote: it has 64, 3"),
    "no such parameter": ("xx[0]=2", r"there is no parameter 'xx'\nnote: did you mean x"),
    "no such dimension": ("x[2]=2", r"x\[2\]: the parameter has 2 dimensions"),
    "malformed": ("64", "'64' is neither OLD=NEW nor"),
    "empty": ("64=0", "a size is at least 1"),
    "twice": ("64=2,64=3", "64 was given 2 before"),
    "two sizes that are one": ("x[1]=2,y[0]=4", "the same size is 2 by"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_misspelt_is_one_error(call: Call, tmp_path: Path, name: str) -> None:
    dims, message = REFUSALS[name]
    (tmp_path / "m.hlo").write_text(PROGRAM)
    result = call("shrink", tmp_path / "m.hlo", f"--dims={dims}")
    assert result.exit_code == 1
    assert re.search(message, result.stderr), result.stderr


def _located(function: Callable[..., Any], shape: tuple[int, ...], dims: str) -> OptionError:
    with pytest.raises(OptionError) as caught:
        shrink(read(_lowered(function, (shape,))), Dims.parse([dims]))
    assert caught.value.location is not None and caught.value.location.line > 1
    return caught.value


def test_a_choice_is_the_users() -> None:
    error = _located(lambda x: x.reshape(3, 8, 16), (3, 128), "128=32")
    assert "32 (of 128) = 8 × 16 does not say which of its sizes shrink" in str(error)
    assert "stablehlo.reshape" in error.op and "--dims" in error.hint
    smaller = shrink(read(_lowered(lambda x: x.reshape(3, 8, 16), ((3, 128),))), Dims.parse(["128=32,8=2"]))
    assert smaller.signature.result.dimensions == (3, 2, 16)


def test_what_does_not_fit_is_refused_at_the_operation() -> None:
    assert "does not hold" in str(_located(lambda x: x.reshape(3, 8, 16), (3, 128), "128=30,8=2,16=16"))
    assert "the parts have" in str(_located(lambda x: jnp.concatenate([x, x], 1), (3, 10), "10=5,20=11"))


def test_a_call_whose_settings_may_hold_the_size_is_refused() -> None:
    text = """func.func @main(%a: tensor<48x3xf32>) -> tensor<48xf32> {
      %0 = stablehlo.custom_call @mine(%a) {backend_config = "rows=48"} : (tensor<48x3xf32>) -> tensor<48xf32>
      return %0 : tensor<48xf32>
    }"""
    with pytest.raises(OptionError, match="its backend_config has the number 48"):
        shrink(read(text), Dims.parse(["48=8"]))
    kept = shrink(read(text.replace("rows=48", "rows=all")), Dims.parse(["48=8"]))
    assert kept.signature.result.dimensions == (8,)


def test_constants_keep_their_first_elements() -> None:
    table = np.arange(60, dtype=np.float32).reshape(6, 10)
    smaller = shrink(read(_lowered(lambda x: x + table, ((6, 10),))), Dims.parse(["6=2,10=3"]))
    assert "[0.000000e+00, 1.000000e+00, 2.000000e+00], [1.000000e+01, 1.100000e+01, 1.200000e+01]" in smaller.text()
