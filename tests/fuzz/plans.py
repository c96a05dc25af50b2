"""Random programs that have a plan, which must give the bits of compiled code:
``python -m tests.fuzz.plans --count=500``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

import hloforge
from hloforge.dialect.errors import Error
from hloforge.pipelines.evaluation.plan import TYPES
from hloforge.pipelines.evaluation.plans import plan_of
from tests.fuzz.examine import joined
from tests.fuzz.generator import Case
from tests.fuzz.maker import Maker
from tests.fuzz.step import grow

# Steps that make operations which plans have; most of the programs of others have none.
_NAMES = """
    arithmetic branched called choice clamped comparison conversion dynamically_sliced extreme fenced gathered greatest
    joined jump logic looped move_sign ordered padded parts quotient reduced reshaped reversed_ same_bits scattered
    scattered_once shift sliced spread transposed updated
"""
NAMES = frozenset(_NAMES.split())
TOGETHER = 10


def case_of(seed: int) -> Case:
    """A small program and its arguments."""
    random = Random(f"plan {seed}")
    with hloforge.Builder(f"plan_{seed}") as builder:
        maker = Maker.of(random, builder, has_borders=False)
        maker.types = tuple(name for name in maker.types if name in TYPES) or ("f32",)
        grow(maker, random.choice((1, 1, 2, 3, 5)), names=NAMES)
        results = [value for value, _ in maker.pool[-4:]]
        if not maker.arguments:
            results.append(maker.parameter("f32", ()))
        return Case(seed, builder.build(tuple(results)), tuple(maker.arguments))


def planned(seeds: range) -> Iterator[Case]:
    """The cases of seeds that have a plan."""
    return (case for case in map(case_of, seeds) if plan_of(case.program) is not None)


def differences(cases: list[Case]) -> list[str]:
    """What compiled code and plans make of programs, where it is not the same; programs that do not compile."""
    program, arguments = joined(cases)
    try:
        compiled = hloforge.compile(program).load()(*arguments)
    except Error as error:
        if len(cases) == 1:
            return [f"seed {cases[0].seed}: {error}"]
        return [line for case in cases for line in differences([case])]
    found = []
    for case, expected in zip(cases, compiled, strict=True):
        plan = plan_of(case.program)
        assert plan is not None
        results = plan([np.asarray(argument) for argument in case.arguments])
        for number, (one, other) in enumerate(zip(results, expected, strict=True)):
            if not same_bits(one, np.asarray(other)):
                found.append(f"seed {case.seed}, result {number}: {one.dtype}{list(one.shape)}: {one!r} for {other!r}")
    return found


def same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have one type, sizes and bits; any NaN is like any other."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "c":
        return same_bits(one.real, other.real) and same_bits(one.imag, other.imag)
    if one.dtype.kind in "iub":
        return bool((one == other).all())
    is_nan = np.isnan(one)
    bits = f"u{one.dtype.itemsize}"
    equal = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)
    return bool((is_nan == np.isnan(other)).all() and (equal | is_nan.reshape(equal.shape)).all())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.plans", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many programs, of which most have a plan")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; each has the next")
    asked = parser.parse_args()
    cases = list(planned(range(asked.seed, asked.seed + asked.count)))
    wrong = 0
    for first in range(0, len(cases), TOGETHER):
        for line in differences(cases[first : first + TOGETHER]):
            wrong += 1
            print(line, flush=True)
    print(f"{len(cases)} of {asked.count} programs have a plan; {wrong} results differ")


if __name__ == "__main__":
    main()
