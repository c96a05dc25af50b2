"""The capability tables speak of every StableHLO operation, of no other, and only of passes that exist."""

from __future__ import annotations

from importlib import import_module

import pytest

from hloforge.dialect.errors import OptionError, PipelineError
from hloforge.dialect.mlir import context, parse_module, stablehlo
from hloforge.dialect.operations import operations
from hloforge.pipelines.capability.capabilities import TABLES, Verdict, capability, decomposing_passes, table
from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.named import stages

OPS = {
    entry.OPERATION_NAME
    for entry in vars(import_module(stablehlo.__name__)).values()
    if isinstance(entry, type) and getattr(entry, "OPERATION_NAME", "").startswith("stablehlo.")
}


@pytest.mark.parametrize("target", TABLES)
class TestTable:
    def test_every_operation_of_stablehlo_has_a_row(self, target: str) -> None:
        assert {row.op for row in table(target)} >= OPS

    def test_every_row_names_an_operation_that_exists(self, target: str) -> None:
        with context() as ctx:
            for row in table(target):
                name = row.op.partition("@")[0]
                assert name.endswith("*") or ctx.is_registered_operation(name), row

    def test_every_decomposing_pass_exists_and_stands_in_the_pipeline(self, target: str) -> None:
        asked = decomposing_passes(target)
        natives = {str(stage.entry) for stage in stages(target) if isinstance(stage.entry, NativePass)}
        assert asked <= set(passes_by_name()) | natives
        assert asked <= {stage.entry.name for stage in stages(target)} | natives

    def test_every_row_that_is_not_native_says_why(self, target: str) -> None:
        for row in table(target):
            assert row.verdict is Verdict.NATIVE or row.reason, row


def verdict(text: str, op: str) -> Verdict:
    module = parse_module(text)
    (found,) = operations(module, {op})
    return capability(found, "cpu").verdict


def test_a_row_for_some_element_types_leaves_the_others_native() -> None:
    text = """func.func @main(%a: tensor<{0}>) -> tensor<{0}> {{
      %r = stablehlo.add %a, %a : tensor<{0}>
      return %r : tensor<{0}> }}"""
    assert verdict(text.format("i1"), "stablehlo.add") is Verdict.DECOMPOSE
    assert verdict(text.format("f32"), "stablehlo.add") is Verdict.NATIVE


def test_quantized_types_are_lowered_by_the_row_for_any_operation() -> None:
    type_ = "tensor<2x!quant.uniform<i8:f32, 1.0>>"
    text = f"func.func @main(%a: {type_}) -> {type_} {{ %r = stablehlo.add %a, %a : {type_} return %r : {type_} }}"
    assert verdict(text, "stablehlo.add") is Verdict.DECOMPOSE


def test_a_target_without_a_table_lists_those_that_have_one() -> None:
    with pytest.raises(OptionError) as caught:
        table("tpu")
    assert "cpu" in caught.value.hint
    with pytest.raises(PipelineError, match="no pipeline is called 'tpu'"):
        stages("tpu")
