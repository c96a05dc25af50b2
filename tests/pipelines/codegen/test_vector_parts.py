"""Products beside loops of numbers: functions with texts of their own, which need few of LLVM's passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.kernel_program import FEW_PASSES, KernelProgram
from hloforge.pipelines.codegen.lowering import lower
from hloforge.runtime.compile.targets import parse_targets
from tests.pipelines.codegen.jax_programs import check, normal

_X, _W = normal(33, 40), normal(40, 40)


def _made(function: Callable[..., Any]) -> KernelProgram:
    program = hloforge.as_program(jax.jit(function).lower(_X, _W))
    lower(program.module)
    return generate(program.module, parse_targets("cpu")[0].machine)


def _turns(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, y: jnp.cos(y @ w) + y.sum(), x)


def _steps(x: Any, w: Any) -> Any:
    return jnp.sin(x * 2 + 1) @ w + jnp.cumsum(x, 1)


def test_a_product_has_its_own_text() -> None:
    check(_turns, _X, _W)
    made = _made(_turns)
    ((name, text),) = made.parts
    assert text.startswith(FEW_PASSES) and f"define i32 @{name}(" in text
    (kernel,) = (kernel for kernel in made.kernels if name in kernel)
    assert not kernel.startswith(FEW_PASSES) and f"declare i32 @{name}(" in kernel and "fmuladd" not in kernel


def test_equal_products_have_one_text() -> None:
    two = lambda x, w: (_turns(x, w), _turns(x + 1, w))  # noqa: E731
    check(two, _X, _W)
    assert _made(two).parts == _made(_turns).parts


def test_a_product_alone_is_in_its_kernel() -> None:
    made = _made(lambda x, w: x @ w)
    assert not made.parts and all(kernel.startswith(FEW_PASSES) for kernel in made.kernels)


def test_steps() -> None:
    check(_steps, _X, _W)
