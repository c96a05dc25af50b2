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
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.runtime.convention import flatten_arguments, nest_results
from hloforge.runtime.judgement import judge
from hloforge.runtime.plausible_inputs import plausible_inputs

CASES: dict[str, Kernel | Model] = {case.name: case for case in (*KERNELS, *MODELS)}
PLAIN_DEVICES = ("local-task", "local-sync")


def program_of(case: Kernel | Model) -> Program:
    return normalized(case.text if isinstance(case, Kernel) else case.path)


def arguments_of(case: Kernel | Model, program: Program) -> list[np.ndarray[Any, Any]]:
    """Seeded random arguments that keep numbers small; indices over their whole range."""
    found = [np.asarray(value) for value in flatten_arguments(program.signature, plausible_inputs(program))]
    for number, limit in case.index_limits.items() if isinstance(case, Kernel) else ():
        random = np.random.default_rng(number)
        found[number] = random.integers(0, limit, found[number].shape).astype(found[number].dtype)
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
        "agrees": _agreement(program, arguments, prepared),
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


def _agreement(
    program: Program, arguments: list[np.ndarray[Any, Any]], prepared: dict[str, Prepared]
) -> dict[str, bool]:
    """Whether hloforge and plain IREE agree with XLA, or are as near to the float64 truth as XLA is."""
    signature = program.signature
    nested = nest_results(Shape.tuple_of(*(parameter.shape for parameter in signature.parameters)), arguments)
    types = [shape.element.dtype for shape in signature.flat_results if shape.element is not None]
    engine = hloforge.reference("xla")
    found: dict[str, bool] = {}
    for name, one in prepared.items():
        label = name.partition(" ")[0]
        # Both plain devices run the same code, and a second slow call tells nothing new.
        if label == "xla" or label in found:
            continue
        flat = [value.astype(dtype) for value, dtype in zip(one.results(), types, strict=True)]
        try:
            found[label] = judge(engine, program, nested, nest_results(signature.result, flat)).agrees
        except hloforge.Error:
            break
    engine.close()
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
    # XLA compiles in this process; the only children are those that read the program.
    compiler = 0.0 if engine == "xla" else _peak(resource.RUSAGE_CHILDREN)
    return {"process": _peak(resource.RUSAGE_SELF) - before, "compiler": compiler}


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
