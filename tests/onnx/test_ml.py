"""Operators of classic machine learning (``ai.onnx.ml``), judged by ONNX Runtime; models of libraries that write them.

XLA's CPU client runs what the importer wrote, which takes milliseconds a case; models of libraries run on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import hloforge
from hloforge.importers.onnx.registry import registered
from tests.engines import shared_reference

ML = "ai.onnx.ml"
RANDOM = np.random.default_rng(0)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def rarely(values: Sequence[Any]) -> list[Any]:
    """Parameters of `make test-all` alone."""
    rare = pytest.mark.slow
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=rare) for value in values]


def model_of(
    name: str, inputs: Sequence[Any], outputs: Sequence[int], attributes: dict[str, Any], version: int
) -> bytes:
    """A model of one operator; ``outputs`` are their element types."""
    given = [
        helper.make_tensor_value_info(f"x{n}", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for n, array in enumerate(inputs)
    ]
    made = [helper.make_tensor_value_info(f"y{n}", kind, None) for n, kind in enumerate(outputs)]
    node = helper.make_node(name, [v.name for v in given], [v.name for v in made], "it", domain=ML, **attributes)
    graph = helper.make_graph([node], "one", given, made)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def compared(model: bytes, inputs: Sequence[Any], tolerance: float = 1e-5) -> None:
    """What ONNX Runtime returns is what the program returns; strings are numbers in the table of their name."""
    session = ort.InferenceSession(model)
    feeds = {entry.name: array for entry, array in zip(session.get_inputs(), inputs, strict=True)}
    program = hloforge.read(model)
    labels = dict(program.signature.labels)
    arguments = [_numbers(labels.get(name), array) for name, array in feeds.items()]
    actual = shared_reference("xla").prepare(program)(*arguments)
    results = actual if isinstance(actual, tuple) else (actual,)
    for entry, expected, result in zip(session.get_outputs(), session.run(None, feeds), results, strict=True):
        found = np.asarray(result)
        if expected.dtype == object:
            table = np.array(labels[entry.name], object)
            np.testing.assert_array_equal(table[found], expected)
            continue
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def _numbers(table: Sequence[Any] | None, array: Any) -> Any:
    if array.dtype.kind not in "OSU" or table is None:
        return array
    known = {text: number for number, text in enumerate(table)}
    return np.array([known.get(text, -1) for text in array.reshape(-1)], np.int64).reshape(array.shape)


# Trees --------------------------------------------------------------------------------------------------------------


def grown(depth: int, modes: Sequence[str], features: int, tracks: bool) -> list[dict[str, Any]]:
    """A random tree: a list of nodes with their numbers, the first one its root."""
    nodes: list[dict[str, Any]] = []

    def grow(left: int) -> int:
        number = len(nodes)
        node: dict[str, Any] = {"nodeids": number, "featureids": 0, "values": 0.0, "modes": "LEAF"}
        nodes.append(node | {"truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": 0})
        if left and (left > depth - 2 or RANDOM.random() < 0.8):
            true, false = grow(left - 1), grow(left - 1)
            nodes[number] |= {
                "featureids": int(RANDOM.integers(features)),
                "values": float(RANDOM.integers(-2, 3) / 2),
                "modes": str(RANDOM.choice(modes)),
                "missing_value_tracks_true": int(tracks and RANDOM.integers(2)),
                "truenodeids": true,
                "falsenodeids": false,
            }
        return number

    grow(depth)
    return nodes


def forest(
    count: int,
    depth: int,
    targets: int,
    *,
    modes: Sequence[str] = MODES[:1],
    tracks: bool = True,
    weights: str = "target",
    single: bool = False,
) -> dict[str, Any]:
    """The attributes of a random ensemble; with ``single`` each tree has weights for one target."""
    attributes: dict[str, list[Any]] = {}
    for tree in range(count):
        nodes = grown(depth, modes, 4, tracks)
        for node in nodes:
            attributes.setdefault("nodes_treeids", []).append(tree)
            for key, value in node.items():
                attributes.setdefault(f"nodes_{key}", []).append(value)
            if node["modes"] != "LEAF":
                continue
            for target in [tree % targets] if single else range(targets):
                attributes.setdefault(f"{weights}_treeids", []).append(tree)
                attributes.setdefault(f"{weights}_nodeids", []).append(node["nodeids"])
                attributes.setdefault(f"{weights}_ids", []).append(target)
                attributes.setdefault(f"{weights}_weights", []).append(float(RANDOM.normal()))
    return attributes


def rows(count: int = 40, dtype: Any = np.float32) -> Any:
    """Numbers that are thresholds themselves, numbers between them, and NaN."""
    x = RANDOM.integers(-5, 6, (count, 4)) / 4
    if np.dtype(dtype).kind == "f":
        x[RANDOM.random(x.shape) < 0.1] = np.nan
        x[0], x[1, 0] = -0.0, np.inf
    return x.astype(dtype)


FLOAT, INT64, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


@pytest.mark.parametrize("mode", ["all", *rarely(MODES)])
def test_comparisons(mode: str) -> None:
    attributes = forest(7, 4, 1, modes=MODES if mode == "all" else [mode])
    inputs = [rows()]
    compared(model_of("TreeEnsembleRegressor", inputs, [FLOAT], {**attributes, "n_targets": 1}, 3), inputs)


@pytest.mark.parametrize("combine", ["SUM", *rarely(["AVERAGE", "MIN", "MAX"])])
@pytest.mark.parametrize(("targets", "single"), [(3, False), (3, True), *rarely([(1, False)])])
def test_aggregates(combine: str, targets: int, single: bool) -> None:
    attributes = forest(7, 3, targets, single=single) | {"n_targets": targets, "aggregate_function": combine}
    attributes["base_values"] = [0.25 * n for n in range(targets)]
    inputs = [rows()]
    compared(model_of("TreeEnsembleRegressor", inputs, [FLOAT], attributes, 3), inputs)


@pytest.mark.parametrize("dtype", [np.float64, *rarely([np.int32, np.int64])])
def test_element_types(dtype: Any) -> None:
    inputs = [rows(dtype=dtype)]
    attributes = forest(5, 4, 3, modes=MODES[:4], weights="class") | {"classlabels_int64s": [0, 1, 2]}
    compared(model_of("TreeEnsembleClassifier", inputs, [INT64, FLOAT], attributes, 3), inputs)


def test_deep_trees() -> None:
    """A chain of 40 nodes is walked by a loop; 14 levels by nodes that know which follow."""
    for depth in (14, 40):
        names, inner = list(range(2 * depth + 1)), range(depth)
        attributes = {
            "nodes_treeids": [0] * len(names),
            "nodes_nodeids": names,
            "nodes_featureids": [n % 4 for n in names],
            "nodes_values": [1.0 - n / depth for n in names],
            "nodes_modes": ["BRANCH_LEQ" if n < depth else "LEAF" for n in names],
            "nodes_truenodeids": [n + 1 for n in inner] + [0] * (depth + 1),
            "nodes_falsenodeids": [depth + 1 + n for n in inner] + [0] * (depth + 1),
            "target_treeids": [0] * (depth + 1),
            "target_nodeids": names[depth:],
            "target_ids": [0] * (depth + 1),
            "target_weights": [float(n) for n in range(depth + 1)],
            "n_targets": 1,
        }
        inputs = [RANDOM.normal(size=(200, 4)).astype(np.float32)]
        compared(model_of("TreeEnsembleRegressor", inputs, [FLOAT], attributes, 3), inputs)


@pytest.mark.slow
def test_many_rows() -> None:
    """Rows are walked some at a time, the last ones once more."""
    inputs = [RANDOM.normal(size=(70_001, 4)).astype(np.float32)]
    attributes = forest(20, 3, 2, tracks=False) | {"n_targets": 2}
    compared(model_of("TreeEnsembleRegressor", inputs, [FLOAT], attributes, 3), inputs)


@pytest.mark.parametrize("transform", ["SOFTMAX", *rarely(["NONE", "LOGISTIC", "SOFTMAX_ZERO"])])
@pytest.mark.parametrize("single", [True, *rarely([False])])
def test_classes(transform: str, single: bool) -> None:
    attributes = forest(6, 3, 3, weights="class", single=single)
    attributes |= {"post_transform": transform, "classlabels_int64s": [7, 3, 5], "base_values": [0.1, 0.2, 0.3]}
    inputs = [rows()]
    compared(model_of("TreeEnsembleClassifier", inputs, [INT64, FLOAT], attributes, 3), inputs, 1e-4)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [True, *rarely([False])])
@pytest.mark.parametrize("base", [[0.3], *rarely([[]])])
def test_two_classes_with_one_score(transform: str, positive: bool, base: list[float]) -> None:
    attributes = forest(6, 3, 1, weights="class")
    if positive:
        attributes["class_weights"] = [abs(weight) / 6 for weight in attributes["class_weights"]]
    attributes |= {"post_transform": transform, "classlabels_strings": ["no", "yes"]}
    inputs = [rows()]
    given = attributes | ({"base_values": base} if base else {})
    compared(model_of("TreeEnsembleClassifier", inputs, [TEXT, FLOAT], given, 3), inputs, 1e-4)


def test_regressors_of_the_same_rows() -> None:
    """Single ones are one ensemble, copies of a node one node; others, and random numbers, stay."""

    def ensemble(column: str, made: str, count: int, base: list[float] | None = None, **more: Any) -> Any:
        given = forest(count, 4, 1) | ({"base_values": base} if base else {}) | more
        return helper.make_node("TreeEnsembleRegressor", [column], [made], domain=ML, n_targets=1, **given)

    def columns(made: str) -> Any:
        return helper.make_node("Gather", ["x", "places"], [made], axis=1)

    nodes = [
        columns("a"), columns("b"), ensemble("a", "p", 1), ensemble("b", "q", 3, [0.5]), columns("c"),
        helper.make_node("Add", ["p", "q"], ["pq"]), ensemble("c", "r", 1), ensemble("x", "s", 2),
        ensemble("a", "t", 2, aggregate_function="MAX"), helper.make_node("Concat", ["pq", *"rst"], ["y"], axis=1),
    ]  # fmt: skip
    x = np.nan_to_num(rows(), posinf=3.0)
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", FLOAT, x.shape)],
        [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(np.array([3, 0, 1, 2]), "places")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    compared(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString(), [x], 1e-5)


def test_new_trees() -> None:
    """``TreeEnsemble`` of version 5, with sets: a node of a leaf alone, and members that are found."""
    splits = np.array([0.5, 0, -0.25, 0.75], np.float32)
    attributes = {
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2, 3],
        "nodes_modes": numpy_helper.from_array(np.array([0, 6, 3, 6], np.uint8)),
        "nodes_splits": numpy_helper.from_array(splits),
        "nodes_truenodeids": [1, 0, 3, 4],
        "nodes_falsenodeids": [2, 1, 3, 5],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falseleafs": [1, 1, 0, 1],
        "nodes_missing_value_tracks_true": [0, 1, 1, 0],
        "membership_values": numpy_helper.from_array(np.array([-1, 0, 1, np.nan, 1, np.nan], np.float32)),
        "leaf_targetids": [0, 1, 0, 1, 0, 1],
        "leaf_weights": numpy_helper.from_array(np.arange(1, 7, dtype=np.float32)),
        "n_targets": 2,
    }
    x = rows(64)
    for combine in (1, 2, 3):
        model = model_of("TreeEnsemble", [x], [FLOAT], attributes | {"aggregate_function": combine}, 5)
        # ONNX Runtime rounds what it looks for in a set.
        compared(model, [np.nan_to_num(x, posinf=3).round()])


def test_trees_that_are_none() -> None:
    attributes = forest(2, 3, 1) | {"n_targets": 1}
    loop = attributes | {"nodes_truenodeids": [0] * len(attributes["nodes_treeids"])}
    inputs = [rows()]
    with pytest.raises(hloforge.Error, match=r'in a circle|node "it"'):
        hloforge.read(model_of("TreeEnsembleRegressor", inputs, [FLOAT], loop, 3))
    gone = attributes | {"nodes_falsenodeids": [99] * len(attributes["nodes_treeids"])}
    with pytest.raises(hloforge.Error, match="a tree has no node 99"):
        hloforge.read(model_of("TreeEnsembleRegressor", inputs, [FLOAT], gone, 3))
    with pytest.raises(hloforge.Error, match="a row has 2 features"):
        hloforge.read(model_of("TreeEnsembleRegressor", [rows()[:, :2]], [FLOAT], attributes, 3))


# Linear models, support vectors -------------------------------------------------------------------------------------


def flat(*dims: int) -> list[float]:
    return [float(number) for number in RANDOM.normal(size=dims).reshape(-1)]


def svm(classes: int, kernel: str, **more: Any) -> dict[str, Any]:
    count = [2 + n for n in range(classes)]
    return {
        "classlabels_ints": [5 * n + 1 for n in range(classes)],
        "vectors_per_class": count,
        "support_vectors": flat(sum(count), 4),
        "coefficients": flat(classes - 1, sum(count)),
        "rho": flat(classes * (classes - 1) // 2),
        "kernel_type": kernel,
        "kernel_params": [0.3, 0.5, 2.0],
        **more,
    }


X = RANDOM.normal(size=(9, 4)).astype(np.float32)
PAIRS = {"prob_a": [-1.0, -0.7, -1.3], "prob_b": [0.1, 0.0, -0.2]}
MAP = {"keys_strings": ["a", "b", "c"], "values_int64s": [10, 20, 30]}
WORDS = np.array([["b", "a"], ["other", "c"]], object)
KEYS = [2, -7, 40, 5, 2**40]
CASES: list[tuple[str, list[Any], list[int], dict[str, Any], int]] = [
    ("LinearRegressor", [X], [FLOAT], {"coefficients": flat(3, 4), "intercepts": flat(3), "targets": 3}, 1),
    ("LinearRegressor", [X], [FLOAT], {"coefficients": flat(1, 4), "targets": 1}, 1),
    *(
        (
            "LinearClassifier", [X], [INT64, FLOAT],
            {"coefficients": flat(n, 4), "intercepts": flat(n), "classlabels_ints": list(range(3, 3 + max(n, 2))),
             "post_transform": transform},
            1,
        )
        for n in (3, 2)
        for transform in TRANSFORMS
    ),
    ("LinearClassifier", [X], [INT64, FLOAT],
     {"coefficients": flat(4), "intercepts": flat(1), "classlabels_ints": [2, 9], "post_transform": "LOGISTIC"}, 1),
    ("LinearClassifier", [X.astype(np.float64)], [TEXT, FLOAT],
     {"coefficients": flat(3, 4), "intercepts": flat(3), "classlabels_strings": ["x", "y", "z"]}, 1),
    *(("SVMClassifier", [X], [INT64, FLOAT], svm(3, kernel), 1) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    ("SVMClassifier", [X], [INT64, FLOAT], svm(3, "RBF", **PAIRS), 1),
    ("SVMClassifier", [X], [INT64, FLOAT], svm(2, "RBF", prob_a=[-1.0], prob_b=[0.2]), 1),
    ("SVMClassifier", [X], [INT64, FLOAT], svm(2, "RBF"), 1),
    ("SVMClassifier", [X], [INT64, FLOAT],
     {"coefficients": flat(3, 4), "rho": [0.2], "classlabels_ints": [1, 2, 4], "kernel_params": [0.0] * 3,
      "post_transform": "SOFTMAX"}, 1),
    *(
        ("SVMRegressor", [X], [FLOAT],
         {"n_supports": 5, "support_vectors": flat(5, 4), "coefficients": flat(5), "rho": [0.1], "kernel_type": kernel,
          "kernel_params": [0.3, 0.5, 3.0], "one_class": one}, 1)
        for kernel, one in (("RBF", 0), ("POLY", 1))
    ),
    ("SVMRegressor", [X], [FLOAT],
     {"n_supports": 0, "coefficients": flat(4), "rho": [0.1], "kernel_params": [0.0] * 3}, 1),
    # Features.
    *(("Normalizer", [np.concatenate([X, 0 * X[:1]])], [FLOAT], {"norm": norm}, 1) for norm in ("L1", "L2")),
    ("Normalizer", [np.abs(X)], [FLOAT], {"norm": "MAX"}, 1),
    ("Scaler", [X], [FLOAT], {"offset": flat(4), "scale": flat(4)}, 1),
    ("Scaler", [np.arange(8).reshape(2, 4)], [FLOAT], {"offset": [0.5], "scale": [2.0]}, 1),
    ("Binarizer", [X], [FLOAT], {"threshold": 0.1}, 1),
    ("Imputer", [rows()], [FLOAT], {"imputed_value_floats": flat(4), "replaced_value_float": float("nan")}, 1),
    ("Imputer", [rows(dtype=np.int64)], [INT64], {"imputed_value_int64s": [9], "replaced_value_int64": 1}, 1),
    ("ArrayFeatureExtractor", [X, np.array([3, 1])], [FLOAT], {}, 1),
    ("ArrayFeatureExtractor", [X[0], np.array([[3, 1, 1]])], [FLOAT], {}, 1),
    ("FeatureVectorizer", [X, X[:, :2]], [FLOAT], {"inputdimensions": [4, 2]}, 1),
    ("OneHotEncoder", [np.array([2, 5, -7, 3])], [FLOAT], {"cats_int64s": KEYS}, 1),
    ("OneHotEncoder", [np.array([[1.7, -1.2], [0.5, -0.5]], np.float32)], [FLOAT], {"cats_int64s": [-1, 0, 1]}, 1),
    ("OneHotEncoder", [WORDS], [FLOAT], {"cats_strings": ["c", "b", "d"]}, 1),
    # Maps.
    ("LabelEncoder", [WORDS], [INT64], {**MAP, "default_int64": -5}, 2),
    ("LabelEncoder", [WORDS], [TEXT], {"keys_strings": ["a", "b"], "values_strings": ["x", "y"]}, 4),
    ("LabelEncoder", [np.array([2, 5, 6, 2**40, -7])], [TEXT],
     {"keys_int64s": KEYS, "values_strings": ["two", "-7", "40", "five", "big"], "default_string": "none"}, 2),
    ("LabelEncoder", [np.array([2, 5, 6, 2**40])], [FLOAT], {"keys_int64s": KEYS, "values_floats": flat(5)}, 2),
    ("LabelEncoder", [np.array([2, 5, 4, -(2**63), 2**63 - 1])], [FLOAT],
     {"keys_int64s": [5, 2, 3], "values_floats": flat(3), "default_float": -1.0}, 2),
    ("LabelEncoder", [np.array([2, 5, 4, 0, 2**40])], [INT64],
     {"keys_int64s": [4, 5, 6], "values_int64s": [7, 8, 9]}, 2),
    ("LabelEncoder", [np.array([0.5, np.nan, 1, -0.0], np.float32)], [INT64],
     {"keys_floats": [1.0, float("nan"), 0.5, 0.0], "values_int64s": [1, 2, 3, 4]}, 4),
    ("CategoryMapper", [WORDS], [INT64], {"cats_strings": ["b", "c"], "cats_int64s": [4, 6], "default_int64": 1}, 1),
    ("CategoryMapper", [np.array([4, 5])], [TEXT], {"cats_strings": ["b", "c"], "cats_int64s": [4, 6]}, 1),
]  # fmt: skip


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    "number",
    [number if number % 4 == 0 else pytest.param(number, marks=pytest.mark.slow) for number in range(len(CASES))],
)
def test_operators(number: int) -> None:
    name, inputs, outputs, attributes, version = CASES[number]
    compared(model_of(name, inputs, outputs, attributes, version), inputs, 1e-4)


def test_all_operators() -> None:
    """Every operator of the domain is imported, or says why not."""
    from onnx import defs

    known = {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == ML}
    assert known == {name for domain, name in registered() if domain == ML}


# Strings ------------------------------------------------------------------------------------------------------------


def test_strings_are_moved_and_compared() -> None:
    """Operators that move elements move the numbers of strings, in one table with those of the model."""
    text = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Reshape", ["words", "shape"], ["row"]),
        helper.make_node("Concat", ["row", "more"], ["all"], axis=0),
        helper.make_node("Equal", ["all", "asked"], ["is"]),
        helper.make_node("LabelEncoder", ["all"], ["codes"], domain=ML, **MAP),
    ]
    constants = [
        numpy_helper.from_array(np.array([-1]), "shape"),
        numpy_helper.from_array(np.array(["c", "new"], object), "more"),
        numpy_helper.from_array(np.array(["b"], object), "asked"),
    ]
    results = [text("all", TEXT, None), text("is", TensorProto.BOOL, None), text("codes", INT64, None)]
    graph = helper.make_graph(nodes, "texts", [text("words", TEXT, [2, 2])], results, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    program = hloforge.read(model)
    labels = dict(program.signature.labels)
    assert hloforge.read(program.text().encode()).signature == program.signature
    everything, is_asked, codes = shared_reference("xla").prepare(program)(_numbers(labels["words"], WORDS))
    table = [*labels["all"], None]
    assert [table[number] for number in np.asarray(everything)] == ["b", "a", None, "c", "c", "new"]
    assert np.asarray(is_asked).tolist() == [True, False, False, False, False, False]
    assert np.asarray(codes).tolist() == [20, 10, -1, 30, 30, -1]


def test_a_map_is_a_tensor_with_labels() -> None:
    """The scores of a classifier with a ZipMap, and the table of names, from the file as well."""
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, coefficients=flat(3, 4),
                         intercepts=flat(3), classlabels_strings=["x", "y", "z"], post_transform="SOFTMAX"),
        helper.make_node("ZipMap", ["scores"], ["chances"], domain=ML, classlabels_strings=["x", "y", "z"]),
    ]  # fmt: skip
    kind = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, None))
    outputs = [
        helper.make_tensor_value_info("label", TEXT, [None]),
        helper.make_value_info("chances", helper.make_sequence_type_proto(kind)),
    ]
    graph = helper.make_graph(nodes, "zip", [helper.make_tensor_value_info("x", FLOAT, ["rows", 4])], outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    labels, chances = ort.InferenceSession(model).run(None, {"x": X})
    compiled = hloforge.load(hloforge.compile(model, shapes={"x": X.shape}).vmfb)
    assert compiled.labels == {"label": ("x", "y", "z"), "chances": ("x", "y", "z")}
    assert compiled.signature.result_names == ("label", "chances")
    numbers, table = compiled(X)
    assert [compiled.labels["label"][n] for n in numbers] == labels.tolist()
    np.testing.assert_allclose(table, [[row[name] for name in "xyz"] for row in chances], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "attributes", "reason"),
    [
        ("OneHotEncoder", {"cats_int64s": [1], "zeros": 0}, "unknown category"),
        ("TreeEnsembleRegressor", {}, "different lengths"),
        ("Imputer", {}, "imputed_value_floats is missing"),
    ],
)
def test_refusals(name: str, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(hloforge.Error, match=reason):
        hloforge.read(model_of(name, [X], [FLOAT], attributes, 1))


def test_a_map_is_no_input() -> None:
    kind = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, None))
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["a"])
    graph = helper.make_graph(
        [node], "map", [helper.make_value_info("x", kind)], [helper.make_tensor_value_info("y", FLOAT, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 1)], ir_version=10).SerializeToString()
    with pytest.raises(hloforge.UnsupportedError, match="'x' is a map; a program takes and returns tensors"):
        hloforge.read(model)


# Models of libraries ------------------------------------------------------------------------------------------------


def data() -> tuple[Any, Any, Any]:
    x = RANDOM.normal(size=(200, 5)).astype(np.float32)
    return x, np.digitize(x[:, 0] + 0.5 * x[:, 1], [-0.5, 0.5]), 2 * x[:, 0] + np.sin(x[:, 1])


def on_the_cpu(model: bytes, x: Any) -> None:
    """The compiled program and ONNX Runtime agree; scores in maps are a tensor."""
    expected = ort.InferenceSession(model).run(None, {"X": x})
    results = hloforge.compile(model)(x)
    for found, wanted in zip(results if isinstance(results, tuple) else (results,), expected, strict=True):
        array = np.array([[*row.values()] for row in wanted]) if isinstance(wanted, list) else wanted
        np.testing.assert_allclose(found, array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["RandomForestClassifier", *rarely(["GradientBoostingRegressor", "SVC"])])
def test_scikit_learn(name: str) -> None:
    pytest.importorskip("skl2onnx")
    import sklearn.ensemble
    import sklearn.svm
    from skl2onnx import to_onnx

    x, classes, numbers = data()
    kind = getattr(sklearn.ensemble, name, None) or getattr(sklearn.svm, name)
    estimator = kind() if name == "SVC" else kind(n_estimators=8)
    estimator.fit(x, numbers if name.endswith("Regressor") else classes)
    on_the_cpu(to_onnx(estimator, x[:1], target_opset={"": 18, ML: 3}).SerializeToString(), x[:50])


@pytest.mark.parametrize("name", ["lightgbm", *rarely(["xgboost"])])
def test_boosted_trees(name: str) -> None:
    library = pytest.importorskip(name)
    onnxmltools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, classes, _ = data()
    x[::5, 0] = np.nan
    kind = library.LGBMClassifier if name == "lightgbm" else library.XGBClassifier
    model = kind(n_estimators=6, **({"verbose": -1} if name == "lightgbm" else {"max_depth": 4}))
    model.fit(x, classes)
    convert = getattr(onnxmltools, f"convert_{name}")
    converted = convert(model, initial_types=[("X", FloatTensorType([None, 5]))], target_opset=15)
    on_the_cpu(converted.SerializeToString(), x[:50])
