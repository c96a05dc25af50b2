"""Sessions: loading, calling conventions, devices, and what happens when something is wrong."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import ArgumentError, ExecutionError, LoadError, OptionError
from hloforge.runtime.compile import iree
from hloforge.runtime.devices import devices
from hloforge.runtime.session.modules import read_manifest
from hloforge.runtime.session.session import load

X = np.array([1, 2, -0.0, np.inf], np.float32)


def test_loads_from_executable_bytes_and_path(add: Any, tmp_path: Path) -> None:
    path = tmp_path / "add.vmfb"
    add.save(path)
    for source in (add, add.vmfb, path, str(path)):
        session = load(source)
        np.testing.assert_array_equal(session(X, X), X + X)
        assert str(session.signature) == "(x: f32[4]{0}, y: f32[4]{0}) -> f32[4]{0}"
    path.unlink()
    np.testing.assert_array_equal(session(X, X), X + X)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"not a vmfb at all, but long enough to look at", b"PK\x03\x04" + bytes(100)]
)
def test_what_is_no_vmfb_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.vmfb"
    path.write_bytes(data)
    with pytest.raises(LoadError, match=r"bad\.vmfb is (empty: )?no vmfb"):
        load(path)
    with pytest.raises(LoadError, match="the given data is"):
        load(data)


def test_unreadable_sources(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"cannot read .*missing\.vmfb: No such file"):
        load(tmp_path / "missing.vmfb")
    with pytest.raises(LoadError, match="Is a directory"):
        load(tmp_path)


def test_every_truncation_is_an_error_or_harmless(add: Any) -> None:
    for size in range(1, len(add.vmfb), 331):
        try:
            result = load(add.vmfb[:size])(X, X)
        except LoadError:
            continue
        np.testing.assert_array_equal(result, X + X)


def test_names_and_positions(add: Any) -> None:
    session = add.load()
    y = X * 3
    for result in (session(X, y), session(X, y=y), session(y=y, x=X)):
        np.testing.assert_array_equal(result, X + y)


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((), {}, "the program takes 2 arguments, got 0"),
        ((X, X, X), {}, "the program takes 2 arguments, got 3"),
        ((X,), {}, "the program takes 2 arguments, got 1"),
        ((X,), {"z": X}, "no parameter is called 'z'"),
        ((X, X), {"x": X}, "argument 'x' is given twice"),
        ((), {"x": X}, "missing arguments: 'y'"),
        ((X, X, X), {"y": X}, "argument 'y' is given twice"),
    ],
)
def test_wrong_calls_say_what_is_wrong(add: Any, arguments: Any, named: Any, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        add.load()(*arguments, **named)
    assert caught.value.message == said


def test_put_needs_a_parameter(add: Any) -> None:
    session = add.load()
    for wrong in (2, -1, "z"):
        with pytest.raises(ArgumentError, match="parameter"):
            session.put(X, wrong)


NESTED = """HloModule nested
  ENTRY main { p = (f32[2], (s32[], token[])) parameter(0)
    a = f32[2] get-tuple-element(p), index=0
    q = (s32[], token[]) get-tuple-element(p), index=1
    n = s32[] get-tuple-element(q), index=0
    t = token[] get-tuple-element(q), index=1
    one = (f32[2]) tuple(a)
    ROOT r = ((f32[2]), s32[], token[]) tuple(one, n, t) }"""


def test_tuples_and_tokens(compiled: Any) -> None:
    session = compiled(NESTED).load()
    a = np.array([1, 2], np.float32)
    (inner,), number, token = session((a, (5, None)))
    np.testing.assert_array_equal(inner, a)
    assert (number, token) == (5, None)
    np.testing.assert_array_equal(session((session.put(a, "p{0}"), [session.put(6, "p{1,0}"), None]))[1], 6)
    for wrong in (a, (a,), (a, 5), (a, (5,))):
        with pytest.raises(ArgumentError, match="expected a tuple of 2 for"):
            session(wrong)


def test_a_tuple_of_one_stays_a_tuple(compiled: Any) -> None:
    session = compiled("HloModule one ENTRY main { x = f32[2] parameter(0)\n ROOT t = (f32[2]) tuple(x) }").load()
    (result,) = session(np.ones(2, np.float32))
    np.testing.assert_array_equal(result, [1, 1])


def test_no_arguments_and_no_results(compiled: Any) -> None:
    constant = compiled("""func.func @main() -> tensor<2xi32> {
      %c = stablehlo.constant dense<[3, 4]> : tensor<2xi32> return %c : tensor<2xi32> }""").load()
    np.testing.assert_array_equal(constant(), [3, 4])
    assert compiled("func.func @main(%a: tensor<2xi32>) { return }").load()(np.zeros(2, np.int32)) == ()


def test_a_result_of_a_plain_vmfb(tmp_path: Path) -> None:
    source, target = tmp_path / "plain.mlir", tmp_path / "plain.vmfb"
    source.write_text("""func.func @main(%a: tensor<?x2xf32>, %n: tensor<i32>) -> (tensor<?x2xf32>, tensor<i32>) {
      %0 = arith.addf %a, %a : tensor<?x2xf32> return %0, %n : tensor<?x2xf32>, tensor<i32> }""")
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    subprocess.run([iree.compiler_binary(), source, "-o", target, *flags], check=True, timeout=60, capture_output=True)
    session = load(target)
    a = np.ones((3, 2), np.float32)
    double, number = session(a, 4)
    np.testing.assert_array_equal(double, a + a)
    assert number == 4
    assert read_manifest(target).versions == ()


def test_a_vmfb_without_main(tmp_path: Path) -> None:
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    run = subprocess.run(
        [iree.compiler_binary(), "-", "-o", "-", *flags],
        input=b"func.func @other(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }",
        capture_output=True,
        check=True,
        timeout=60,
    )
    with pytest.raises(LoadError, match="no function main") as caught:
        load(run.stdout)
    assert caught.value.hint == "it has: other"


def test_a_program_that_wants_too_much_memory_fails_alone(compiled: Any) -> None:
    session = compiled("""func.func @main(%n: tensor<f32>) -> tensor<1099511627776xf64> {
      %0 = stablehlo.convert %n : (tensor<f32>) -> tensor<f64>
      %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<1099511627776xf64>
      return %1 : tensor<1099511627776xf64> }""").load()
    with pytest.raises(ExecutionError, match="failed: "):
        session(1.0)


def test_a_program_that_iree_cannot_set_up_says_why(compiled: Any) -> None:
    """IREE 3.13 fuses as many operands as it finds, but a dispatch takes 32 buffers."""
    parameters = "".join(f" p{i} = f32[4] parameter({i})\n" for i in range(40))
    sums = "".join(f" sum{i} = f32[4] add({f'sum{i - 1}' if i > 1 else 'p0'}, p{i})\n" for i in range(1, 40))
    executable = compiled(f"HloModule many\nENTRY main {{\n{parameters}{sums} ROOT r = f32[4] negate(sum39) }}")
    try:
        result = executable.load()(*[X] * 40)
    except LoadError as error:
        assert error.message == "the vmfb cannot run here: binding count 41 > 32"
    else:
        np.testing.assert_array_equal(result, -40 * X)


def test_devices_and_threads(add: Any) -> None:
    assert add.load().device == "local-sync"
    assert add.load(device="local-task").device == "local-task"
    np.testing.assert_array_equal(add.load(device="local-task", threads=3)(X, X), X + X)
    with pytest.raises(OptionError, match="unknown device 'gpu'"):
        add.load(device="gpu")
    with pytest.raises(OptionError, match="at least 1"):
        add.load(threads=0)


def test_heavy_work_takes_threads_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.os, "cpu_count", lambda: 8)
    assert devices.choose_driver(10**9, None) == "local-task"
    assert devices.choose_driver(1000, None) == "local-sync"
    assert devices.choose_driver(10**9, 1) == "local-sync"
    monkeypatch.setattr(devices.os, "cpu_count", lambda: 1)
    assert devices.choose_driver(10**9, None) == "local-sync"


def test_layouts_of_three_dimensions(compiled: Any) -> None:
    """Each parameter has another order of its dimensions; the result has one that is no parameter's inverse."""
    orders = ["{" + ",".join(map(str, order)) + "}" for order in itertools.permutations(range(3))]
    shapes = [f"f32[2,3,5]{order}" for order in orders]
    lines = [f"p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    lines += [f"n{i} = f32[2,3,5]{{0,2,1}} negate(p{i})" for i in range(6)]
    result = "(" + ", ".join(["f32[2,3,5]{0,2,1}"] * 6) + ")"
    lines.append(f"ROOT t = {result} tuple({', '.join(f'n{i}' for i in range(6))})")
    body = "\n".join(lines)
    session = compiled(
        f"HloModule m, entry_computation_layout={{({', '.join(shapes)})->{result}}}\nENTRY main {{ {body} }}"
    ).load()
    arrays = list(np.random.default_rng(0).random((6, 2, 3, 5), np.float32))
    placed = [session.put(array, number) for number, array in enumerate(arrays)]
    for results in (session(*arrays), session(*placed)):
        for array, negated in zip(arrays, results, strict=True):
            np.testing.assert_array_equal(negated, -array)
            assert negated.strides == (4, 40, 8)


def test_several_thread_counts_in_one_process(layouts: Any) -> None:
    w, x = np.random.default_rng(0).random((2, 64, 64), np.float32)
    for session in [layouts.load(device="local-task", threads=threads) for threads in (1, 2, 3)]:
        np.testing.assert_array_equal(session(w, x)[0], w - x)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
@pytest.mark.parametrize("driver", devices.DRIVERS)
def test_thousands_of_calls_keep_no_memory(layouts: Any, driver: str) -> None:
    session = layouts.load(device=driver)
    w, x = np.ones((2, 64, 64), np.float32)

    def megabytes() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def work() -> None:
        for _ in range(500):
            session(w, x)
            session.call_device(w, x)

    work()
    before = megabytes()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The results alone are 250 MiB.
    assert megabytes() - before < 50


@pytest.mark.parametrize("driver", devices.DRIVERS)
def test_calls_from_many_threads(layouts: Any, driver: str) -> None:
    session = layouts.load(device=driver)
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(100):
            w, x = random.random((2, 64, 64), np.float32)
            difference, double = session(w, x)
            if not (np.array_equal(difference, w - x) and np.array_equal(double, x + x)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
