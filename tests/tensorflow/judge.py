"""How far functions of TensorFlow come: read, compiled with others as one program, and compared with TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

import hloforge
import hloforge.tensorflow
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from tests import batches
from tests.batches import Ready
from tests.expectations import Outcome
from tests.tensorflow.cases import Case

# Programs that are compiled as one: most of a small one's time goes to starting IREE's compiler.
BATCH = 24


def judge(cases: Sequence[Case], engine: str = "") -> dict[str, Outcome]:
    """How far each function came.

    Args:
        engine: what runs it; the CPU target by default, or a reference engine, so that only what was read is judged.
    """
    outcomes: dict[str, Outcome] = {}
    ready: list[Ready[Case]] = []
    for case in cases:
        arguments = tf.nest.flatten(case.arguments)
        try:
            program = _form(hloforge.tensorflow.read(case.function, case.arguments, freeze=True), arguments)
        except Error as error:
            outcomes[case.name] = Outcome("import", error.message)
            continue
        if len(program.signature.parameters) != len(arguments):
            outcomes[case.name] = Outcome("import", "it assigns variables, which are arguments")
            continue
        given = tf.nest.map_structure(tf.constant, case.arguments)
        expected = tf.nest.flatten(tf.nest.map_structure(tf.convert_to_tensor, case.function(*given)))
        ready.append(Ready(case, program, arguments, [np.asarray(tensor) for tensor in expected]))
    run = _run(engine) if engine else batches.compiled
    outcomes |= {case.name: outcome for case, outcome in batches.outcomes(ready, _judged, size=BATCH, run=run)}
    return outcomes


def _form(program: Program, arguments: Sequence[Any]) -> Program:
    """The program for these arguments, whose elements may decide sizes."""
    if program.template is None:
        return program
    shapes = [parameter.shape for parameter in program.signature.parameters]
    return program.template.specialize(shapes, dict(enumerate(arguments)))


@cache
def _referee(engine: str) -> Any:
    return hloforge.reference(engine)


def _run(engine: str) -> batches.Run:
    return lambda program, arguments: _referee(engine).prepare(program)(*arguments)


def _judged(ready: Ready[Case], results: Sequence[np.ndarray[Any, Any]]) -> str:
    pairs = zip(ready.expected, results, strict=True)
    return next(filter(None, (mismatch(*pair, ready.case.tolerance) for pair in pairs)), "")


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
