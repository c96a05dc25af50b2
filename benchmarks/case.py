"""One case in a process of its own: prints what it found as one line of JSON.

python -m benchmarks.case 'matmul 256³'                    # latencies and compile times, side by side
python -m benchmarks.case 'matmul 256³' --memory=hloforge  # peak memory of one engine
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from typing import Any

import numpy as np

import hloforge
from benchmarks.engines import Prepared, compile_plain, prepare_hloforge, prepare_plain, prepare_xla
from benchmarks.kernels import KERNELS, Kernel
from benchmarks.measure import interleaved
from benchmarks.models import MODELS, Model, normalized
from hloforge.dialect.abi import crosses
from hloforge.dialect.program import Program
from hloforge.runtime.random_inputs import random_array

CASES: dict[str, Kernel | Model] = {case.name: case for case in (*KERNELS, *MODELS)}
PLAIN_DEVICES = ("local-task", "local-sync")


def program_of(case: Kernel | Model) -> Program:
    return normalized(case.text if isinstance(case, Kernel) else case.path)


def arguments_of(case: Kernel | Model, program: Program) -> list[np.ndarray[Any, Any]]:
    """Seeded random arguments; indices over their whole range."""
    limits = case.index_limits if isinstance(case, Kernel) else {}
    found = []
    for number, leaf in enumerate(leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)):
        array = random_array(leaf.shape, leaf.name)
        if number in limits:
            array = np.random.default_rng(number).integers(0, limits[number], array.shape).astype(array.dtype)
        found.append(array)
    return found


def compare_engines(case: Kernel | Model, seconds: float) -> dict[str, Any]:
    """Latency, compile time and agreement with XLA of every engine that can run the case."""
    program = program_of(case)
    arguments = arguments_of(case, program)
    prepared, failures = _prepare_all(case, program, arguments)
    latencies = interleaved({name: engine.call for name, engine in prepared.items()}, seconds)
    return {
        "latency": {name: latency.to_json() for name, latency in latencies.items()},
        "compile_seconds": {name: engine.compile_seconds for name, engine in prepared.items()},
        "agrees": _agreement(prepared),
        "failures": failures,
    }


def _prepare_all(
    case: Kernel | Model, program: Program, arguments: list[np.ndarray[Any, Any]]
) -> tuple[dict[str, Prepared], dict[str, str]]:
    prepared: dict[str, Prepared] = {}
    failures: dict[str, str] = {}

    def attempt(name: str, prepare: Any) -> None:
        try:
            prepared[name] = prepare()
        except Exception as error:
            failures[name] = str(error).strip().partition("\n")[0][:160]

    attempt("hloforge", lambda: prepare_hloforge(program, arguments))
    attempt("xla", lambda: prepare_xla(_for_xla(program), arguments))
    start = time.perf_counter()
    try:
        vmfb = compile_plain(program)
    except Exception as error:
        return prepared, failures | {"plain": str(error)}
    seconds = time.perf_counter() - start
    for device in case.plain_devices if isinstance(case, Kernel) else PLAIN_DEVICES:
        attempt(f"plain {device}", lambda device=device: prepare_plain(vmfb, seconds, device, arguments))
    return prepared, failures


def _for_xla(program: Program) -> Program:
    """XLA's client takes no large constants out of line."""
    from hloforge.runtime.dense_resources import inline_dense_resources

    copy = program.clone()
    inline_dense_resources(copy.module)
    return copy


def _agreement(prepared: dict[str, Prepared]) -> dict[str, bool]:
    if "xla" not in prepared:
        return {}
    expected = tuple(prepared["xla"].results())
    found = {}
    for name, engine in prepared.items():
        # Both plain devices run the same code, and a second slow call tells nothing new.
        if name not in ("xla", "plain local-task") or (name == "plain local-task" and len(prepared) == 2):
            results = (value.astype(want.dtype) for value, want in zip(engine.results(), expected, strict=True))
            found[name.partition(" ")[0]] = hloforge.compare(tuple(results), expected).agrees
    return found


def peak_memory(case: Kernel | Model, engine: str) -> dict[str, Any]:
    """MiB that compiling and one call add to this process, and the peak of the largest child (IREE's compiler)."""
    program = program_of(case)
    arguments = arguments_of(case, program)
    before = _peak(resource.RUSAGE_SELF)
    if engine == "hloforge":
        prepare_hloforge(program, arguments).call()
    elif engine == "xla":
        prepare_xla(_for_xla(program), arguments).call()
    else:
        prepare_plain(compile_plain(program), 0.0, "local-sync", arguments)
    return {"process": _peak(resource.RUSAGE_SELF) - before, "compiler": _peak(resource.RUSAGE_CHILDREN)}


def _peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def call_overhead(seconds: float) -> dict[str, Any]:
    """Seconds of a call from numpy to numpy for an addition of four numbers: all of it is overhead."""
    from benchmarks.overhead import calls

    return {name: latency.to_json() for name, latency in interleaved(calls(), seconds).items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.case")
    parser.add_argument("name", choices=[*CASES, "overhead"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--memory", choices=["hloforge", "plain", "xla"])
    options = parser.parse_args()
    if options.name == "overhead":
        found = call_overhead(options.seconds)
    elif options.memory:
        found = peak_memory(CASES[options.name], options.memory)
    else:
        found = compare_engines(CASES[options.name], options.seconds)
    json.dump(found, sys.stdout)
    print()


if __name__ == "__main__":
    main()
