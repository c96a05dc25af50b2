"""jax.lax: products, convolutions and windows, with the parameters that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.jax.sweep.table import FLOATS, REALS, rows
from tests.sweep.case import Case, array

_KINDS = (*FLOATS, "float16", "complex64", "int32", "uint8", "bool")
_CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "valid": ((2, 3, 9, 10), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "VALID"}),
    "same": ((2, 3, 9, 10), (4, 3, 3, 2), {"window_strides": (1, 2), "padding": "SAME"}),
    "same_lower": ((2, 3, 9, 10), (4, 3, 2, 4), {"window_strides": (2, 1), "padding": "SAME_LOWER"}),
    "negative": ((2, 3, 9, 10), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": [(-1, 2), (3, -2)]}),
    "dilated": ((2, 3, 6, 5), (4, 3, 2, 3), {"window_strides": (1, 2), "padding": [(1, 0), (2, 1)],
                "lhs_dilation": (2, 3)}),
    "atrous": ((2, 3, 9, 10), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "SAME", "rhs_dilation": (2, 3)}),
    "all": ((2, 3, 6, 5), (4, 3, 2, 3), {"window_strides": (2, 3), "padding": [(2, 1), (0, 3)], "lhs_dilation": (2, 1),
            "rhs_dilation": (1, 2)}),
    "groups": ((2, 6, 7, 5), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2}),
    "depthwise": ((2, 3, 7, 5), (6, 1, 3, 2), {"window_strides": (2, 1), "padding": "SAME", "feature_group_count": 3}),
    "batch_groups": ((4, 3, 7, 5), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "VALID",
                     "batch_group_count": 2}),
    "one": ((2, 3, 9), (4, 3, 3), {"window_strides": (2,), "padding": "SAME"}),
    "three": ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"window_strides": (1, 2, 1), "padding": "SAME"}),
    "none": ((2, 3), (4, 3), {"window_strides": (), "padding": "VALID"}),
    "last": ((2, 9, 10, 3), (3, 2, 3, 4), {"window_strides": (1, 2), "padding": "SAME",
             "dimension_numbers": ("NHWC", "HWIO", "NHWC")}),
    "mixed": ((9, 2, 3, 10), (2, 4, 3, 3), {"window_strides": (1, 2), "padding": "VALID",
              "dimension_numbers": ("HNCW", "WOIH", "WNHC")}),
    "empty": ((0, 3, 9, 10), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "SAME"}),
}  # fmt: skip
_WINDOWS: dict[str, dict[str, Any]] = {
    "valid": {"window_dimensions": (1, 2, 3), "window_strides": (1, 1, 1), "padding": "VALID"},
    "same": {"window_dimensions": (2, 3, 2), "window_strides": (1, 2, 1), "padding": "SAME"},
    "padded": {"window_dimensions": (1, 2, 2), "window_strides": (1, 1, 2), "padding": [(0, 0), (1, 2), (3, 0)]},
    "dilated": {
        "window_dimensions": (1, 2, 2),
        "window_strides": (1, 1, 2),
        "padding": "VALID",
        "base_dilation": (1, 2, 1),
        "window_dilation": (1, 1, 2),
    },
}


def cases() -> Iterator[Case]:
    yield from _products()
    yield from _convolutions()
    yield from _windows()


def _products() -> Iterator[Case]:
    wide = {"float32": "float64", "bfloat16": "float32", "float16": "float32", "int8": "int32", "uint8": "uint32"}
    for dtype in (*_KINDS, "int8", "complex128", "int4", "float8_e4m3fn", "float8_e5m2"):
        yield from rows(
            "lax.dot",
            lambda a, b: [
                lax.dot(a, b),
                lax.dot(a[0], b[:, 0]),
                lax.dot(a, b[:, 0]),
                lax.dot(a, b, precision="highest"),
                lax.dot(a, b, precision=(lax.Precision.DEFAULT, lax.Precision.HIGH)),
            ],
            array(4, 6),
            array(6, 5),
            dtypes=(dtype,),
        )
        yield from rows(
            "lax.dot_general",
            lambda a, b: [
                lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))),
                lax.dot_general(a, b, (((0, 2), (0, 1)), ((), ()))),
                lax.dot_general(a, b, (((), ()), ((0,), (0,)))),
                lax.dot_general(a, b.transpose(2, 0, 1), (((2,), (2,)), ((0,), (1,)))),
                lax.batch_matmul(a, b),
            ],
            array(3, 4, 2),
            array(3, 2, 5),
            dtypes=(dtype,),
        )
        if dtype in wide:
            yield from rows(
                "lax.dot_preferred",
                lambda a, b, t=wide[dtype]: [
                    lax.dot(a, b, preferred_element_type=t),
                    lax.dot_general(a, b.T, (((1,), (1,)), ((), ())), preferred_element_type=t),
                ],
                array(4, 6),
                array(6, 5),
                dtypes=(dtype,),
            )
    for algorithm in (
        "BF16_BF16_F32",
        "F32_F32_F32",
        "TF32_TF32_F32",
        "BF16_BF16_F32_X3",
        "F16_F16_F32",
        "F64_F64_F64",
    ):
        yield from rows(
            "lax.dot_algorithm",
            lambda a, b, n=algorithm: lax.dot(
                a, b, precision=getattr(lax.DotAlgorithmPreset, n), preferred_element_type="float32"
            ),
            array(4, 6), array(6, 5), dtypes=(f"{algorithm}",),
        )  # fmt: skip
    yield from rows(
        "lax.dot_mixed",
        lambda a, b: [
            lax.dot(a.astype("int8"), b, preferred_element_type="float32"),
            lax.dot(a.astype("bfloat16"), b, preferred_element_type="float32"),
            lax.dot(a.astype("float8_e4m3fn"), b.astype("float8_e5m2"), preferred_element_type="float32"),
            lax.dot(a.astype("float8_e4m3fn"), b.astype("float8_e4m3fn"), preferred_element_type="bfloat16"),
            lax.dot(a.astype("int8"), b.astype("uint8"), preferred_element_type="int32"),
        ],
        array(4, 6, kind="small"),
        array(6, 5, kind="small"),
        dtypes=("float32",),
    )
    sizes = np.array([2, 0, 3, 1], np.int32)
    yield from rows(
        "lax.ragged_dot",
        lambda a, b: [
            lax.ragged_dot(a, b, sizes),
            lax.ragged_dot(a, b, sizes[::-1].copy(), preferred_element_type="float32"),
            lax.ragged_dot(a[:5], b, sizes),
            jax.grad(lambda a, b: lax.ragged_dot(a, b, sizes).astype("float32").sum(), (0, 1))(a, b),
        ],
        array(8, 5),
        array(4, 5, 3),
        dtypes=("float32", "bfloat16"),
    )
    yield from rows(
        "lax.ragged_dot_general",
        lambda a, b: lax.ragged_dot_general(
            a,
            b,
            sizes,
            lax.RaggedDotDimensionNumbers(
                dot_dimension_numbers=(((0,), (0,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[]
            ),
        ),
        array(8, 5),
        array(8, 3),
        dtypes=("float32",),
    )


def _convolutions() -> Iterator[Case]:
    for name, (left, right, options) in _CONVOLUTIONS.items():

        def convolved(a: Any, b: Any, options: dict[str, Any] = options) -> Any:
            return lax.conv_general_dilated(a, b, **options)

        def pulled(a: Any, b: Any, f: Callable[..., Any] = convolved) -> Any:
            y, pull = jax.vjp(f, a, b)
            return pull(jnp.ones_like(y) * jnp.arange(y.shape[-1] if y.ndim else 1).astype(y.dtype))

        kinds = _KINDS if name in ("valid", "all", "groups", "batch_groups", "one") else ("float32", "bfloat16")
        yield from rows(f"lax.conv_{name}", convolved, array(*left), array(*right), dtypes=kinds[:-1])
        yield from rows(
            f"lax.conv_{name}_grad", pulled, array(*left), array(*right), dtypes=("float32", "float64", "complex64")
        )
        yield from rows(
            f"lax.conv_{name}_preferred",
            lambda a, b, f=convolved, o=options: lax.conv_general_dilated(
                a, b, preferred_element_type="int32" if a.dtype == "int8" else "float32", **o
            ),
            array(*left),
            array(*right),
            dtypes=("bfloat16", "int8"),
        )
        for axes in ((0, None), (None, 0), (1, -1)):
            yield from rows(
                f"lax.conv_{name}_vmap",
                lambda a, b, f=convolved, x=axes: jax.vmap(f, x)(
                    a if x[0] is None else jnp.stack([a, a + 1], x[0]), b if x[1] is None else jnp.stack([b, -b], x[1])
                ),
                array(*left),
                array(*right),
                dtypes=(f"{axes}",),
            )
    for padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
        yield from rows(
            "lax.conv_transpose",
            lambda a, b, p=padding: [
                lax.conv_transpose(a, b, (2, 3), p, dimension_numbers=("NHWC", "HWIO", "NHWC")),
                lax.conv_transpose(a, b, (1, 2), p, rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")),
                lax.conv_transpose(
                    a,
                    jnp.swapaxes(b, 2, 3),
                    (2, 1),
                    p,
                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                    transpose_kernel=True,
                ),
            ],
            array(2, 4, 5, 3),
            array(3, 2, 3, 4),
            dtypes=(f"{padding}",),
        )
    yield from rows(
        "lax.conv_patches",
        lambda a, b: [
            lax.conv_general_dilated_patches(a, (2, 3), (1, 2), "SAME"),
            lax.conv_general_dilated_local(a, b, (1, 1), "VALID", (2, 2)),
            lax.conv(a, a[:, :, :2, :2], (1, 1), "SAME"),
            lax.conv_with_general_padding(a, a[:, :, :2, :2], (1, 1), [(0, 1), (1, 0)], (2, 1), (1, 1)),
        ],
        array(2, 3, 5, 4),
        array(2, 12, 4, 3),
        dtypes=("float32", "float64"),
    )


def _windows() -> Iterator[Case]:
    for name, options in _WINDOWS.items():
        for monoid, start, f in (("add", 0, lax.add), ("max", -9, lax.max), ("min", 9, lax.min), ("mul", 1, lax.mul)):
            yield from rows(
                f"lax.reduce_window_{monoid}",
                lambda x, o=options, i=start, f=f: lax.reduce_window(x, np.asarray(i).astype(x.dtype), f, **o),
                array(3, 5, 6),
                dtypes=(f"{name}",),
            )
        yield from rows(
            "lax.reduce_window_own",
            lambda x, o=options: lax.reduce_window(
                (x, x.astype("int32")),
                (np.float32(0), np.int32(1)),
                lambda a, b: (a[0] * 0.5 + b[0], jnp.maximum(a[1], b[1])),
                **o,
            )[1],
            array(3, 5, 6),
            dtypes=(f"{name}",),
        )
        yield from rows(
            "lax.reduce_window_grad",
            lambda x, o=options: [
                jax.grad(lambda x, f=f, i=i: (lax.reduce_window(x, np.asarray(i, x.dtype), f, **o) ** 2).sum())(x)
                for f, i in (
                    ((lax.add, 0), (lax.max, -np.inf), (lax.min, np.inf))
                    if "base_dilation" not in o
                    else ((lax.add, 0),)
                )
            ],
            array(3, 5, 6),
            dtypes=(f"{name}",),
        )
    for dtype in (*REALS, "int32", "int8", "uint8", "uint32", "bool", "complex64"):
        yield from rows(
            "lax.reduce_window_types",
            lambda x: [
                lax.reduce_window(x, np.asarray(i).astype(x.dtype), f, (2, 3), (1, 2), p)
                for f, i in (
                    ((lax.bitwise_or, False), (lax.bitwise_and, True))
                    if x.dtype == bool
                    else ((lax.add, 0), (lax.mul, 1))
                    if x.dtype.kind == "c"
                    else ((lax.add, 0), (lax.max, 0), (lax.min, 0), (lax.mul, 1))
                )
                for p in ("SAME", "VALID")
            ],
            array(5, 6, dtype=dtype),
            dtypes=(dtype,),
        )
