"""SavedModels and ``.keras`` files as the command line reads them: in a child process, with constants for variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import ImporterError

tf = pytest.importorskip("tensorflow")


@pytest.mark.slow
def test_models_are_programs_of_their_inputs_alone(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    x = np.random.RandomState(1).rand(4, 3).astype(np.float32)
    model.save(tmp_path / "model.keras")
    program = hloforge.read(tmp_path / "model.keras")
    assert str(program.signature) == "(inputs: f32[?,3]) -> f32[?,2]"
    compiled = hloforge.compile(program, shapes={"inputs": (4, 3)}, cache=False)
    np.testing.assert_allclose(compiled.load()(x), model(x), 1e-5)


@pytest.mark.slow
def test_a_damaged_model_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x0anothing")
    with pytest.raises(ImporterError, match="cannot load"):
        hloforge.read(tmp_path)
