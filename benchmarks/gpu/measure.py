"""Rows of the tables: each is measured by itself, and a failure is its row's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hloforge
from benchmarks.cases import Case
from benchmarks.engines import nest_arguments, prepare_xla
from benchmarks.gpu.kernels import Array, Kernel, torch_call
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.rows import Row, compared, judged, rates
from benchmarks.one_case import program_of
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.session.convention import nest_results
from hloforge.runtime.tuning.timing import interleaved
from hloforge.tools.calling import leaves

Call = Callable[[], Any]


def kernel_row(kernel: Kernel, machine: Machine, seconds: float) -> Row:
    """A kernel beside XLA and PyTorch on the same device, and beside the roofline; its result judged by numpy."""
    row: Row = {"name": kernel.name, "kind": kernel.kind, "element": kernel.element}
    try:
        program = read(kernel.text(), name=kernel.name)
        arguments = kernel.arguments()
        calls, failures, results = _calls(program, arguments, machine)
    except (hloforge.Error, ImportError) as error:
        return row | {"error": brief(error)}
    row |= judged(kernel, arguments, np.asarray(results[0]))
    attempt(calls, failures, "torch", lambda: torch_call(kernel, arguments, _torch_device(machine)))
    return row | rates(kernel, machine.peaks, _latencies(calls, seconds)) | {"failures": failures}


def case_row(case: Case, machine: Machine, seconds: float) -> Row:
    """A benchmark program beside XLA on the same device, its results judged by XLA's CPU client."""
    row: Row = {"name": case.name, "kind": case.kind}
    if case.needs():
        return row | {"error": case.needs()}
    try:
        program, arguments = program_of(case)
        calls, failures, results = _calls(program, arguments, machine)
        if case.compared:
            nested = nest_results(program.signature.result, results)
            report = judge(hloforge.reference("xla"), program, arguments, nested)
            row["agrees"] = report.agrees
            if not report.agrees:
                row["difference"] = str(report).splitlines()[0]
    except hloforge.Error as error:
        return row | {"error": brief(error)}
    return row | _latencies(calls, seconds) | {"failures": failures}


def _calls(
    program: Program, arguments: Sequence[Array], machine: Machine
) -> tuple[dict[str, Call], dict[str, str], list[Array]]:
    """hloforge's call and XLA's, on arrays that lie on the device, why one cannot be made, and hloforge's results."""
    session = hloforge.compile(program, machine.target).load(device=machine.device)
    placed = nest_arguments(program, [session.put(value, number) for number, value in enumerate(arguments)])
    calls: dict[str, Call] = {"hloforge": lambda: session.call_device(*placed)}
    results = [np.asarray(array) for _, array in leaves(program.signature, calls["hloforge"]())]
    failures: dict[str, str] = {}
    attempt(calls, failures, "xla", lambda: prepare_xla(program, list(arguments), xla_client(machine)).call)
    return calls, failures, results


def attempt(calls: dict[str, Call], failures: dict[str, str], engine: str, prepare: Callable[[], Call]) -> None:
    """Add another engine's call, made once, or note why there is none."""
    try:
        call = prepare()
        call()
    except Exception as error:  # another engine's failure, of whatever kind, is no failure of the row
        failures[engine] = brief(error)
    else:
        calls[engine] = call


def xla_client(machine: Machine) -> Any:
    """XLA's client for the device; None for its CPU client. Raises ImportError where JAX has none for the GPU."""
    if not machine.target.driver:
        return None
    import jax

    try:
        return jax.devices("gpu")[0].client
    except RuntimeError as error:
        raise ImportError(f"this JAX has no GPU: {brief(error)}; pip install 'jax[cuda12]'") from None


def _torch_device(machine: Machine) -> str:
    return "cuda" if machine.target.driver else "cpu"


def _latencies(calls: dict[str, Call], seconds: float) -> Row:
    found = interleaved(calls, seconds)
    return compared({name: latency.median for name, latency in found.items()})


def brief(error: Exception) -> str:
    """The first line of what an error says."""
    text = error.message if isinstance(error, hloforge.Error) else str(error).strip()
    return (text or type(error).__name__).splitlines()[0][:160]
