"""TransformerEngine's products of matrices against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from tests.pipelines.library_calls.ffi_calls import run, shape

jax = pytest.importorskip("jax")

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
NOTHING = np.zeros(0, np.float32)


def draw(*dims: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(dims)).normal(size=dims).astype(dtype)


def config(**more: Any) -> dict[str, Any]:
    return {
        "scaling_mode": 0,
        "collective_op": 0,
        "lhs_axis_boundary": 1,
        "rhs_axis_boundary": 1,
        "lhs_transposed": False,
        "rhs_transposed": False,
        "use_split_accumulator": False,
        **more,
    }


def before_2_14(**more: Any) -> dict[str, Any]:
    return {**config(), "fuse_bias": False, "fuse_gelu": False, "grad": False, **more}


class TestProducts:
    def test_dimensions_before_and_after_a_boundary(self) -> None:
        lhs, rhs, bias = draw(2, 3, 4, 5), draw(4, 5, 6), draw(6)
        settings = {"config": config(lhs_axis_boundary=2, rhs_axis_boundary=2)}
        ones = np.ones(1, np.float32)
        operands = [lhs, NOTHING, rhs, NOTHING, bias, ones, ones]
        got, _ = run("te_gemm_v2_ffi", ["f32[2,3,6]", "u8[64]"], operands, settings)
        np.testing.assert_allclose(got, np.einsum("abij,ijn->abn", lhs, rhs) + bias, **CLOSE)

    def test_turned(self) -> None:
        lhs, rhs = draw(5, 3, dtype=BF16), draw(7, 5, dtype=BF16)
        settings = before_2_14(lhs_transposed=True, rhs_transposed=True)
        operands = [lhs, NOTHING, rhs, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING]
        results = ["bf16[3,7]", "bf16[0]", "bf16[0]", "u8[64]"]
        got, *_ = run("te_gemm_ffi", results, operands, settings)
        np.testing.assert_allclose(got.astype(float), lhs.T.astype(float) @ rhs.T.astype(float), rtol=1e-2, atol=1e-2)

    def test_activation(self) -> None:
        lhs, rhs, bias = draw(3, 5), draw(5, 4), draw(4)
        settings = before_2_14(fuse_bias=True, fuse_gelu=True)
        results = ["f32[3,4]", "f32[4]", "f32[3,4]", "f32[0]", "f32[0]", "u8[64]"]
        got, _, before, *_ = run("te_gemm_ffi", results, [lhs, NOTHING, rhs, NOTHING, bias, draw(3, 4)], settings)
        np.testing.assert_allclose(before, lhs @ rhs + bias, **CLOSE)
        np.testing.assert_allclose(got, jax.nn.gelu(lhs @ rhs + bias), rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("mode", [1, 3])
    def test_scales_of_8_bits(self, mode: int) -> None:
        lhs, rhs = draw(16, 32, dtype=E4M3), draw(8, 32, dtype=E4M3)
        scales = [np.full(1, 0.25, np.float32), np.full(1, 3, np.float32)]
        settings = {"config": config(scaling_mode=mode, rhs_transposed=True)}
        operands = [lhs, scales[0], rhs, scales[1], NOTHING, NOTHING, NOTHING]
        got, _ = run("te_gemm_v2_ffi", ["f32[16,8]", "u8[64]"], operands, settings)
        np.testing.assert_allclose(got, 0.75 * (lhs.astype(float) @ rhs.T.astype(float)), rtol=1e-5, atol=1e-4)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"scaling_mode": 2}, "depends on the release"),
            ({"scaling_mode": 4}, "scaling mode 4"),
            ({"collective_op": 1}, "other devices"),
        ],
    )
    def test_what_is_not_known_is_refused(self, more: dict[str, Any], message: str) -> None:
        operands = [draw(4, 4), NOTHING, draw(4, 4), NOTHING, NOTHING, NOTHING, NOTHING]
        with pytest.raises(UnsupportedError, match=message):
            run("te_gemm_v2_ffi", ["f32[4,4]", "u8[64]"], operands, {"config": config(**more)})


COUNTS = np.array([3, 0, 4], np.int32)
ROWS = [slice(0, 3), slice(3, 3), slice(3, 7)]


class TestGroups:
    """Seven rows in groups of 3, 0 and 4; before release 2.15 and since."""

    @staticmethod
    def operands(lhs: Any, rhs: Any, biases: Any, place: int | None) -> list[Any]:
        """The sizes of groups stand in one place of six since release 2.15."""
        empty = np.zeros(0, np.int32)
        sizes = [COUNTS] if place is None else [COUNTS if n == place else empty for n in range(6)]
        return [lhs, NOTHING, rhs, NOTHING, biases, *sizes, empty]

    @staticmethod
    def settings(
        turned: tuple[bool, bool], is_summed: bool, place: int | None, sizes: dict[str, int]
    ) -> dict[str, Any]:
        common = {"scaling_mode": 0, "lhs_is_trans": turned[0], "rhs_is_trans": turned[1], "has_bias": not is_summed}
        common["use_async_d2h_group_sizes"] = True
        if place is None:
            return {
                **common,
                "M": 5 if is_summed else 7,
                "N": 6,
                "K": 7 if is_summed else 5,
                "is_grouped_dense_wgrad": is_summed,
            }
        return {**common, "lhs_axis_boundary": 1, "rhs_axis_boundary": 1, **sizes}

    @pytest.mark.parametrize("place", [None, 0])
    @pytest.mark.parametrize("turned", [False, True])
    def test_rows_times_a_matrix_for_each(self, turned: bool, place: int | None) -> None:
        lhs, rhs, biases = draw(7, 5), draw(3, 5, 6), draw(3, 6)
        sizes = {"lhs_left_size": 7, "lhs_right_size": 5}
        sizes |= {"rhs_left_size": 18, "rhs_right_size": 5} if turned else {"rhs_left_size": 15, "rhs_right_size": 6}
        given = rhs.swapaxes(1, 2) if turned else rhs
        settings = self.settings((False, turned), False, place, sizes)
        operands = self.operands(lhs, np.ascontiguousarray(given), biases, place)
        got, _ = run("te_grouped_gemm_ffi", ["f32[7,6]", "u8[64]"], operands, settings)
        want = np.concatenate([lhs[rows] @ rhs[g] + biases[g] for g, rows in enumerate(ROWS)])
        np.testing.assert_allclose(got, want, **CLOSE)

    @pytest.mark.parametrize("place", [None, 2])
    def test_rows_of_both_summed(self, place: int | None) -> None:
        lhs, rhs = draw(7, 5), draw(7, 6)
        sizes = {"lhs_left_size": 7, "lhs_right_size": 5, "rhs_left_size": 7, "rhs_right_size": 6}
        settings = self.settings((True, False), True, place, sizes)
        operands = self.operands(lhs, rhs, NOTHING, place)
        got, _ = run("te_grouped_gemm_ffi", ["f32[3,5,6]", "u8[64]"], operands, settings)
        np.testing.assert_allclose(got, np.stack([lhs[rows].T @ rhs[rows] for rows in ROWS]), **CLOSE)

    def test_sizes_on_the_host(self) -> None:
        (got,) = run("te_grouped_gemm_d2h_group_sizes_ffi", [shape(COUNTS)], [COUNTS], {"num_gemms": 3})
        np.testing.assert_array_equal(got, COUNTS)

    def test_8_bits_are_refused(self) -> None:
        settings = {**self.settings((False, False), False, None, {}), "scaling_mode": 1}
        operands = self.operands(draw(7, 5, dtype=E4M3), draw(3, 5, 6, dtype=E4M3), draw(3, 6), None)
        with pytest.raises(UnsupportedError, match="which groups"):
            run("te_grouped_gemm_ffi", ["f32[7,6]", "u8[64]"], operands, settings)
