"""One case in a process of its own: prints what it found as one line of JSON.

python -m benchmarks.one_case 'matmul 256³'                    # latencies, calls per second, compile times
python -m benchmarks.one_case 'matmul 256³' --memory=hloforge  # peak memory of one engine
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import hloforge
from benchmarks.cases import Array, Case
from benchmarks.engines import (
    Prepared,
    compile_plain,
    nest_arguments,
    prepare_eager,
    prepare_hloforge,
    prepare_plain,
    prepare_tuned,
    prepare_xla,
)
from benchmarks.measure import calls_per_second, paired_ratio, timed
from benchmarks.suite import CASES
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.session.convention import flatten_arguments, nest_results
from hloforge.runtime.tuning.timing import interleaved

# Python threads that call at once.
THREADS = (1, 2, 4)
# A call that takes longer fills every core by itself.
LONG_CALL = 0.2
ENGINES = ("hloforge", "plain", "xla")


def program_of(case: Case) -> tuple[Program, list[Array]]:
    """What every engine gets: pure StableHLO, and seeded random arguments that keep numbers small."""
    source, limits = case.build()
    program = read(source, elided="random")
    normalize(program.module)
    # Nothing is given away: every call takes the same arguments.
    program = replace(program, signature=replace(program.signature, aliases=()))
    program.signature.attach(program.module)
    arguments = [np.asarray(value) for value in flatten_arguments(program.signature, plausible_inputs(program))]
    for number, limit in limits.items():
        random = np.random.default_rng(number)
        arguments[number] = random.integers(0, limit, arguments[number].shape).astype(arguments[number].dtype)
    return program, case.adapt(arguments)


def compare_engines(case: Case, seconds: float, tuning: float = 0.0) -> dict[str, Any]:
    """Latency, throughput, compile time and agreement with XLA of every engine that can run the case.

    Args:
        seconds: of calls.
        tuning: seconds for ``hloforge tune`` to search for the fastest form of the program; 0 for none.
    """
    program, arguments = program_of(case)
    prepared, failures = _prepare_all(case, program, arguments, tuning)
    first = {name: timed(engine.call) for name, engine in prepared.items()}
    latencies = interleaved({name: engine.call for name, engine in prepared.items()}, seconds)
    ratios = {
        name: paired_ratio(latencies["hloforge"], latency)
        for name, latency in latencies.items()
        if name != "hloforge" and "hloforge" in latencies
    }
    return {
        "latency": {name: latency.to_json() for name, latency in latencies.items()},
        "ratio": ratios,
        "first_call": first,
        "throughput": {
            name: {threads: calls_per_second(prepared[name].call, threads, seconds / 8) for threads in THREADS}
            for name in ("hloforge", "xla")
            if name in latencies and latencies[name].median < LONG_CALL
        },
        "compile_seconds": {name: one.compile_seconds for name, one in prepared.items() if one.compile_seconds},
        "cached_seconds": prepared["hloforge"].cached_seconds if "hloforge" in prepared else None,
        "agrees": _agreement(program, arguments, prepared) if case.compared else {},
        "failures": failures,
    }


def _prepare_all(
    case: Case, program: Program, arguments: Sequence[Array], tuning: float
) -> tuple[dict[str, Prepared], dict[str, str]]:
    prepared: dict[str, Prepared] = {}
    failures: dict[str, str] = {}

    def attempt(name: str, prepare: Callable[[], Any]) -> Any:
        """Note what came out, or the first line of what went wrong."""
        try:
            found = prepare()
        except Exception as error:
            failures[name] = str(error).strip().partition("\n")[0][:160]
            return None
        if isinstance(found, Prepared):
            prepared[name] = found
        return found

    attempt("hloforge", lambda: prepare_hloforge(program, arguments))
    if tuning:
        attempt("tuned", lambda: prepare_tuned(program, arguments, tuning))
    attempt("xla", lambda: prepare_xla(_for_xla(program), arguments))
    if case.plain_devices:
        start = time.perf_counter()
        vmfb = attempt("plain", lambda: compile_plain(program))
        seconds = time.perf_counter() - start
        for device in case.plain_devices if vmfb else ():
            attempt(f"plain {device}", lambda device=device: prepare_plain(vmfb, seconds, device, arguments))
    body = case.eager
    if body is not None and importlib.util.find_spec("torch"):
        attempt("torch", lambda: prepare_eager(body, arguments))
    run = case.tensorflow
    if run is not None:
        attempt("tensorflow", lambda: Prepared(run, run, None))
    return prepared, failures


def _for_xla(program: Program) -> Program:
    """XLA's client takes no large constants out of line."""
    copy = program.clone()
    inline_dense_resources(copy.module)
    return copy


def _agreement(program: Program, arguments: Sequence[Array], prepared: dict[str, Prepared]) -> dict[str, bool]:
    """Whether each engine agrees with XLA, or is as near to the float64 truth as XLA is."""
    if "xla" not in prepared:
        return {}
    expected = _nested(program, prepared["xla"])
    found: dict[str, bool] = {}
    for name, one in prepared.items():
        label = name.partition(" ")[0]
        # Both plain devices run the same code, and a second slow call tells nothing new.
        if label != "xla" and label not in found:
            actual = _nested(program, one)
            found[label] = compare(actual, expected).agrees or _is_as_exact(program, arguments, actual)
    return found


def _nested(program: Program, one: Prepared) -> Any:
    types = [shape.element.dtype for shape in program.signature.flat_results if shape.element is not None]
    flat = [np.asarray(value).astype(dtype) for value, dtype in zip(one.results(), types, strict=True)]
    return nest_results(program.signature.result, flat)


def _is_as_exact(program: Program, arguments: Sequence[Array], actual: Any) -> bool:
    nested = nest_arguments(program, arguments)
    engine = hloforge.reference("xla")
    try:
        return bool(judge(engine, program, nested, actual).agrees)
    except hloforge.Error:
        return False
    finally:
        engine.close()


def peak_memory(case: Case, engine: str) -> dict[str, Any]:
    """MiB that compiling and one call add to this process, and the peak of the largest child (IREE's compiler)."""
    program, arguments = program_of(case)
    before = _peak(resource.RUSAGE_SELF)
    if engine == "hloforge":
        prepare_hloforge(program, arguments).call()
    elif engine == "xla":
        prepare_xla(_for_xla(program), arguments).call()
    else:
        prepare_plain(compile_plain(program), 0.0, "local-sync", arguments).call()
    # XLA compiles in this process; the only children are those that read the program.
    compiler = 0.0 if engine == "xla" else _peak(resource.RUSAGE_CHILDREN)
    return {"process": _peak(resource.RUSAGE_SELF) - before, "compiler": compiler}


def _peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def call_overhead(seconds: float) -> dict[str, Any]:
    """Seconds of a call from numpy to numpy for an addition of four numbers, or a function of the host of them: all of
    it is overhead."""
    from benchmarks import host_calls, overhead

    found = {}
    # One after the other: a call right after one of JAX's is slow, and would be measured in samples of a few.
    for ways in (overhead.calls(), host_calls.calls()):
        for call in ways.values():
            call()
        found |= {name: latency.to_json() for name, latency in interleaved(ways, seconds).items()}
    return found


def several_devices(seconds: float) -> dict[str, Any]:
    """Seconds of a call on several devices of this machine, threads or processes, and of the same work on one."""
    from benchmarks import replicas

    found = replicas.by_mpi()
    # One after the other: arrays of other sizes would take the memory that a large one is kept in for the next call.
    for ways in (replicas.all_reduces(), replicas.steps()):
        for call in ways.values():
            call()
        found |= {name: latency.to_json() for name, latency in interleaved(ways, seconds).items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_case")
    parser.add_argument("name", choices=[*CASES, "overhead", "replicas"], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--memory", choices=ENGINES)
    parser.add_argument("--tune", type=float, default=0.0)
    options = parser.parse_args()
    if options.name == "overhead":
        found = call_overhead(options.seconds)
    elif options.name == "replicas":
        found = several_devices(options.seconds)
    elif options.memory:
        found = peak_memory(CASES[options.name], options.memory)
    else:
        found = compare_engines(CASES[options.name], options.seconds, options.tune)
    json.dump(found, sys.stdout)
    print()


if __name__ == "__main__":
    main()
