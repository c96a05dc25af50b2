"""Programs whose kernels ``hloforge cache --warm`` compiles before anybody asks for them.

Kernels are kept by their content, so that the program that needs one may have any name and come from anywhere. Sizes
are part of a kernel: a list has those that are usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hloforge.dialect import ops
from hloforge.dialect.builder import Builder
from hloforge.dialect.program import Program
from hloforge.dialect.values import Value
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions

Operation: TypeAlias = Callable[..., Value]
Say: TypeAlias = Callable[[str], None]

SIZES: tuple[tuple[int, ...], ...] = (
    *((), (2,), (3,), (4,), (8,), (10,), (16,), (32,), (64,), (100,), (128,), (256,), (1000,), (1024,)),
    *((2, 2), (2, 3), (3, 3), (4, 4), (8, 8), (10, 10), (16, 16), (32, 32), (64, 64), (100, 100), (128, 128)),
)
# What reduces, looks up or rearranges takes more code than what goes from element to element.
_FEWER: tuple[tuple[int, ...], ...] = ((4,), (10,), (100,), (1000,), (4, 4), (10, 10), (64, 64), (128, 128))


@dataclass(frozen=True)
class Common:
    """A program of one operation.

    Attributes:
        name: as JAX calls it, with the types of its arguments.
        shapes: of its arguments.
    """

    name: str
    shapes: tuple[str, ...]
    operation: Operation

    def program(self) -> Program:
        with Builder("eager", Program) as builder:
            arguments = [builder.parameter(number, shape, f"x{number}") for number, shape in enumerate(self.shapes)]
            return builder.build(self.operation(*arguments))

    def __str__(self) -> str:
        return f"{self.name} of {', '.join(self.shapes)}"


_UNARY: Mapping[str, Operation] = {
    "negative": ops.neg,
    "abs": ops.abs,
    "sign": ops.sign,
    "square": lambda x: ops.mul(x, x),
}
_UNARY_FLOATS: Mapping[str, Operation] = {
    "exp": ops.exp,
    "log": ops.log,
    "sqrt": ops.sqrt,
    "rsqrt": ops.rsqrt,
    "tanh": ops.tanh,
    "sin": ops.sin,
    "cos": ops.cos,
    "logistic": ops.logistic,
    "floor": ops.floor,
    "isfinite": ops.is_finite,
}
_BINARY: Mapping[str, Operation] = {
    "add": ops.add,
    "subtract": ops.sub,
    "multiply": ops.mul,
    "maximum": ops.max,
    "minimum": ops.min,
    "equal": ops.eq,
    "not_equal": ops.ne,
    "less": ops.lt,
    "greater": ops.gt,
    "greater_equal": ops.ge,
}
_CONVERSIONS = (("f32", "s32"), ("s32", "f32"), ("pred", "f32"), ("pred", "s32"), ("f32", "pred"))


def jax_eager() -> Iterator[Common]:
    """What JAX runs one by one where nothing is jitted: arithmetic, comparisons, sums, parts of arrays, products."""
    for sizes in SIZES:
        yield from _elementwise(sizes)
    for sizes in _FEWER:
        yield from _reductions(sizes)
        yield from _parts(sizes)
        if len(sizes) == 2:
            yield _of("matmul", ["f32", "f32"], sizes, ops.dot)
            yield _of("transpose", ["f32"], sizes, lambda x: ops.transpose(x, [1, 0]))


LISTS: Mapping[str, Callable[[], Iterator[Common]]] = {"jax-eager": jax_eager}


def warm(programs: Sequence[Common], say: Say) -> int:
    """Compile programs for this machine's processor, so that the cache has their kernels. Returns how many.

    Args:
        say: told what is compiled.
    """
    for number, common in enumerate(programs):
        say(f"program {number + 1} of {len(programs)}: {common}")
        compile_program(common.program(), "cpu", CompileOptions())
    return len(programs)


def _of(name: str, types: Sequence[str], sizes: Sequence[int], operation: Operation) -> Common:
    dims = ",".join(map(str, sizes))
    return Common(name, tuple(f"{type_}[{dims}]" for type_ in types), operation)


def _elementwise(sizes: tuple[int, ...]) -> Iterator[Common]:
    for type_ in ("f32", "s32"):
        for name, operation in _UNARY.items():
            yield _of(name, [type_], sizes, operation)
        for name, operation in _BINARY.items():
            yield _of(name, [type_, type_], sizes, operation)
            if sizes:
                # With a number, which JAX passes as an argument.
                yield Common(name, (f"{type_}[{','.join(map(str, sizes))}]", f"{type_}[]"), operation)
        yield _of("where", ["pred", type_, type_], sizes, ops.select)
    for name, operation in _UNARY_FLOATS.items():
        yield _of(name, ["f32"], sizes, operation)
    yield _of("divide", ["f32", "f32"], sizes, ops.div)
    yield _of("power", ["f32", "f32"], sizes, ops.pow)
    yield _of("logical_not", ["pred"], sizes, ops.logical_not)
    yield _of("logical_and", ["pred", "pred"], sizes, ops.logical_and)
    yield _of("logical_or", ["pred", "pred"], sizes, ops.logical_or)
    for given, wanted in _CONVERSIONS:
        yield _of(f"astype {wanted}", [given], sizes, lambda x, wanted=wanted: ops.convert_element_type(x, wanted))


def _reductions(sizes: tuple[int, ...]) -> Iterator[Common]:
    everything = list(range(len(sizes)))
    for dims in [everything, *([[d] for d in everything] if len(sizes) > 1 else [])]:
        for type_ in ("f32", "s32"):
            yield _of("sum", [type_], sizes, lambda x, dims=dims: ops.reduce(x, 0, ops.add, dims))
        yield _of("max", ["f32"], sizes, lambda x, dims=dims: ops.reduce(x, float("-inf"), ops.max, dims))
        yield _of("min", ["f32"], sizes, lambda x, dims=dims: ops.reduce(x, float("inf"), ops.min, dims))
        yield _of("any", ["pred"], sizes, lambda x, dims=dims: ops.reduce(x, False, ops.logical_or, dims))
        yield _of("all", ["pred"], sizes, lambda x, dims=dims: ops.reduce(x, True, ops.logical_and, dims))


def _parts(sizes: tuple[int, ...]) -> Iterator[Common]:
    """A row or an element at an index, and both changed."""
    dims = ",".join(map(str, sizes))
    rest = len(sizes) - 1

    def row(x: Value, index: Value) -> Value:
        return ops.reshape(ops.dynamic_slice(x, [index] + [0] * rest, [1, *sizes[1:]]), list(sizes[1:]))

    def changed(x: Value, new: Value, index: Value) -> Value:
        return ops.dynamic_update_slice(x, ops.reshape(new, [1, *sizes[1:]]), [index] + [0] * rest)

    row_dims = ",".join(map(str, sizes[1:]))
    for type_ in ("f32", "s32"):
        yield Common("x[i]", (f"{type_}[{dims}]", "s32[]"), row)
        yield Common("x.at[i].set", (f"{type_}[{dims}]", f"{type_}[{row_dims}]", "s32[]"), changed)
        yield _of("flip", [type_], sizes, lambda x: ops.rev(x, [0]))
        if rest:
            yield _of("ravel", [type_], sizes, lambda x: ops.reshape(x, [math.prod(sizes)]))
        yield _of("concatenate", [type_, type_], sizes, lambda x, y: ops.concat_in_dim([x, y], 0))
