"""What happens when code generation fails in a way that it does not foresee."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import OperationError
from hloforge.pipelines.framework.defects import DefectError
from hloforge.runtime.compile import generated

PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


def _broken(*_: object, **__: object) -> None:
    raise NameError("name 'x' is not defined")


def test_a_defect_is_told_and_the_program_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "generate", _broken)
    with pytest.warns(UserWarning, match=r"defect \(NameError: name 'x' is not defined\).*HLOFORGE_CODEGEN=loud"):
        executable = hloforge.compile(PROGRAM)
    assert not executable.manifest.is_generated
    np.testing.assert_array_equal(executable.load()(np.ones(4, np.float32)), np.ones(4, np.float32))


def test_a_defect_is_raised_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "generate", _broken)
    monkeypatch.setenv(generated.CODEGEN, generated.LOUD)
    with pytest.raises(NameError):
        hloforge.compile(PROGRAM)


def test_an_invalid_operation_that_a_pass_builds_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object, **__: object) -> None:
        raise OperationError("Reshape: 3 elements into 4")

    monkeypatch.setattr(generated, "lower", build)
    with pytest.warns(UserWarning, match=r"defect \(OperationError: .*3 elements into 4"):
        assert not hloforge.compile(PROGRAM, cache=False).manifest.is_generated
    # A pass may not know how to write an operation of unknown sizes; the passes before IREE's compiler may.
    dynamic = PROGRAM.replace("4xf32", "?xf32")
    assert not hloforge.compile(dynamic, cache=False).manifest.is_generated


def test_a_pass_that_fails_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of calls that is too long for Python, as another exception, is told and not left to IREE's compiler."""

    def fail(*_: object, **__: object) -> None:
        raise DefectError("pass legalize-this failed: RecursionError", pipeline="", before="")

    monkeypatch.setattr(generated, "lower", fail)
    with pytest.warns(UserWarning, match=r"defect \(DefectError: .*RecursionError"):
        assert not hloforge.compile(PROGRAM, cache=False).manifest.is_generated
