"""Rows of the tables: each is measured by itself, and a failure is its row's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hloforge
from benchmarks.cases import Case
from benchmarks.engines import prepare_xla
from benchmarks.gpu.kernels import Array, Kernel, torch_call
from benchmarks.gpu.machine import Machine
from benchmarks.one_case import program_of
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.runtime.judgement import judge
from hloforge.runtime.timing import interleaved

# Seconds of the call that is judged: a kernel that hangs is an error of its row.
_DEADLINE = 120.0

Row = dict[str, Any]
Call = Callable[[], Any]


def kernel_row(kernel: Kernel, machine: Machine, seconds: float) -> Row:
    """A kernel beside XLA and PyTorch on the same device, and beside the roofline."""
    row: Row = {"name": kernel.name, "kind": kernel.kind, "element": kernel.element}
    try:
        program = read(kernel.text(), name=kernel.name)
        arguments = kernel.arguments()
        calls, failures = _calls(program, arguments, machine)
    except (hloforge.Error, ImportError) as error:
        return row | {"error": _brief(error)}
    try:
        calls["torch"] = torch_call(kernel, arguments, _torch_device(machine))
        calls["torch"]()
    except (ImportError, RuntimeError) as error:
        failures["torch"] = _brief(error)
    row |= _latencies(calls, seconds) | {"failures": failures}
    if machine.peaks is not None:
        row["bound"] = machine.peaks.seconds(kernel.element, kernel.flops, kernel.bytes_moved)
    row["tflops"] = kernel.flops / row["seconds"]["hloforge"] / 1e12
    row["gigabytes"] = kernel.bytes_moved / row["seconds"]["hloforge"] / 1e9
    return row


def case_row(case: Case, machine: Machine, seconds: float) -> Row:
    """A benchmark program beside XLA on the same device, its results judged by XLA's CPU client."""
    row: Row = {"name": case.name, "kind": case.kind}
    if case.needs():
        return row | {"error": case.needs()}
    try:
        program, arguments = program_of(case)
        calls, failures = _calls(program, arguments, machine)
        if case.compared:
            session = hloforge.compile(program, machine.target).load(device=machine.device, deadline=_DEADLINE)
            report = judge(hloforge.reference("xla"), program, arguments, session(*arguments))
            row["agrees"] = report.agrees
            if not report.agrees:
                row["difference"] = str(report).splitlines()[0]
    except hloforge.Error as error:
        return row | {"error": _brief(error)}
    return row | _latencies(calls, seconds) | {"failures": failures}


def _calls(program: Program, arguments: Sequence[Array], machine: Machine) -> tuple[dict[str, Call], dict[str, str]]:
    """hloforge's call and XLA's, on arrays that lie on the device, and why one cannot be made."""
    session = hloforge.compile(program, machine.target).load(device=machine.device)
    placed = [session.put(value, number) for number, value in enumerate(arguments)]
    calls: dict[str, Call] = {"hloforge": lambda: session.call_device(*placed)}
    calls["hloforge"]()
    failures = {}
    try:
        calls["xla"] = prepare_xla(program, list(arguments), xla_client(machine)).call
        calls["xla"]()
    except (ImportError, RuntimeError) as error:
        failures["xla"] = _brief(error)
    return calls, failures


def xla_client(machine: Machine) -> Any:
    """XLA's client for the device; None for its CPU client. Raises ImportError where JAX has none for the GPU."""
    if not machine.target.driver:
        return None
    import jax

    try:
        return jax.devices("gpu")[0].client
    except RuntimeError as error:
        raise ImportError(f"this JAX has no GPU: {_brief(error)}; pip install 'jax[cuda12]'") from None


def _torch_device(machine: Machine) -> str:
    return "cuda" if machine.target.driver else "cpu"


def _latencies(calls: dict[str, Call], seconds: float) -> Row:
    found = interleaved(calls, seconds)
    medians = {name: latency.median for name, latency in found.items()}
    ratios = {name: medians["hloforge"] / other for name, other in medians.items() if name != "hloforge"}
    return {"seconds": medians, "ratios": ratios}


def _brief(error: Exception) -> str:
    text = error.message if isinstance(error, hloforge.Error) else str(error) or type(error).__name__
    return text.splitlines()[0][:160]


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
