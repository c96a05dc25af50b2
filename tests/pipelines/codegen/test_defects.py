"""What happens when code generation fails in a way that it does not foresee."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
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
