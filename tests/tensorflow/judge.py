"""How far functions of TensorFlow come: read, compiled with others as one program, and compared with TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

import hloforge
import hloforge.tensorflow
from hloforge.dialect import ops
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from tests.expectations import Outcome
from tests.tensorflow.cases import Case

# Programs that are compiled as one: most of a small one's time goes to starting IREE's compiler.
BATCH = 24
_Ready = tuple[Case, Program, list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]


def judge(cases: Sequence[Case], engine: str = "") -> dict[str, Outcome]:
    """How far each function came.

    Args:
        engine: what runs it; the CPU target by default, or a reference engine, so that only what was read is judged.
    """
    outcomes: dict[str, Outcome] = {}
    ready: list[_Ready] = []
    for case in cases:
        arguments = tf.nest.flatten(case.arguments)
        try:
            program = hloforge.tensorflow.read(case.function, case.arguments, freeze=True)
        except Error as error:
            outcomes[case.name] = Outcome("import", error.message)
            continue
        given = tf.nest.map_structure(tf.constant, case.arguments)
        expected = tf.nest.flatten(tf.nest.map_structure(tf.convert_to_tensor, case.function(*given)))
        ready.append((case, program, arguments, [np.asarray(tensor) for tensor in expected]))
    for start in range(0, len(ready), BATCH):
        outcomes |= dict(_run(ready[start : start + BATCH], engine))
    return outcomes


@cache
def _referee(engine: str) -> Any:
    return hloforge.reference(engine)


def _run(ready: Sequence[_Ready], engine: str) -> Iterator[tuple[str, Outcome]]:
    """Outcomes of programs that are compiled as one; if that fails, each half for itself."""
    try:
        results = iter(_computed(ready, engine))
    except Error as error:
        if len(ready) > 1:
            yield from _run(ready[: len(ready) // 2], engine)
            yield from _run(ready[len(ready) // 2 :], engine)
        else:
            yield ready[0][0].name, Outcome("compile", error.message)
        return
    for case, _, _, expected in ready:
        mismatches = [mismatch(wanted, next(results), case.tolerance) for wanted in expected]
        message = next(filter(None, mismatches), "")
        yield case.name, Outcome("numerics", message) if message else Outcome()


def _computed(ready: Sequence[_Ready], engine: str) -> list[np.ndarray[Any, Any]]:
    if len(ready) == 1:
        _, program, arguments, _ = ready[0]
        run = _referee(engine).prepare(program) if engine else hloforge.compile(program, cache=False).load()
        found = run(*arguments)
        return list(found) if isinstance(found, tuple) else [found]
    with hloforge.Builder("batch") as builder:
        results: list[Any] = []
        number = 0
        for _, program, _, _ in ready:
            given = []
            for parameter in program.signature.parameters:
                given.append(builder.parameter(number, parameter.shape, f"p{number}"))
                number += 1
            result = ops.call(program, *given)
            results += list(result) if result.shape.is_tuple else [result]
        batch = builder.build(tuple(results))
    run = _referee(engine).prepare(batch) if engine else batch.compile(cache=False)
    return [np.asarray(array) for array in run(*(array for _, _, given, _ in ready for array in given))]


def mismatch(expected: np.ndarray[Any, Any], actual: np.ndarray[Any, Any], tolerance: float) -> str:
    """What is wrong with a result, whose floats may differ by a part of the largest one; nothing if it is right."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return f"{actual.dtype}{list(actual.shape)} where {expected.dtype}{list(expected.shape)} is expected"
    if expected.dtype == ml_dtypes.bfloat16:
        expected, actual = expected.astype(np.float32), actual.astype(np.float32)
    if expected.dtype.kind not in "fc":
        return "" if np.array_equal(expected, actual) else f"{int((expected != actual).sum())} elements differ"
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    try:
        np.testing.assert_allclose(actual, expected, tolerance, tolerance * max(largest, 1e-30))
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""
