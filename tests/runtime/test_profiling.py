"""Counts against XLA's cost analysis, and profiles of programs whose heaviest part is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import ArgumentError, ExecutionError, OptionError
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.runtime.profiling.capture import RecordedCall
from hloforge.runtime.profiling.children import run_tool
from hloforge.runtime.profiling.costs import Cost, cost_of
from hloforge.runtime.profiling.groups import grouped
from hloforge.runtime.profiling.labels import labelled
from hloforge.runtime.profiling.profiler import undisturbed
from hloforge.runtime.profiling.result import Call, Event, ProfiledOperation, Roofline, Row, TimeProfile
from hloforge.runtime.profiling.trace import folded_stacks, trace_events

jax = pytest.importorskip("jax")
jnp = jax.numpy

# A small product, a loop of a few turns, and a product that takes longer than all else.
S, L, M = "tensor<64x64xf32>", "tensor<384x384xf32>", "tensor<300x300xf32>"
PROGRAM = f"""func.func @main(%x: {S}, %y: {L}) -> ({S}, {L}) {{
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({S}, {S}) -> {S}
  %1 = stablehlo.tanh %0 : {S}
  %2 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : ({L}, {L}) -> {L}
  %3 = stablehlo.add %2, %y : {L}
  return %1, %3 : {S}, {L}
}}
"""
LARGE_LINE, LARGE_FLOPS = 4, 2 * 384**3 + 384**2
LOOP = f"""func.func @main(%x: {M}) -> {M} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, {M}
  cond {{
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}
    stablehlo.return %j, %b : tensor<i32>, {M}
  }}
  return %r#1 : {M}
}}
"""
CALLBACK = """HloModule feed
ENTRY e {
  t = token[] after-all()
  i = (f32[3], token[]) infeed(t)
  v = f32[3] get-tuple-element(i), index=0
  ROOT r = f32[3] add(v, v)
}
"""


def _f32(*sizes: int) -> Any:
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


CASES: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "dot": (lambda a, b: a @ b, [_f32(64, 32), _f32(32, 48)]),
    "batched dot": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [_f32(4, 64, 32), _f32(4, 32, 48)]),
    "elementwise": (lambda a: a + a * a, [_f32(100)]),
    "transcendental": (lambda a: jnp.tanh(a), [_f32(100)]),
    "sum": (lambda a: jnp.sum(a, axis=0), [_f32(100, 7)]),
    "convolution with holes": (
        lambda a, k: jax.lax.conv_general_dilated(
            a, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [_f32(2, 16, 15, 8), _f32(3, 3, 8, 16)],
    ),
    "transposed convolution": (
        lambda a, k: jax.lax.conv_transpose(a, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        [_f32(2, 16, 15, 8), _f32(3, 3, 8, 16)],
    ),
    "convolution of groups": (
        lambda a, k: jax.lax.conv_general_dilated(
            a, k, (1, 1), [(1, 1), (1, 1)], feature_group_count=4, dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [_f32(2, 16, 15, 8), _f32(3, 3, 2, 8)],
    ),
    "maxima of windows": (
        lambda a: jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        [_f32(2, 16, 16, 8)],
    ),
    "sort": (lambda a: jnp.sort(a, axis=-1), [_f32(100, 16)]),
    "fft": (lambda a: jnp.fft.fft(a), [jax.ShapeDtypeStruct((8, 64), jnp.complex64)]),
    "slice": (lambda a: a[3:7], [_f32(100, 16)]),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_xla(name: str) -> None:
    function, shapes = CASES[name]
    lowered = jax.jit(function).lower(*shapes)
    module = read(lowered.compiler_ir("stablehlo").operation.get_asm()).module
    counted = sum(
        (cost_of(op) for op in operations(module) if op.parent.operation.name == "func.func"),
        Cost(),
    )
    xla = lowered.cost_analysis()
    assert counted.flops == xla.get("flops", 0)
    assert counted.transcendentals == xla.get("transcendentals", 0)
    # XLA counts the scalars of initial values otherwise.
    assert counted.bytes == pytest.approx(xla["bytes accessed"], abs=16)


@pytest.mark.parametrize(
    ("number", "bytes_"), [("dense<(1.0, 2.0)>", 64), ("dense<[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0)]>", 96)]
)
def test_a_repeated_complex_number_is_not_read(number: str, bytes_: int) -> None:
    kind = "tensor<4xcomplex<f32>>"
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
  %c = stablehlo.constant {number} : {kind}
  %y = stablehlo.add %x, %c : {kind}
  return %y : {kind}
}}"""
    labels = labelled(read(text))[1]
    addition = [operation.kind for operation in labels.operations].index("add")
    assert labels.cost({addition}).bytes == bytes_


def test_what_only_a_group_sees_is_not_moved() -> None:
    labels = labelled(read(PROGRAM))[1]
    kinds = [operation.kind for operation in labels.operations]
    product, addition = [n for n, kind in enumerate(kinds) if kind == "dot_general"][1], kinds.index("add")
    both = labels.cost({product, addition})
    assert both.flops == LARGE_FLOPS
    # One array is read by both, and one is written.
    assert both.bytes == 2 * 4 * 384**2
    assert labels.cost({product}).bytes == 2 * 4 * 384**2
    assert labels.cost({addition}).bytes == 3 * 4 * 384**2


# What the code of the large product computes, by either compiler: the sum that follows, too.
HEAVIEST = ["dot_general", "add"]


@pytest.fixture(scope="module", params=["own", "iree"])
def codegen(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whose code is profiled: that of our code generator, of IREE's compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HLOFORGE_CODEGEN", request.param)
        yield request.param


@pytest.fixture(scope="module")
def profile(codegen: str) -> TimeProfile:
    return hloforge.profile(PROGRAM, device="local-sync", iterations=4, roofline=Roofline(100, 10, "given"))


def test_the_heaviest_product_is_found_first(profile: TimeProfile, codegen: str) -> None:
    first = profile.rows[0]
    assert profile.operations[first.main].kind == "dot_general"
    assert profile.place_of(first).split(":")[1] == str(LARGE_LINE)
    assert first.dispatch.startswith("kernel_" if codegen == "own" else "main_")
    assert [operation.kind for operation in profile.operations_of(first)] == HEAVIEST
    assert first.cost.flops == LARGE_FLOPS and first.count == 1
    # All that the program computes is put down to some row, once.
    xla = jax.jit(lambda x, y: (jnp.tanh(x @ x), y @ y + y)).lower(_f32(64, 64), _f32(384, 384)).cost_analysis()
    assert profile.cost.flops == xla["flops"] and profile.cost.transcendentals == xla["transcendentals"]


def test_shares_are_parts_of_a_call(profile: TimeProfile) -> None:
    assert len(profile.calls) == 4
    parts = (profile.dispatch_seconds, profile.transfer_seconds, profile.host_seconds)
    assert sum(parts) == pytest.approx(profile.seconds)
    assert 0 < sum(profile.share(row.seconds) for row in profile.rows) <= 1
    rows = sum(row.seconds for row in profile.rows)
    assert rows == pytest.approx(profile.dispatch_seconds, rel=1e-6)
    for row in profile.rows:
        assert 0 < row.least_seconds <= row.seconds <= row.most_seconds


def test_json_is_what_the_guide_describes(profile: TimeProfile) -> None:
    found = json.loads(json.dumps(profile.to_json()))
    assert (found["format"], found["version"], found["calls"]) == ("hloforge.time-profile", 1, 4)
    first = found["rows"][0]
    assert first["kinds"] == "+".join(HEAVIEST) and first["location"].endswith(":4:8")
    assert first["roofline_fraction"] == pytest.approx(LARGE_FLOPS / 100e9 / first["seconds"])
    assert first["bound"] == "compute"
    names = [found["operations"][number]["name"] for number in first["operations"]]
    assert names == [f"stablehlo.{kind}" for kind in HEAVIEST]


def test_trace_nests_dispatches_in_calls(profile: TimeProfile) -> None:
    events = trace_events(profile)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    calls = [event for event in slices if event["cat"] == "call"]
    dispatches = [event for event in slices if event["cat"] == "dispatch"]
    assert len(calls) == 4 and len(dispatches) == 4 * len(profile.rows)
    for event in dispatches:
        around = [call for call in calls if call["ts"] <= event["ts"]]
        assert event["ts"] + event["dur"] <= around[-1]["ts"] + around[-1]["dur"]
    assert all(first["ts"] + first["dur"] <= second["ts"] for first, second in pairwise(calls))


def test_slices_of_a_trace_end_exactly_where_the_next_begin() -> None:
    # 768.657 + 72.528 is more than 841.185, so that speedscope took the one call for a part of the other.
    bounds = [0, 768_657, 841_185, 911_480, 1_414_531]
    calls = tuple(Call(start, end, (Event(0, start + 10, end),)) for start, end in pairwise(bounds))
    row = Row("d", (0,), 0, len(calls), 1e-8, 1e-8, 1e-8, 0, Cost())
    operation = ProfiledOperation("stablehlo.add", None, "", Cost())
    profile = TimeProfile("p", "cpu", "local-sync", calls, 0, 1e-7, (row,), (operation,), True, None)
    slices = [event for event in trace_events(profile)["traceEvents"] if event["ph"] == "X"]
    ends = {(event["cat"], event["ts"] + event["dur"]) for event in slices}
    starts = sorted(event["ts"] for event in slices if event["cat"] == "call")
    assert {("call", start) for start in starts[1:]} <= ends and {("dispatch", start) for start in starts[1:]} <= ends


def test_stacks_are_the_mean_call(profile: TimeProfile) -> None:
    lines = folded_stacks(profile).splitlines()
    assert lines[0].startswith(f"<string>;<string>:4:8;{'+'.join(HEAVIEST)} ")
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == pytest.approx(1e9 * profile.seconds, rel=0.01)


def test_scopes_of_a_trace_enclose_their_dispatches() -> None:
    # A slash inside of parentheses belongs to a name.
    scopes = ("f/jvp(a/b)", "f/jvp(a/b)", "f/c")
    operations = tuple(ProfiledOperation("stablehlo.add", None, scope, Cost()) for scope in scopes)
    rows = tuple(Row(f"d{n}", (n,), n, 1, 1e-8, 1e-8, 1e-8, 0, Cost()) for n in range(3))
    # The last two run at the same time.
    call = Call(0, 100, (Event(0, 0, 10), Event(1, 10, 30), Event(2, 20, 40)))
    profile = TimeProfile("p", "cpu", "local-task", (call,), 0, 1e-7, rows, operations, True, None)
    events = [event for event in trace_events(profile)["traceEvents"] if event["ph"] == "X"]
    spans = {(event["cat"], event["name"], event["tid"]): (event["ts"], event["dur"]) for event in events}
    assert spans["scope", "jvp(a/b)", 1] == spans["scope", "f", 1] == pytest.approx((0, 0.03), abs=1e-3)
    assert {event["tid"] for event in events if event["cat"] == "dispatch"} == {1, 2}
    assert profile.dispatch_seconds == pytest.approx(40e-9)


def test_calls_that_were_held_up_are_left_out() -> None:
    calls = [RecordedCall(100 * n, 100 * n + (900 if n == 7 else 10), (), ()) for n in range(30)]
    kept, notes = undisturbed(calls)
    assert kept == calls[:7] + calls[8:] and notes == ["1 calls are left out that took more than 3 times the median"]
    assert undisturbed(calls[:19]) == (calls[:19], [])


def test_turns_of_a_loop_are_counted(either_codegen: str) -> None:
    found = hloforge.profile(LOOP, device="local-sync", iterations=2, warmup=0, roofline=False)
    products = [row for row in found.rows if found.operations[row.main].kind == "dot_general"]
    assert sum(row.count for row in products) >= 1
    assert found.cost.flops == pytest.approx(3 * 2 * 300**3, rel=1e-3)


def test_layers_of_equal_code_stand_at_their_own_lines(either_codegen: str) -> None:
    lines = [
        "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {",
        *(
            f"  %{n + 1} = stablehlo.dot_general {f'%{n}' if n else '%x'}, %x, contracting_dims = [1] x [0] : "
            "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>"
            for n in range(3)
        ),
        "  return %3 : tensor<64x64xf32>",
        "}",
    ]
    found = hloforge.profile("\n".join(lines), device="local-sync", iterations=2, roofline=False)
    assert sorted(found.place_of(row).split(":")[1] for row in found.rows) == ["2", "3", "4"]
    assert [group.count for group in grouped(found, "op")] == [3]


def test_loops_over_the_same_places_are_one_dispatch_of_our_own() -> None:
    """Each step is a dispatch, with what it computes as it reads it; what several operations share is put down once."""
    text = """func.func @main(%x: tensor<300x200xf32>, %b: tensor<200xf32>) -> (tensor<300xf32>, tensor<300x200xf32>) {
      %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<200xf32>) -> tensor<300x200xf32>
      %1 = stablehlo.multiply %x, %0 : tensor<300x200xf32>
      %2 = stablehlo.exponential %1 : tensor<300x200xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<300x200xf32>, tensor<f32>) -> tensor<300xf32>
      return %3, %2 : tensor<300xf32>, tensor<300x200xf32>
    }"""
    found = hloforge.profile(text, device="local-sync", iterations=2, roofline=False)
    (row,) = found.rows
    assert [operation.kind for operation in found.operations_of(row)] == ["multiply", "exponential", "reduce"]
    assert row.cost.flops == pytest.approx(2 * 300 * 200, rel=0.01) and row.cost.transcendentals == 300 * 200


def test_a_vmfb_has_names_alone(either_codegen: str) -> None:
    executable = hloforge.compile(LOOP)
    found = hloforge.profile(executable, [np.zeros((300, 300), np.float32)], iterations=2)
    assert found.rows and not found.attributed and not found.operations and found.roofline is None
    assert "a vmfb alone tells no operations" in found.notes[0]


def test_what_cannot_be_profiled_is_refused() -> None:
    with pytest.raises(OptionError, match="one device, and the program runs on several") as error:
        hloforge.profile(PROGRAM, replicas=2)
    assert "--fold-replicas" in error.value.hint
    with pytest.raises(OptionError, match="the program calls its host"):
        hloforge.profile(CALLBACK, deadline=20)
    with pytest.raises(OptionError, match="iterations must be at least 1"):
        hloforge.profile(PROGRAM, iterations=0)
    dynamic = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    with pytest.raises(ArgumentError, match="are dynamic"):
        hloforge.profile(dynamic)


def test_calls_and_tools_have_deadlines(either_codegen: str) -> None:
    with pytest.raises(ExecutionError, match="did not end within"):
        hloforge.profile(PROGRAM, deadline=0.001, device="local-sync", roofline=False)
    with pytest.raises(ExecutionError, match="iree-profile did not end within 1e-06 s"):
        run_tool("iree-profile", ["--help"], 1e-6, {})
    with pytest.raises(ExecutionError, match=r"iree-profile failed: .*NOT_FOUND"):
        run_tool("iree-profile", ["summary", "nowhere"], 60, {})
