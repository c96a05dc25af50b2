"""check-needs: functions and devices that are missing are refused before any other pass runs, all at once."""

from __future__ import annotations

import re

import pytest

import hloforge
from hloforge.dialect.errors import Error, UnregisteredError, UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program
from hloforge.pipelines.capability.check_needs import CheckNeeds
from hloforge.pipelines.host_calls import declare_host_functions
from hloforge.pipelines.named import pipeline
from hloforge.pipelines.replicas.grid import Grid, set_grid

MANY = """HloModule many, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
body { p = f32[4] parameter(0)
  ROOT q = f32[4] custom-call(p), custom_call_target="in_fusion" }
ENTRY e {
  x = f32[4] parameter(0)
  y = (f32[4], f32[2]) custom-call(x), custom_call_target="pair"
  z = f32[4] get-tuple-element(y), index=0
  u = ((f32[4], f32[2]), f32[]) custom-call(z), custom_call_target="nested"
  v = (f32[4], f32[2]) get-tuple-element(u), index=0
  w = f32[4] get-tuple-element(v), index=0
  f = f32[4] fusion(w), kind=kLoop, calls=body
  r = f32[4] all-reduce(f), to_apply=add, replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true
  t = f32[4] all-reduce(r), to_apply=add, replica_groups={{0,1},{2,3}}, channel_id=2, use_global_device_ids=true
  ROOT d = f32[4] custom-call(t), custom_call_target="Sharding", sharding={replicated}
}
"""


def refused(program: Program) -> Error:
    with pytest.raises(UnsupportedError) as caught:
        CheckNeeds().run(program.module)
    return caught.value


def test_everything_that_is_missing_is_in_one_error_with_its_lines() -> None:
    error = refused(hloforge.read(MANY))
    assert isinstance(error, UnregisteredError)
    text = str(error)
    assert text.startswith("<string>:9:3: error: custom_call @pair is not supported")
    assert "<string>:11:3: custom_call @nested" in text and "<string>:6:8: custom_call @in_fusion" in text
    assert "<string>:15:3: stablehlo.all_reduce does not fit one device: it names device 1, the first of 2" in text
    assert "--host-call" in error.hint and "Sharding" not in text


def test_what_the_host_has_and_the_devices_that_run_are_not_missing() -> None:
    program = hloforge.read(MANY)
    declare_host_functions(program.module, ["pair", "nested", "in_fusion"])
    error = refused(program)
    assert str(error.location) == "<string>:15:3" and "--partitions=4" in error.hint
    set_grid(program.module, Grid(1, 4))
    before = str(program.module)
    CheckNeeds().run(program.module)
    assert str(program.module) == before
    set_grid(program.module, Grid(2, 1))
    assert "2 replicas x 1 partitions: it names device 2" in refused(program).message


def test_complex_constants_are_no_obstacle() -> None:
    error = refused(
        hloforge.read("""HloModule m
ENTRY e {
  c = c64[2] constant({(1, 0), (0, 1)})
  ROOT x = c64[2] custom-call(c), custom_call_target="f"
}""")
    )
    assert str(error.location) == "<string>:4:8"


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


@pytest.mark.parametrize(
    ("result", "operation", "why"),
    [
        ("f32[2]", "reduce-scatter(x), dimensions={0}, to_apply=add", r"makes f32\[2\] of f32\[8\], as 4 devices do"),
        ("f32[24]", "all-gather(x), dimensions={0}", r"makes f32\[24\] of f32\[8\], as 3 devices do"),
        ("(f32[8], f32[8])", "all-to-all(x, x)", "exchanges an array with each of 2 devices"),
        ("(f32[8], f32[8])", "all-to-all(x, x), replica_groups={{0,1}}", "names replica 1"),
        ("(f32[8], f32[8])", "all-to-all(x, x), replica_groups={{0,1}}, channel_id=1", "names partition 1"),
    ],
)
def test_a_collective_without_groups_says_by_its_sizes_that_it_is_of_several_devices(
    result: str, operation: str, why: str
) -> None:
    text = f"HloModule m\n{ADD}ENTRY e {{ x = f32[8] parameter(0)\n ROOT y = {result} {operation} }}"
    error = refused(hloforge.read(text))
    assert str(error.location) == "<string>:6:7" and "--replicas" in error.hint
    assert re.search(f"does not fit one device: it {why}", error.message)


def test_many_calls_are_counted_by_their_function() -> None:
    lines = "\n".join(f'  x{n + 1} = f32[4] custom-call(x{n}), custom_call_target="f{n % 2}"' for n in range(40))
    error = refused(hloforge.read(f"HloModule m\nENTRY e {{\n  x0 = f32[4] parameter(0)\n{lines}\n}}"))
    assert error.notes == (
        "<string>:4:3: custom_call @f0, the first of 20",
        "<string>:5:3: custom_call @f1, the first of 20",
    )


PLATFORMS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %platform = stablehlo.constant dense<0> : tensor<i32>
  %y = call @inner({choice}, %x) : (tensor<i32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
func.func private @inner(%platform: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = "stablehlo.case"(%platform) ({{
    %a = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }}, {{
    %b = call @gpu(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }}) : (tensor<i32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
func.func private @gpu(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = stablehlo.custom_call @of_another_platform(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""


def test_a_branch_that_a_constant_may_close_is_left_to_the_passes() -> None:
    module = parse_module(PLATFORMS.format(choice="%platform"))
    for entry in pipeline("cpu")[:8]:
        entry.run(module)
    assert "custom_call" not in str(module)
    CheckNeeds().run(parse_module(PLATFORMS.format(choice="%platform")))


def test_a_branch_that_an_input_chooses_is_not() -> None:
    text = PLATFORMS.format(choice="%n").replace("@main(", "@main(%n: tensor<i32>, ")
    with pytest.raises(UnregisteredError, match="@of_another_platform"):
        CheckNeeds().run(parse_module(text))


@pytest.mark.parametrize(("effect", "is_refused"), [("false", False), ("true", True)])
def test_what_nobody_reads_is_refused_only_for_its_effect(effect: str, is_refused: bool) -> None:
    module = parse_module(f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @f(%x) {{has_side_effect = {effect}}} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.add %0, %0 : tensor<4xf32>
      return %x : tensor<4xf32> }}""")
    if is_refused:
        with pytest.raises(UnregisteredError, match="@f is not supported"):
            CheckNeeds().run(module)
    else:
        CheckNeeds().run(module)


def test_nothing_is_refused_that_the_passes_compute() -> None:
    """Calls that represent operations, annotations, and groups of one on one device."""
    module = parse_module("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @mhlo.erf(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.custom_call @MoveToHost(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "stablehlo.all_reduce"(%1) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
      return %2 : tensor<4xf32> }""")
    CheckNeeds().run(module)
