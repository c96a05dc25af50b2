"""The engines that are compared, each as a function that makes one call on arguments that lie on its device."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from benchmarks.cases import Array, Body
from hloforge.dialect.mlir import _jax, provide_lapack
from hloforge.dialect.program import Program
from hloforge.runtime.compile import iree
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices import devices
from hloforge.runtime.devices.devices import rt
from hloforge.runtime.reference.jaxlib_engines import _device_put
from hloforge.runtime.session.convention import nest_results
from hloforge.tools.calling import leaves
from hloforge.tools.forms import bytecode, drop_signature

# What a user of iree-compile gives it: this machine's processor, and no demotion of types.
PLAIN_FLAGS = Target().flags()
PLAIN_TIMEOUT = 120.0


@dataclass(frozen=True)
class Prepared:
    """A compiled program.

    Attributes:
        call: one call; returns when the results are there, and leaves them on the device.
        results: the flat results of a call, as arrays.
        compile_seconds: from the program to something callable; None where nothing is compiled.
        cached_seconds: the same when it had been compiled before.
    """

    call: Callable[[], Any]
    results: Callable[[], list[Array]]
    compile_seconds: float | None
    cached_seconds: float | None = None


def prepare_hloforge(program: Program, arguments: Sequence[Array]) -> Prepared:
    """hloforge as it comes: default target and options, the device that it chooses.

    Its modules are imported before, which takes a process 60 ms once: the compiler beside it imports nothing.
    """
    compile_program(nothing()).load()
    seconds, session = _timed(lambda: hloforge.compile(program).load())
    again, session = _timed(lambda: hloforge.compile(program).load())
    return _session(program, arguments, session, seconds, again)


def nothing() -> Program:
    """The smallest program."""
    with hloforge.Builder("nothing") as builder:
        return builder.build(builder.parameter(0, "f32[1]", "x"))


def prepare_tuned(program: Program, arguments: Sequence[Array], budget: float) -> Prepared:
    """The fastest form that ``hloforge tune`` finds within some seconds."""
    from hloforge.runtime.tuning.tuner import tune

    nested = nest_arguments(program, arguments)
    seconds, found = _timed(lambda: tune(program, nested, budget=budget))
    return _session(program, arguments, found.executable.load(), seconds)


def nest_arguments(program: Program, flat: Sequence[Any]) -> Any:
    """Flat arguments in the tuples of the parameters."""
    return nest_results(hloforge.Shape.tuple_of(*(parameter.shape for parameter in program.signature.parameters)), flat)


def _session(
    program: Program, arguments: Sequence[Array], session: Any, seconds: float, again: float | None = None
) -> Prepared:
    nested = nest_arguments(program, [session.put(value, number) for number, value in enumerate(arguments)])

    def results() -> list[Array]:
        return [np.asarray(array) for _, array in leaves(program.signature, session(*nested))]

    return Prepared(lambda: session.call_device(*nested), results, seconds, again)


def _timed(make: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    made = make()
    return time.perf_counter() - start, made


def compile_plain(program: Program) -> bytes:
    """What ``iree-compile`` makes of the same StableHLO. Raises RuntimeError with its first line."""
    plain = program.clone()
    drop_signature(plain)
    with tempfile.TemporaryDirectory() as folder:
        source, vmfb = Path(folder, "module.mlir"), Path(folder, "module.vmfb")
        source.write_text(plain.text())
        command = [iree.compiler_binary(), str(source), "-o", str(vmfb), *PLAIN_FLAGS]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PLAIN_TIMEOUT)
        if done.returncode:
            raise RuntimeError(f"iree-compile fails: {first_error(done.stderr)}")
        return vmfb.read_bytes()


def first_error(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if "error:" in line] or stderr.splitlines() or ["it crashed"]
    return lines[0].rpartition("error: ")[2][:120]


def prepare_plain(vmfb: bytes, compile_seconds: float, device: str, arguments: Sequence[Array]) -> Prepared:
    """A plain vmfb called as cheaply as IREE's Python API can: prepared arguments, nothing read back."""
    target = devices.device(device)
    module = rt.VmModule.copy_buffer(devices.instance(), vmfb)
    context = rt.VmContext(devices.instance(), modules=[rt.create_hal_module(devices.instance(), target), module])
    entry = module.lookup_function("main")
    views = [rt.asdevicearray(target, value)._buffer_view for value in arguments]
    inputs = rt.VmVariantList(len(views))
    for view in views:
        inputs.push_ref(view.ref)

    def call() -> Any:
        outputs = rt.VmVariantList(4)
        context.invoke(entry, inputs, outputs)
        return outputs

    def results() -> list[Array]:
        outputs = call()
        found = [outputs.get_as_object(number, rt.HalBufferView) for number in range(outputs.size)]
        return [rt.DeviceArray(target, view).to_host() for view in found]

    return Prepared(call, results, compile_seconds)


def prepare_xla(program: Program, arguments: Sequence[Array], client: Any = None) -> Prepared:
    """XLA with its default flags: its CPU client, or another one."""
    if b"lapack_" in bytecode(program):
        provide_lapack()
    client = client or _jax.get_tfrt_cpu_client(asynchronous=False)
    device = client.devices()[0]
    code, devices_ = bytecode(program), _jax.DeviceList((device,))
    seconds, executable = _timed(lambda: client.compile_and_load(code, devices_, _jax.CompileOptions()))
    buffers = [_device_put(value, device) for value in arguments]

    def call() -> list[Any]:
        shards = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
        for shard in shards:
            shard[0].block_until_ready()
        return shards

    def results() -> list[Array]:
        return [np.array(shard[0]._single_device_array_to_np_array_did_copy()[0]) for shard in call()]

    return Prepared(call, results, seconds)


def prepare_eager(body: Body, arguments: Sequence[Array]) -> Prepared:
    """PyTorch, run step by step on as many threads as it takes by itself. Raises ImportError where there is none."""
    from benchmarks.eager import Eager, array

    runner = Eager(arguments)
    return Prepared(lambda: runner.run(body), lambda: [array(value) for value in runner.run(body)], None)
