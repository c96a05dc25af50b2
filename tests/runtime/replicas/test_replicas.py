"""Programs on several devices, in threads and folded: training, errors, transfers between devices."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.errors import ArgumentError, ExecutionError, LoadError
from tests.engines import interpret

BATCH, INPUTS, OUTPUTS = 8, 5, 3
RATE = 0.125


def training(devices: int) -> hloforge.Computation:
    """Three steps of gradient descent for a linear map, each device on its part of the batch."""
    builder = hloforge.Builder("sgd")
    with builder:
        w = builder.parameter(0, f"f32[{INPUTS},{OUTPUTS}]", "w")
        x = builder.parameter(1, f"f32[{BATCH // devices},{INPUTS}]", "x")
        y = builder.parameter(2, f"f32[{BATCH // devices},{OUTPUTS}]", "y")

        def step(number: ops.Value, w: ops.Value) -> list[ops.Value]:
            gradient = ops.dot(ops.transpose(x, [1, 0]), ops.dot(x, w) - y) / BATCH
            return [number + 1, w - RATE * ops.cross_replica_sum(gradient)]

        start = [ops.constant(np.int32(0)), w]
        return builder.build(ops.while_(lambda number, _: number < 3, step, start)[1])


def single_device(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    for _ in range(3):
        w = w - RATE * (x.T @ (x @ w - y)) / BATCH
    return w


@pytest.mark.parametrize("fold", [False, True], ids=["threads", "folded"])
@pytest.mark.parametrize("devices", [2, 4])
def test_data_parallel_training_is_that_of_one_device(devices: int, fold: bool) -> None:
    random = np.random.default_rng(7)
    w, x, y = (random.normal(size=sizes) for sizes in ((INPUTS, OUTPUTS), (BATCH, INPUTS), (BATCH, OUTPUTS)))
    program = hloforge.replicate(training(devices), replicas=devices, fold=fold, cache=False, timeout=20)
    parts = (np.split(array.astype(np.float32), devices) for array in (x, y))
    trained = program(np.stack([w.astype(np.float32)] * devices), *map(np.stack, parts))
    np.testing.assert_allclose(trained, np.stack([single_device(w, x, y)] * devices), rtol=1e-5, atol=1e-6)


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>"
# A ring: each device sends what it has to the next one, after it asked for what the one before has.
RING = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %t = stablehlo.create_token : !stablehlo.token
  %got:2 = "stablehlo.recv"(%t) {{{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}}
    : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %y = stablehlo.add %x, %WHAT : tensor<4xf32>
  %s = "stablehlo.send"(%y, %t) {{{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}}
    : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  %r = stablehlo.subtract %got#0, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}}"""


def test_devices_send_before_they_wait() -> None:
    program = hloforge.replicate(RING.replace("%WHAT", "%x"), replicas=3, cache=False, timeout=20)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(program(x), [-x[0], 2 * x[0] - x[1], 2 * x[1] - x[2]])


def test_what_is_received_can_be_sent_on() -> None:
    program = hloforge.replicate(RING.replace("%WHAT", "%got#0"), replicas=3, cache=False, timeout=20)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(program(x), [-x[0], x[0] - x[1], x[0] + x[1] - x[2]])


@cache
def uneven() -> hloforge.Executable:
    """Each device takes as many turns as it is told, with an all_reduce in each."""
    builder = hloforge.Builder("uneven")
    with builder:
        steps = builder.parameter(0, "s32[]", "steps")
        x = builder.parameter(1, "f32[2]", "x")
        start = [ops.constant(np.int32(0)), x]
        total = ops.while_(
            lambda number, _: number < steps, lambda number, x: [number + 1, ops.cross_replica_sum(x)], start
        )
        return hloforge.compile(builder.build(total[1]), replicas=2, cache=False)


def test_uneven_participation_is_an_error_that_names_who_is_missing() -> None:
    program = hloforge.Replicas(uneven(), 2, timeout=None)
    ones = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(program(np.array([3, 3], np.int32), ones), 8 * ones)
    with pytest.raises(ExecutionError, match=r"replica 0 waits in all_reduce number 0.* for replica 1") as caught:
        program(np.array([3, 2], np.int32), ones)
    assert "replica 1 has ended" in str(caught.value)
    # Nothing of the failed call is left.
    np.testing.assert_array_equal(program(np.array([2, 2], np.int32), ones), 4 * ones)


def test_a_failure_of_one_device_ends_all_with_its_error() -> None:
    def careful(x: np.ndarray) -> np.ndarray:
        if x[0] > 1:
            raise ValueError("too large")
        return x

    builder = hloforge.Builder("careful")
    with builder:
        x = builder.parameter(0, "f32[2]", "x")
        checked = ops.custom_call("careful", [x], "f32[2]", has_side_effect=True)
        program = builder.build(ops.cross_replica_sum(checked))
    executable = hloforge.compile(program, replicas=2, host_calls={"careful"}, cache=False)
    devices = hloforge.Replicas(executable, 2, timeout=None, host={"careful": careful})
    with pytest.raises(ValueError, match="too large"):
        devices(np.array([[1, 1], [2, 2]], np.float32))
    np.testing.assert_array_equal(devices(np.ones((2, 2), np.float32)), [[2, 2], [2, 2]])


def test_a_failure_of_one_device_ends_those_that_wait_for_their_host() -> None:
    builder = hloforge.Builder("fed")
    with builder:
        program = builder.build(ops.infeed("f32[2]"))
    devices = hloforge.replicate(program, replicas=2, cache=False, timeout=None)
    devices.feeds[0].infeed.put("nothing of the kind")
    with pytest.raises(ExecutionError, match="returned what it did not declare") as caught:
        devices()
    assert "in replica 0" in str(caught.value)


def test_a_program_of_several_devices_is_not_taken_for_one_of_one() -> None:
    with pytest.raises(LoadError, match="runs on 2 replicas x 1 partitions at once"):
        uneven().load()
    with pytest.raises(LoadError, match="compiled for 2 replicas x 1 partitions, but is called on 4 replicas"):
        hloforge.Replicas(uneven(), 4)


def test_arguments_have_a_part_for_each_device() -> None:
    program = hloforge.Replicas(uneven(), 2)
    with pytest.raises(ArgumentError, match="an argument is for 3 devices, but 2 run"):
        program(np.array([1, 1], np.int32), np.ones((3, 2), np.float32))
    with pytest.raises(ArgumentError, match="arguments are for 1 devices, but 2 run"):
        program.each([(np.int32(1), np.ones(2, np.float32))])
    results = program.each([(np.int32(1), np.ones(2, np.float32)), (np.int32(1), np.zeros(2, np.float32))])
    np.testing.assert_array_equal(results, [[1, 1], [1, 1]])


def test_tuples_layouts_and_narrow_types_cross_between_devices() -> None:
    builder = hloforge.Builder("mixed")
    with builder:
        both = builder.parameter(0, "(bf16[2,3]{0,1}, s4[4], pred[2])", "both")
        a, b, c = both
        gathered = ops.all_gather([a, b, c], 0, 2, [[1, 0]])
        program = builder.build(gathered)
    devices = hloforge.replicate(program, replicas=2, cache=False, timeout=20)
    bf16, s4 = (hloforge.Shape.parse(f"{name}[]").element.dtype for name in ("bf16", "s4"))
    a = np.arange(12).reshape(2, 2, 3).astype(bf16)
    b = np.arange(-4, 4).reshape(2, 4).astype(s4)
    c = np.array([[True, False], [True, True]])
    for actual, value in zip(devices((a, b, c)), (a, b, c), strict=True):
        np.testing.assert_array_equal(actual, np.stack([np.concatenate([value[1], value[0]])] * 2), strict=True)


def test_sizes_may_differ_from_call_to_call() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %s = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<?xf32>) -> tensor<?xf32>
      return %s : tensor<?xf32> }"""
    program = hloforge.replicate(text, replicas=2, dynamic_shapes="specialize", cache=False, timeout=20)
    for size in (3, 5):
        x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
        np.testing.assert_array_equal(program(x), [x[0] + x[1]] * 2)


def test_one_interpreter_agrees_with_the_folded_form() -> None:
    """The folded form is plain StableHLO: another engine computes it, too."""
    from hloforge.pipelines.replicas.fold import fold_replicas

    random = np.random.default_rng(3)
    given = [random.normal(size=(2, *sizes)).astype(np.float32) for sizes in ((5, 3), (4, 5), (4, 3))]
    expected = interpret(fold_replicas(training(2), 2).module, *given)[0]
    actual = hloforge.replicate(training(2), replicas=2, cache=False, timeout=20)(*given)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(("element", "wide"), [("bf16", "f4"), ("f8e5m2", "f2"), ("f16", "f2"), ("f32", "f4")])
@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("folded", [False, True])
def test_sums_of_narrow_floats_over_devices_are_rounded_once(element: str, wide: str, size: int, folded: bool) -> None:
    """As XLA's CPU client makes them (its AllReducePromotion), with what only the sum reads."""
    dtype = hloforge.Shape.parse(f"{element}[]").element.dtype  # type: ignore[union-attr]
    text = f"""HloModule m, replica_count=4
add {{ a = {element}[] parameter(0) b = {element}[] parameter(1) ROOT s = {element}[] add(a, b) }}
ENTRY main {{ x = {element}[{size}] parameter(0)
  ROOT r = {element}[{size}] all-reduce(x), to_apply=add, replica_groups={{}} }}"""
    x = np.random.default_rng(3).normal(size=(4, size)).astype(dtype)
    total = x[0].astype(wide)
    for one in x[1:]:
        total = total + one.astype(wide)
    made = hloforge.replicate(text, replicas=4, fold=folded)(x)
    expected = np.broadcast_to(total.astype(dtype), (4, size))
    np.testing.assert_array_equal(made.astype(np.float32), expected.astype(np.float32))
