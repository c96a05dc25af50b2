"""ONNX operators with attributes that people set seldom: a node with its inputs, by kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
from onnx import TensorProto, helper

Array = np.ndarray[Any, Any]


class Node:
    """A node that is being written: its inputs are parameters of the graph, or constants."""

    def __init__(self, random: Random, number: int) -> None:
        self.random, self.prefix = random, f"n{number}_"
        self.parameters: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[Any] = []
        self.results: list[str] = []

    def of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def maybe(self, **attributes: Any) -> dict[str, Any]:
        """Some of these attributes; the others keep their defaults."""
        return {name: value for name, value in attributes.items() if self.random.random() < 0.5}

    def dims(self, *ranks: int) -> tuple[int, ...]:
        return tuple(self.of(1, 2, 3, 3, 4, 5, 7) for _ in range(self.of(*(ranks or (1, 2, 3, 4)))))

    def numbers(self, shape: Sequence[int], dtype: str = "float32") -> Array:
        generator = np.random.default_rng(self.random.getrandbits(32))
        if dtype == "bool":
            return np.asarray(generator.random(shape) < 0.5)
        if dtype.startswith("float"):
            return np.asarray(generator.standard_normal(shape)).astype(dtype)
        return np.asarray(generator.integers(0 if dtype.startswith("u") else -5, 9, shape)).astype(dtype)

    def x(self, shape: Sequence[int], dtype: str = "float32") -> str:
        """A parameter of the graph."""
        return self.given(self.numbers(shape, dtype))

    def given(self, array: Any) -> str:
        name = f"{self.prefix}x{len(self.parameters)}"
        self.parameters[name] = np.asarray(array)
        return name

    def c(self, array: Any, dtype: Any = np.int64) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def w(self, shape: Sequence[int], dtype: str = "float32") -> str:
        """Weights: constants as a rule."""
        return self.c(self.numbers(shape, dtype), dtype) if self.random.random() < 0.7 else self.x(shape, dtype)

    def add(self, operator: str, inputs: Sequence[str], results: int = 1, **attributes: Any) -> None:
        names = [f"{self.prefix}r{len(self.results) + n}" for n in range(results)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        self.results += names


def _resize(n: Node) -> None:
    shape = n.dims(3, 4)
    mode = n.of("nearest", "linear", "cubic")
    attributes = n.maybe(
        coordinate_transformation_mode=n.of("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                            "half_pixel_symmetric"),
        nearest_mode=n.of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        cubic_coeff_a=n.of(-0.5, -0.75), exclude_outside=n.of(0, 1) if mode == "cubic" else 0,
        antialias=n.of(0, 1) if mode != "nearest" else 0,
    )  # fmt: skip
    lead = len(shape) - 2
    # A place that is exactly a whole number is less than that in ONNX Runtime's float32, unless scales are powers of 2;
    # one that is nearly a half (3 + 1.5 / 0.6) is one.
    jumps = attributes.get("nearest_mode") in ("floor", "ceil")
    if jumps:
        attributes["coordinate_transformation_mode"] = n.of("half_pixel", "asymmetric")
    # With corners and scales ONNX Runtime rounds the size that the specification does not.
    if attributes.get("coordinate_transformation_mode") != "align_corners" and (jumps or n.of(0, 1)):
        symmetric = attributes.get("coordinate_transformation_mode") == "half_pixel_symmetric"
        is_exact = jumps or (symmetric and mode == "nearest")
        options = (0.5, 2.0, 1.0) if is_exact else (0.5, 2.0, 1.5, 0.6, 3.0, 1.0)
        scales = [1.0] * lead + [n.of(*options) for _ in range(2)]
        n.add("Resize", [n.x(shape), "", n.c(scales, np.float32)], mode=mode, **attributes)
    else:
        sizes = [*shape[:lead], *(n.of(1, 2, 4, 5, 8) for _ in range(2))]
        n.add("Resize", [n.x(shape), "", "", n.c(sizes)], mode=mode, **attributes)


def _window(n: Node, spatial: int, *, dilates: bool = True) -> dict[str, Any]:
    """Attributes of a window in so many dimensions."""
    made: dict[str, Any] = n.maybe(strides=[n.of(1, 2, 3) for _ in range(spatial)])
    if dilates:
        made |= n.maybe(dilations=[n.of(1, 2) for _ in range(spatial)])
    if n.of(0, 1):
        made["pads"] = [n.of(0, 0, 1) for _ in range(2 * spatial)]
    elif n.of(0, 1):
        made["auto_pad"] = n.of("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    return made


def _conv(n: Node) -> None:
    spatial, group = n.of(1, 2, 2, 3), n.of(1, 1, 2, 3)
    kernel = tuple(n.of(1, 2, 3) for _ in range(spatial))
    x = n.x((n.of(1, 2), group * n.of(1, 2), *(n.of(4, 5, 7) for _ in range(spatial))))
    channels = n.parameters[x].shape[1] // group
    inputs = [x, n.w((group * n.of(1, 2), channels, *kernel))]
    if n.of(0, 1):
        inputs.append(n.w(((n.constants | n.parameters)[inputs[1]].shape[0],)))
    n.add("Conv", inputs, group=group, **_window(n, spatial))


def _conv_transpose(n: Node) -> None:
    spatial, group = n.of(1, 2, 2), n.of(1, 1, 2)
    x = n.x((n.of(1, 2), group * n.of(1, 2), *(n.of(2, 3, 5) for _ in range(spatial))))
    kernel = tuple(n.of(2, 3) for _ in range(spatial))
    inputs = [x, n.w((n.parameters[x].shape[1], n.of(1, 2), *kernel))]
    attributes = _window(n, spatial)
    if "strides" in attributes:  # larger than the kernel ONNX Runtime has sizes of its own
        attributes["strides"] = [min(stride, 2) for stride in attributes["strides"]]
    if "strides" in attributes:
        attributes |= n.maybe(output_padding=[n.of(0, s - 1) for s in attributes["strides"]])
    n.add("ConvTranspose", inputs, group=group, **attributes)


def _pool(n: Node) -> None:
    spatial = n.of(1, 2, 2, 3)
    x = n.x((n.of(1, 2), n.of(1, 3), *(n.of(4, 5, 7) for _ in range(spatial))))
    # With dilations no larger than the array, for which ONNX Runtime has a size of its own.
    kernel = [n.of(1, 2, 2) for _ in range(spatial)]
    kind = n.of("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool")
    attributes = _window(n, spatial, dilates=kind != "LpPool")
    # For these ONNX Runtime has other sizes than the specification.
    if "SAME" in attributes.get("auto_pad", ""):
        attributes.pop("dilations", None)
    if attributes.get("auto_pad") != "VALID":
        attributes |= n.maybe(ceil_mode=n.of(0, 1))
    if kind == "AveragePool":
        attributes |= n.maybe(count_include_pad=1)
    if kind == "LpPool":
        attributes |= n.maybe(p=n.of(1, 2, 3))
    n.add(kind, [x], 2 if kind == "MaxPool" and n.of(0, 1) else 1, kernel_shape=kernel, **attributes)


def _reduced(n: Node) -> None:
    shape, dtype = n.dims(), n.of("float32", "float32", "int32", "int64", "float64")
    names = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
             "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")  # fmt: skip
    if dtype.startswith("int"):
        # ONNX Runtime rounds each exponential to an integer, and multiplies them as floats.
        names = tuple(name for name in names if name not in ("ReduceProd", "ReduceLogSumExp"))
    axes = sorted(n.random.sample(range(len(shape)), n.random.randint(0, len(shape))))
    axes = [axis - len(shape) if n.of(0, 1) else axis for axis in axes]
    x = n.given(np.abs(n.numbers(shape, dtype)) + np.ones((), dtype))
    n.add(n.of(*names), [x, n.c(axes)] if n.of(0, 1, 1) else [x], **n.maybe(keepdims=n.of(0, 1)),
          **n.maybe(noop_with_empty_axes=n.of(0, 1)))  # fmt: skip


def _gather(n: Node) -> None:
    shape = n.dims(2, 3)
    dtype = n.of("float32", "int64", "uint8", "bool", "float64")
    kind = n.of("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
    axis = n.random.randrange(-len(shape), len(shape))
    size = shape[axis]
    x = n.x(shape, dtype)

    def places(dims: Sequence[int], limit: int) -> str:
        found = [n.random.randrange(-limit, limit) for _ in range(int(np.prod(dims)))]
        array = np.asarray(found, n.of("int64", "int32") if kind in ("Gather", "GatherElements") else "int64")
        return n.given(array.reshape(dims)) if n.of(0, 1) else n.c(array.reshape(dims), array.dtype)

    if kind == "Gather":
        n.add(kind, [x, places(n.of((), (3,), (2, 2)), size)], axis=axis)
    elif kind == "GatherElements":
        dims = tuple(n.random.randint(1, s) for s in shape)
        n.add(kind, [x, places(dims, size)], axis=axis)
    elif kind == "GatherND":
        batch = n.of(0, 0, 1)
        dims = (*shape[:batch], n.of(1, 3), 1)
        n.add(kind, [x, places(dims, shape[batch])], batch_dims=batch)
    elif kind == "ScatterElements":
        dims = tuple(n.random.randint(1, s) for s in shape)
        reduction = n.of("none", "add", "max", "min", "mul") if dtype in ("float32", "int64") else "none"
        n.add(kind, [x, places(dims, size), n.x(dims, dtype)], axis=axis, reduction=reduction)
    else:
        reduction = n.of("none", "add", "max", "min", "mul") if dtype in ("float32", "int64") else "none"
        n.add(kind, [x, places((3, 1), shape[0]), n.x((3, *shape[1:]), dtype)], reduction=reduction)


def _pad(n: Node) -> None:
    shape, dtype = n.dims(1, 2, 3), n.of("float32", "int32", "int64", "uint8", "bool", "float64")
    mode = n.of("constant", "constant", "edge", "reflect", "wrap")
    axes = n.random.sample(range(len(shape)), n.random.randint(1, len(shape))) if n.of(0, 1) else None
    count = len(shape) if axes is None else len(axes)
    low = -1 if n.of(0, 1) else 0
    inputs = [n.x(shape, dtype), n.c([n.random.randint(low, 2) for _ in range(2 * count)])]
    value = n.c(np.ones(()), dtype) if mode == "constant" and n.of(0, 1) else ""
    n.add("Pad", [*inputs, value, *([n.c(axes)] if axes is not None else [])], mode=mode)


def _slice(n: Node) -> None:
    shape, dtype = n.dims(), n.of("float32", "int32", "bool", "uint8")
    axes = n.random.sample(range(len(shape)), n.random.randint(1, len(shape)))
    starts = [n.random.randint(-9, 9) for _ in axes]
    element, far = n.of((np.int64, 1 << 60), (np.int32, (1 << 31) - 1))
    steps = [n.of(1, 2, -1, -2, 5) for _ in axes]
    # To the other end, in the direction of the step.
    ends = [n.of(n.random.randint(-9, 9), far if step > 0 else -far) for step in steps]
    axes = [axis - len(shape) if n.of(0, 1) else axis for axis in axes]
    n.add("Slice", [n.x(shape, dtype), *(n.c(part, element) for part in (starts, ends, axes, steps))])


def _top(n: Node) -> None:
    shape, axis = n.dims(1, 2, 3), 0
    axis = n.random.randrange(-len(shape), len(shape))
    x = n.x(shape, n.of("float32", "int64", "int32"))
    n.add("TopK", [x, n.c([n.random.randint(1, shape[axis])])], 2, axis=axis, largest=n.of(0, 1))


def _place(n: Node) -> None:
    shape = n.dims()
    n.add(n.of("ArgMax", "ArgMin"), [n.x(shape, n.of("float32", "int32"))],
          **n.maybe(axis=n.random.randrange(-len(shape), len(shape)), keepdims=0, select_last_index=1))  # fmt: skip


def _running(n: Node) -> None:
    shape = n.dims()
    axis = n.c(n.random.randrange(-len(shape), len(shape)), n.of(np.int32, np.int64))
    x = n.x(shape, n.of("float32", "int32", "int64", "float64"))
    n.add("CumSum", [x, axis], **n.maybe(exclusive=1, reverse=1))


def _normal(n: Node) -> None:
    shape = (n.of(1, 2), n.of(2, 4), n.of(3, 5), n.of(2, 3))[: n.of(3, 4)]
    channels = shape[1]
    kind = n.of("batch", "instance", "layer", "group", "lrn", "lp", "mvn", "softmax", "hardmax")
    axis = n.random.randrange(-len(shape), len(shape))
    if kind == "batch":
        scale, bias, mean = (n.w((channels,)) for _ in range(3))
        variance = n.c(np.abs(n.numbers((channels,))) + 0.5, np.float32)
        training = n.of(0, 0, 1)
        n.add("BatchNormalization", [n.x(shape), scale, bias, mean, variance], 3 if training else 1,
              training_mode=training, **n.maybe(epsilon=0.01, momentum=0.8))  # fmt: skip
    elif kind == "instance":
        n.add("InstanceNormalization", [n.x(shape), n.w((channels,)), n.w((channels,))], **n.maybe(epsilon=0.1))
    elif kind == "layer":
        dims = shape[axis:]
        n.add("LayerNormalization", [n.x(shape), n.w(dims), *([n.w(dims)] if n.of(0, 1) else [])], n.of(1, 3),
              axis=axis, epsilon=0.1)  # fmt: skip
    elif kind == "group":
        n.add("GroupNormalization", [n.x(shape), n.w((channels,)), n.w((channels,))], num_groups=n.of(1, 2),
              epsilon=0.1)  # fmt: skip
    elif kind == "lrn":
        n.add("LRN", [n.x(shape)], size=n.of(1, 3, 5), **n.maybe(alpha=0.1, beta=0.5, bias=2.0))
    elif kind == "lp":
        n.add("LpNormalization", [n.x(shape)], axis=axis, p=n.of(1, 2))
    elif kind == "mvn":
        n.add("MeanVarianceNormalization", [n.x(shape)], axes=n.of([0, 2], [1], [-1]))
    else:
        n.add("Hardmax" if kind == "hardmax" else n.of("Softmax", "LogSoftmax"), [n.x(shape)], **n.maybe(axis=axis))


def _product(n: Node) -> None:
    a, b, c = n.of(1, 2, 5), n.of(1, 3, 4), n.of(1, 2, 7)
    kind = n.of("gemm", "matmul", "matmul", "integer", "einsum", "qlinear")
    if kind == "gemm":
        ta, tb = n.of(0, 1), n.of(0, 1)
        inputs = [n.x((b, a) if ta else (a, b)), n.w((c, b) if tb else (b, c))]
        inputs += [n.w(n.of((a, c), (c,), (a, 1), (1,), ()))] if n.of(0, 1) else []
        n.add("Gemm", inputs, transA=ta, transB=tb, **n.maybe(alpha=0.5, beta=2.0))
    elif kind == "matmul":
        left, right = n.of(((b,), (b, c)), ((a, b), (b,)), ((b,), (b,)), ((2, a, b), (b, c)), ((2, a, b), (1, b, c)),
                           ((a, b), (3, b, c)), ((2, 1, a, b), (3, b, c)), ((b,), (2, b, c)))  # fmt: skip
        dtype = n.of("float32", "float32", "float64", "int32", "int64")
        n.add("MatMul", [n.x(left, dtype), n.x(right, dtype)])
    elif kind == "integer":
        zeros = [n.c(n.of(0, 3), np.uint8), n.c(n.of(0, 2), np.int8)] if n.of(0, 1) else []
        n.add("MatMulInteger", [n.x((a, b), "uint8"), n.x((b, c), "int8"), *zeros])
    elif kind == "einsum":
        equation, dims = n.of(("ij,jk->ik", ((a, b), (b, c))), ("bij,bjk->bik", ((2, a, b), (2, b, c))),
                              ("ii->i", ((a, a),)), ("...ij->...ji", ((2, a, b),)), ("ij,kj->ki", ((a, b), (c, b))),
                              ("i,j->ij", ((a,), (b,))), ("ijk->", ((a, b, c),)), ("ij,ij", ((a, b), (a, b))),
                              ("bhid,bhjd->bhij", ((1, 2, a, b), (1, 2, c, b))))  # fmt: skip
        n.add("Einsum", [n.x(one) for one in dims], equation=equation)
    else:
        scale = n.c(0.05, np.float32)
        n.add("QLinearMatMul", [n.x((a, b), "uint8"), scale, n.c(3, np.uint8), n.x((b, c), "uint8"), scale,
                                n.c(1, np.uint8), n.c(0.07, np.float32), n.c(4, np.uint8)])  # fmt: skip


def _quantized(n: Node) -> None:
    shape, axis = n.dims(2, 3), 0
    axis = n.random.randrange(-len(shape), len(shape))
    dtype = n.of(np.uint8, np.int8)
    along = n.of(0, 1)
    scale = n.c(np.abs(n.numbers((shape[axis],) if along else ())) + 0.1, np.float32)
    zero = [n.c(np.ones((shape[axis],) if along else ()), dtype)] if n.of(0, 1) or dtype == np.int8 else []
    kind = n.of("quantize", "dequantize", "dynamic")
    if kind == "quantize":
        n.add("QuantizeLinear", [n.x(shape), scale, *zero], axis=axis)
    elif kind == "dynamic":
        n.add("DynamicQuantizeLinear", [n.x(shape)], 3)
    else:
        x = n.x(shape, "int8" if dtype == np.int8 else "uint8")
        n.add("DequantizeLinear", [x, scale, *zero], axis=axis)


def _recurrent(n: Node) -> None:
    kind = n.of("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    time, batch, width, hidden = n.of(1, 3, 4), n.of(1, 2), n.of(1, 3), n.of(1, 2, 4)
    direction = n.of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    inputs = [n.x((time, batch, width)), n.w((ways, gates * hidden, width)), n.w((ways, gates * hidden, hidden))]
    inputs.append(n.w((ways, 2 * gates * hidden)) if n.of(0, 1) else "")
    inputs.append(n.c([n.random.randint(1, time) for _ in range(batch)], np.int32) if n.of(0, 0, 1) else "")
    inputs.append(n.x((ways, batch, hidden)) if n.of(0, 1) else "")
    if kind == "LSTM":
        inputs.append(n.x((ways, batch, hidden)) if n.of(0, 1) else "")
        inputs.append(n.w((ways, 3 * hidden)) if n.of(0, 1) else "")
    attributes: dict[str, Any] = n.maybe(clip=0.5)
    if kind == "GRU":
        attributes |= n.maybe(linear_before_reset=1)
    if kind == "LSTM":
        attributes |= n.maybe(input_forget=1)
    n.add(kind, inputs, 3 if kind == "LSTM" else 2, hidden_size=hidden, direction=direction, **attributes)


def _elementwise(n: Node) -> None:
    x = n.x(n.dims())
    kind = n.of(
        ("Celu", {"alpha": 0.5}), ("Elu", {"alpha": 0.5}), ("LeakyRelu", {"alpha": -0.2}),
        ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.1}), ("ThresholdedRelu", {"alpha": 0.2}), ("Selu", {"alpha": 1.0}),
        ("Shrink", {"lambd": 0.3, "bias": 0.1}), ("IsInf", {"detect_negative": 0}), ("IsNaN", {}), ("Round", {}),
        ("Sign", {}), ("Sinh", {}), ("Cosh", {}), ("Asinh", {}), ("Tan", {}), ("Mish", {}), ("Softsign", {}),
        ("Erf", {}), ("Reciprocal", {}), ("Floor", {}), ("Ceil", {}), ("Exp", {}), ("Sqrt", {}), ("Log", {}),
        ("Identity", {}),
    )  # fmt: skip
    n.add(kind[0], [x], **n.maybe(**kind[1]))


def _binary(n: Node) -> None:
    shape = n.dims()
    other = tuple(1 if n.of(0, 1) else size for size in shape)[n.random.randint(0, len(shape)) :]
    dtype = n.of("float32", "float32", "int32", "int64", "uint8", "float64")
    kind = n.of("Mod", "Pow", "Div", "Max", "Min", "PRelu", "Where", "BitShift", "Less", "And", "Mean", "Sub", "Clip",
                "BitwiseXor", "Sum")  # fmt: skip
    if kind == "Mod":
        divisor = np.abs(n.numbers(other, dtype)) + np.ones((), dtype)
        n.add(kind, [n.x(shape, dtype), n.given(divisor)], fmod=int(dtype.startswith("float")) or n.of(0, 1))
    elif kind == "Pow":
        base = n.given(np.abs(n.numbers(shape, "float32")) + np.float32(0.5))
        exponent = n.of("float32", "int32", "int64")
        n.add(kind, [base, n.given(n.numbers(other, exponent) % 4)])
    elif kind == "Div":
        divisor = np.abs(n.numbers(other, dtype)) + np.ones((), dtype)
        n.add(kind, [n.x(shape, dtype), n.given(divisor)])
    elif kind == "Where":
        n.add(kind, [n.x(other, "bool"), n.x(shape, dtype), n.x((), dtype)])
    elif kind == "BitShift":
        n.add(kind, [n.x(shape, "uint8"), n.given(n.numbers(other, "uint8") % 8)], direction=n.of("LEFT", "RIGHT"))
    elif kind == "And":
        n.add(n.of("And", "Or", "Xor"), [n.x(shape, "bool"), n.x(other, "bool")])
    elif kind == "Clip":
        low, high = n.c(n.of(0, 1), dtype), n.c(n.of(0, 2), dtype)
        n.add(kind, n.of([n.x(shape, dtype), low, high], [n.x(shape, dtype), "", high], [n.x(shape, dtype), low]))
    elif kind == "PRelu":
        n.add(kind, [n.x(shape), n.x(other)])
    else:
        n.add(kind, [n.x(shape, dtype), n.x(other, dtype)])


def _cast(n: Node) -> None:
    targets = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
               TensorProto.INT8, TensorProto.BOOL, TensorProto.FLOAT16]  # fmt: skip
    source = n.of("float32", "int32", "uint8", "bool", "float64", "int8")
    numbers = n.numbers(n.dims(), source)
    n.add("Cast", [n.given(np.abs(numbers) if numbers.dtype.kind in "fi" else numbers)], to=n.of(*targets))


def _shaped(n: Node) -> None:
    shape, dtype = n.dims(2, 3, 4), n.of("float32", "int64", "bool", "uint8")
    axis = n.random.randrange(-len(shape), len(shape))
    x = n.x(shape, dtype)
    kind = n.of("Split", "Split", "Expand", "Tile", "Trilu", "Flatten", "Reshape", "OneHot", "EyeLike", "DepthToSpace",
                "SpaceToDepth", "ReverseSequence", "Concat", "Compress", "CenterCropPad", "Squeeze",
                "Size")  # fmt: skip
    if kind == "Split":
        if n.of(0, 1):
            parts = n.of(1, 2, 3)
            n.add(kind, [x], parts, axis=axis, num_outputs=parts)
        else:
            first = n.random.randint(0, shape[axis])
            n.add(kind, [x, n.c([first, shape[axis] - first])], 2, axis=axis)
    elif kind == "Expand":
        n.add(kind, [x, n.c([2, *(n.of(1, size) for size in shape)][n.of(0, 1) :])])
    elif kind == "Tile":
        n.add(kind, [x, n.c([n.of(1, 2, 0, 3) for _ in shape])])
    elif kind == "Trilu":
        n.add(kind, [x, n.c(n.random.randint(-3, 3))], upper=n.of(0, 1))
    elif kind == "Flatten":
        n.add(kind, [x], axis=n.random.randint(-len(shape), len(shape)))
    elif kind == "Reshape":
        n.add(kind, [x, n.c(n.of([-1], [0, -1], [1, -1, 1]))], **n.maybe(allowzero=0))
    elif kind == "OneHot":
        places = n.given(n.numbers(n.dims(1, 2), n.of("int64", "int32")))
        n.add(kind, [places, n.c(n.of(1, 4, 7)), n.c([0.5, 2], np.float32)], axis=n.of(-1, 0, 1))
    elif kind == "EyeLike":
        n.add(kind, [n.x(shape[:2])], k=n.of(-1, 0, 2))
    elif kind == "DepthToSpace":
        n.add(kind, [n.x((1, 8, 2, 3))], blocksize=2, mode=n.of("DCR", "CRD"))
    elif kind == "SpaceToDepth":
        n.add(kind, [n.x((1, 2, 4, 6))], blocksize=2)
    elif kind == "ReverseSequence":
        lengths = n.c([n.random.randint(1, shape[0]) for _ in range(shape[1])])
        n.add(kind, [x, lengths], time_axis=0, batch_axis=1)
    elif kind == "Concat":
        n.add(kind, [x, n.x(shape, dtype), x], axis=axis)
    elif kind == "Compress":
        n.add(kind, [x, n.c(n.numbers((shape[axis],), "bool"), bool)], axis=axis)
    elif kind == "CenterCropPad":
        n.add(kind, [n.x(shape), n.c([n.of(1, 2, 4, 5), n.of(1, 3, 6)])], axes=[0, 1])
    elif kind == "Squeeze":
        n.add("Unsqueeze", [x, n.c([0, -1])])
    else:
        n.add(n.of("Size", "Shape"), [x])


def _sampled(n: Node) -> None:
    kind = n.of("GridSample", "GridSample", "RoiAlign", "Det", "Col2Im", "MaxUnpool", "DFT")
    if kind == "GridSample":
        n.add(kind, [n.x((1, 2, 4, 5)), n.x((1, 3, 2, 2))], mode=n.of("linear", "nearest", "cubic"),
              **n.maybe(padding_mode=n.of("zeros", "border", "reflection"), align_corners=1))  # fmt: skip
    elif kind == "RoiAlign":
        rois = n.c([[0.5, 0.5, 3, 4], [1, 0, 2, 2.5]], np.float32)
        n.add(kind, [n.x((1, 2, 5, 6)), rois, n.c([0, 0])], output_height=2, output_width=n.of(1, 3),
              sampling_ratio=2, **n.maybe(mode="avg", spatial_scale=0.5,
                        coordinate_transformation_mode=n.of("half_pixel", "output_half_pixel")))  # fmt: skip
    elif kind == "Det":
        n.add(kind, [n.x(n.of((3, 3), (2, 2, 2), (1, 1)))])
    elif kind == "Col2Im":
        n.add(kind, [n.x((1, 4, 9)), n.c([4, 4]), n.c([2, 2])])
    elif kind == "MaxUnpool":
        n.add(kind, [n.x((1, 1, 2, 2)), n.c([[[[5, 7], [13, 15]]]])], kernel_shape=[2, 2], strides=[2, 2])
    else:
        n.add(kind, [n.x((1, n.of(4, 5, 6), n.of(1, 2))), "", n.c(1)], **n.maybe(inverse=0, onesided=0))


KINDS: tuple[Callable[[Node], None], ...] = (
    _resize, _resize, _conv, _conv, _conv_transpose, _pool, _pool, _reduced, _reduced, _gather, _gather, _pad, _slice,
    _top, _place, _running, _normal, _normal, _product, _product, _quantized, _recurrent, _recurrent, _elementwise,
    _binary, _binary, _cast, _shaped, _shaped, _shaped, _sampled,
)  # fmt: skip
