"""XLA must compute the same of a dump as imported and of its normalized form."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator

import pytest

from hloforge.dialect.errors import Error, ReferenceEngineError
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.runtime.data.random_inputs import random_inputs
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.process import IsolatedEngine
from hloforge.runtime.session.convention import flatten_arguments
from tests.models.dump_suite import programs
from tests.support import needs_shared

_SAMPLE = 8
_TOO_LARGE = "fp8_gemm_loop"


@pytest.fixture(scope="module")
def xla() -> Iterator[IsolatedEngine]:
    engine = IsolatedEngine("xla", timeout=60)
    yield engine
    engine.close()


def _names() -> list[object]:
    names = [name for name in programs() if name.startswith("optimized/") and not name.endswith(_TOO_LARGE)]
    quick = {name for name in names if zlib.crc32(name.encode()) % _SAMPLE == 0}
    return [pytest.param(name, id=name, marks=[] if name in quick else [pytest.mark.slow]) for name in names]


def _bytecode(program: Program) -> bytes:
    stream = io.BytesIO()
    program.module.operation.write_bytecode(stream)
    return stream.getvalue()


@needs_shared
@pytest.mark.parametrize("name", _names())
def test_normalization_keeps_the_results(name: str, xla: IsolatedEngine) -> None:
    try:
        program = read(programs()[name], elided="random", drop_unknown_attributes=True)
        normalized = ReferenceEngine("xla", xla).prepare(program)
        arguments = flatten_arguments(program.signature, random_inputs(program.signature))
    except Error as error:
        pytest.skip(f"no normalized form for XLA: {error.message}")
    try:
        raw = xla.compile(_bytecode(program))(arguments)
    except ReferenceEngineError as error:
        pytest.skip(f"XLA reads only the normalized form: {error.message}")
    report = compare(tuple(normalized._function(arguments)), tuple(raw))
    assert report, report.text()
