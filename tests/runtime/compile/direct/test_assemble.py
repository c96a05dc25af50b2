"""Programs of kernels as vmfbs, run on both drivers of processors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from iree import runtime as rt

import hloforge
from hloforge.dialect.errors import ArgumentError
from hloforge.pipelines.codegen.kernel_program import Binding, Dispatch, KernelProgram
from hloforge.runtime.artifact.bundle import bundled
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile.direct.assemble import vmfb
from hloforge.runtime.compile.direct.host import DirectError, unavailable
from hloforge.runtime.session.modules import read_manifest
from tests.runtime.compile.direct.programs import ELEMENTS, array, loop, manifest, sum_of, whole

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())

DEVICES = ("local-sync", "local-task")
ADD = "  %r = fadd float %x0, %x1"
DOUBLE = "  %r = fadd float %x0, %x0"


def made(program: KernelProgram, parameters: Sequence[str], results: Sequence[str]) -> bytes:
    return vmfb(program, manifest(parameters, results), "hand", caching=False)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_elementwise(device: str) -> None:
    session = hloforge.load(made(sum_of(), ["f32[64]"] * 2, ["f32[64]"]), device=device)
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    np.testing.assert_array_equal(session(x, y), x + y)
    assert str(session.signature) == "(x0: f32[64], x1: f32[64]) -> f32[64]"


def test_dispatches_run_in_order_over_the_transient_buffer(device: str) -> None:
    one = array("f32", 4, 16)
    kernel = loop(64, 1, DOUBLE)
    chain = (whole(0, one), whole(2, one), whole(2, one, 256), whole(2, one), whole(1, one))
    steps = tuple(Dispatch(0, pair) for pair in pairwise(chain))
    program = KernelProgram((one,), (one,), 512, b"", (kernel,), steps)
    session = hloforge.load(made(program, ["f32[4,16]"], ["f32[4,16]"]), device=device)
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    for _ in range(20):
        np.testing.assert_array_equal(session(x), 16 * x)


def test_workgroups_share_an_array(device: str) -> None:
    one = array("f32", 1000)
    dispatch = Dispatch(0, (whole(0, one), whole(1, one)), workgroups=100)
    program = KernelProgram((one,), (one,), 0, b"", (loop(10, 1, DOUBLE),), (dispatch,))
    session = hloforge.load(made(program, ["f32[1000]"], ["f32[1000]"]), device=device)
    x = np.random.default_rng(1).random(1000, np.float32)
    np.testing.assert_array_equal(session(x), 2 * x)


def test_constants(device: str) -> None:
    one = array("f32", 16)
    constants = np.arange(48, dtype=np.float32)
    dispatch = Dispatch(0, (whole(0, one), Binding(3, 64, 64), whole(1, one)))
    program = KernelProgram((one,), (one,), 0, constants.tobytes(), (loop(16, 2, ADD),), (dispatch,))
    session = hloforge.load(made(program, ["f32[16]"], ["f32[16]"]), device=device)
    x = np.ones(16, np.float32)
    np.testing.assert_array_equal(session(x), x + constants[16:32])


def test_a_program_of_constants_alone(device: str) -> None:
    one = array("f32", 16)
    constants = np.arange(16, dtype=np.float32)
    dispatch = Dispatch(0, (whole(2, one), whole(0, one)))
    program = KernelProgram((), (one,), 0, constants.tobytes(), (loop(16, 1, DOUBLE),), (dispatch,))
    session = hloforge.load(made(program, [], ["f32[16]"]), device=device)
    np.testing.assert_array_equal(session(), 2 * constants)


def test_scalars_and_empty_arrays(device: str) -> None:
    scalar, empty = array("f32"), array("f32", 0, 3)
    dispatch = Dispatch(0, (whole(0, scalar), whole(2, scalar)))
    program = KernelProgram((scalar, empty), (scalar, empty), 0, b"", (loop(1, 1, DOUBLE),), (dispatch,))
    session = hloforge.load(made(program, ["f32[]", "f32[0,3]"], ["f32[]", "f32[0,3]"]), device=device)
    twice, nothing = session(np.float32(3), np.zeros((0, 3), np.float32))
    assert twice == 6 and twice.shape == () and nothing.shape == (0, 3)


def test_a_dispatch_on_empty_arrays(device: str) -> None:
    empty, one = array("f32", 0), array("f32", 4)
    kernel = "define i32 @kernel(ptr %0, ptr %1, ptr %2) {\n  ret i32 0\n}"
    dispatch = Dispatch(0, (whole(0, empty), whole(1, empty), Binding(2, 0, 0)))
    program = KernelProgram((empty,), (empty, one), 0, b"", (kernel,), (dispatch,))
    session = hloforge.load(made(program, ["f32[0]"], ["f32[0]", "f32[4]"]), device=device)
    assert [result.shape for result in session(np.zeros(0, np.float32))] == [(0,), (4,)]


def test_neither_parameters_nor_results(device: str) -> None:
    program = KernelProgram((), (), 0, b"", (), ())
    assert hloforge.load(made(program, [], []), device=device)() == ()


def _random(name: str, count: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(2)
    kinds: dict[str, Any] = {"pred": np.bool_, "bf16": ml_dtypes.bfloat16, "c64": np.complex64, "c128": np.complex128}
    kind = kinds.get(name) or np.dtype({"s": "i", "u": "u", "f": "f"}[name[0]] + str(int(name[1:]) // 8)).type
    values = random.integers(0, 2 if name == "pred" else 50, count).astype(kind)
    return values * kind(1 - 2j) if name.startswith("c") else values


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_element_types(name: str, device: str) -> None:
    _, kind, _ = ELEMENTS[name]
    one = array(name, 7)
    add = "xor" if name == "pred" else "add" if kind.startswith("i") else "fadd"
    body = f"  %r = {add} {kind} %x0, %x1"
    dispatch = Dispatch(0, (whole(0, one), whole(1, one), whole(2, one)))
    program = KernelProgram((one, one), (one,), 0, b"", (loop(7, 2, body, name),), (dispatch,))
    session = hloforge.load(made(program, [f"{name}[7]"] * 2, [f"{name}[7]"]), device=device)
    x, y = _random(name, 7), _random(name, 7)[::-1].copy()
    np.testing.assert_array_equal(session(x, y), x ^ y if name == "pred" else x + y)


@pytest.mark.parametrize("count", [40, 300])
def test_many_parameters(count: int, device: str) -> None:
    one = array("f32", 8)
    sums, kernel = [], loop(8, 2, ADD)
    for number in range(1, count):
        before = whole(0, one) if number == 1 else whole(2 * count, one, 32 * number)
        after = whole(2 * count, one, 32 * (number + 1)) if number + 1 < count else whole(count, one)
        sums.append(Dispatch(0, (before, whole(number, one), after)))
    results = (one,) * count
    copies = [Dispatch(1, (whole(number, one), whole(count + number, one))) for number in range(1, count)]
    program = KernelProgram((one,) * count, results, 32 * count, b"", (kernel, loop(8, 1, DOUBLE)), (*sums, *copies))
    session = hloforge.load(made(program, ["f32[8]"] * count, ["f32[8]"] * count), device=device)
    arguments = [np.full(8, number, np.float32) for number in range(count)]
    total, *twice = session(*arguments)
    np.testing.assert_array_equal(total, sum(arguments))
    np.testing.assert_array_equal(twice, [2 * argument for argument in arguments[1:]])


def test_as_many_bindings_as_a_kernel_may_have(device: str) -> None:
    one = array("f32", 8)
    names = ["x0", *(f"y{number}" for number in range(1, 28)), "r"]
    sums = enumerate(pairwise(names), start=1)
    body = "\n".join(f"  %{to} = fadd float %{before}, %x{number}" for number, (before, to) in sums)
    dispatch = Dispatch(0, tuple(whole(number, one) for number in range(30)))
    program = KernelProgram((one,) * 29, (one,), 0, b"", (loop(8, 29, body),), (dispatch,))
    session = hloforge.load(made(program, ["f32[8]"] * 29, ["f32[8]"]), device=device)
    arguments = [np.full(8, number, np.float32) for number in range(29)]
    np.testing.assert_array_equal(session(*arguments), sum(arguments))


def test_a_call_gives_all_memory_back(device: str) -> None:
    size = 1 << 16
    session = hloforge.load(made(sum_of(size), [f"f32[{size}]"] * 2, [f"f32[{size}]"]), device=device)
    x = np.ones(size, np.float32)
    session(x, x)
    before = _resident()
    for _ in range(400):
        session(x, x)
    assert _resident() - before < 20 * 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_calls_from_several_threads(device: str) -> None:
    one = array("f32", 256)
    kernel = loop(256, 1, DOUBLE)
    steps = Dispatch(0, (whole(0, one), whole(2, one))), Dispatch(0, (whole(2, one), whole(1, one)))
    program = KernelProgram((one,), (one,), 1024, b"", (kernel,), steps)
    session = hloforge.load(made(program, ["f32[256]"], ["f32[256]"]), device=device)

    def calls(number: int) -> bool:
        x = np.full(256, number, np.float32)
        return all((session(x) == 4 * number).all() for _ in range(200))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(calls, range(8)))


def test_wrong_arguments_are_named() -> None:
    data = made(sum_of(), ["f32[64]"] * 2, ["f32[64]"])
    with pytest.raises(ArgumentError, match="'x1'"):
        hloforge.load(data)(np.zeros(64, np.float32), np.zeros(63, np.float32))
    config = rt.Config("local-sync")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(config.vm_instance, data))
    main = context.modules.module["main"]
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(main(x, x).to_host(), 2 * x)
    with pytest.raises(ValueError, match="input1 shape dimension 0 mismatch; expected 64 but have 63"):
        main(x, x[:63].copy())
    with pytest.raises(ValueError, match="input0 element type mismatch; expected f32"):
        main(x.astype(np.int32), x)


def test_the_command_line_tool_of_iree_runs_the_file(tmp_path: Path) -> None:
    (tmp_path / "sum.vmfb").write_bytes(made(sum_of(4), ["f32[4]"] * 2, ["f32[4]"]))
    tool = Path(sys.executable).with_name("iree-run-module")
    inputs = ["--function=main", "--input=4xf32=1,2,3,4", "--input=4xf32=5"]
    command = [str(tool), f"--module={tmp_path / 'sum.vmfb'}", "--device=local-task", *inputs]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "4xf32=6 7 8 9" in said


def test_equal_programs_make_equal_files() -> None:
    arguments = sum_of(), ["f32[64]"] * 2, ["f32[64]"]
    assert made(*arguments) == made(*arguments)


def test_a_file_is_loaded_from_disk_with_its_constants_in_place(tmp_path: Path, device: str) -> None:
    one = array("f32", 1 << 14)
    constants = np.arange(1 << 14, dtype=np.float32)
    dispatch = Dispatch(0, (whole(0, one), whole(3, one), whole(1, one)))
    program = KernelProgram((one,), (one,), 0, constants.tobytes(), (loop(1 << 14, 2, ADD),), (dispatch,))
    path = tmp_path / "constants.vmfb"
    path.write_bytes(made(program, ["f32[16384]"], ["f32[16384]"]))
    np.testing.assert_array_equal(hloforge.load(path, device=device)(constants), 2 * constants)


def test_damage_is_noticed(tmp_path: Path) -> None:
    data = bytearray(made(sum_of(), ["f32[64]"] * 2, ["f32[64]"]))
    data[data.rindex(b"\x7fELF") + 600] ^= 1
    with pytest.raises(hloforge.LoadError, match="check sum"):
        hloforge.load(bytes(data))


def test_programs_that_contradict_themselves_are_refused() -> None:
    program = sum_of()
    (dispatch,) = program.dispatches
    wrong = {
        "no kernel 1": replace(program, dispatches=(replace(dispatch, kernel=1),)),
        "outside": replace(program, dispatches=(replace(dispatch, bindings=(Binding(0, 4, 256),)),)),
        "different numbers": replace(program, dispatches=(dispatch, replace(dispatch, bindings=dispatch.bindings[:2]))),
        "border": replace(program, results=(replace(program.results[0], element="f8E4M3FN", element_bytes=4),)),
        "4 bytes": replace(program, results=(replace(program.results[0], element="f64"),)),
    }
    for said, one in wrong.items():
        with pytest.raises(DirectError, match=said):
            vmfb(one, "", "wrong", caching=False)


def test_another_target_is_appended() -> None:
    text = manifest(["f32[64]"] * 2, ["f32[64]"])
    first = Executable(vmfb(sum_of(), text, "hand", caching=False), Manifest.from_json(text))
    second = replace(first, manifest=replace(first.manifest, target="cpu:generic"))
    both = bundled([first, second])
    assert read_manifest(both.vmfb).targets == ("cpu:host", "cpu:generic")
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(both.load()(x, x), 2 * x)
