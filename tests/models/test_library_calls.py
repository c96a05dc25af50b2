"""What optimized programs call libraries for: cuBLAS, cuDNN, CUB and oneDNN, judged by JAX's CPU client."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import UnsupportedError
from hloforge.importers.reader import read
from hloforge.pipelines.library_calls.decompose_library_calls import DecomposeLibraryCalls
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import shared_reference

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

_NAMES = {"float32": "f32", "bfloat16": "bf16", "complex64": "c64", "float8_e4m3fn": "f8e4m3fn", "int32": "s32"}


def shape(array: Any) -> str:
    return f"{_NAMES[array.dtype.name]}[{','.join(map(str, array.shape))}]"


def call(target: str, result: str, arguments: list[Any], config: dict[str, Any], attributes: str = "") -> Any:
    """What the call computes: the pass's program, run by XLA's client. The first result alone unless there are more."""
    parameters = [f"  p{i} = {shape(a)} parameter({i})" for i, a in enumerate(arguments)]
    operands = ", ".join(f"p{i}" for i in range(len(arguments)))
    body = "\n".join(parameters)
    text = (
        f"HloModule m\n\nENTRY e {{\n{body}\n  ROOT c = {result} custom-call({operands}), "
        f'custom_call_target="{target}"{attributes}, backend_config={json.dumps(config)}\n}}\n'
    )
    program = read(text)
    normalize(program.module)
    DecomposeLibraryCalls().run(program.module)
    return shared_reference("xla").prepare(program)(*map(np.asarray, arguments))


def draw(*dims: int, dtype: Any = "float32") -> Any:
    return np.random.default_rng(sum(dims)).normal(size=dims).astype(dtype)


def gemm(lhs: int, rhs: int, batch: list[str], **others: Any) -> dict[str, Any]:
    numbers = {
        "lhs_contracting_dimensions": [str(lhs)],
        "rhs_contracting_dimensions": [str(rhs)],
        "lhs_batch_dimensions": batch,
        "rhs_batch_dimensions": batch,
    }
    return {"gemm_backend_config": {"alpha_real": 1, "beta": 0, "dot_dimension_numbers": numbers, **others}}


class TestProducts:
    def test_scaled_and_added(self) -> None:
        a, b, c = draw(2, 4, 6), draw(2, 3, 6), draw(2, 4, 3)
        config = gemm(2, 2, ["0"], alpha_real=0.5, beta=2, epilogue="DEFAULT")
        got, _ = call("__cublas$gemm", "(f32[2,4,3], s8[64])", [a, b, c], config)
        np.testing.assert_allclose(got, 0.5 * np.einsum("bij,bkj->bik", a, b) + 2 * c, rtol=1e-5, atol=1e-5)

    def test_configuration_of_older_programs(self) -> None:
        a, b = draw(4, 6), draw(6, 3)
        got = call("__cublas$gemm", "f32[4,3]", [a, b], gemm(1, 0, [])["gemm_backend_config"])
        np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)

    def test_complex_scale(self) -> None:
        a, b = (draw(*d, dtype="complex64") + 1j * draw(*d, dtype="complex64") for d in ((4, 6), (6, 3)))
        got = call("__cublas$gemm", "c64[4,3]", [a, b], gemm(1, 0, [], alpha_real=2, alpha_imag=-1))
        np.testing.assert_allclose(got, (2 - 1j) * (a @ b), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(
        ("epilogue", "function"),
        [("BIAS", lambda x: x), ("BIAS_RELU", jax.nn.relu), ("BIAS_GELU_AUX", jax.nn.gelu), ("BIAS_SILU", jax.nn.silu)],
    )
    def test_epilogue(self, epilogue: str, function: Any) -> None:
        a, b, bias = draw(4, 6), draw(6, 3), draw(3)
        auxiliary = ", f32[4,3]" if epilogue.endswith("AUX") else ""
        result = f"(f32[4,3]{auxiliary}, s8[64])"
        got = call("__cublas$lt$matmul", result, [a, b, bias], gemm(1, 0, [], epilogue=epilogue))
        want = a @ b + bias
        np.testing.assert_allclose(got[0], function(want), rtol=1e-4, atol=1e-5)
        if auxiliary:
            np.testing.assert_allclose(got[1], want, rtol=1e-5, atol=1e-5)

    def test_scales_of_narrow_factors(self) -> None:
        a, b = draw(16, 32).astype(jnp.float8_e4m3fn), draw(32, 16).astype(jnp.float8_e4m3fn)
        scales = [np.float32(0.5), np.float32(3)]
        got, _ = call("__cublas$lt$matmul$f8", "(f32[16,16], s8[64])", [a, b, *scales], gemm(1, 0, []))
        np.testing.assert_allclose(got, 1.5 * (a.astype("f4") @ b.astype("f4")), rtol=1e-5, atol=1e-4)

    def test_narrow_result(self) -> None:
        """As XLA's rewriter finds it: times a scale, cut to the type, and the greatest size before that."""
        a, b = draw(16, 32).astype(jnp.float8_e4m3fn), draw(32, 16).astype(jnp.float8_e4m3fn)
        scales, bias, of_result = [np.float32(0.5), np.float32(3)], draw(16).astype("bfloat16"), np.float32(40)
        config = gemm(1, 0, [], epilogue="BIAS", damax_output=True)
        operands = [a, b, *scales, bias, of_result]
        got, greatest, _ = call("__cublas$lt$matmul$f8", "(f8e4m3fn[16,16], f32[], s8[64])", operands, config)
        want = 1.5 * (a.astype("f4") @ b.astype("f4")) + bias.astype("f4")
        assert (np.abs(want * 40) > 448).any()
        np.testing.assert_allclose(greatest, np.abs(want).max(), rtol=1e-5)
        np.testing.assert_allclose(got.astype("f4"), np.clip(want * 40, -448, 448), rtol=0.07, atol=0.1)

    def test_onednn(self) -> None:
        a, b, bias = draw(2, 4, 6), draw(2, 3, 6), draw(3)
        config = {"onednn_matmul_config": {"transpose_b": True, "fusions": {"ops": ["BIAS", "GELU_ERF"]}}}
        got = call("__onednn$matmul", "f32[2,4,3]", [a, b, bias], config)
        want = jax.nn.gelu(np.einsum("bij,bkj->bik", a, b) + bias, approximate=False)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize(
        ("operands", "epilogue", "message"), [(2, "DRELU_BGRAD", "DRELU_BGRAD"), (3, "DEFAULT", "1 operands more")]
    )
    def test_what_is_not_known_is_refused(self, operands: int, epilogue: str, message: str) -> None:
        arguments = [draw(4, 6), draw(6, 3), draw(3)][:operands]
        with pytest.raises(UnsupportedError, match=message):
            call("__cublas$lt$matmul", "f32[4,3]", arguments, gemm(1, 0, [], epilogue=epilogue))


# Strides, padding, dilation, groups; the dimensions' order.
CONVOLUTIONS = {
    "plain": ((1, 1), ((1, 1), (1, 1)), (1, 1), 1, ("NHWC", "OHWI", "NHWC")),
    "strides": ((2, 3), ((0, 2), (3, 1)), (1, 1), 1, ("NCHW", "OIHW", "NCHW")),
    "dilated": ((1, 2), ((2, 1), (0, 3)), (2, 1), 1, ("NCHW", "OIHW", "NHWC")),
    "groups": ((2, 1), ((1, 0), (2, 1)), (1, 2), 2, ("NHWC", "HWIO", "NHWC")),
}
_LABELS = str.maketrans({"N": "b", "C": "f", "H": "0", "W": "1", "O": "o", "I": "i"})


class Convolution:
    """One of the table as JAX's function, and as attributes of a call."""

    def __init__(self, name: str) -> None:
        stride, padding, dilation, self.groups, labels = CONVOLUTIONS[name]
        sizes = {"N": 2, "C": 4, "H": 9, "W": 8}
        self.x = draw(*(sizes[letter] for letter in labels[0]))
        sizes = {"O": 6, "I": 4 // self.groups, "H": 3, "W": 2}
        self.kernel = draw(*(sizes[letter] for letter in labels[1]))
        self.function = partial(
            lax.conv_general_dilated,
            window_strides=stride,
            padding=padding,
            rhs_dilation=dilation,
            dimension_numbers=labels,
            feature_group_count=self.groups,
        )
        pads = "x".join(f"{low}_{high}" for low, high in padding)
        window = f"size=3x2 stride={stride[0]}x{stride[1]} pad={pads} rhs_dilate={dilation[0]}x{dilation[1]}"
        image, kernel, output = (text.translate(_LABELS) for text in labels)
        self.feature = output.index("f")
        self.attributes = (
            f", window={{{window}}}, dim_labels={image}_{kernel}->{output}, feature_group_count={self.groups}"
        )

    def call(self, target: str, like: Any, arguments: list[Any], **config: Any) -> Any:
        config = {"conv_result_scale": 1, "activation_mode": "kNone", "side_input_scale": 0, **config}
        return call(
            f"__cudnn$conv{target}",
            f"({shape(like)}, u8[16])",
            arguments,
            {"cudnn_conv_backend_config": config},
            self.attributes,
        )[0]


@pytest.mark.parametrize("name", CONVOLUTIONS)
class TestConvolutions:
    def test_forward(self, name: str) -> None:
        one = Convolution(name)
        want = one.function(one.x, one.kernel)
        got = one.call("Forward", want, [one.x, one.kernel])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

    def test_gradients(self, name: str) -> None:
        one = Convolution(name)
        result, pull = jax.vjp(one.function, one.x, one.kernel)
        cotangent = draw(*result.shape)
        for target, arguments, want in zip(
            ("BackwardInput", "BackwardFilter"),
            ([cotangent, one.kernel], [one.x, cotangent]),
            pull(cotangent),
            strict=True,
        ):
            got = one.call(target, want, arguments)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_bias_and_activation(self, name: str) -> None:
        one = Convolution(name)
        plain = one.function(one.x, one.kernel)
        bias, side = draw(6), draw(*plain.shape)
        got = one.call(
            "BiasActivationForward",
            plain,
            [one.x, one.kernel, bias, side],
            conv_result_scale=2,
            side_input_scale=0.5,
            activation_mode="kRelu",
        )
        spread = np.expand_dims(bias, [d for d in range(4) if d != one.feature])
        np.testing.assert_allclose(got, np.maximum(2 * plain + 0.5 * side + spread, 0), rtol=1e-4, atol=1e-4)


def test_radix_sort() -> None:
    keys = np.array([[3, -0.0, 0.0, np.inf, -5, 3]], np.float32)
    values = np.arange(6, dtype=np.int32)[None]
    config = {"descending": True}
    got = call("__cub$DeviceRadixSort", "(f32[1,6], s32[1,6], u8[331])", [keys, values], config)
    np.testing.assert_array_equal(got[0], keys[:, [3, 0, 5, 2, 1, 4]])
    np.testing.assert_array_equal(got[1], [[3, 0, 5, 2, 1, 4]])


@pytest.mark.parametrize(
    ("target", "config"),
    [
        ("xla.gpu.ext.cub_sort_unassigned_scratch_size", {"descending": True}),
        ("xla.gpu.ext.cub_sort_keys", "{descending = true, batch_size = 1 : i64}"),
    ],
)
def test_sorts_by_newer_names(target: str, config: dict[str, object] | str) -> None:
    if isinstance(config, dict):
        attributes = f"backend_config={json.dumps(config)}"
    else:
        attributes = f'api_version=API_VERSION_TYPED_FFI, backend_config="{config}"'
    program = hloforge.read(f"""HloModule m
ENTRY e {{
  x = f32[6] parameter(0)
  c = (f32[6], u8[9]) custom-call(x), custom_call_target="{target}", {attributes}
  ROOT r = f32[6] get-tuple-element(c), index=0
}}""")
    x = np.array([3, -0.0, 0.0, np.inf, -5, 3], np.float32)
    np.testing.assert_array_equal(hloforge.compile(program).load()(x), x[[3, 0, 5, 2, 1, 4]])


def test_a_seed_for_each_run() -> None:
    program = hloforge.read("""HloModule m
ENTRY e {
  a = u64[] custom-call(), custom_call_target="GetRngSeed"
  b = u64[] custom-call(), custom_call_target="GetRngSeed"
  ROOT r = (u64[], u64[]) tuple(a, b)
}""")
    session = hloforge.compile(program).load()
    first, second = session(), session()
    assert first[0] != second[0] and first[1] != second[1]


TOTAL_ORDER = """HloModule m
order {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  mask = s32[] constant(2147483647)
  zero = s32[] constant(0)
  x = s32[] bitcast-convert(a)
  y = s32[] bitcast-convert(b)
  u = s32[] xor(x, mask)
  v = s32[] xor(y, mask)
  p = pred[] compare(x, zero), direction=LT
  q = pred[] compare(y, zero), direction=LT
  k = s32[] select(p, u, x)
  l = s32[] select(q, v, y)
  ROOT c = pred[] compare(k, l), direction=GT
}
ENTRY e {
  p0 = f32[2,9] parameter(0)
  ROOT c = (f32[2,3], s32[2,3]) custom-call(p0), custom_call_target="TopK", called_computations={order}
}
"""


@pytest.mark.parametrize("places_are_compared", [True, False])
def test_largest_by_an_order_that_is_spelled_out(places_are_compared: bool) -> None:
    # So XLA's CPU client leaves the total order of floats. In optimized programs the comparator takes keys alone.
    x = np.array([[0, -0.0, 3, -np.inf, np.inf, 3, -2, 1e-38, 7], np.linspace(-3, 3, 9)], np.float32)
    places_of_both = "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
    assert places_of_both in TOTAL_ORDER
    program = read(TOTAL_ORDER if places_are_compared else TOTAL_ORDER.replace(places_of_both, ""))
    normalize(program.module)
    DecomposeLibraryCalls().run(program.module)
    values, places = shared_reference("xla").prepare(program)(x)
    want, order = lax.top_k(x, 3)
    np.testing.assert_array_equal(values, want)
    np.testing.assert_array_equal(places, order)


def test_softmax_of_rows() -> None:
    x = draw(4, 9)
    got = call("__onednn$softmax", "f32[4,9]", [x], {"onednn_softmax_config": {"softmax_axis": 1}})
    np.testing.assert_allclose(got, jax.nn.softmax(x), rtol=1e-5)


def test_norm_of_rows() -> None:
    x, scale, shift = draw(4, 9), draw(9), draw(9)
    epsilon = int(np.array(1e-3, np.float32).view(np.int32))
    config = {"onednn_layer_norm_config": {"rescale": "SCALE_AND_SHIFT", "epsilon_typecast": epsilon}}
    got = call("__onednn$layernorm", "f32[4,9]", [x, scale, shift], config)
    want = jax.nn.standardize(x, epsilon=1e-3) * scale + shift
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


class TestOneDnnConvolution:
    """In both forms of its configuration: numbers as they are, and one larger."""

    @pytest.mark.parametrize("shift", [0, 1])
    @pytest.mark.parametrize("name", CONVOLUTIONS)
    def test_agrees(self, name: str, shift: int) -> None:
        case = Convolution(name)
        stride, padding, dilation, groups, labels = CONVOLUTIONS[name]
        image, kernel, output = labels

        def data(letters: str) -> dict[str, Any]:
            spatial = [str(letters.index(letter) + shift) for letter in "HW"]
            return {
                "batch_dim": str(letters.index("N")),
                "feature_dim": str(letters.index("C")),
                "spatial_dims": spatial,
            }

        weights = {"input_feature_dim": str(kernel.index("I")), "output_feature_dim": str(kernel.index("O"))}
        weights["spatial_dims"] = [str(kernel.index(letter) + shift) for letter in "HW"]  # type: ignore[assignment]
        window = {
            "pad_left": [str(low + shift) for low, _ in padding],
            "pad_right": [str(high + shift) for _, high in padding],
            "strides": [str(number + shift) for number in stride],
            "window_dilations": [str(number + shift) for number in dilation],
        }
        config = {
            "dims": "4",
            "input": {"data": data(image)},
            "kernel": {"filter": weights},
            "output": {"data": data(output)},
            "window": window,
            "feature_groups": str(groups),
            "fusions": {"ops": ["BIAS", "LINEAR", "RELU"], "alpha": [0.5]},
        }
        bias = draw(6)
        want = case.function(case.x, case.kernel)
        spread = bias.reshape([-1 if axis == case.feature else 1 for axis in range(4)])
        arguments = [case.x, case.kernel, bias]
        got = call("__onednn$convolution", shape(want), arguments, {"onednn_conv_config": config})
        np.testing.assert_allclose(got, np.maximum(0.5 * (want + spread), 0), rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize(
        ("config", "message"),
        [({"optimization_config": {"weights_prepacked": True}}, "own order"), ({}, "which dimension")],
    )
    def test_what_is_not_known_is_refused(self, config: dict[str, Any], message: str) -> None:
        case = Convolution("plain")
        with pytest.raises(UnsupportedError, match=message):
            call("__onednn$convolution", "f32[2,9,8,6]", [case.x, case.kernel], {"onednn_conv_config": config})


class TestNorm:
    """cuDNN's layer norm of dimensions after the first."""

    x, scales, shifts, given = draw(6, 4, 2, 1) * 2 + 1, draw(1, 4, 2, 1), draw(1, 4, 2, 1) - 1, draw(6, 4, 2, 1)

    @staticmethod
    def normed(x: Any, scales: Any, shifts: Any) -> Any:
        centred = x - x.mean((1, 2, 3), keepdims=True)
        return centred / jnp.sqrt((centred**2).mean((1, 2, 3), keepdims=True) + 1e-3) * scales + shifts

    def call(self, kind: str, result: str, arguments: list[Any]) -> Any:
        return call("__cudnn$norm", result, arguments, {"cudnn_norm_backend_config": {"epsilon": 1e-3, "kind": kind}})

    def test_result_and_gradient(self) -> None:
        arguments = [self.x, self.scales, self.shifts]
        want, pull = jax.vjp(self.normed, *arguments)
        got, _ = self.call("LAYER_FWD_INFER", "(f32[6,4,2,1], u8[16])", arguments)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        result = "(f32[6,4,2,1], f32[6,1,1,1], f32[6,1,1,1], u8[16])"
        got, means, inverses, _ = self.call("LAYER_FWD_TRAIN", result, arguments)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(means, self.x.mean((1, 2, 3), keepdims=True), rtol=1e-4, atol=1e-5)
        result = "(f32[6,4,2,1], f32[1,4,2,1], f32[1,4,2,1], u8[16])"
        found = self.call("LAYER_BWD", result, [self.x, self.scales, self.given, means, inverses])
        for got, want in zip(found, pull(jnp.asarray(self.given)), strict=False):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)

    def test_another_kind_is_refused(self) -> None:
        with pytest.raises(UnsupportedError, match="RMS_FWD"):
            self.call("RMS_FWD", "(f32[6,4,2,1], u8[16])", [self.x, self.scales, self.shifts])


@pytest.mark.parametrize("is_reverse", [False, True])
def test_running_sums_by_cub(is_reverse: bool) -> None:
    """Along the rows of the array in memory, whose layout is the operand's."""
    sizes = {"vector_length": "1", "row_length": "3", "column_length": "5"}
    config = json.dumps(sizes | {"kind": "SUM", "is_reverse": is_reverse})
    program = hloforge.read(f"""HloModule m
ENTRY e {{
  x = f32[3,5]{{0,1}} parameter(0)
  c = (f32[3,5]{{0,1}}, u8[9]) custom-call(x), custom_call_target="xla.gpu.ext.cub_scan_unassigned_scratch_size",
    operand_layout_constraints={{f32[3,5]{{0,1}}}}, backend_config={config}
  ROOT r = f32[3,5]{{0,1}} get-tuple-element(c), index=0
}}""")
    x = draw(3, 5)
    want = np.cumsum(x[::-1], 0)[::-1] if is_reverse else np.cumsum(x, 0)
    np.testing.assert_allclose(hloforge.compile(program).load()(x), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("whole", "part", "values"),
    [
        ("s64", "u32", np.array([0, -1, 1 << 40, -(1 << 62) + 5])),
        ("u64", "u32", np.array([0, 2**64 - 1, 1 << 40, 7], np.uint64)),
        ("f64", "f32", np.array([0.1, -1 / 3, 1e30, np.inf])),
    ],
)
def test_numbers_of_64_bits_as_two(whole: str, part: str, values: Any) -> None:
    program = hloforge.read(f"""HloModule m
ENTRY e {{
  x = {whole}[4] parameter(0)
  l = {part}[4] custom-call(x), custom_call_target="X64SplitLow"
  h = {part}[4] custom-call(x), custom_call_target="X64SplitHigh"
  y = {whole}[4] custom-call(l, h), custom_call_target="X64Combine"
  ROOT r = ({part}[4], {part}[4], {whole}[4]) tuple(l, h, y)
}}""")
    low, high, both = hloforge.compile(program).load()(values)
    if part == "u32":
        bits = values.view(np.uint64)
        np.testing.assert_array_equal(low, bits.astype(np.uint32))
        np.testing.assert_array_equal(high, (bits >> np.uint64(32)).astype(np.uint32))
        np.testing.assert_array_equal(both, values)
    else:
        np.testing.assert_array_equal(high, values.astype(np.float32))
        np.testing.assert_allclose(both, values, rtol=2.0**-47)


def test_convolutions_of_any_size() -> None:
    program = hloforge.read("""HloModule m
ENTRY e {
  x = f32[2,7,3] parameter(0)
  k = f32[3,3,4] parameter(1)
  ROOT c = f32[2,4,4] custom-call(x, k), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f,
    custom_call_target="DynamicConvolutionForward"
}""")
    x, k = draw(2, 7, 3), draw(3, 3, 4)
    want = lax.conv_general_dilated(x, k, (2,), [(1, 1)], dimension_numbers=("NWC", "WIO", "NWC"))
    np.testing.assert_allclose(hloforge.compile(program).load()(x, k), want, rtol=1e-5, atol=1e-5)
