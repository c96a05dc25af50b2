"""One random program in a process of its own: compiled, judged and timed beside XLA; prints what it found as JSON.

python -m benchmarks.perf_fuzz.one_program 17
python -m benchmarks.perf_fuzz.one_program 17 --kind='heat equation' --seconds=2

Lines before the last one say what it is at, so that the reader knows what a crash or a time limit ended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hloforge
from benchmarks.engines import Prepared, nest_arguments, nothing, prepare_hloforge, prepare_xla
from benchmarks.measure import paired_ratio, timed
from benchmarks.perf_fuzz.arguments import Array
from benchmarks.perf_fuzz.programs import RandomProgram, program_of
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.runtime.reference.compare import Report, ResultComparison, compare
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.session.convention import nest_results
from hloforge.runtime.tuning.timing import Latency, interleaved

_ENGINES: tuple[tuple[str, Callable[[Program, Sequence[Array]], Prepared]], ...] = (
    ("xla", prepare_xla),
    ("hloforge", prepare_hloforge),
)
_MESSAGE = 300


def examine(random: RandomProgram, seconds: float, said: Callable[[str], None]) -> dict[str, Any]:
    """Everything about one program.

    Args:
        seconds: of calls, of both engines together.
        said: told what is done next.
    """
    said("lowering")
    program = read(random.text())
    arguments = random.values()
    prepared: dict[str, Prepared] = {}
    results: dict[str, Any] = {}
    failures: dict[str, str] = {}
    said("starting XLA")
    prepare_xla(nothing(), [np.ones(1, np.float32)]).call()
    for name, prepare in _ENGINES:
        said(f"compiling by {name}")
        try:
            found = prepare(program, arguments)
            said(f"a call of {name}")
            results[name] = _nested(program, found)
            prepared[name] = found
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}".partition("\n")[0][:_MESSAGE]
    found_all: dict[str, Any] = {
        "label": random.label,
        "bytes": sum(value.nbytes for value in arguments),
        "compile_seconds": {name: one.compile_seconds for name, one in prepared.items()},
        "cached_seconds": prepared["hloforge"].cached_seconds if "hloforge" in prepared else None,
        "failures": failures,
    }
    if len(prepared) == len(_ENGINES):
        said("judging")
        found_all["wrong"] = wrongness(program, arguments, results["hloforge"], results["xla"], random.drawn.share)
        found_all["nan_share"] = nan_share(results["xla"])
    said("timing")
    first = {name: timed(one.call) for name, one in prepared.items()}
    latencies = interleaved({name: one.call for name, one in prepared.items()}, seconds)
    found_all |= {"first_call": first, "latency": {name: recorded(one) for name, one in latencies.items()}}
    if len(latencies) == len(_ENGINES):
        found_all["paired"] = paired_ratio(latencies["hloforge"], latencies["xla"])
    return found_all


def recorded(latency: Latency) -> dict[str, Any]:
    """A latency as JSON, with the shortest sample: the one that other work on the machine changes least."""
    return latency.to_json() | {"best": min(latency.values)}


def _nested(program: Program, one: Prepared) -> Any:
    types = [shape.element.dtype for shape in program.signature.flat_results if shape.element is not None]
    flat = [np.asarray(value).astype(dtype) for value, dtype in zip(one.results(), types, strict=True)]
    return nest_results(program.signature.result, flat)


def wrongness(program: Program, arguments: Sequence[Array], actual: Any, expected: Any, share: float) -> str:
    """What is wrong about the results; empty if they are right.

    Right is what ``compare`` takes for right beside XLA's results, or ``judge`` beside the float64 results, and what
    differs in no more of its elements than ``share``, where a last bit decides them; in one at most, of few.
    """
    report = compare(actual, expected)
    if not _bad(report, share):
        return ""
    engine = hloforge.reference("xla")
    try:
        report = judge(engine, program, nest_arguments(program, arguments), actual)
    except hloforge.Error:
        pass
    finally:
        engine.close()
    return "; ".join(" ".join(result.text().split())[:_MESSAGE] for result in _bad(report, share)[:2])


def _bad(report: Report, share: float) -> list[ResultComparison]:
    return [
        result
        for result in report.results
        if not result.agrees and (result.problem or not share or result.mismatch_count > max(1, share * result.count))
    ]


def nan_share(results: Any) -> float:
    """How many of the numbers of floats are NaN: what is timed would not be realistic with many."""
    if isinstance(results, tuple | list):
        return max((nan_share(part) for part in results), default=0.0)
    array = np.asarray(results)
    if not array.size or array.dtype.kind in "biu":
        return 0.0
    return float(np.mean(np.isnan(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perf_fuzz.one_program")
    parser.add_argument("seed", type=int)
    parser.add_argument("--kind")
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()

    def said(what: str) -> None:
        print(json.dumps({"stage": what}), flush=True)

    found = examine(program_of(options.seed, options.kind), options.seconds, said)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
