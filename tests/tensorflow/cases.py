"""Functions of TensorFlow by name, with arguments: what the sweep compares with TensorFlow itself on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

_RANDOM = np.random.RandomState(7)
X = _RANDOM.randn(4, 6).astype(np.float32)
Y = _RANDOM.randn(4, 6).astype(np.float32)
POSITIVE = (np.abs(X) + 0.5).astype(np.float32)
UNIT = (np.tanh(X) * 0.9).astype(np.float32)
INTEGERS = _RANDOM.randint(-9, 9, (4, 6)).astype(np.int32)
WHOLE = _RANDOM.randint(1, 9, (4, 6)).astype(np.int32)
BOOLEANS = X > 0
COMPLEX = (X + 1j * Y).astype(np.complex64)
DOUBLE = X.astype(np.float64)
SQUARE = (_RANDOM.randn(2, 5, 5) + 4 * np.eye(5)).astype(np.float32)
SYMMETRIC = (SQUARE @ SQUARE.transpose(0, 2, 1)).astype(np.float32)
LOWER = np.tril(SQUARE).astype(np.float32)
IMAGE = _RANDOM.rand(2, 8, 10, 3).astype(np.float32)
VOLUME = _RANDOM.rand(1, 5, 6, 7, 2).astype(np.float32)
SIGNAL = _RANDOM.randn(3, 64).astype(np.float32)
SEQUENCE = _RANDOM.randn(2, 7, 4).astype(np.float32)
KERNEL = _RANDOM.randn(3, 3, 3, 4).astype(np.float32)
LINE = np.array([3, 1, 3, 2, 0, 1], np.float32)
SEGMENTS = np.array([0, 0, 1, 3], np.int32)
LABELS = np.array([1, 0, 3, 2], np.int32)


@dataclass(frozen=True)
class Case:
    """A function and its arguments.

    Attributes:
        tolerance: how far a result may be from TensorFlow's, relative to the largest element.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tolerance: float = 2e-5


def _unary(module: Any, names: str, argument: Any) -> list[Case]:
    prefix = {tf.math: "math", tf.nn: "nn"}[module]
    return [Case(f"{prefix}.{name}", getattr(module, name), (argument,)) for name in names.split()]


def _elementwise() -> list[Case]:
    cases = _unary(tf.math, "abs acosh asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp expm1 floor", UNIT)
    cases += [Case("math.acosh", tf.math.acosh, (POSITIVE + 1,)), Case("math.lgamma", tf.math.lgamma, (POSITIVE,))]
    cases += _unary(tf.math, "log log1p log_sigmoid ndtri reciprocal reciprocal_no_nan rsqrt sqrt", POSITIVE / 4)
    cases += _unary(
        tf.math, "asin acos negative rint round sigmoid sign sin sinh softplus softsign square tan tanh", UNIT
    )
    cases += _unary(tf.math, "is_finite is_inf is_nan is_non_decreasing is_strictly_increasing cumsum cumprod", X)
    cases += _unary(tf.math, "cumulative_logsumexp l2_normalize zero_fraction reduce_logsumexp reduce_std", X)
    cases += _unary(tf.math, "reduce_variance reduce_euclidean_norm reduce_mean reduce_max reduce_prod", X)
    cases += _unary(tf.math, "real imag conj angle abs", COMPLEX)
    cases += _unary(tf.nn, "elu gelu leaky_relu relu relu6 selu silu log_softmax softmax", X)
    unique = {case.name: case for case in cases if case.name not in ("math.acosh", "math.abs")}
    binary = "add subtract multiply divide maximum minimum squared_difference atan2 divide_no_nan floordiv mod"
    for name in binary.split():
        unique[f"math.{name}"] = Case(f"math.{name}", getattr(tf.math, name), (X, Y + 3))
    for name in ("add", "floordiv", "floormod", "maximum", "multiply", "truediv"):
        unique[f"math.{name}_s32"] = Case(f"math.{name}_s32", getattr(tf.math, name), (INTEGERS, WHOLE))
    for name in ("greater", "less_equal", "equal", "not_equal"):
        unique[f"math.{name}"] = Case(f"math.{name}", getattr(tf.math, name), (INTEGERS, WHOLE))
    for name in ("logical_and", "logical_or", "logical_xor"):
        unique[f"math.{name}"] = Case(f"math.{name}", getattr(tf.math, name), (BOOLEANS, Y > 0))
    for name in ("bitwise_and", "bitwise_xor", "left_shift", "right_shift"):
        unique[f"bitwise.{name}"] = Case(f"bitwise.{name}", getattr(tf.bitwise, name), (INTEGERS, WHOLE))
    more = [
        Case("math.abs_c64", tf.math.abs, (COMPLEX,)),
        Case("math.acosh", tf.math.acosh, (POSITIVE + 1,)),
        Case("math.add_n", lambda x, y: tf.math.add_n([x, y, x]), (X, Y)),
        Case("math.betainc", tf.math.betainc, (POSITIVE, POSITIVE + 1, POSITIVE / 9)),
        Case("math.bessel_i0", tf.math.bessel_i0, (X,)),
        Case("math.bincount", lambda x: tf.math.bincount(x, minlength=9, maxlength=9), (WHOLE,)),
        Case("math.confusion_matrix", lambda x: tf.math.confusion_matrix(x, x, num_classes=4), (LABELS,)),
        Case("math.exp_f64", tf.math.exp, (DOUBLE,), 1e-12),
        Case("math.erf_f64", tf.math.erf, (DOUBLE,), 1e-12),
        Case("math.igamma", tf.math.igamma, (POSITIVE, POSITIVE + 1)),
        Case("math.igammac", tf.math.igammac, (POSITIVE, POSITIVE + 1)),
        Case("math.in_top_k", lambda x, y: tf.math.in_top_k(x, y, 2), (LABELS, Y)),
        Case("math.invert_permutation", tf.math.invert_permutation, (LABELS,)),
        Case("math.nextafter", tf.math.nextafter, (X, Y)),
        Case("math.polygamma", tf.math.polygamma, (np.float32(2) + 0 * X, POSITIVE), 1e-4),
        Case("math.pow", tf.math.pow, (POSITIVE, Y)),
        Case("math.pow_s64", tf.math.pow, (INTEGERS.astype(np.int64), 0 * WHOLE.astype(np.int64) + 3)),
        Case("math.reduce_all", tf.math.reduce_all, (BOOLEANS,)),
        Case("math.segment_sum", tf.math.segment_sum, (X, SEGMENTS)),
        Case("math.sobol_sample", lambda: tf.math.sobol_sample(2, 4), ()),
        Case("math.top_k", lambda x: tuple(tf.math.top_k(x, 3)), (X,)),
        Case("math.unsorted_segment_max", lambda x: tf.math.unsorted_segment_max(x, SEGMENTS, 4), (X,)),
        Case("math.unsorted_segment_mean", lambda x: tf.math.unsorted_segment_mean(x, SEGMENTS, 4), (X,)),
        Case("math.xlogy", tf.math.xlogy, (X, POSITIVE)),
        Case("math.zeta", tf.math.zeta, (POSITIVE + 1, POSITIVE), 1e-4),
        Case("math.bf16", lambda x: tf.nn.softmax(tf.cast(x, tf.bfloat16) * 2), (X,), 2e-2),
        Case("quantization.fake_quant", lambda x: tf.quantization.fake_quant_with_min_max_args(x, -2, 2), (X,)),
        Case("clip_by_global_norm", lambda x, y: tf.clip_by_global_norm([x, y], 1.0)[0], (X, Y)),
        Case("clip_by_value", lambda x: tf.clip_by_value(x, -0.5, 0.5), (X,)),
    ]
    return [*unique.values(), *more]


def _shapes() -> list[Case]:
    indices = np.array([[0, 1], [3, 2]], np.int32)
    return [
        Case("argsort", lambda x: tf.argsort(x, axis=1, stable=True), (INTEGERS,)),
        Case("sort", lambda x: tf.sort(x, axis=0, direction="DESCENDING"), (X,)),
        Case("searchsorted", lambda x, y: tf.searchsorted(tf.sort(x), y), (X, Y)),
        Case("argmax", lambda x: (tf.argmax(x, 1), tf.argmin(x, 0)), (X,)),
        Case("batch_to_space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 0], [0, 1]]), (IMAGE.repeat(2, 0),)),
        Case("bitcast", lambda x: tf.bitcast(x, tf.int32), (X,)),
        Case("boolean_mask", lambda x: tf.boolean_mask(x, x > 1), (LINE,)),
        Case("broadcast_to", lambda x: tf.broadcast_to(x, [3, 4, 6]), (X,)),
        Case(
            "cast", lambda x: (tf.cast(x, tf.int32), tf.cast(x, tf.float64), tf.saturate_cast(x * 100, tf.int8)), (X,)
        ),
        Case("concat", lambda x, y: tf.concat([x, y], 1), (X, Y)),
        Case("cond", lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1), (X,)),
        Case("dynamic_partition", lambda x: tf.dynamic_partition(x, SEGMENTS, 4), (X,)),
        Case("dynamic_stitch", lambda x: tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], x[2:]]), (X,)),
        Case("einsum", lambda x, y: tf.einsum("ij,kj->ik", x, y), (X, Y)),
        Case("eye", lambda x: tf.eye(4, 6) + x, (X,)),
        Case("foldl", lambda x: tf.foldl(lambda a, e: a * 0.5 + e, x), (X,)),
        Case("gather", lambda x: tf.gather(x, [2, 0, 3], axis=1), (X,)),
        Case("gather_batch", lambda x, i: tf.gather(x, i, batch_dims=1), (X, WHOLE % 6)),
        Case("gather_nd", lambda x: tf.gather_nd(x, indices), (X,)),
        Case("histogram", lambda x: tf.histogram_fixed_width(x, [-2.0, 2.0], 5), (X,)),
        Case("linspace", lambda x: tf.linspace(0.0, 1.0, 6) * x, (X,)),
        Case("map_fn", lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), (X,)),
        Case("meshgrid", lambda x: tf.meshgrid(x, x), (LINE,)),
        Case("one_hot", lambda x: tf.one_hot(x, 5), (LABELS,)),
        Case("pad", lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), (X,)),
        Case("pad_constant", lambda x: tf.pad(x, [[1, 1], [2, 0]], constant_values=3.0), (X,)),
        Case("range", lambda x: tf.cast(tf.range(6), tf.float32) * x, (X,)),
        Case("repeat", lambda x: tf.repeat(x, 2, axis=0), (X,)),
        Case("reverse", lambda x: tf.reverse(x, [1]), (X,)),
        Case("reverse_sequence", lambda x: tf.reverse_sequence(x, [1, 4, 2, 6], seq_axis=1), (X,)),
        Case("roll", lambda x: tf.roll(x, 2, 1), (X,)),
        Case("scan", lambda x: tf.scan(lambda a, e: a * 0.5 + e, x), (X,)),
        Case("scatter_nd", lambda x: tf.scatter_nd(indices, x[0, :2], [4, 6]), (X,)),
        Case("sequence_mask", lambda x: tf.sequence_mask(x, 5), (LABELS,)),
        Case("slice", lambda x: (x[1:3, ::2], x[..., -1], tf.strided_slice(x, [3, 5], [0, 0], [-1, -2])), (X,)),
        Case("space_to_depth", lambda x: tf.nn.space_to_depth(x, 2), (IMAGE,)),
        Case("split", lambda x: tf.split(x, 3, 1), (X,)),
        Case("squeeze", lambda x: tf.squeeze(x[None, :, None]), (X,)),
        Case("stack", lambda x, y: tf.unstack(tf.stack([x, y], 1), axis=1), (X, Y)),
        Case(
            "switch_case",
            lambda x: tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: -x, lambda: x * 3]),
            (LINE,),
        ),
        Case("tensor_array", _tensor_array, (X,)),
        Case("tensor_scatter_update", lambda x, y: tf.tensor_scatter_nd_update(x, [[1], [2]], y[:2]), (X, Y)),
        Case("tensordot", lambda x, y: tf.tensordot(x, y, [[1], [1]]), (X, Y)),
        Case("tile", lambda x: tf.tile(x, [2, 3]), (X,)),
        Case("transpose", lambda x: tf.transpose(x, [2, 0, 1]), (SEQUENCE,)),
        Case("unique", lambda x: tuple(tf.unique(x)), (LINE,)),
        Case("unique_with_counts", lambda x: tuple(tf.unique_with_counts(x)), (LINE,)),
        Case("unravel_index", lambda x: tf.unravel_index(x, [2, 3]), (LABELS,)),
        Case("vectorized_map", lambda x: tf.vectorized_map(lambda row: tf.reduce_sum(row) * row, x), (X,)),
        Case("where", lambda x, y: tf.where(x > y, x, y), (X, Y)),
        Case("where_indices", lambda x: tf.where(x > 1), (LINE,)),
        Case("while_loop", _newton, (POSITIVE,)),
        Case("ragged", lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 2, 3]).to_tensor(), (LINE,)),
        Case("gradient", _gradient, (X, Y)),
        Case("hessian", _hessian, (LINE,)),
        Case("jacobian", _jacobian, (LINE,)),
        Case("custom_gradient", _own_gradient, (X,)),
    ]


def _tensor_array(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 4)
    for i in tf.range(4):
        array = array.write(i, x[i] * tf.cast(i, tf.float32))
    return array.stack()


def _newton(x: Any) -> Any:
    return tf.while_loop(lambda i, r: i < 6, lambda i, r: (i + 1, 0.5 * (r + x / r)), (0, x))[1]


def _gradient(x: Any, y: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        loss = tf.reduce_sum(tf.tanh(tf.matmul(x, y, transpose_b=True)) ** 2)
    return tape.gradient(loss, [x, y])


def _hessian(x: Any) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(tf.sin(x) * x)
        slope = inner.gradient(loss, x)
    return outer.gradient(slope, x)


def _jacobian(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = tf.cumsum(x**2)
    return tape.jacobian(result, x)


@tf.custom_gradient
def _clipped(x: Any) -> Any:
    return tf.nn.relu(x), lambda upstream: upstream * 0.5


def _own_gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(_clipped(x))
    return tape.gradient(loss, x)


def _linalg() -> list[Case]:
    linalg = tf.linalg
    return [
        Case("linalg.adjoint", linalg.adjoint, (COMPLEX,)),
        Case("linalg.band_part", lambda x: linalg.band_part(x, 1, 2), (SQUARE,)),
        Case("linalg.cholesky", linalg.cholesky, (SYMMETRIC,)),
        Case(
            "linalg.cholesky_solve",
            lambda c, x: linalg.cholesky_solve(c, x),
            (LOWER + 5 * np.eye(5, dtype="f"), SQUARE),
        ),
        Case("linalg.cross", lambda x, y: linalg.cross(x[:, :3], y[:, :3]), (X, Y)),
        Case("linalg.det", linalg.det, (SQUARE,)),
        Case("linalg.diag", lambda x: (linalg.diag(x), linalg.diag_part(linalg.diag(x))), (LINE,)),
        Case("linalg.eig", linalg.eig, (SQUARE,)),
        Case("linalg.eigh", linalg.eigvalsh, (SYMMETRIC,), 1e-4),
        Case("linalg.expm", linalg.expm, (SQUARE / 8,)),
        Case("linalg.inv", linalg.inv, (SQUARE,), 1e-4),
        Case("linalg.logdet", linalg.logdet, (SYMMETRIC,)),
        Case("linalg.lstsq", lambda a, b: linalg.lstsq(a, b), (SQUARE[:, :, :3], SQUARE[:, :, 3:]), 1e-3),
        Case("linalg.lu", lambda x: linalg.lu(x)[0], (SQUARE,)),
        Case("linalg.matmul", linalg.matmul, (SQUARE, SYMMETRIC)),
        Case("linalg.matmul_f64", linalg.matmul, (SQUARE.astype("d"), SYMMETRIC.astype("d")), 1e-12),
        Case("linalg.matmul_c64", lambda x: linalg.matmul(x, x, adjoint_b=True), (COMPLEX,)),
        Case("linalg.matmul_s32", lambda x, y: linalg.matmul(x, y, transpose_b=True), (INTEGERS, WHOLE)),
        Case("linalg.matrix_rank", linalg.matrix_rank, (SQUARE,)),
        Case("linalg.matvec", lambda a, x: linalg.matvec(a, x), (SQUARE, SQUARE[:, 0])),
        Case("linalg.norm", lambda x: (linalg.norm(x), linalg.norm(x, ord=1, axis=1)), (X,)),
        Case("linalg.pinv", linalg.pinv, (SQUARE,), 1e-3),
        Case("linalg.qr", lambda x: tf.abs(linalg.qr(x)[1]), (SQUARE,), 1e-4),
        Case("linalg.set_diag", lambda x: linalg.set_diag(x, x[:, 0] * 2), (SQUARE,)),
        Case("linalg.slogdet", lambda x: tuple(linalg.slogdet(x)), (SQUARE,)),
        Case("linalg.solve", linalg.solve, (SQUARE, SYMMETRIC), 1e-4),
        Case("linalg.svd", lambda x: linalg.svd(x, compute_uv=False), (SQUARE,), 1e-4),
        Case("linalg.trace", linalg.trace, (SQUARE,)),
        Case("linalg.triangular_solve", linalg.triangular_solve, (LOWER + 5 * np.eye(5, dtype="f"), SQUARE)),
        Case("linalg.tridiagonal_solve", lambda d, x: linalg.tridiagonal_solve(d, x), (_DIAGONALS, SQUARE[0])),
    ]


_DIAGONALS = np.add(_RANDOM.rand(3, 5), [[0.0], [3.0], [0.0]]).astype(np.float32)


def _images() -> list[Case]:
    image = tf.image
    cases = [
        Case(f"image.resize_{method}", lambda x, method=method: image.resize(x, (5, 13), method), (IMAGE,))
        for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic")
    ]
    boxes = np.array([[0, 0, 0.9, 0.9], [0.1, 0.1, 0.6, 0.7]], np.float32)
    return [
        *cases,
        Case("image.resize_antialias", lambda x: image.resize(x, (4, 5), antialias=True), (IMAGE,)),
        Case("image.adjust_brightness", lambda x: image.adjust_brightness(x, 0.2), (IMAGE,)),
        Case("image.adjust_contrast", lambda x: image.adjust_contrast(x, 2.0), (IMAGE,)),
        Case("image.adjust_gamma", lambda x: image.adjust_gamma(x, 0.7), (IMAGE,)),
        Case("image.adjust_hue", lambda x: image.adjust_hue(x, 0.2), (IMAGE,), 1e-4),
        Case("image.adjust_saturation", lambda x: image.adjust_saturation(x, 0.5), (IMAGE,), 1e-4),
        Case("image.central_crop", lambda x: image.central_crop(x, 0.5), (IMAGE,)),
        Case("image.crop_and_resize", lambda x: image.crop_and_resize(x, boxes, [0, 1], (4, 4)), (IMAGE,)),
        Case("image.crop_to_box", lambda x: image.crop_to_bounding_box(x, 1, 2, 4, 5), (IMAGE,)),
        Case(
            "image.extract_patches",
            lambda x: image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
            (IMAGE,),
        ),
        Case("image.flip", lambda x: (image.flip_left_right(x), image.flip_up_down(x)), (IMAGE,)),
        Case("image.grayscale_to_rgb", lambda x: image.grayscale_to_rgb(x[..., :1]), (IMAGE,)),
        Case("image.hsv", lambda x: image.hsv_to_rgb(image.rgb_to_hsv(x)), (IMAGE,), 1e-4),
        Case("image.image_gradients", lambda x: image.image_gradients(x), (IMAGE,)),
        Case("image.non_max_suppression", lambda b: image.non_max_suppression(b, [0.9, 0.8], 2), (boxes,)),
        Case("image.pad_to_box", lambda x: image.pad_to_bounding_box(x, 1, 2, 12, 14), (IMAGE,)),
        Case("image.per_image_standardization", image.per_image_standardization, (IMAGE,)),
        Case("image.psnr", lambda x: image.psnr(x, x * 0.9, 1.0), (IMAGE,)),
        Case("image.resize_with_pad", lambda x: image.resize_with_pad(x, 6, 6), (IMAGE,)),
        Case("image.rgb_to_grayscale", image.rgb_to_grayscale, (IMAGE,)),
        Case("image.rgb_to_yuv", lambda x: image.yuv_to_rgb(image.rgb_to_yuv(x)), (IMAGE,), 1e-4),
        Case("image.rot90", image.rot90, (IMAGE,)),
        Case("image.sobel_edges", image.sobel_edges, (IMAGE,)),
        Case("image.ssim", lambda x: image.ssim(x, x * 0.9, 1.0, filter_size=5), (IMAGE,), 1e-4),
        Case("image.total_variation", image.total_variation, (IMAGE,)),
        Case("image.transpose", image.transpose, (IMAGE,)),
    ]


def _networks() -> list[Case]:
    nn = tf.nn
    depthwise = KERNEL[:, :, :, :2]
    return [
        Case("nn.atrous_conv2d", lambda x, k: nn.atrous_conv2d(x, k, 2, "SAME"), (IMAGE, KERNEL)),
        Case("nn.avg_pool", lambda x: nn.avg_pool2d(x, 3, 2, "SAME"), (IMAGE,)),
        Case(
            "nn.batch_normalization",
            lambda x: nn.batch_normalization(x, *nn.moments(x, [0, 1, 2]), None, None, 1e-3),
            (IMAGE,),
        ),
        Case("nn.bias_add", lambda x: nn.bias_add(x, tf.constant([1.0, 2.0, 3.0])), (IMAGE,)),
        Case("nn.conv1d", lambda x: nn.conv1d(x, tf.ones((3, 4, 2)), 2, "SAME"), (SEQUENCE,)),
        Case("nn.conv2d", lambda x, k: nn.conv2d(x, k, 2, "SAME"), (IMAGE, KERNEL)),
        Case(
            "nn.conv2d_transpose",
            lambda x, k: nn.conv2d_transpose(x, tf.transpose(k, [0, 1, 3, 2]), [2, 16, 20, 4], 2),
            (IMAGE, KERNEL),
        ),
        Case("nn.conv3d", lambda x: nn.conv3d(x, tf.ones((2, 3, 3, 2, 3)), [1, 1, 2, 1, 1], "SAME"), (VOLUME,)),
        Case("nn.crelu", nn.crelu, (X,)),
        Case("nn.ctc_loss", _ctc, (SEQUENCE,)),
        Case("nn.depthwise_conv2d", lambda x, k: nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME"), (IMAGE, depthwise)),
        Case(
            "nn.dilation2d",
            lambda x: nn.dilation2d(x, tf.ones((3, 3, 3)), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
            (IMAGE,),
        ),
        Case("nn.dropout_0", lambda x: nn.dropout(x, 0.0), (X,)),
        Case("nn.embedding_lookup", lambda x: nn.embedding_lookup(x, [[0, 3], [1, 1]]), (X,)),
        Case("nn.fractional_avg_pool", lambda x: nn.fractional_avg_pool(x, [1, 1.5, 1.5, 1], seed=3)[0], (IMAGE,)),
        Case("nn.isotonic_regression", lambda x: nn.isotonic_regression(x)[0], (X,)),
        Case("nn.l2_loss", nn.l2_loss, (X,)),
        Case("nn.local_response_normalization", nn.local_response_normalization, (IMAGE,)),
        Case("nn.log_poisson_loss", lambda x, y: nn.log_poisson_loss(x, y), (POSITIVE, Y)),
        Case("nn.max_pool", lambda x: nn.max_pool2d(x, 3, 2, "SAME"), (IMAGE,)),
        Case("nn.max_pool3d", lambda x: nn.max_pool3d(x, 2, 2, "SAME"), (VOLUME,)),
        Case("nn.max_pool_gradient", _pool_gradient, (IMAGE,)),
        Case("nn.max_pool_with_argmax", lambda x: tuple(nn.max_pool_with_argmax(x, 2, 2, "VALID")), (IMAGE,)),
        Case("nn.conv_gradient", _conv_gradient, (IMAGE, KERNEL)),
        Case("nn.moments", lambda x: nn.moments(x, [0, 1]), (IMAGE,)),
        Case(
            "nn.separable_conv2d",
            lambda x, k: nn.separable_conv2d(x, k, tf.ones((1, 1, 6, 5)), [1, 1, 1, 1], "SAME"),
            (IMAGE, depthwise),
        ),
        Case("nn.sigmoid_cross_entropy", lambda x, y: nn.sigmoid_cross_entropy_with_logits(x, y), (POSITIVE / 4, Y)),
        Case("nn.softmax_cross_entropy", lambda x, y: nn.softmax_cross_entropy_with_logits(nn.softmax(x), y), (X, Y)),
        Case("nn.sparse_softmax_cross_entropy", lambda x: nn.sparse_softmax_cross_entropy_with_logits(LABELS, x), (X,)),
        Case("nn.space_to_batch", lambda x: nn.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), (IMAGE,)),
        Case("nn.weighted_moments", lambda x, y: nn.weighted_moments(x, [0], y), (X, POSITIVE)),
    ]


def _ctc(x: Any) -> Any:
    logits = tf.transpose(x, [1, 0, 2])
    return tf.nn.ctc_loss([[1, 2], [3, 1]], logits, [2, 2], [7, 6], blank_index=0)


def _pool_gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.nn.max_pool2d(x, 3, 2, "SAME") ** 2 + tf.nn.avg_pool2d(x, 3, 2, "SAME") ** 2)
    return tape.gradient(loss, x)


def _conv_gradient(x: Any, kernel: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, kernel])
        loss = tf.reduce_sum(tf.nn.conv2d(x, kernel, 2, "SAME") ** 2)
    return tape.gradient(loss, [x, kernel])


def _signals() -> list[Case]:
    signal = tf.signal
    return [
        Case("signal.dct", lambda x: signal.idct(signal.dct(x)), (SIGNAL,), 1e-4),
        Case("signal.fft", signal.fft, (COMPLEX,)),
        Case("signal.fft2d", lambda x: signal.ifft2d(signal.fft2d(x)), (COMPLEX,)),
        Case("signal.fft3d", lambda x: signal.fft3d(tf.cast(x, tf.complex64)), (SEQUENCE,)),
        Case("signal.fftshift", signal.fftshift, (X,)),
        Case("signal.frame", lambda x: signal.frame(x, 16, 8), (SIGNAL,)),
        Case("signal.hann_window", lambda x: x * signal.hann_window(64), (SIGNAL,)),
        Case("signal.kaiser_window", lambda x: x * signal.kaiser_window(64), (SIGNAL,)),
        Case("signal.mel", lambda x: x[:, :33] @ signal.linear_to_mel_weight_matrix(8, 33), (SIGNAL,), 1e-4),
        Case("signal.mdct", lambda x: signal.mdct(x, 16), (SIGNAL,), 1e-4),
        Case("signal.overlap_and_add", lambda x: signal.overlap_and_add(signal.frame(x, 16, 8), 8), (SIGNAL,)),
        Case("signal.rfft", lambda x: signal.irfft(signal.rfft(x)), (SIGNAL,)),
        Case("signal.rfft_odd", lambda x: signal.rfft(x[:, :15]), (SIGNAL,)),
        Case("signal.rfft2d", lambda x: signal.rfft2d(x), (SIGNAL,)),
        Case("signal.stft", lambda x: signal.stft(x, 16, 8), (SIGNAL,)),
        Case("signal.inverse_stft", lambda x: signal.inverse_stft(signal.stft(x, 16, 8), 16, 8), (SIGNAL,)),
    ]


def _others() -> list[Case]:
    return [
        Case(
            "sparse.dense",
            lambda x: tf.sparse.to_dense(tf.sparse.SparseTensor([[0, 1], [2, 3]], x[0, :2], [4, 6])),
            (X,),
        ),
        Case(
            "sparse.matmul", lambda x: tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(x), x, adjoint_b=True), (X,)
        ),
        Case("strings.as_string", tf.strings.as_string, (X,)),
        Case("strings.to_number", lambda x: tf.strings.to_number("3") + x, (X,)),
        Case("debugging.assert_positive", _asserted, (POSITIVE,)),
        Case("print", _printed, (X,)),
        Case("numpy_function", lambda x: tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), [4, 6]), (X,)),
        Case("py_function", lambda x: tf.ensure_shape(tf.py_function(tf.sin, [x], tf.float32), [4, 6]), (X,)),
        Case("random.stateless_uniform", lambda x: x + tf.random.stateless_uniform((4, 6), [1, 2]), (X,)),
        Case(
            "random.stateless_normal_philox",
            lambda x: x + tf.random.stateless_normal((4, 6), [1, 2], alg="philox"),
            (X,),
        ),
        Case("random.uniform", lambda x: x + tf.random.uniform((4, 6)), (X,)),
        # In which order is drawn anew in each call.
        Case("random.shuffle", lambda x: tf.sort(tf.random.shuffle(x), axis=0), (X,)),
        Case("audio.decode_wav", lambda x: tf.audio.encode_wav(x, 8000), (X,)),
        Case("io.decode_raw", lambda x: tf.io.decode_raw("ab", tf.uint8), (X,)),
    ]


def _asserted(x: Any) -> Any:
    tf.debugging.assert_positive(x)
    return x + 1


def _printed(x: Any) -> Any:
    tf.print(x)
    return x + 1


def operators() -> list[Case]:
    """All functions but the layers of Keras."""
    groups = (_elementwise, _shapes, _linalg, _images, _networks, _signals, _others)
    cases = [case for group in groups for case in group()]
    assert len({case.name for case in cases}) == len(cases)
    return cases
