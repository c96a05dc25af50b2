"""How models become programs: names in locations and errors, sizes at the call, weights, damaged files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hloforge
from hloforge.dialect.errors import ArgumentError, ImporterError, UnsupportedError
from hloforge.importers.onnx.registry import registered
from hloforge.importers.reader import read
from hloforge.pipelines.dynamic.specialize import specialize


def model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], weights: Any = (), **fields: Any) -> bytes:
    """A serialized model; an input is (element type, sizes)."""
    entries = [
        [helper.make_tensor_value_info(name, *kind) for name, kind in side.items()] for side in (inputs, outputs)
    ]
    graph = helper.make_graph(
        nodes, "graph", *entries, [numpy_helper.from_array(a, n) for n, a in dict(weights).items()]
    )
    fields.setdefault("opset_imports", [helper.make_opsetid("", 21)])
    data: bytes = helper.make_model(graph, **fields).SerializeToString()
    return data


F32, I64 = TensorProto.FLOAT, TensorProto.INT64
VECTOR = {"x": (F32, [4])}, {"y": (F32, [4])}


def test_operations_carry_the_names_of_their_nodes() -> None:
    program = read(model([helper.make_node("Exp", ["x"], ["y"], "exp7")], *VECTOR))
    assert r'loc("node \22exp7\22 (Exp)"' in program.text(locations=True)
    assert str(program.signature) == "(x: f32[4]) -> f32[4]"


def test_an_unknown_operator_is_named_with_its_node() -> None:
    data = model(
        [helper.make_node("Blur", ["x"], ["y"], "blur0", domain="com.example")],
        *VECTOR,
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)],
    )
    with pytest.raises(UnsupportedError, match=r"the operator com\.example\.Blur is not imported") as caught:
        read(data)
    assert 'node "blur0" (Blur)' in caught.value.op


def test_a_rule_that_a_node_breaks_names_the_node() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    data = model(nodes, {"x": (F32, [2, 3])}, {"y": (F32, [2, 2])}, {"w": np.zeros((4, 2), np.float32)})
    with pytest.raises(hloforge.Error) as caught:
        read(data)
    assert 'node "product" (MatMul)' in caught.value.op


def test_strings_and_sequences_are_refused_by_name() -> None:
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"])]
    with pytest.raises(
        UnsupportedError, match="strings are numbers of a table in a program, and StringNormalizer needs"
    ):
        read(model(nodes, {"x": (TensorProto.STRING, [1])}, {"y": (TensorProto.STRING, [1])}))
    x = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, [2]))
    graph = helper.make_graph(
        [helper.make_node("SequenceAt", ["x", "n"], ["y"])],
        "g",
        [helper.make_value_info("x", x)],
        [helper.make_tensor_value_info("y", F32, [2])],
        [numpy_helper.from_array(np.array(0), "n")],
    )
    with pytest.raises(UnsupportedError, match="'x' is a sequence"):
        read(helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize("rows", [3, "n"])
@pytest.mark.parametrize("pairs", [False, True])
def test_an_output_that_is_a_sequence_is_a_result_for_each_tensor(rows: Any, pairs: bool) -> None:
    """The classes of several targets, as skl2onnx writes them; of open sizes the signature has to say how many."""
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Neg", ["e"], ["m"])]
    nodes += [helper.make_node("SequenceConstruct", ["e", "m"], ["s"])]
    nodes += [helper.make_node("SequenceInsert", ["s", "x"], ["y"])] if pairs else []
    kind = helper.make_tensor_type_proto(F32, [rows, 2])
    outputs = [
        helper.make_value_info("y" if pairs else "s", helper.make_sequence_type_proto(kind)),
        helper.make_tensor_value_info("m", F32, [rows, 2]),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F32, [rows, 2])], outputs)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    if pairs and rows == "n":
        with pytest.raises(UnsupportedError, match="length is not known before the call"):
            read(data)
        return
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    expected = [np.exp(x), -np.exp(x), *([x] if pairs else []), -np.exp(x)]
    found = hloforge.load(hloforge.compile(data))(x)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    if rows == 3:
        names = read(data).signature.result_names
        assert list(names) == [f"{'y' if pairs else 's'}.{n}" for n in range(len(expected) - 1)] + ["m"]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_cut_file_is_an_error(cut: int) -> None:
    data = model([helper.make_node("Exp", ["x"], ["y"], "exp")], *VECTOR)
    with pytest.raises(hloforge.Error):
        read(data[:-cut], format="onnx")


def test_a_graph_that_uses_what_no_node_makes_is_an_error() -> None:
    with pytest.raises(ImporterError, match="no node before it makes 'nothing'"):
        read(model([helper.make_node("Add", ["x", "nothing"], ["y"], "add")], *VECTOR))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_nodes_may_come_in_any_order(order: tuple[int, ...]) -> None:
    """As converters leave them, and ONNX Runtime takes them; a branch reads what the graph around it makes."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["twice"], ["made"])],
            name,
            [],
            [helper.make_tensor_value_info("made", F32, [4])],
        )
        for name, operator in (("then_branch", "Neg"), ("else_branch", "Exp"))
    }
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("If", ["chosen"], ["given"], **branches),
        helper.make_node("Add", ["given", "twice"], ["y"]),
    ]
    inputs = {"x": (F32, [4]), "chosen": (TensorProto.BOOL, [])}
    data = model([nodes[number] for number in order], inputs, VECTOR[1])
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(hloforge.compile(data)(x, np.array(True)), np.zeros(4, np.float32))


def test_nodes_that_read_each_other_are_an_error() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Add", ["a", "x"], ["b"])]
    with pytest.raises(ImporterError, match=r"no node before it makes '[ab]'"):
        read(model([*nodes, helper.make_node("Neg", ["b"], ["y"])], *VECTOR))


def test_sizes_are_folded() -> None:
    """A chain from Shape to Reshape leaves one reshape behind."""
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "first"], ["batch"], axis=0),
        helper.make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {"first": np.array([0]), "rest": np.array([-1])}
    program = read(model(nodes, {"x": (F32, [2, 3, 4])}, {"y": (F32, [2, 12])}, weights))
    text = program.text()
    assert "stablehlo.reshape" in text and "concatenate" not in text and "gather" not in text


def test_a_call_brings_sizes_and_the_elements_that_decide_them() -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "at"], axis=-1)]
    data = model(nodes, {"x": (F32, ["n", 6]), "k": (I64, [1])}, {"y": (F32, ["n", "k"]), "at": (I64, ["n", "k"])})
    call = hloforge.compile(data).load()
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    for rows, k in ((3, 2), (3, 4), (2, 4)):
        values, places = call(x[:rows], np.array([k]))
        best = np.argsort(-x[:rows], 1)[:, :k]
        np.testing.assert_array_equal(places, best)
        np.testing.assert_array_equal(values, np.take_along_axis(x[:rows], best, 1))


def test_results_of_open_sizes_have_their_names(tmp_path: Path) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["grown"]), helper.make_node("ReduceSum", ["grown"], ["total"], keepdims=0)]
    data = model(nodes, {"x": (F32, ["n", 3])}, {"total": (F32, []), "grown": (F32, ["n", 3])})
    assert read(data).signature.result_names == ("total", "grown")
    hloforge.compile(data, buckets={"n": [2, 4]}, output=tmp_path / "model.vmfb")
    assert hloforge.load(tmp_path / "model.vmfb").signature.result_names == ("total", "grown")


def test_elements_that_decide_sizes_are_asked_for_by_name() -> None:
    nodes = [helper.make_node("Reshape", ["x", "target"], ["y"])]
    program = read(model(nodes, {"x": (F32, [4]), "target": (I64, [2])}, {"y": (F32, [2, 2])}))
    with pytest.raises(ArgumentError, match="the elements of target decide sizes"):
        specialize(program, [parameter.shape for parameter in program.signature.parameters])


@pytest.mark.parametrize("size", [1, "n"])
def test_external_data_lies_beside_the_model(size: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    weight = np.arange(4096, dtype=np.float32)
    proto = onnx.load_from_string(
        model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (F32, [size])}, {"y": (F32, [4096])}, {"w": weight})
    )
    path = tmp_path / "model.onnx"
    onnx.save(proto, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    options: dict[str, Any] = {"shapes": {"x": (1,)}} if size == "n" else {}
    one = np.ones(1, np.float32)
    np.testing.assert_array_equal(hloforge.compile(path, **options)(one), weight + 1)
    # Other weights under the same model are another program, also for the cache of compilations.
    (tmp_path / "weights.bin").write_bytes((weight * 2).tobytes())
    np.testing.assert_array_equal(hloforge.compile(path, **options)(one), weight * 2 + 1)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ImporterError, match="external data"):
        hloforge.compile(path)


def test_large_initializers_are_weights_under_their_names(tmp_path: Path) -> None:
    weight = np.arange(4096, dtype=np.float32)
    nodes = [helper.make_node("Add", ["x", "bias"], ["y"])]
    data = model(nodes, {"x": (F32, [1])}, {"y": (F32, [4096])}, {"bias": weight})
    file = tmp_path / "weights.safetensors"
    executable = hloforge.compile(data, externalize_weights=file)
    assert len(executable.vmfb) < 3 * weight.nbytes and b"bias" in file.read_bytes()[:200]
    np.testing.assert_array_equal(executable(np.ones(1, np.float32)), weight + 1)


def test_a_function_of_the_model_is_inlined() -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["b"], "square")]
    function = helper.make_function("com.example", "Square", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)]
    nodes = [helper.make_node("Square", ["x"], ["y"], "outer", domain="com.example")]
    program = read(model(nodes, *VECTOR, functions=[function], opset_imports=opsets))
    assert "stablehlo.multiply" in program.text()
    assert r'loc("node \22square\22 (Mul)"' in program.text(locations=True)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = model([helper.make_node("Exp", ["x"], ["y"])], *VECTOR)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImporterError, match="is not installed") as caught:
        read(data)
    assert "hloforge[onnx]" in caught.value.hint


def test_reading_other_programs_does_not_import_onnx() -> None:
    code = "import sys, hloforge; hloforge.read('func.func @main() { return }'); assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_operator_is_one_of_the_schemas() -> None:
    runtime = pytest.importorskip("onnxruntime.capi._pybind_state")
    schemas = (*onnx.defs.get_all_schemas_with_history(), *runtime.get_all_operator_schema())
    assert set(registered()) <= {(schema.domain, schema.name) for schema in schemas}


def test_roots_and_logarithms_of_integers_are_cut() -> None:
    """As ONNX Runtime has them."""
    names = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    kind = (TensorProto.INT32, [4]), (TensorProto.INT32, [1])
    nodes = [helper.make_node(name, ["x"], [name]) for name in names]
    data = model(nodes, {"x": kind[0]}, dict.fromkeys(names, kind[1]))
    found = hloforge.compile(data, cache=False).load()(np.array([3, 5, 50, 7], np.int32))
    assert [int(one[0]) for one in found] == [50, 4, 50]


def test_a_tensor_that_lies_about_its_size_is_named() -> None:
    data = model([helper.make_node("Add", ["x", "w"], ["y"])], *VECTOR, weights={"w": np.ones(4, np.float32)})
    proto = onnx.ModelProto.FromString(data)
    proto.graph.initializer[0].dims[0] = 34
    with pytest.raises(ImporterError, match="the tensor 'w' is damaged"):
        read(proto.SerializeToString())


def test_a_sparse_tensor_of_few_bytes_is_not_unpacked_to_terabytes() -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64)), [1 << 40])
    proto = onnx.ModelProto.FromString(model([helper.make_node("Add", ["x", "w"], ["y"])], *VECTOR))
    proto.graph.sparse_initializer.append(sparse)
    with pytest.raises(ImporterError, match="claims 1,099,511,627,776 elements"):
        read(proto.SerializeToString())


def test_types_that_the_outputs_lack_are_inferred() -> None:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", given, [ValueInfoProto(name="y")])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    x = np.float32([[1, -2, 3]])
    np.testing.assert_array_equal(hloforge.compile(data)(x), np.maximum(x, 0))


def test_types_that_nobody_knows_are_asked_for() -> None:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    node = helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")
    graph = helper.make_graph([node], "graph", given, [ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    with pytest.raises(hloforge.UnsupportedError, match="does not say the type of 'y'"):
        hloforge.read(data)


def test_attributes_of_other_modes_mean_nothing() -> None:
    """PyTorch writes the rule for nearest neighbours, and a cubic's coefficient, where it interpolates linearly."""
    node = helper.make_node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
        nearest_mode="floor",
        cubic_coeff_a=-0.5,
    )
    sizes = {"sizes": np.array([1, 1, 4, 6], np.int64)}
    data = model([node], {"x": (F32, [1, 1, 2, 3])}, {"y": (F32, [1, 1, 4, 6])}, sizes)
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    (want,) = ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(hloforge.compile(data).load()(x)), want, rtol=1e-6)
