"""The node tests that the package onnx ships, a module an operator, judged on the CPU in batches.

Most of a small program's time goes to starting IREE's compiler, so the programs of many tests are compiled as one.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node as suite

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.importers.guard import trusted
from hloforge.importers.reader import read
from hloforge.pipelines.dynamic.specialize import specialize
from tests import batches
from tests.batches import Ready
from tests.expectations import Outcome

BATCH = 48
_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


@dataclass(frozen=True)
class Case:
    """One test: a model, and what it makes of its inputs.

    Attributes:
        data: pairs of inputs and outputs.
    """

    name: str
    model: bytes
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


def modules() -> list[str]:
    """The modules of node tests, by name; nothing is imported for it."""
    found = (module.name for module in pkgutil.walk_packages(suite.__path__, f"{suite.__name__}."))
    return sorted(name.removeprefix(f"{suite.__name__}.") for name in found if "._" not in name)


@cache
def cases_of(module: str) -> list[Case]:
    """The tests of a module: importing it makes them."""
    known = len(suite._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{suite.__name__}.{module}")
    return [
        Case(
            case.name,
            case.model.SerializeToString(),
            [(_arrays(i), _arrays(o)) for i, o in case.data_sets],
            case.rtol,
            case.atol,
        )
        for case in suite._NodeTestCases[known:]
    ]


def _arrays(tensors: Sequence[Any]) -> list[Any]:
    return [numpy_helper.to_array(t) if isinstance(t, onnx.TensorProto) else t for t in tensors]


def judge(cases: Sequence[Case]) -> dict[str, Outcome]:
    """How far each test came."""
    outcomes: dict[str, Outcome] = {}
    ready: list[Ready[Case]] = []
    for case in cases:
        try:
            with trusted():
                program = read(case.model)
                labels = dict(program.signature.labels)
                names = [parameter.name for parameter in program.signature.parameters]
                for inputs, outputs in case.data:
                    given = [_numbers(array, labels.get(name)) for name, array in zip(names, inputs, strict=False)]
                    ready.append(Ready(case, _formed(program, given), given, _expected(program, outputs)))
        except Error as error:
            outcomes[case.name] = Outcome("import", error.message)
    for case, outcome in batches.outcomes(ready, _judged, size=BATCH):
        if outcomes.get(case.name, Outcome()) == Outcome():
            outcomes[case.name] = outcome
    return outcomes


def _numbers(array: Any, table: Sequence[Any] | None) -> Any:
    """Strings as numbers in the table of a parameter or result."""
    if table is None or array.dtype.kind not in "OSU":
        return array
    known = {text: number for number, text in enumerate(table)}
    return np.array([known.get(text, -1) for text in array.reshape(-1)], np.int64).reshape(array.shape)


def _expected(program: Program, outputs: Sequence[Any]) -> list[Any]:
    # A sequence is a result for each of its tensors.
    outputs = [each for output in outputs for each in (output if isinstance(output, list) else [output])]
    labels, names = dict(program.signature.labels), program.signature.result_names or [""] * len(outputs)
    return [_numbers(array, labels.get(name)) for name, array in zip(names, outputs, strict=False)]


def _formed(program: Program, inputs: Sequence[Any]) -> Program:
    """The program for the sizes, and the elements that decide sizes, of these inputs."""
    if program.template is None:
        return program
    shapes = [Shape(element_type(array.dtype), array.shape) for array in inputs]
    return specialize(program, shapes, dict(enumerate(inputs)))


def _judged(ready: Ready[Case], results: Sequence[np.ndarray[Any, Any]]) -> str:
    mismatches = (_mismatch(ready.case, *pair) for pair in zip(ready.expected, results, strict=True))
    return next(filter(None, mismatches), "")


def _mismatch(case: Case, expected: Any, actual: np.ndarray[Any, Any]) -> str:
    """What is wrong with a result; nothing if it is right, as ONNX's own runner judges it."""
    expected = np.asarray(expected)
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return f"{actual.dtype}{list(actual.shape)} where {expected.dtype}{list(expected.shape)} is expected"
    # As ONNX's runner does: two units in the last place of bfloat16.
    rtol = max(case.rtol, 2.0**-6) if expected.dtype == ml_dtypes.bfloat16 else case.rtol
    if expected.dtype.kind == "V":
        expected, actual = expected.astype(np.float64), actual.astype(np.float64)
    try:
        np.testing.assert_allclose(actual, expected, rtol, case.atol)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def folders() -> list[str]:
    """The models that the package ships with inputs and outputs, as paths below its folder of data."""
    return sorted(str(path.parent.relative_to(_DATA)) for path in _DATA.glob("*/*/model.onnx"))


def model_case(folder: str) -> Case:
    """The test of a model: all of its sets of data."""
    home = _DATA / folder
    data = []
    for path in sorted(home.glob("test_data_set_*")):
        sides = [
            [_tensor(path / f"{side}_{n}.pb") for n in range(len(list(path.glob(f"{side}_*.pb"))))]
            for side in ("input", "output")
        ]
        data.append((sides[0], sides[1]))
    return Case(folder, (home / "model.onnx").read_bytes(), data, 1e-3, 1e-7)


def _tensor(path: Path) -> np.ndarray[Any, Any]:
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return np.asarray(numpy_helper.to_array(tensor))
