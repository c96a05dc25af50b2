"""Functions of the host that kernels call: how often, in which order, with what, and what a failure ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.pipelines.host_calls import declare_host_functions
from hloforge.runtime.compile.generated import generated_apart
from hloforge.runtime.compile.targets import parse_targets
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.session.session import Session

_CALL = 'custom_call_target="{}", custom_call_has_side_effect=true'
_LOG = _CALL.format("log")


@pytest.fixture(params=["native", "by IREE's runtime"])
def loaded(request: pytest.FixtureRequest) -> Callable[..., Session]:
    """A program that our code generator has to make, called in either way."""

    def load(text: str, **functions: Any) -> Session:
        executable = hloforge.compile(text, host_calls=set(functions))
        assert executable.manifest.is_generated
        session = executable.load(host=functions)
        assert session._native is not None
        if request.param != "native":
            session._native = None
        return session

    return load


def _loop(body: str, steps: int = 4) -> str:
    return f"""HloModule loop
yes {{ x = s32[] parameter(0) ROOT r = s32[] custom-call(x), {_LOG} }}
no {{ x = s32[] parameter(0) ROOT r = s32[] negate(x) }}
more {{ c = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0 n = s32[] constant({steps})
  ROOT less = pred[] compare(i, n), direction=LT }}
turn {{ c = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0 s = s32[] get-tuple-element(c), index=1
  k = s32[] get-tuple-element(c), index=2
  one = s32[] constant(1) zero = s32[] constant(0) j = s32[] add(i, one)
{body}
  ROOT next = (s32[], s32[], s32[]) tuple(j, t, k) }}
ENTRY main {{ x = s32[] parameter(0) zero = s32[] constant(0)
  first = (s32[], s32[], s32[]) tuple(zero, zero, x)
  last = (s32[], s32[], s32[]) while(first), condition=more, body=turn
  ROOT s = s32[] get-tuple-element(last), index=1 }}"""


class Log:
    """A function of the host that keeps what it is given, and adds a hundred to it."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.seen.append(int(x))
        return np.int32(x + 100)


def test_effects_keep_their_number_and_order_in_loops_and_branches(loaded: Callable[..., Session]) -> None:
    """A branch whose operands do not change stays in its loop, because its effect is wanted each time."""
    log = Log()
    text = _loop(
        f"""  a = s32[] custom-call(i), {_LOG}
  is = pred[] compare(k, zero), direction=GT
  b = s32[] conditional(is, k, k), true_computation=yes, false_computation=no
  t = s32[] add(s, b)"""
    )
    session = loaded(text, log=log)
    assert int(session(np.int32(7))) == 4 * 107
    assert log.seen == [0, 7, 1, 7, 2, 7, 3, 7]
    log.seen.clear()
    assert int(session(np.int32(-7))) == 4 * 7
    assert log.seen == [0, 1, 2, 3]


def test_a_failure_in_a_loop_ends_the_call_and_nothing_else(loaded: Callable[..., Session]) -> None:
    class BrokenError(Exception):
        pass

    class Breaking(Log):
        def __call__(self, x: Any) -> Any:
            result = super().__call__(x)
            if x == 2:
                raise BrokenError
            return result

    log = Breaking()
    text = _loop(f"  a = s32[] custom-call(i), {_LOG}\n  t = s32[] add(s, a)", steps=10)
    session = loaded(text, log=log)
    for _ in range(2):
        log.seen.clear()
        with pytest.raises(BrokenError):
            session(np.int32(0))
        assert log.seen == [0, 1, 2]


def test_a_failure_is_that_of_the_thread_that_calls(loaded: Callable[..., Session]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def picky(x: Any) -> Any:
        if x % 2:
            raise ValueError(int(x))
        return x

    text = f"""HloModule m
ENTRY main {{ x = s32[] parameter(0) ROOT r = s32[] custom-call(x), {_CALL.format("picky")} }}"""
    session = loaded(text, picky=picky)

    def call(number: int) -> int:
        try:
            return int(session(np.int32(number)))
        except ValueError as error:
            return -int(error.args[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(64))) == [-n if n % 2 else n for n in range(64)]


def test_a_loop_goes_on_as_long_as_the_host_says(loaded: Callable[..., Session]) -> None:
    text = f"""HloModule m
more {{ x = f32[3] parameter(0) ROOT p = pred[] custom-call(x), {_CALL.format("more")} }}
turn {{ x = f32[3] parameter(0) ROOT y = f32[3] add(x, x) }}
ENTRY main {{ x = f32[3] parameter(0) ROOT r = f32[3] while(x), condition=more, body=turn }}"""
    session = loaded(text, more=lambda x: np.bool_(x.sum() < 100))
    np.testing.assert_array_equal(session(np.float32([1, 2, 3])), np.float32([32, 64, 96]))


def test_the_host_is_given_what_the_program_has_computed(loaded: Callable[..., Session]) -> None:
    """Layouts, narrow types, booleans, empty arrays, constants and parameters, which the program reads again later."""
    seen: list[Any] = []

    def look(*arrays: Any) -> Any:
        seen.extend(array.copy() for array in arrays)
        return arrays[0] * 2, np.zeros((0, 3), np.float32)

    text = """HloModule m
ENTRY main { x = f32[2,3] parameter(0) y = f32[2,3] multiply(x, x) e = f32[0,3] slice(x), slice={[0:0], [0:3]}
  n = s4[3] constant({1, -2, 7}) p = pred[2,3] compare(x, y), direction=LT b = bf16[2,3] convert(x)
  w = f32[2,3] broadcast(c), dimensions={} c = f32[] constant(2.5) i = s32[4] iota(), iota_dimension=0
  r = (f32[2,3], f32[0,3]) custom-call(y, x, e, n, p, b, w, i), custom_call_target="look",
    operand_layout_constraints={f32[2,3]{0,1}, f32[2,3]{1,0}, f32[0,3]{1,0}, s4[3]{0}, pred[2,3]{1,0}, bf16[2,3]{1,0},
    f32[2,3]{1,0}, s32[4]{0}}
  g = f32[2,3] get-tuple-element(r), index=0
  ROOT s = f32[2,3] add(g, x) }""".replace(
        "  w = f32[2,3] broadcast(c), dimensions={} c = f32[] constant(2.5)",
        "  c = f32[] constant(2.5) w = f32[2,3] broadcast(c), dimensions={}",
    )
    x = np.float32([[0.5, 2, 3], [-1, 1, 0.25]])
    result = loaded(text, look=look)(x)
    np.testing.assert_array_equal(result, 2 * x * x + x)
    y, same, empty, narrow, less, short, repeated, places = seen
    np.testing.assert_array_equal(y, x * x)
    np.testing.assert_array_equal(same, x)
    assert empty.shape == (0, 3)
    assert narrow.astype(int).tolist() == [1, -2, 7]
    np.testing.assert_array_equal(less, x < x * x)
    np.testing.assert_array_equal(short.astype(np.float32), x)
    np.testing.assert_array_equal(repeated, np.full((2, 3), 2.5, np.float32))
    assert places.tolist() == [0, 1, 2, 3]


def test_the_host_computes_with_subnormal_numbers(loaded: Callable[..., Session]) -> None:
    text = """HloModule m
ENTRY main { x = f32[4] parameter(0) r = f32[4] custom-call(x), custom_call_target="half"
  ROOT b = s32[4] bitcast-convert(r) }"""
    session = loaded(text, half=lambda x: x * np.float32(2**-10))
    numbers = np.float32([2**-120, 2**-130, -(2**-125), 1])
    np.testing.assert_array_equal(session(numbers), (numbers * np.float32(2**-10)).view(np.int32))


def test_a_call_without_results_is_made(loaded: Callable[..., Session]) -> None:
    log: list[float] = []
    text = f"""HloModule m
ENTRY main {{ x = f32[] parameter(0) y = f32[] add(x, x) c = () custom-call(y), {_CALL.format("keep")}
  ROOT z = f32[] add(y, x) }}"""
    assert float(loaded(text, keep=lambda x: log.append(float(x)))(np.float32(2))) == 6
    assert log == [4]


def test_a_wrong_result_is_an_error_that_names_it(loaded: Callable[..., Session]) -> None:
    text = """HloModule m
ENTRY main { x = f32[4] parameter(0) ROOT r = f32[4] custom-call(x), custom_call_target="cut" }"""
    with pytest.raises(hloforge.ExecutionError, match=r"@cut.*result 0.*expected f32\[4\], got float32 array of shape"):
        loaded(text, cut=lambda x: x[:3])(np.zeros(4, np.float32))


def test_random_numbers_of_a_branch_in_a_loop_differ() -> None:
    text = """HloModule m
draw { x = f32[] parameter(0) zero = f32[] constant(0) one = f32[] constant(1)
  ROOT r = f32[] rng(zero, one), distribution=rng_uniform }
keep { x = f32[] parameter(0) ROOT r = f32[] negate(x) }
more { c = (s32[], f32[8], pred[]) parameter(0) i = s32[] get-tuple-element(c), index=0 n = s32[] constant(8)
  ROOT less = pred[] compare(i, n), direction=LT }
turn { c = (s32[], f32[8], pred[]) parameter(0) i = s32[] get-tuple-element(c), index=0
  a = f32[8] get-tuple-element(c), index=1 p = pred[] get-tuple-element(c), index=2
  zero = f32[] constant(0) x = f32[] conditional(p, zero, zero), true_computation=draw, false_computation=keep
  u = f32[1] reshape(x) b = f32[8] dynamic-update-slice(a, u, i) one = s32[] constant(1) j = s32[] add(i, one)
  ROOT next = (s32[], f32[8], pred[]) tuple(j, b, p) }
ENTRY main { p = pred[] parameter(0) zero = s32[] constant(0) z = f32[] constant(0)
  a = f32[8] broadcast(z), dimensions={} first = (s32[], f32[8], pred[]) tuple(zero, a, p)
  last = (s32[], f32[8], pred[]) while(first), condition=more, body=turn
  ROOT r = f32[8] get-tuple-element(last), index=1 }"""
    executable = hloforge.compile(text)
    assert executable.manifest.is_generated
    assert len(set(executable(np.bool_(True)).tolist())) == 8


def test_calls_of_two_functions_are_one_kernel() -> None:
    """A kernel's text does not say which function of the host it calls, so that equal layers are compiled once."""
    program = hloforge.read("""HloModule m
ENTRY main { x = f32[4] parameter(0) a = f32[4] custom-call(x), custom_call_target="one"
  b = f32[4] custom-call(a), custom_call_target="two" ROOT c = f32[4] custom-call(b), custom_call_target="two" }""")
    declare_host_functions(program.module, ["one", "two"])
    made = generated_apart(program, parse_targets("cpu")[0], CompileOptions())
    assert made is not None
    executable, kernels = made
    assert len(kernels.host_calls) == 2 and len(kernels.dispatches) == 3 and len(kernels.kernels) == 1
    seen: list[str] = []

    def one(x: Any) -> Any:
        seen.append("one")
        return x + 1

    def two(x: Any) -> Any:
        seen.append("two")
        return x * 3

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(executable.load(host={"one": one, "two": two})(x), (x + 1) * 9)
    assert seen == ["one", "two", "two"]
