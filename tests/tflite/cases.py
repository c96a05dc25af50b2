"""Functions of TensorFlow by category. Each becomes outputs of one model that TFLite's converter writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# The inputs that cases choose from by name.
RANDOM = np.random.default_rng(0)
INPUTS: dict[str, Any] = {
    "image": RANDOM.normal(size=(2, 9, 8, 4)).astype(np.float32),
    "x": RANDOM.normal(size=(3, 4, 5)).astype(np.float32),
    "y": RANDOM.normal(size=(3, 4, 5)).astype(np.float32) + 0.1,
    "row": RANDOM.normal(size=(5,)).astype(np.float32),
    "positive": RANDOM.uniform(0.2, 3, size=(3, 4, 5)).astype(np.float32),
    "i": RANDOM.integers(-9, 9, size=(3, 4, 5)).astype(np.int32),
    "j": RANDOM.integers(1, 5, size=(3, 4, 5)).astype(np.int32),
    "p": RANDOM.integers(0, 2, size=(3, 4, 5)).astype(np.bool_),
    "q": RANDOM.integers(0, 2, size=(3, 4, 5)).astype(np.bool_),
    "places": RANDOM.integers(0, 3, size=(2, 2)).astype(np.int32),
    "lengths": np.array([2, 4, 1], np.int32),
    "sequence": RANDOM.normal(size=(2, 6, 4)).astype(np.float32),
    "one": np.array(3, np.int32),
    # Two opposite corners of each box.
    "boxes": np.random.default_rng(1).uniform(size=(20, 4)).astype(np.float32),
    "scores": np.random.default_rng(2).uniform(size=20).astype(np.float32),
}


def weights(*dims: int) -> Any:
    """A constant of the model."""
    return np.random.default_rng(sum(dims)).normal(size=dims).astype(np.float32) * 0.3


def categories(tf: Any) -> dict[str, dict[str, Callable[..., Any]]]:
    """Cases by category and name; a case's parameters are named after its inputs."""
    nn, raw, math = tf.nn, tf.raw_ops, tf.math
    return {
        "unary": {
            "abs": lambda x: tf.abs(x),
            "ceil": lambda x: math.ceil(x * 3),
            "cos": lambda x: tf.cos(x),
            "sin": lambda x: tf.sin(x),
            "exp": lambda x: tf.exp(x),
            "floor": lambda x: tf.floor(x * 3),
            "round": lambda x: tf.round(x * 2),
            "sign": lambda x: tf.sign(x),
            "log": lambda positive: math.log(positive),
            "sqrt": lambda positive: tf.sqrt(positive),
            "rsqrt": lambda positive: math.rsqrt(positive),
            "square": lambda x: tf.square(x),
            "neg": lambda x: -x,
            "tanh": lambda x: tf.tanh(x),
            "sigmoid": lambda x: tf.sigmoid(x),
            "relu": lambda x: nn.relu(x),
            "relu6": lambda x: nn.relu6(x * 5),
            "elu": lambda x: nn.elu(x),
            "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
            "leaky_relu": lambda x: nn.leaky_relu(x, 0.3),
            "hard_swish": lambda x: x * nn.relu6(x + 3.0) * 0.16666667,
            "not": lambda p: ~p,
            "to_int": lambda x: tf.cast(x * 3, tf.int32),
            "to_float": lambda i: tf.cast(i, tf.float32),
            "to_bool": lambda i: tf.cast(i, tf.bool),
            "to_long": lambda i: tf.cast(i, tf.int64),
            "abs_int": lambda i: tf.abs(i),
            "zeros": lambda x: tf.zeros_like(x) + x,
            "bucketize": lambda x: raw.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.7]),
        },
        "binary": {
            "add": lambda x, y: x + y,
            "add_row": lambda x, row: x + row,
            "add_relu": lambda x, y: nn.relu(x + y),
            "sub": lambda x, y: x - y,
            "mul": lambda x, y: x * y,
            "div": lambda x, y: x / y,
            "max": lambda x, y: tf.maximum(x, y),
            "min": lambda x, y: tf.minimum(x, y),
            "pow": lambda positive, y: tf.pow(positive, y),
            "atan2": lambda x, y: tf.atan2(x, y),
            "squared_difference": lambda x, y: math.squared_difference(x, y),
            "floor_div": lambda x, y: math.floordiv(x, y),
            "floor_mod": lambda x, y: math.floormod(x, y),
            "add_int": lambda i, j: i + j,
            "floor_div_int": lambda i, j: math.floordiv(i, j),
            "floor_mod_int": lambda i, j: math.floormod(i, j),
            "mul_int": lambda i, j: i * j,
            "and": lambda p, q: p & q,
            "or": lambda p, q: p | q,
            "less": lambda x, y: x < y,
            "less_equal": lambda i, j: i <= j,
            "greater": lambda x, y: x > y,
            "greater_equal": lambda i, j: i >= j,
            "equal": lambda i, j: tf.equal(i, j),
            "not_equal": lambda i, j: tf.not_equal(i, j),
            "select": lambda p, x, y: tf.where(p, x, y),
            "select_row": lambda p, x, row: tf.where(p, x, row),
            "prelu": lambda x, row: nn.relu(x) - nn.relu(-x) * np.float32(0.25) * (row * 0 + 1),
            "add_n": lambda x, y, positive: tf.add_n([x, y, positive]),
            "xor": lambda i, j: tf.bitwise.bitwise_xor(i, j),
            "right_shift": lambda i, j: tf.bitwise.right_shift(i, j),
        },
        "reduction": {
            "mean": lambda x: tf.reduce_mean(x, [1]),
            "mean_image": lambda image: tf.reduce_mean(image, [1, 2], keepdims=True),
            "sum": lambda x: tf.reduce_sum(x, [0, 2]),
            "sum_int": lambda i: tf.reduce_sum(i, 1),
            "prod": lambda x: tf.reduce_prod(x, -1),
            "max": lambda x: tf.reduce_max(x, -1, keepdims=True),
            "min": lambda x: tf.reduce_min(x, [0]),
            "any": lambda p: tf.reduce_any(p, 1),
            "all": lambda p: tf.reduce_all(p, 2),
            "argmax": lambda x: tf.argmax(x, -1),
            "argmin": lambda x: tf.argmin(x, 1, output_type=tf.int32),
            "top_k": lambda x: nn.top_k(x, 3),
            "suppression": lambda boxes, scores: tf.image.non_max_suppression_padded(
                boxes, scores, 30, 0.3, 0.1, pad_to_max_output_size=True
            ),
            "suppression_scores": lambda boxes, scores: tf.raw_ops.NonMaxSuppressionV5(
                boxes=boxes,
                scores=scores,
                max_output_size=4,
                iou_threshold=0.3,
                score_threshold=0.1,
                soft_nms_sigma=0.0,
                pad_to_max_output_size=True,
            ),
            "cumsum": lambda x: tf.cumsum(x, 1),
            "cumsum_exclusive": lambda x: tf.cumsum(x, 2, exclusive=True, reverse=True),
            "softmax": lambda x: nn.softmax(x),
            "softmax_scaled": lambda x: nn.softmax(x * 2.0),
            "log_softmax": lambda x: nn.log_softmax(x),
            "l2_normalize": lambda x: nn.l2_normalize(x, -1),
            "lrn": lambda image: nn.local_response_normalization(image, 2, 1.0, 0.5, 0.75),
            "segment_sum": lambda x, lengths: math.unsorted_segment_sum(x, lengths, 5),
            "segment_max": lambda x, lengths: math.unsorted_segment_max(x, lengths, 5),
        },
        "shape": {
            "reshape": lambda x: tf.reshape(x, [4, -1]),
            "transpose": lambda x: tf.transpose(x, [2, 0, 1]),
            "expand": lambda x: tf.expand_dims(x, 1) * 2.0,
            "squeeze": lambda x: tf.squeeze(x[:, :1] + 1.0, [1]),
            "concat": lambda x, y: tf.concat([x, y], -1),
            "stack": lambda x, y: tf.stack([x, y], 1),
            "unstack": lambda x: tf.unstack(x, axis=1)[2] + 1.0,
            "split": lambda x: tf.split(x, 2, 1),
            "split_sizes": lambda x: tf.split(x, [1, 3, 1], 2),
            "slice": lambda x: tf.slice(x, [1, 0, 2], [2, -1, 3]),
            "slice_at": lambda x, one: tf.slice(x, [0, 0, one - 1], [3, 4, 2]),
            "strided": lambda x: x[1:, ::-2, 1::2],
            "strided_masks": lambda x: x[..., tf.newaxis, 1, :3],
            "strided_shrink": lambda x: x[1, -2],
            "pad": lambda x: tf.pad(x, [[0, 1], [2, 0], [1, 1]]),
            "pad_value": lambda x: tf.pad(x, [[0, 1], [2, 0], [1, 1]], constant_values=2.5),
            "mirror": lambda x: tf.pad(x, [[0, 1], [2, 1], [0, 3]], "REFLECT"),
            "symmetric": lambda x: tf.pad(x, [[0, 1], [2, 1], [0, 3]], "SYMMETRIC"),
            "tile": lambda x: tf.tile(x, [1, 3, 2]),
            "broadcast": lambda row: tf.broadcast_to(row, [2, 3, 5]),
            "reverse": lambda x: tf.reverse(x, [1]),
            "reverse_sequence": lambda x, lengths: tf.reverse_sequence(x, lengths, 1, 0),
            "space_to_depth": lambda image: nn.space_to_depth(image[:, :8], 2),
            "depth_to_space": lambda image: nn.depth_to_space(image, 2),
            "space_to_batch": lambda image: tf.space_to_batch(image, [3, 2], [[0, 0], [1, 1]]),
            "batch_to_space": lambda image: tf.batch_to_space(tf.tile(image, [2, 1, 1, 1]), [2, 2], [[0, 1], [1, 0]]),
            "fill": lambda one: tf.fill([2, 3], one),
            "one_hot": lambda places: tf.one_hot(places, 4, 2.0, -1.0),
            "one_hot_axis": lambda places: tf.one_hot(places, 3, axis=1),
            "diag": lambda row: tf.linalg.diag(row),
            "set_diag": lambda x, y: tf.linalg.set_diag(x, y[:, :, 0]),
            "range": lambda x: tf.cast(tf.range(tf.shape(x)[1]), tf.float32) + x[0, :, 0],
        },
        "indexing": {
            "gather": lambda x, places: tf.gather(x, places, axis=1),
            "gather_batch": lambda x, places: tf.gather(x[:2], places, axis=1, batch_dims=1),
            "gather_nd": lambda x, places: tf.gather_nd(x, places),
            "scatter_nd": lambda x, places: tf.scatter_nd(places, x[0, :2], [4, 3, 5]),
            "embedding": lambda places: tf.gather(weights(7, 3), places),
            "update_slice": lambda x, one: tf.tensor_scatter_nd_update(x[0], [[one]], [x[0, 0]]),
        },
        "convolution": {
            "conv": lambda image: nn.conv2d(image, weights(3, 3, 4, 6), 1, "SAME"),
            "conv_valid": lambda image: nn.conv2d(image, weights(3, 2, 4, 6), [2, 1], "VALID"),
            "conv_same_stride": lambda image: nn.conv2d(image, weights(3, 3, 4, 6), 2, "SAME"),
            "conv_dilated": lambda image: nn.conv2d(image, weights(3, 3, 4, 6), 1, "SAME", dilations=2),
            "conv_bias_relu": lambda image: nn.relu(nn.conv2d(image, weights(1, 1, 4, 6), 1, "SAME") + weights(6)),
            "conv_groups": lambda image: nn.conv2d(image, weights(3, 3, 2, 6), 1, "SAME"),
            "depthwise": lambda image: nn.depthwise_conv2d(image, weights(3, 3, 4, 1), [1, 1, 1, 1], "SAME"),
            "depthwise_two": lambda image: nn.relu6(
                nn.depthwise_conv2d(image, weights(3, 3, 4, 2), [1, 2, 2, 1], "SAME") + weights(8)
            ),
            "depthwise_dilated": lambda image: nn.depthwise_conv2d(
                image, weights(3, 3, 4, 1), [1, 1, 1, 1], "VALID", dilations=[2, 2]
            ),
            "transposed": lambda image: nn.conv2d_transpose(image, weights(3, 3, 5, 4), [2, 18, 16, 5], 2, "SAME"),
            "transposed_valid": lambda image: nn.conv2d_transpose(
                image, weights(3, 2, 5, 4), [2, 19, 16, 5], 2, "VALID"
            ),
            "conv3d": lambda image: nn.conv3d(image[..., tf.newaxis], weights(2, 3, 2, 1, 3), [1] * 5, "SAME"),
            "conv1d": lambda sequence: nn.conv1d(sequence, weights(3, 4, 5), 1, "SAME"),
            "max_pool": lambda image: nn.max_pool2d(image, [3, 2], 2, "SAME"),
            "average_pool": lambda image: nn.avg_pool2d(image, 3, 2, "SAME"),
            "average_pool_valid": lambda image: nn.avg_pool2d(image, [2, 3], 1, "VALID"),
            "dense": lambda x: nn.relu(tf.reshape(x, [3, 20]) @ weights(20, 7) + weights(7)),
            "dense_rows": lambda x: tf.tensordot(x, weights(5, 6), 1),
            "matmul": lambda x, y: tf.matmul(x, y, transpose_b=True),
            "matmul_first": lambda x, y: tf.matmul(x, y, transpose_a=True),
            "bilinear": lambda image: tf.compat.v1.image.resize_bilinear(image, [5, 13]),
            "bilinear_corners": lambda image: tf.compat.v1.image.resize_bilinear(image, [5, 13], align_corners=True),
            "bilinear_half": lambda image: tf.image.resize(image, [17, 5]),
            "nearest": lambda image: tf.compat.v1.image.resize_nearest_neighbor(image, [5, 13]),
            "nearest_corners": lambda image: tf.compat.v1.image.resize_nearest_neighbor(
                image, [5, 13], align_corners=True
            ),
            "nearest_half": lambda image: tf.image.resize(image, [17, 5], "nearest"),
            "rfft2d": lambda x: tf.abs(tf.signal.rfft2d(x, [4, 8])),
            "rfft": lambda x: tf.math.real(tf.signal.rfft(x, [8])),
            "fake_quant": lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.0, 2.0),
        },
        "control": {
            "while": lambda x, one: tf.while_loop(
                lambda n, state: n < one, lambda n, state: (n + 1, state * 1.5 + 0.25), [tf.constant(0), x]
            )[1],
            "if": lambda x, one: tf.cond(one > 2, lambda: x + 1.0, lambda: x * 2.0),
        },
    }
