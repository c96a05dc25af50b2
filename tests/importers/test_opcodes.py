"""Each opcode of HLO is computed as XLA's CPU client or numpy does, or refused at its line as the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import _hlo
from tests.importers import opcodes_page
from tests.importers.opcodes import OPCODES, Opcode
from tests.importers.test_rare_hlo import on_xla

# Opcodes of XLA that jaxlib 0.10 does not have.
NEWER = {"atan", "collective-reduce", "shuffle"}
# Functions of XLA and of libm differ in their last bits.
TOLERANCE = 4e-6


@pytest.mark.wide(3)
@pytest.mark.parametrize("opcode", [name for name, row in OPCODES.items() if not row.refused])
def test_it_is_computed(opcode: str) -> None:
    row = OPCODES[opcode]
    assert re.search(rf"(?<![\w-]){opcode}\(", row.text), "the module lacks its opcode"
    session = hloforge.compile(row.text).load()
    if row.takes or row.gives:
        _exchange(session, row)
        return
    results = _as_tuple(session(*row.inputs))
    expected = row.expected(*row.inputs) if row.expected else _by_xla(row)
    for result, wanted in zip(results, _as_tuple(expected), strict=True):
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=TOLERANCE, atol=TOLERANCE)


def _exchange(session: Any, row: Opcode) -> None:
    name = row.takes or row.gives
    queue = session.feeds.channel(1) if name == "channel" else getattr(session, name)
    item = np.array([1, -2, 3.5, 0], np.float32)
    if row.takes:
        queue.put(item)
        np.testing.assert_array_equal(session(*row.inputs), item)
    else:
        session(*row.inputs)
        np.testing.assert_array_equal(_as_tuple(queue.get())[0], row.inputs[0])


def _by_xla(row: Opcode) -> tuple[Any, ...]:
    """XLA's results, of a process of its own: its crash is a failure, not the end of the tests.

    No forked one, which would wait for the threads of an XLA that an earlier test began in this process.
    """
    try:
        return _process().submit(_results_of_xla, row.text, row.inputs).result(timeout=60)
    except BrokenProcessPool:
        _process.cache_clear()
        raise


@pytest.fixture(scope="module", autouse=True)
def process_ends() -> Iterator[None]:
    yield
    if _process.cache_info().currsize:
        _process().shutdown()


@cache
def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))


def _results_of_xla(text: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(on_xla(text, *inputs)[0])


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


@pytest.mark.parametrize("opcode", [name for name, row in OPCODES.items() if row.refused])
def test_it_is_refused_at_its_line(opcode: str) -> None:
    row = OPCODES[opcode]
    with pytest.raises(Error, match=row.refused) as caught:
        (hloforge.read if row.unread else hloforge.compile)(row.text)
    line = next(number for number, text in enumerate(row.text.splitlines(), 1) if f" {opcode}(" in text)
    assert caught.value.location is not None and caught.value.location.line == line
    assert caught.value.hint and row.reason


def test_the_modules_have_every_opcode_that_jaxlib_knows() -> None:
    known = {_hlo.HloOpcode.__members__[name] for name in _hlo.HloOpcode.__members__}
    modules = [_hlo.hlo_module_from_text(row.text) for name, row in OPCODES.items() if name not in NEWER]
    instructions = (one for module in modules for called in module.computations() for one in called.instructions())
    assert {one.opcode for one in instructions} == known
    assert len(OPCODES) == len(known | NEWER)


def test_the_page_is_up_to_date() -> None:
    assert opcodes_page.PAGE.read_text() == opcodes_page.page(), "run: make tables"
