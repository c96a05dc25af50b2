"""combine-all-reduces: programs before and after it, as XLA's client runs them on as many devices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

import hloforge
from hloforge.dialect.mlir import AnyOp, ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import read_values
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.replicas.combine_all_reduces import CombineAllReduces
from tests.pipelines.replicas.test_fold import ADD, CHANNEL, TYPE, data, groups
from tests.replicated_engine import run_on_grid

MAX, MIN = (ADD.replace("stablehlo.add", f"stablehlo.{name}") for name in ("maximum", "minimum"))
PAIRS = groups([0, 1], [2, 3])
ALL = groups([3, 1, 0, 2])
KINDS = [(ADD, ALL), (ADD, PAIRS), (MAX, ALL), (MIN, PAIRS)]


def all_reduce(name: str, value: str, kind: tuple[str, str] = KINDS[0]) -> str:
    region, where = kind
    return f'{name} = "stablehlo.all_reduce"({value}) {region} {{{where}}} : ({TYPE}) -> {TYPE}'


def function(lines: Sequence[str], results: Sequence[str]) -> str:
    types = ", ".join([TYPE] * len(results))
    return f"func.func @main(%x: {TYPE}) -> ({types}) {{\n" + "\n".join(
        [*lines, f"return {', '.join(results)} : {types}", "}"]
    )


def combined(text: str) -> ir.Module:
    """A program after the pass."""
    module = parse_module(text)
    PassManager([CombineAllReduces()]).run(module)
    assert module.operation.verify()
    return module


def sizes(text: str) -> list[int]:
    """How many arrays each all_reduce has after the pass."""
    module = combined(text)
    return [len(op.operands) for op in operations(module, {"stablehlo.all_reduce"})]


def written(seed: int) -> str:
    """A program of all_reduces at random, each of any value before it, in loops and branches as well."""
    chosen = random.Random(seed)
    values, lines = ["%x"], []
    for number in range(chosen.randint(3, 14)):
        name, one, other = f"%v{number}", chosen.choice(values), chosen.choice(values)
        form = chosen.random()
        if form < 0.6:
            lines.append(all_reduce(name, one, chosen.choice(KINDS)))
        elif form < 0.8:
            lines.append(f"{name} = stablehlo.subtract {one}, {other} : {TYPE}")
        elif form < 0.9:
            first, second = all_reduce("%t", "%a"), all_reduce("%u", chosen.choice([one, "%t"]))
            lines.append(f"""%i{number} = stablehlo.constant dense<0> : tensor<i32>
%w{number}:2 = stablehlo.while(%i = %i{number}, %a = {other}) : tensor<i32>, {TYPE} cond {{
  %n = stablehlo.constant dense<2> : tensor<i32>
  %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %j = stablehlo.add %i, %one : tensor<i32>
  {first}
  {second}
  %d = stablehlo.subtract %t, %u : {TYPE}
  stablehlo.return %j, %d : tensor<i32>, {TYPE}
}}
{name} = stablehlo.add %w{number}#1, %x : {TYPE}""")
        else:
            lines.append(f"""%c{number} = stablehlo.constant dense<true> : tensor<i1>
{name} = "stablehlo.if"(%c{number}) ({{
  {all_reduce("%t", one)}
  {all_reduce("%u", other)}
  %d = stablehlo.subtract %t, %u : {TYPE}
  stablehlo.return %d : {TYPE}
}}, {{ stablehlo.return {other} : {TYPE} }}) : (tensor<i1>) -> {TYPE}""")
        values.append(name)
    return function(lines, values[1:])


@pytest.mark.wide(2)
@pytest.mark.parametrize("seed", range(16))
def test_random_programs_keep_what_they_compute(seed: int) -> None:
    text, after = written(seed), str(combined(written(seed)))
    x = data(4)
    for got, want in zip(run_on_grid(after, 4, 1, [x]), run_on_grid(text, 4, 1, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(100, 124))
def test_what_is_left_apart_depends_on_what_is_before_it(seed: int) -> None:
    module = combined(written(seed))
    alike: dict[object, list[AnyOp]] = {}
    for op in operations(module, {"stablehlo.all_reduce"}):
        computation = op.regions[0].blocks[0].operations[0].operation.name
        alike.setdefault((op.block, str(op.attributes["replica_groups"]), computation), []).append(op)
    for same in alike.values():
        assert all(depends(second, first) for first, second in pairwise(same))


def depends(op: AnyOp, other: AnyOp) -> bool:
    """Whether an operation reads what another one of its block makes, or what is computed of that."""
    made = {*other.results}
    for each in op.block.operations:
        if each.operation == op:
            break
        if any(value in made for value in read_values(each.operation)):
            made.update(each.operation.results)
    return any(value in made for value in read_values(op))


def test_gradients_are_one_all_reduce() -> None:
    names = [f"%g{number}" for number in range(6)]
    lines = [line for g in names for line in (all_reduce(g, "%x"), f"{g}n = stablehlo.negate {g} : {TYPE}")]
    assert sizes(function(lines, [f"{g}n" for g in names])) == [6]


def test_a_chain_stays_one() -> None:
    assert sizes(function([all_reduce("%a", "%x"), all_reduce("%b", "%a")], ["%b"])) == [1, 1]


def test_channels_and_groups_tell_kinds_apart() -> None:
    attributes = [PAIRS, f"{PAIRS}, {CHANNEL}", f"{PAIRS}, {CHANNEL}, use_global_device_ids"]
    kinds = [*((ADD, attribute) for attribute in attributes), (MAX, PAIRS)]
    lines = [all_reduce(f"%v{n}", "%x", kind) for n, kind in enumerate(kinds)]
    assert sizes(function(lines, [f"%v{n}" for n in range(4)])) == [1, 1, 1, 1]


def test_at_most_as_many_arrays_as_xla_combines() -> None:
    lines = [all_reduce(f"%v{n}", "%x") for n in range(300)]
    assert sizes(function(lines, [f"%v{n}" for n in range(300)])) == [256, 44]


def test_functions_of_the_host_keep_their_order() -> None:
    """The first call needs an all_reduce: it would have to wait for the second all_reduce, after the second call."""
    call = "= stablehlo.custom_call @f({}) {{has_side_effect = true}} : ({}) -> {}"
    lines = [
        all_reduce("%a", "%x"),
        f"%b {call.format('%a', TYPE, TYPE)}",
        f"%c {call.format('%x', TYPE, TYPE)}",
        all_reduce("%d", "%c"),
    ]
    assert sizes(function(lines, ["%b", "%d"])) == [1, 1]


def test_compiled_programs_sum_as_before() -> None:
    lines = [all_reduce("%a", "%x"), f"%n = stablehlo.negate %a : {TYPE}", all_reduce("%b", "%x", (MAX, ALL))]
    lines += [all_reduce("%c", "%x"), f"%r = stablehlo.add %n, %c : {TYPE}", all_reduce("%d", "%r")]
    text = function(lines, ["%n", "%b", "%c", "%d"])
    x = data(4)
    for got, want in zip(hloforge.replicate(text, replicas=4)(x), run_on_grid(text, 4, 1, [x]), strict=True):
        np.testing.assert_array_equal(got, want)
