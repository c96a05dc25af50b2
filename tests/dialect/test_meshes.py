"""Groups of devices by the axes of a mesh."""

from __future__ import annotations

import pytest

from hloforge.dialect.meshes import Axis, Mesh, list_groups
from hloforge.dialect.mlir import parse_module

MESH = Mesh((("x", 4), ("y", 2)), tuple(range(8)))


@pytest.mark.parametrize(
    ("axes", "groups"),
    [
        ([Axis("y")], [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ([Axis("x")], [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ([Axis("x"), Axis("y")], [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ([Axis("y"), Axis("x")], [[0, 2, 4, 6, 1, 3, 5, 7]]),
        # The major and the minor half of x: devices that are 4 and 2 apart.
        ([Axis("x", 1, 2)], [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ([Axis("x", 2, 2)], [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ([], [[0], [1], [2], [3], [4], [5], [6], [7]]),
    ],
)
def test_members_differ_along_their_axes(axes: list[Axis], groups: list[list[int]]) -> None:
    assert MESH.groups(axes) == groups


def test_devices_may_stand_in_another_order() -> None:
    assert Mesh((("x", 2), ("y", 2)), (3, 1, 0, 2)).groups([Axis("y")]) == [[3, 1], [0, 2]]


def test_a_module_lists_its_groups() -> None:
    module = parse_module("""module {
      sdy.mesh @mesh = <["x"=2, "y"=4]>
      func.func @main(%x: tensor<2xf32>) -> tensor<8xf32> {
        %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">,
            #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
          : (tensor<2xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }""")
    list_groups(module)
    assert "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>" in str(module)
