"""Builder to StableHLO to HLO and back: the instruction is the heading's, and the StableHLO is accepted again."""

from __future__ import annotations

import re

import pytest

from hloforge import read
from hloforge.dialect.op import registry
from tests.operations.programs import elements_of, program_of
from tests.operations.tables import ROWS


@pytest.mark.wide(2)
@pytest.mark.parametrize("row_id", list(ROWS))
def test_round_trip(row_id: str) -> None:
    row = ROWS[row_id]
    elements = elements_of(row)
    program, _ = program_of(row, [next((e for e in ("f32", "s32", "c64") if e in elements), elements[0])])
    opcode = row.hlo or registry()[row.heading].hlo
    hlo = program.hlo_text()
    assert re.search(rf"\s{re.escape(opcode)}\(", hlo), f"no {opcode} in\n{hlo}"
    again = read(program.hlo_proto())
    assert [shape.without_layout() for shape in again.signature.flat_results] == [
        shape.without_layout() for shape in program.signature.flat_results
    ]
