"""Products of matrices, and of groups of matrices, as TransformerEngine's JAX functions call them.

Each factor is a matrix of its dimensions before a boundary and the others, perhaps transposed. Factors of 8 bits have
the inverse of the one scale that they were multiplied by.

Source: TransformerEngine ``gemm.h``, ``jax/csrc/extensions/gemm.cpp``, ``jax/cpp_extensions/gemm.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.activations import activated
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target
from hloforge.pipelines.library_calls.te_quantize import one_scale, wide

# JAXX_Scaling_Mode: without scales, or with one for a factor.
_PLAIN, _SCALED = 0, (1, 3)
_BLOCKS = 2


@custom_call_target("te_gemm_ffi")
def product(call: CustomCall) -> list[Value]:
    """lhs, its inverse scale, rhs, its own, bias, [input of the activation, alpha, beta] -> the product, two more."""
    config = {name: call.setting(name, False) for name in _NAMES}
    bias = call.operands[4]
    if config["grad"] and (config["fuse_bias"] or config["fuse_gelu"]):
        raise UnsupportedError(f"@{call.target} fuses the gradient of a bias or an activation, which is not known")
    value = _product(call, config, bias if config["fuse_bias"] else None)
    shapes = call.shapes
    found = activated(value, "gelu_tanh") if config["fuse_gelu"] else value
    results = [_as(found, shapes[0])]
    # The bias passes through; what the activation was of is kept for its gradient.
    results.append(_as(bias, shapes[1]) if config["fuse_bias"] else workspace(shapes[1:2])[0])
    results.append(_as(value, shapes[2]) if config["fuse_gelu"] else workspace(shapes[2:3])[0])
    return [*results, *workspace(shapes[3:])]


@custom_call_target("te_gemm_v2_ffi")
def product_since_2_14(call: CustomCall) -> list[Value]:
    """lhs, its inverse scale, rhs, its own, bias or nothing, alpha, beta -> the product, a workspace."""
    bias = call.operands[4]
    value = _product(call, call.setting("config"), bias if prod(bias.dims) else None)
    shapes = call.shapes
    return [_as(value, shapes[0]), *workspace(shapes[1:])]


_NAMES = (
    *("scaling_mode", "lhs_axis_boundary", "rhs_axis_boundary", "lhs_transposed", "rhs_transposed", "collective_op"),
    *("fuse_bias", "fuse_gelu", "grad", "use_split_accumulator"),
)


def _product(call: CustomCall, config: Mapping[str, Any], bias: Value | None) -> Value:
    """f32 ``[m, n]``."""
    if config.get("collective_op", 0):
        raise UnsupportedError(
            f"@{call.target} sends its factor or result to other devices, which the program does not name",
            hint="export the model without collective products (TransformerEngine's CollectiveOp.NONE)",
        )
    mode = int(config.get("scaling_mode", _PLAIN))
    lhs, lhs_inverse, rhs, rhs_inverse = call.operands[:4]
    _check_mode(call, mode)
    lhs, rhs = (
        _matrix(value, int(config.get(f"{side}_axis_boundary", 1)), is_turned=bool(config.get(f"{side}_transposed")))
        for value, side in ((lhs, "lhs"), (rhs, "rhs"))
    )
    value = ops.dot_general(lhs, rhs, DotDimensionNumbers([1], [0]), preferred_element_type="f32")
    if mode in _SCALED:
        for inverse in (one_scale(lhs_inverse), one_scale(rhs_inverse)):
            value = value if inverse is None else value * ops.broadcast(wide(inverse), value.dims)
    if bias is not None:
        flat = wide(ops.reshape(bias, [prod(bias.dims)]))
        value = value + ops.broadcast_in_dim(flat, value.dims, [1])
    return value


def _check_mode(call: CustomCall, mode: int) -> None:
    if mode == _BLOCKS:
        raise UnsupportedError(
            f"@{call.target} multiplies MXFP8: whether its powers of two stand in the order of cuBLAS's tiles or of "
            "the matrices depends on the release, which the program does not say"
        )
    if mode not in (_PLAIN, *_SCALED):
        raise UnsupportedError(f"@{call.target} has the scaling mode {mode}; known are 0 (none), 1 and 3 (one scale)")


def _matrix(value: Value, boundary: int, *, is_turned: bool) -> Value:
    """The matrix of the dimensions before a boundary and the others."""
    boundary %= value.rank + 1
    matrix = ops.reshape(value, [prod(value.dims[:boundary]), prod(value.dims[boundary:])])
    return ops.transpose(matrix, [1, 0]) if is_turned else matrix


def _as(value: Value, shape: Shape) -> Value:
    row = element_type(shape.element)
    if row.is_float and row.bits < 16:
        raise UnsupportedError(f"a product rounded to {row}: its scale is not known")
    return ops.reshape(ops.convert_element_type(value, row), shape.dimensions)


@custom_call_target("te_grouped_gemm_ffi")
def grouped_product(call: CustomCall) -> list[Value]:
    """Rows in groups times one matrix for each, or the same rows of two factors summed for each.

    Operands: lhs, its inverse scales, rhs, its own, biases, the sizes of groups (six arrays of them since release
    2.15, of which one of lhs or rhs is not empty), an offset.
    """
    lhs, _, rhs, _, biases, *given, _ = call.operands
    for name in ("lhs_axis_boundary", "rhs_axis_boundary", "use_async_d2h_group_sizes"):
        call.setting(name, 0)
    if int(call.setting("scaling_mode")) != _PLAIN:
        raise UnsupportedError(f"@{call.target} of 8-bit floats: which groups their scales are of is not known")
    counts = next((one for one in given if prod(one.dims)), None)
    if counts is None:
        raise UnsupportedError(f"@{call.target} has no sizes of groups")
    is_summed = bool(call.setting("is_grouped_dense_wgrad", False))
    is_summed = is_summed or (len(given) > 1 and any(prod(one.dims) for one in given[2:4]))
    turned = bool(call.setting("lhs_is_trans")), bool(call.setting("rhs_is_trans"))
    if turned[0] != is_summed or (is_summed and turned[1]):
        raise UnsupportedError(f"@{call.target} has groups of columns, whose order in memory is not known")
    groups = counts.dims[0]
    m, n, k = _sizes(call, groups, is_summed=is_summed, turned=turned)
    shape, *rest = call.shapes
    has_bias = bool(call.setting("has_bias"))
    number = _groups(counts, k if is_summed else m)
    if is_summed:
        value = _sums(ops.reshape(lhs, [k, m]), ops.reshape(rhs, [k, n]), number, groups)
    else:
        matrices = ops.reshape(rhs, [groups, n, k] if turned[1] else [groups, k, n])
        matrices = ops.transpose(matrices, [0, 2, 1]) if turned[1] else matrices
        value = _rows(ops.reshape(lhs, [m, k]), matrices, biases if has_bias else None, number)
    return [_as(value, shape), *workspace(rest)]


def _sizes(call: CustomCall, groups: int, *, is_summed: bool, turned: tuple[bool, bool]) -> tuple[int, int, int]:
    """m, n and k, of which one is of all groups together."""
    if "M" in call.settings:
        m, n, k = (int(call.setting(name)) for name in "MNK")
        return m, n, k
    left, right, other_left, other_right = (
        int(call.setting(f"{side}_{part}_size")) for side in ("lhs", "rhs") for part in ("left", "right")
    )
    k, m = (left, right) if turned[0] else (right, left)
    if not turned[1]:
        return m, other_right, k
    return m, other_left if is_summed else other_left // groups, k


def _groups(counts: Value, rows: int) -> Value:
    """s32 ``[rows]``: the group of each row, of groups that follow one another."""
    groups = counts.dims[0]
    dims = rows, groups
    order = ops.iota("s32", (groups, groups), 0) <= ops.iota("s32", (groups, groups), 1)
    each = ops.broadcast_in_dim(ops.convert_element_type(counts, "s32"), (groups, groups), [0])
    ends = _sum(ops.select(order, each, full(each, 0)), 0)
    is_after = ops.iota("s32", dims, 0) >= ops.broadcast_in_dim(ends, dims, [1])
    return _sum(ops.convert_element_type(is_after, "s32"), 1)


def _sum(value: Value, dimension: int) -> Value:
    return ops.reduce(value, constant(0, value.element_type), ops.add, [dimension])


def _rows(lhs: Value, matrices: Value, biases: Value | None, number: Value) -> Value:
    """``[m, n]``: each row times its group's matrix."""
    groups, _, width = matrices.dims
    flat = None if biases is None else ops.reshape(wide(biases), [groups, width])

    def turn(group: Value, found: Value) -> list[Value]:
        factor = matrices[group]
        value = ops.dot_general(lhs, factor, DotDimensionNumbers([1], [0]), preferred_element_type="f32")
        if flat is not None:
            value = value + ops.broadcast_in_dim(flat[group], value.dims, [1])
        return [ops.select(_is_of(group, number, value), value, found)]

    return for_loop(groups, [zeros("f32", [lhs.dims[0], width])], turn)[0]


def _sums(lhs: Value, rhs: Value, number: Value, groups: int) -> Value:
    """``[g, m, n]``: the products of both factors' rows, summed for each group."""

    def turn(group: Value, found: Value) -> list[Value]:
        rows = ops.select(_is_of(group, number, lhs), lhs, full(lhs, 0))
        value = ops.dot_general(rows, rhs, DotDimensionNumbers([0], [0]), preferred_element_type="f32")
        zero = constant(0, "s32")
        return [ops.dynamic_update_slice(found, ops.reshape(value, [1, *value.dims]), [group, zero, zero])]

    return for_loop(groups, [zeros("f32", [groups, lhs.dims[1], rhs.dims[1]])], turn)[0]


def _is_of(group: Value, number: Value, like: Value) -> Value:
    """pred in the shape of rows: whether each is of a group."""
    return ops.broadcast_in_dim(ops.eq(number, ops.broadcast(group, number.dims)), like.dims, [0])


@custom_call_target("te_grouped_gemm_d2h_group_sizes_ffi")
def group_sizes_on_host(call: CustomCall) -> list[Value]:
    """Sizes of groups, which the host gets as well -> the same, so that their products come later."""
    call.setting("num_gemms", 0)
    return [call.operands[0]]
