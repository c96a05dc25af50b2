"""Groups that HLO names by axes of a mesh, whose devices may stand in any order."""

from __future__ import annotations

import pytest

import hloforge
from hloforge.dialect.emission import i64_matrix
from hloforge.dialect.hlo_groups import with_listed_groups
from hloforge.dialect.mlir import _hlo, in_context
from hloforge.dialect.operations import operations

HLO = """HloModule m, num_partitions=8
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[2] parameter(0)
  ROOT y = f32[2] all-reduce(x), channel_id=1, replica_groups=GROUPS, use_global_device_ids=true, to_apply=add }"""


@pytest.mark.parametrize(
    ("named", "listed"),
    [
        ("mesh['a'=2,'b'=2] {'a'}", [[0, 2], [1, 3]]),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}", [[0, 1], [2, 3]]),
        ("mesh['a'=2,'b'=2], device_ids=(0,3,1,2) {'b'}", [[0, 3], [1, 2]]),
        ("mesh['a'=2,'b'=2] {'b','a'}", [[0, 2, 1, 3]]),
        ("mesh['a'=4] {'a':(1)2}", [[0, 2], [1, 3]]),
        ("mesh['a'=4] {'a':(2)2}", [[0, 1], [2, 3]]),
        ("mesh['a'=2,'b'=2,'c'=2], device_ids=([4,2]T(1,0)) {'a','c'}", [[0, 2, 1, 3], [4, 6, 5, 7]]),
        ("[2,2]<=[2,2]T(1,0)", [[0, 2], [1, 3]]),
    ],
    ids=["axes", "transposed", "listed devices", "axes in turn", "major part", "minor part", "two of three", "iota"],
)
def test_groups_are_those_of_the_mesh(named: str, listed: list[list[int]]) -> None:
    module = hloforge.read(HLO.replace("GROUPS", named)).module
    (collective,) = operations(module, {"stablehlo.all_reduce"})
    with in_context(module):
        assert collective.attributes["replica_groups"] == i64_matrix(listed, len(listed[0]))


def test_xla_reads_what_is_written() -> None:
    def groups(text: str) -> str:
        proto = _hlo.hlo_module_from_text(HLO.replace("GROUPS", text)).as_serialized_hlo_module_proto()
        module = _hlo.HloModule.from_serialized_hlo_module_proto(with_listed_groups(proto))
        return str(module.to_string()).partition("replica_groups=")[2].partition(", use")[0]

    assert groups("mesh['a'=2,'b'=2] {'a'}") == "{{0,2},{1,3}}"
    assert groups("{{0,3},{1,2}}") == "{{0,3},{1,2}}"
