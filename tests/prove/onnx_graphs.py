"""Random graphs of ONNX operators; ONNX Runtime is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge
from hloforge.runtime.reference.compare import compare
from tests.prove.pool import Pool

_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
_SMOOTH = ("Tanh", "Sigmoid", "Erf", "Softsign", "Sin", "Cos", "Atan", "HardSigmoid", "Gelu", "Mish")
_GROWING = ("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Abs", "Neg", "Softplus", "HardSwish", "ThresholdedRelu")
_EXACT = ("Floor", "Ceil", "Round", "Sign")
_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp")
_MOST = 2000


class _Graph:
    """A graph that is being written: values are names with arrays that ONNX Runtime has computed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"onnx {seed}")
        self.pool = Pool.of(self.random)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[tuple[str, np.ndarray[Any, Any]]] = []
        self.values: list[tuple[str, np.ndarray[Any, Any]]] = []

    def constant(self, array: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def model(self, results: Sequence[str]) -> bytes:
        inputs = [
            helper.make_tensor_value_info(name, _TYPES[str(array.dtype)], array.shape) for name, array in self.inputs
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return bytes(made.SerializeToString())

    def run(self, results: Sequence[str]) -> list[Any]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        session = onnxruntime.InferenceSession(self.model(results), options, providers=["CPUExecutionProvider"])
        return list(session.run(list(results), dict(self.inputs)))

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> bool:
        """A node, if ONNX Runtime takes it and its result stays small."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        try:
            (array,) = self.run([name])
        except Exception:  # its errors have no common class of their own
            self.nodes.pop()
            return False
        array = np.asarray(array)
        if array.size > _MOST or str(array.dtype) not in (*_TYPES, "bool") or not _is_small(array):
            self.nodes.pop()
            return False
        self.values.append((name, array))
        return True


def _is_small(array: np.ndarray[Any, Any]) -> bool:
    # ONNX Runtime sums and multiplies large integers as floats.
    if array.dtype.kind != "f":
        return bool((np.abs(array.astype(np.float64)) < 1 << 20).all())
    return bool(np.isfinite(array).all() and (np.abs(array) < 1e4).all())


def _step(g: _Graph) -> bool:
    random, pool = g.random, g.pool
    name, x = random.choice(g.values[-4:])
    if x.dtype == bool:
        other = g.constant(pool.numbers(x.shape, "float32"))
        return g.add(random.choice(("Not", "Cast")), [name]) or g.add("Where", [name, other, other])
    element, rank, is_float = str(x.dtype), x.ndim, x.dtype.kind == "f"
    axis = random.randrange(-rank, rank) if rank else 0
    kind = random.choice(
        ("unary", "unary", "binary", "binary", "reduce", "reshape", "transpose", "slice", "gather", "concat", "pad",
         "matmul", "softmax", "norm", "arg", "topk", "scatter", "tile", "compare", "cumsum", "conv", "pool", "expand",
         "squeeze", "split", "einsum", "resize", "onehot", "depth", "clip", "nonzero", "gathernd", "trilu")
    )  # fmt: skip
    if kind == "unary":
        names = (*_SMOOTH, *_GROWING) if is_float else ("Abs", "Neg", "Sign")
        return g.add(random.choice(names), [name])
    if kind == "binary":
        dims = tuple(1 if random.random() < 0.3 else size for size in x.shape)[random.randint(0, rank) :]
        other = pool.numbers(dims, element)
        if is_float:
            other = np.abs(other) + np.float32(1)
        names = (
            ("Add", "Sub", "Mul", "Div", "Max", "Min")
            if is_float
            else ("Add", "Sub", "Mul", "Max", "Min", "BitwiseAnd")
        )
        return g.add(random.choice(names), [name, g.constant(other)])
    if kind == "reduce":
        axes = g.constant(np.array(sorted(random.sample(range(rank), random.randint(0, rank))), np.int64))
        names = _REDUCTIONS if is_float else _REDUCTIONS[:1] + _REDUCTIONS[2:4]
        return g.add(random.choice(names), [name, axes], keepdims=random.randint(0, 1))
    if kind == "reshape":
        dims = random.choice((pool.shape_of(x.size), (-1,), (0, -1) if rank > 1 else (-1, 1)))
        return g.add("Reshape", [name, g.constant(np.array(dims, np.int64))])
    if kind == "transpose" and rank:
        return g.add("Transpose", [name], perm=random.sample(range(rank), rank))
    if kind == "slice" and rank:
        step = random.choice((1, 2, -1, -2))
        ends = [random.randint(-9, 9), random.choice((random.randint(-9, 9), 1 << 40, -(1 << 40)))]
        parts = [g.constant(np.array([number], np.int64)) for number in (*ends, axis, step)]
        return g.add("Slice", [name, *parts])
    if kind == "gather" and rank and x.shape[axis]:
        size = x.shape[axis]
        places = np.array([[random.randrange(-size, size) for _ in range(3)] for _ in range(2)], np.int64)
        return g.add("Gather", [name, g.constant(places)], axis=axis)
    if kind == "concat" and rank:
        return g.add("Concat", [name, g.constant(pool.numbers(x.shape, element)), name], axis=axis)
    if kind == "pad" and rank:
        mode = random.choice(("constant", "edge", "reflect", "wrap"))
        low = -1 if mode == "constant" else 0
        widths = g.constant(np.array([random.randint(low, 2) for _ in range(2 * rank)], np.int64))
        return g.add("Pad", [name, widths], mode=mode)
    if kind == "matmul" and rank and is_float:
        return g.add("MatMul", [name, g.constant(pool.numbers((x.shape[-1], random.choice((1, 3, 8))), element))])
    if kind == "softmax" and rank and is_float:
        return g.add(random.choice(("Softmax", "LogSoftmax")), [name], axis=axis)
    if kind == "norm" and rank and is_float:
        return g.add("LayerNormalization", [name, g.constant(pool.numbers(x.shape[-1:], element))], epsilon=0.1)
    if kind == "arg" and rank and name.startswith("x"):
        return g.add(
            random.choice(("ArgMax", "ArgMin")), [name], axis=axis, keepdims=random.randint(0, 1),
            select_last_index=random.randint(0, 1),
        )  # fmt: skip
    if kind == "scatter" and rank and x.shape[0]:
        rows = [random.sample(range(x.shape[0]), 1)[0]]
        update = g.constant(pool.numbers((1, *x.shape[1:]), element))
        reduction = random.choice(("none", "add", "max", "min"))
        return g.add("ScatterND", [name, g.constant(np.array([rows], np.int64)), update], reduction=reduction)
    if kind == "tile" and rank:
        return g.add("Tile", [name, g.constant(np.array([random.choice((1, 2)) for _ in range(rank)], np.int64))])
    if kind == "compare" and name.startswith("x"):
        return g.add(
            random.choice(("Less", "Greater", "Equal")), [name, g.constant(pool.numbers(x.shape[-1:], element))]
        )
    if kind == "cumsum" and rank:
        place = g.constant(np.array(axis, np.int64))
        return g.add("CumSum", [name, place], exclusive=random.randint(0, 1), reverse=random.randint(0, 1))
    if kind == "conv" and rank == 4 and is_float:
        group = random.choice([n for n in (1, 2) if x.shape[1] % n == 0])
        kernel = pool.numbers((2 * group, x.shape[1] // group, 3, random.choice((1, 2))), element)
        return g.add(
            "Conv", [name, g.constant(kernel)], group=group, strides=[random.choice((1, 2)), 1], pads=[1, 1, 1, 0],
            dilations=[1, random.choice((1, 2))],
        )  # fmt: skip
    if kind == "pool" and rank == 4 and is_float:
        extra = {} if random.random() < 0.5 else {"count_include_pad": random.randint(0, 1)}
        name_ = "AveragePool" if extra else "MaxPool"
        return g.add(name_, [name], kernel_shape=[2, 2], strides=[random.choice((1, 2)), 1], pads=[1, 0, 0, 1],
                     ceil_mode=random.randint(0, 1), **extra)  # fmt: skip
    if kind == "expand":
        return g.add("Expand", [name, g.constant(np.array((2, *([1] * rank)), np.int64))])
    if kind == "squeeze":
        return g.add("Unsqueeze", [name, g.constant(np.array([axis if rank else 0], np.int64))])
    if kind == "einsum" and rank == 2 and is_float:
        return g.add("Einsum", [name, name], equation=random.choice(("ij,kj->ik", "ij,ij->i", "ij,ij->", "ij,kl->jl")))
    if kind == "resize" and rank == 4 and is_float:
        sizes = g.constant(np.array([*x.shape[:2], x.shape[2] * 2, x.shape[3] + 1], np.int64))
        return g.add(
            "Resize",
            [name, "", "", sizes],
            mode=random.choice(("nearest", "linear")),
            coordinate_transformation_mode=random.choice(("asymmetric", "half_pixel", "align_corners")),
        )
    if kind == "onehot" and element == "int64" and x.size < 60:
        return g.add("OneHot", [name, g.constant(np.int64(4)), g.constant(np.array([0, 2], np.float32))], axis=-1)
    if kind == "depth" and rank == 4:
        return g.add("DepthToSpace", [name], blocksize=2) or g.add("SpaceToDepth", [name], blocksize=2)
    if kind == "clip":
        return g.add("Clip", [name, g.constant(np.array(-1, element)), g.constant(np.array(3, element))])
    if kind == "trilu" and rank > 1:
        return g.add("Trilu", [name, g.constant(np.int64(random.randint(-1, 1)))], upper=random.randint(0, 1))
    if kind == "split" and rank and x.shape[axis] > 1 and is_float:
        return g.add("GlobalAveragePool", [name]) if rank == 4 else g.add("Identity", [name])
    return False


def judge(seed: int) -> str:
    """What is wrong about the results of a seed's graph; empty if nothing is."""
    g = _Graph(seed)
    for number in range(g.random.choice((1, 2))):
        dims = tuple(size or 2 for size in g.pool.dims())
        if g.random.random() < 0.3:
            dims = (g.random.choice((1, 2)), g.random.choice((2, 4)), 4, 6)
        array = g.pool.numbers(dims, g.random.choice(("float32", "float32", "float32", "int32", "int64")))
        g.inputs.append((f"x{number}", array if array.dtype.kind == "f" else np.clip(array, -99, 99)))
    g.values += g.inputs
    wanted, made = g.random.choice((1, 2, 4, 6)), 0
    for _ in range(40):
        made += _step(g)
        if made == wanted:
            break
    results = [name for name, _ in g.values[len(g.inputs) :]][-4:]
    if not results:
        return ""
    expected = tuple(map(np.asarray, g.run(results)))
    found = hloforge.compile(g.model(results), cache=False).load()(*(array for _, array in g.inputs))
    found = tuple(map(np.asarray, found if isinstance(found, tuple | list) else (found,)))
    report = compare(found, expected)
    return "" if report.agrees else f"{[node.op_type for node in g.nodes]}: {report.text()}"
