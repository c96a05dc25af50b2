"""legalize-long-chains: barriers in deep elementwise expressions, and none elsewhere."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.workarounds.long_chains import LegalizeLongChains

ARRAY = "tensor<64xf32>"


def chain(count: int, array: str = ARRAY) -> str:
    """x + y, times y, minus y, maximum of that and y, and so on."""
    kinds = ("add", "multiply", "subtract", "maximum")
    lines = [f"%v{n} = stablehlo.{kinds[n % 4]} %v{n - 1}, %y : {array}" for n in range(1, count + 1)]
    head = f"func.func @main(%v0: {array}, %y: {array}) -> {array} {{"
    return "\n".join([head, *lines, f"return %v{count} : {array}", "}"])


def barriers(text: str, longest: int = 512) -> list[str]:
    """The names of what barriers hold."""
    module = read(text).module
    LegalizeLongChains(longest).run(module)
    module.operation.verify()
    return [op.operands[0].get_name() for op in operations(module, {"stablehlo.optimization_barrier"})]


@pytest.mark.parametrize(("count", "expected"), [(512, 0), (513, 1), (1024, 1), (1025, 2), (2000, 3)])
def test_a_barrier_at_every_512th_operation(count: int, expected: int) -> None:
    assert len(barriers(chain(count))) == expected


def test_long_programs_that_are_not_deep_are_left_alone() -> None:
    lines = [f"%v{n} = stablehlo.add %x, %x : {ARRAY}" for n in range(2000)]
    assert not barriers("\n".join([f"func.func @main(%x: {ARRAY}) -> {ARRAY} {{", *lines, f"return %v0 : {ARRAY} }}"]))


def test_what_computes_rows_begins_anew() -> None:
    sort = f"""%v150 = "stablehlo.sort"(%v149) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }}) {{dimension = 0 : i64}} : ({ARRAY}) -> {ARRAY}"""
    text = chain(300).replace(f"%v150 = stablehlo.subtract %v149, %y : {ARRAY}", sort)
    assert sort in text
    assert not barriers(text, longest=160)


def test_a_value_that_many_pieces_read_is_held_once() -> None:
    text = chain(40).replace(", %y :", ", %s :").replace("{\n", f"{{\n%s = stablehlo.add %y, %y : {ARRAY}\n", 1)
    found = barriers(text, longest=10)
    assert "%0" in found
    assert len(found) == len(set(found)) == 5


def test_arrays_of_dynamic_sizes_have_none() -> None:
    assert not barriers(chain(40, "tensor<?xf32>"), longest=10)


def mixed(count: int, seed: int) -> Program:
    """Random arithmetic of three types, choices and comparisons; some values are read on the way, one by rows."""
    random = Random(seed)
    with hloforge.Builder("mixed") as builder:
        values = [[builder.parameter(n, f"{name}[6,5]", f"p{n}")] for n, name in enumerate(("f32", "s32", "u32"))]
        kept = []
        for number in range(count):
            row = random.choice(values)
            one, other = row[-1], random.choice(row[-3:])
            made = random.choice((ops.add, ops.max, ops.min, ops.sub))(one, other)
            if row[0].element_type.is_float:
                made = ops.max(ops.min(made, 8.0), -8.0)
            elif random.random() < 0.3:
                made = ops.xor(made, one)
            if random.random() < 0.2:
                made = ops.select(ops.lt(one, other), made, other)
            row.append(made)
            if random.random() < 0.01:
                kept.append(ops.rev(made, [1]) if number % 2 else ops.reduce(made, 0, ops.max, [1]))
        return builder.build((*(row[-1] for row in values), *kept))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_mixed_types_and_values_that_others_read(seed: int) -> None:
    program = mixed(1800, seed)
    lowered = program.clone()
    LegalizeLongChains().run(lowered.module)
    lowered.module.operation.verify()
    assert operations(lowered.module, {"linalg.generic"})
    given = hloforge.random_inputs(program.signature)
    expected = program.evaluate(*given, engine="xla")
    for got, want in zip(hloforge.compile(program, cache=False).load()(*given), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_results() -> None:
    x, y = np.random.default_rng(0).uniform(0.5, 1, (2, 64)).astype(np.float32)
    expected = x
    for number in range(1, 1201):
        expected = (np.add, np.multiply, np.subtract, np.maximum)[number % 4](expected, y)
    np.testing.assert_array_equal(hloforge.compile(chain(1200), cache=False).load()(x, y), expected)
