"""Functions of floats for processors without their instructions, in all numbers of 16 bits or near what decides."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hloforge.runtime.compile.direct.host import unavailable
from hloforge.runtime.compile.direct.relocatable import read
from hloforge.runtime.compile.direct.soft_floats import SOFT_FLOATS
from hloforge.runtime.native.library import Code

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())

# A function over an array: of up to three operands, whose elements lie one after the other.
_LOOP = """
define void @each(ptr %from, ptr %to, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{loads}
  %y = call {result} @{name}({arguments})
  %to.at = getelementptr {result}, ptr %to, i64 %i
  store {result} %y, ptr %to.at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
_KINDS: dict[str, Any] = {"half": np.float16, "float": np.float32, "double": np.float64}


def each(
    name: str, operand: str, result: str, count: int = 1
) -> Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """A function of an array of operands, ``count`` to a row."""
    import mmap

    from hloforge.pipelines.codegen.kernel_program import NO_PASSES
    from hloforge.runtime.compile.direct.objects import text_object

    loads = "\n".join(
        f"  %p{n} = mul i64 %i, {count}\n  %q{n} = add i64 %p{n}, {n}\n"
        f"  %at{n} = getelementptr {operand}, ptr %from, i64 %q{n}\n  %x{n} = load {operand}, ptr %at{n}"
        for n in range(count)
    )
    arguments = ", ".join(f"{operand} %x{n}" for n in range(count))
    made = SOFT_FLOATS[name](f"soft.{name}").replace("#0", "noinline")
    loop = _LOOP.format(loads=loads, result=result, name=f"soft.{name}", arguments=arguments)
    unit = read(text_object(f"{NO_PASSES}{made}{loop}"))
    code = Code(sum(section.size + 64 for section in unit.sections))
    (section,) = (one for one in unit.sections if one.is_code and one.size)
    data = [one for one in unit.sections if one.size and not one.is_code]
    places, place = {section: 0}, section.size
    code.memory[: section.size] = section.data
    for one in data:
        place += -place % 64
        places[one] = place
        code.memory[place : place + one.size] = one.data
        place += one.size
    for one in section.relocations:
        assert one.symbol.section is not None
        value = places[one.symbol.section] + one.symbol.value + one.addend - one.place
        code.memory[one.place : one.place + 4] = value.to_bytes(4, "little", signed=True)
    code.protect(0, place, mmap.PROT_READ | mmap.PROT_EXEC)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
        code.start + unit.defined["each"].value
    )

    def run(operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        given = np.ascontiguousarray(operands, _KINDS[operand])
        made = np.empty(given.size // count, _KINDS[result])
        function(given.ctypes.data, made.ctypes.data, made.size)
        assert code.memory is not None  # it lives as long as it is called
        return made

    return run


def numbers(kind: str) -> np.ndarray[Any, Any]:
    """Integers, halves and their neighbours, where fractions end, ends of the range, and others at random."""
    dtype = _KINDS[kind]
    digits = np.finfo(dtype).nmant
    base = [
        0,
        0.25,
        0.5,
        0.75,
        1,
        1.5,
        2,
        2.5,
        3.5,
        2.0**digits,
        2.0 ** (digits - 1) + 0.5,
        2.0 ** (digits + 1),
        np.inf,
    ]
    middle = np.array([*base, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    with np.errstate(over="ignore"):
        around = np.concatenate([middle, np.nextafter(middle, dtype(np.inf)), np.nextafter(middle, dtype(-np.inf))])
    drawn = np.random.default_rng(0).normal(size=20000) * 10.0 ** np.random.default_rng(1).integers(-3, 9, 20000)
    positive = np.concatenate([around, np.abs(drawn).astype(dtype)])
    return np.concatenate([positive, -positive, [dtype(np.nan)]])


def same(made: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Equal with the sign of zero, NaN where NaN is."""
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made[~np.isnan(made)]), np.signbit(expected[~np.isnan(made)]))


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("trunc", np.trunc),
        ("roundeven", np.rint),
        ("rint", np.rint),
        ("round", lambda x: np.copysign(np.trunc(np.abs(x)) + (np.abs(x) - np.trunc(np.abs(x)) >= 0.5), x)),
    ],
)
def test_integers_near_numbers(name: str, expected: Any, kind: str) -> None:
    x = numbers(kind)
    with np.errstate(invalid="ignore"):
        same(each(name + "f" * (kind == "float"), kind, kind)(x), expected(x))


def test_halves_become_floats() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    same(each("__extendhfsf2", "half", "float")(halves), halves.astype(np.float32))


@pytest.mark.parametrize(("name", "kind"), [("__truncsfhf2", "float"), ("__truncdfhf2", "double")])
def test_numbers_become_the_nearest_halves(name: str, kind: str) -> None:
    """numpy rounds as IEEE 754 does; all halves, what lies between two, and neighbours of these."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = halves[np.isfinite(halves)].astype(_KINDS[kind])
    between = (wide[:-1] + wide[1:]) / 2
    below, above = np.nextafter(between, _KINDS[kind](-np.inf)), np.nextafter(between, _KINDS[kind](np.inf))
    x = np.concatenate([wide, between, below, above, numbers(kind)])
    if kind == "float":
        x = x[(np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0) | np.isnan(x)]
    with np.errstate(over="ignore"):
        same(each(name, kind, "half")(x), x.astype(np.float16))


def test_products_and_sums_are_rounded_once() -> None:
    """Judged by longdouble where that is exact, and by integers that cancel."""
    draw = np.random.default_rng(2)
    a, b = (draw.normal(size=20000).astype(np.float32) for _ in range(2))
    near = -(a.astype(np.float64) * b).astype(np.float32)
    c = np.where(
        draw.random(20000) < 0.5, near, draw.normal(size=20000).astype(np.float32) * 2.0 ** draw.integers(-30, 3, 20000)
    )
    rows = np.stack([a, b, c.astype(np.float32)], 1)
    exact = rows[:, 0].astype(np.longdouble) * rows[:, 1] + rows[:, 2]
    same(each("fmaf", "float", "float", 3)(rows), exact.astype(np.float32))
