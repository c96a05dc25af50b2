"""Calls that nothing computes: one located error that says what is known of them, unless a function is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnregisteredError, UnsupportedError
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.pipelines.library_calls.ffi_calls import program, run

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("te_scaled_softmax_forward", "bytes of a C structure"),
        ("te_permute_with_mask_map_triton", "GPU kernel"),
        ("__gpu$xla.gpu.triton", "GPU kernel"),
        ("te_ep_dispatch_ffi", "NCCL"),
        ("te_grouped_quantize_ffi", "quantized each"),
        ("__cudnn$fmhaSoftmaxF8", "rounds to 8 bits"),
        ("InvertDiagBlocksLowerTriangular", "TPUs"),
    ],
)
def test_what_is_known(target: str, message: str) -> None:
    with pytest.raises(UnregisteredError) as caught:
        compile_program(program(target, ["f32[2,4]"], [X], "{}"))
    assert message in str(caught.value.hint)
    assert caught.value.location


@pytest.mark.parametrize(
    ("target", "configuration"),
    [
        ("te_fused_attn_forward_ffi", {"qkv_layout": 9, "mask_type": 0, "bias_type": 0, "scaling_factor": 1.0}),
        ("te_norm_forward_ffi", {"norm_type": 0, "epsilon": 1e-3}),
        ("te_topk_ffi", {"k_value": "many"}),
        ("__cudnn$norm", '{"cudnn_norm_backend_config": {"epsilon": "small"}}'),
    ],
)
def test_a_call_of_another_form_is_one_error(target: str, configuration: Any) -> None:
    with pytest.raises(
        UnsupportedError, match=r"a form that hloforge does not know \(1 operands and 1 results\)"
    ) as caught:
        run(target, ["f32[2,4]"], [X], configuration)
    assert caught.value.location


def test_a_function_of_the_host_computes_it() -> None:
    options = CompileOptions(host_calls=frozenset({"te_rht_amax_ffi"}))
    executable = compile_program(program("te_rht_amax_ffi", ["f32[2,4]"], [X], {}), options=options)
    np.testing.assert_array_equal(executable.load(host={"te_rht_amax_ffi": lambda x: x * 2})(X), X * 2)


def test_largest_numbers_of_rows() -> None:
    rows = np.random.default_rng(0).permutation(24).reshape(2, 12).astype(np.float32)
    lengths = np.array([12, 7], np.int32)
    values, places, _ = run("te_topk_ffi", ["f32[2,3]", "s32[2,3]", "u8[8]"], [rows, lengths], {"k_value": 3})
    for row, length, found, where in zip(rows, lengths, values, places, strict=True):
        assert sorted(found) == sorted(row[:length])[-3:]
        np.testing.assert_array_equal(row[where], found)
