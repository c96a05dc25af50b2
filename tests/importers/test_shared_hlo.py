"""Real dumps of XLA: all are read, verified and normalized, and nothing of mhlo or sdy is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloforge.dialect.errors import ElidedConstantError
from hloforge.dialect.operations import location_of, operations
from hloforge.importers.reader import read
from hloforge.pipelines.normalize.normalization import normalize
from tests.support import SHARED, needs_shared, shared_files

FILES = shared_files("hlo/*/*.hlo")
# What a program of these names keeps, for it is the program's own business.
CUSTOM_CALLS = {"te_scaled_softmax_forward_ffi"}


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_read_and_normalize(path: Path) -> None:
    program = read(path, elided="random", drop_unknown_attributes=True)
    normalize(program.module)
    for op in operations(program.module):
        where = location_of(op)
        assert where is not None
        assert where.file == str(path)
        assert where.line > 0
        assert op.name.split(".")[0] in ("stablehlo", "chlo", "func")
        assert not [name for name in op.attributes if name.startswith(("mhlo.", "sdy."))]
        if op.name == "stablehlo.custom_call":
            assert op.attributes["call_target_name"].value in CUSTOM_CALLS
    assert "!mhlo" not in program.text(elide=8)


@needs_shared
@pytest.mark.parametrize("name", ["dlrm_keras_jax_f32_test_step", "diffrax.b380012920", "graphsage_tf"])
def test_elided_constants_become_parameters(name: str) -> None:
    path = SHARED / "hlo/benchmarks" / f"{name}.hlo"
    with pytest.raises(ElidedConstantError):
        read(path)
    count = path.read_text().count("constant({...})")
    given = read(path, elided="random").signature
    program = read(path, elided="parameters")
    assert len(program.signature.parameters) == len(given.parameters) + count
    normalize(program.module)
