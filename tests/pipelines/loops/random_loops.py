"""Programs with a random loop, for comparing how engines run it: carries of many types that change places or stay,
are updated in part, summed, multiplied and sorted into other shapes, loops in loops, ends that depend on data."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import hloforge
from hloforge import Shape, Value, ops
from hloforge.dialect.element_types import Kind
from hloforge.dialect.idioms import take_rows
from hloforge.dialect.program import Program

DIMS = ((), (), (1,), (1, 1), (2,), (3,), (2, 3), (8,), (4, 4), (5, 7), (65,), (10, 20), (40, 3))
TYPES = ("f32", "f32", "f32", "s32", "s32", "u8", "pred", "s64", "u32", "f64", "f16", "bf16")


def random_program(seed: int) -> tuple[Program, list[np.ndarray[Any, Any]]]:
    """A program of one random loop and arguments for it; the same for a seed everywhere."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, choice: random.Random) -> None:
        self.random = choice
        self.types = choice.sample(TYPES, k=min(len(TYPES), choice.choice((1, 2, 4))))

    def shape(self) -> Shape:
        return Shape.array(self.random.choice(self.types), *self.random.choice(DIMS))

    def program(self) -> tuple[Program, list[np.ndarray[Any, Any]]]:
        carried = [self.shape() for _ in range(self.random.randint(1, 4))]
        others = [self.shape() for _ in range(self.random.randint(0, 2))]
        numbers = np.random.default_rng(self.random.randrange(1 << 30))
        turns = self.random.choice((0, 1, 2, 3, 7))
        with hloforge.Builder("loop") as builder:
            count = builder.parameter(0, "s32[]", "count")
            values = [builder.parameter(n, shape, f"x{n}") for n, shape in enumerate([*carried, *others], 1)]
            inits = values[: len(carried)]
            if self.random.random() < 0.3:
                inits = [ops.mul(v, 0) if v.element_type.is_integer else v for v in inits]
            limit = count if self.random.random() < 0.5 else ops.constant(turns, "s32")
            program = builder.build(self.loop(limit, inits, values, 2))
        arrays = [_array(shape, numbers) for shape in [*carried, *others]]
        return program, [np.int32(turns), *arrays]

    def loop(self, limit: Value, inits: list[Value], outer: list[Value], depth: int) -> tuple[Value, ...]:
        early = self.random.random() < 0.3

        def condition(i: Value, *carries: Value) -> Value:
            go = ops.lt(i, limit)
            scalars = [value for value in carries if value.dims == () and value.element_type.name == "s32"]
            return ops.and_(go, ops.lt(scalars[0], 1000)) if early and scalars else go

        def body(i: Value, *carries: Value) -> list[Value]:
            pool = [i, *carries, *outer]
            for _ in range(self.random.randint(1, 6)):
                pool.append(self.step(self.random.choice(pool), i, pool, depth))
            return [ops.add(i, 1), *(self.next_value(carry, i, pool, depth) for carry in carries)]

        start = ops.constant(0, "s32")
        _, *results = ops.while_(condition, body, [start, *inits])
        return tuple(results)

    def next_value(self, carry: Value, i: Value, pool: list[Value], depth: int) -> Value:
        """What follows a carry: a value of its shape that is there, or one made of it."""
        same = [value for value in pool if value.type == carry.type]
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice(same)
        if kind < 0.7 and carry.dims:
            return self.update(carry, i, pool)
        return self.binary(carry, self.random.choice(same))

    def step(self, value: Value, i: Value, pool: list[Value], depth: int) -> Value:
        makers: list[Callable[[], Value]] = [
            lambda: self.binary(value, self.random.choice([v for v in pool if v.type == value.type])),
            lambda: ops.convert_element_type(_tame(value), self.random.choice(self.types)),
            lambda: self.unary(value),
        ]
        if value.dims:
            rank = len(value.dims)
            axis = self.random.randrange(rank)
            makers += [
                lambda: ops.reduce(value, *_reducer(value), [axis]),
                lambda: ops.reshape(value, [int(np.prod(value.dims))]),
                lambda: ops.transpose(value, self.random.sample(range(rank), rank)),
                lambda: self.update(value, i, pool),
                lambda: ops.dynamic_slice(value, [i] * rank, [max(1, size // 2) for size in value.dims]),
                lambda: ops.concat_in_dim([value, value], axis),
                lambda: take_rows(value, ops.clamp(0, ops.add(ops.iota("s32", [3], 0), i), value.dims[0] - 1)),
            ]
            if value.element_type.kind is not Kind.UNSIGNED:
                makers.append(lambda: ops.rev(value, [axis]))
            if rank == 2 and value.element_type.name == "f32":
                makers.append(lambda: _tame(ops.dot(value, ops.transpose(value, [1, 0]))))
        if depth > 1 and self.random.random() < 0.5:
            inner = self.random.sample(pool, min(len(pool), self.random.randint(1, 2)))
            makers = [lambda: self.loop(ops.constant(self.random.randint(0, 3), "s32"), inner, pool, depth - 1)[0]]
        made = self.random.choice(makers)()
        return value if np.prod(made.dims) > 600 else made

    def binary(self, a: Value, b: Value) -> Value:
        if a.element_type.kind is Kind.PRED:
            return self.random.choice((ops.and_, ops.or_, ops.xor))(a, b)
        if a.element_type.is_float:
            kind = self.random.choice((ops.max, ops.min, ops.add, ops.sub, "select"))
            if kind == "select":
                return ops.select(ops.lt(a, b), ops.mul(a, 0.5), b)
            return _tame(kind(a, b))
        return self.random.choice((ops.add, ops.sub, ops.mul, ops.max, ops.xor))(a, b)

    def unary(self, value: Value) -> Value:
        if value.element_type.kind is Kind.PRED:
            return ops.not_(value)
        if value.element_type.name == "f32":
            return self.random.choice((ops.neg, ops.abs, ops.tanh))(value)
        return ops.neg(value)

    def update(self, value: Value, i: Value, pool: list[Value]) -> Value:
        window = [max(1, size // self.random.choice((2, 3))) for size in value.dims]
        if self.random.random() < 0.3:
            part = ops.slice(value, [0] * len(window), window, [1] * len(window))
        else:
            scalar = ops.convert_element_type(i, value.element_type)
            part = ops.broadcast_in_dim(scalar, window, ())
        return ops.dynamic_update_slice(value, part, [ops.mul(i, self.random.randint(0, 2))] * len(window))


def _tame(value: Value) -> Value:
    """Floats within bounds that every type holds, so that no engine's rounding grows."""
    return ops.clamp(-8.0, value, 8.0) if value.element_type.is_float else value


def _reducer(value: Value) -> tuple[Any, Any]:
    if value.element_type.kind is Kind.PRED:
        return False, ops.or_
    return (-8.0 if value.element_type.is_float else 0), ops.max


def _array(shape: Shape, numbers: np.random.Generator) -> np.ndarray[Any, Any]:
    assert shape.element is not None
    return np.asarray(numbers.integers(0, 4, shape.dimensions)).astype(shape.element.dtype)
