"""What a file says is data: each mark of ours that a file brings has no effect, is refused, or is compared."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.dialect import marks
from hloforge.dialect.errors import ImporterError
from hloforge.dialect.marks import MARKS, On
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.library_calls.registry import _REGISTRY, similar_targets

ROOT = Path(marks.__file__).parent.parent
FOLDERS = ("dialect", "importers", "pipelines", "runtime", "src/hloforge", "tools")
OF_FILES = {
    "hloforge.manifest": "the key of the manifest in a vmfb",
    "hloforge.dispatches": "the key of its dispatches' names",
    "iree.compiler": "a package",
    "iree.compiler._mlir_libs": "a package",
    "iree.compiler._mlir_libs._mlir": "a module",
    "iree.compiler.passmanager": "a module",
    "hloforge.profile": "the kind of a profile",
    "hloforge.time-profile": "the kind of a measurement",
    "hloforge.verification": "the kind of a report",
    "hloforge.signature": "the kind of a signature",
    "hloforge.iree_flags": "a key of the command line's context",
    "hloforge.recurrent": "an operator of PyTorch",
    "hloforge.recurrent_layer": "an operator of PyTorch",
    "hloforge.recurrent_layer_backward": "an operator of PyTorch",
}
VALUES = {
    "hloforge.in_bounds": "",
    "hloforge.host_call": ' = "{}"',
    "hloforge.host_functions": ' = ["system"]',
    "hloforge.grid": " = array<i64: 1, 1>",
    "hloforge.sharded": ' = "[]"',
}
# What IREE believes of a program, by where it looks for it.
OF_IREE = {
    "hal.device.targets": " = [#hal.device.target<x>]",
    "stream.topology": " = 1 : i32",
    "iree.abi.stub": "",
    "iree.abi": ' = "{}"',
    "lowering_config": " = #iree_codegen.lowering_config<tile_sizes = [[1]]>",
    "compilation_info": " = 1 : i32",
    "translation_info": " = 1 : i32",
    "llvm.emit_c_interface": "",
    "in_bounds": "",
}


def gather(*, module: str = "", function: str = "", argument: str = "", operation: str = "", call: str = "") -> str:
    def braces(text: str) -> str:
        return f" {{{text}}}" if text else ""

    return f"""module{" attributes" if module else ""}{braces(module)} {{
      func.func @main(%x: tensor<4xf32>{braces(argument)}, %i: tensor<3x1xi64>) -> tensor<3xf32>{
        f" attributes{braces(function)}" if function else ""
    } {{
        %g = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}}>
          {braces(operation)} : (tensor<4xf32>, tensor<3x1xi64>) -> tensor<3xf32>
        %c = stablehlo.custom_call @of_the_user(%g){braces(call)} : (tensor<3xf32>) -> tensor<3xf32>
        return %c : tensor<3xf32>
      }}
    }}"""


PLAIN = read(gather()).text()
ATTRIBUTES = sorted({mark.name for mark in MARKS.values() if mark.on in (On.MODULE, On.OPERATION)})


def _is_carried(name: str, place: str) -> bool:
    """Whether a file may bring an attribute, which is compared below."""
    on = On.MODULE if place == "module" else On.OPERATION
    return place in ("module", "call") and marks.is_carried(name, on)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name in (*ATTRIBUTES, *OF_IREE, "hloforge.of_tomorrow", "unknown.attribute")
        for place in ("module", "function", "argument", "operation", "call")
        if not _is_carried(name, place)
    ],
)
def test_an_attribute_in_a_file_has_no_effect(name: str, place: str) -> None:
    text = gather(**{place: name + OF_IREE.get(name, VALUES.get(name, " = 1 : i32"))})
    if "." not in name and place in ("module", "argument"):
        with pytest.raises(ImporterError, match="only"):
            read(text)
    else:
        assert read(text).text() == PLAIN


@pytest.mark.parametrize("mark", [mark for mark in MARKS.values() if mark.on is On.TARGET], ids=lambda mark: mark.name)
def test_a_call_of_ours_in_a_file_is_refused(mark: marks.Mark) -> None:
    target = f"{mark.name}x" if mark.name.endswith(".") else mark.name
    with pytest.raises(ImporterError, match=f"custom_call @{target}: .* hloforge's own") as caught:
        read(gather().replace("@of_the_user", f"@{target}"))
    assert str(caught.value.location) == "<string>:6:14"
    hlo = f'ENTRY e {{ x = f32[4] parameter(0)\n  ROOT y = f32[4] custom-call(x), custom_call_target="{target}" }}'
    with pytest.raises(ImporterError, match=f"custom_call @{target}: .* hloforge's own") as caught:
        read(f"HloModule m\n{hlo}")
    assert str(caught.value.location) == "<string>:3:8"


def test_what_jax_calls_libraries_by_is_no_mark() -> None:
    similar_targets("")  # loads them

    ours = {name for name in _REGISTRY if name.startswith(marks.PREFIX)}
    assert ours - marks.LIBRARY_FUNCTIONS == {marks.RNG_STATE} and ours >= marks.LIBRARY_FUNCTIONS
    assert not marks.LIBRARY_FUNCTIONS & {mark.name for mark in MARKS.values()}


@pytest.mark.parametrize("mark", [mark for mark in MARKS.values() if mark.on is On.SYMBOL], ids=lambda mark: mark.name)
@pytest.mark.parametrize("body", [False, True])
def test_a_function_of_our_name_is_refused(mark: marks.Mark, body: bool) -> None:
    function = f"func.func private @{mark.name}0(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}"
    if not body:
        function = f"func.func private @{mark.name}0(tensor<f32>) -> tensor<f32>"
    with pytest.raises(ImporterError, match=f"function @{mark.name}0: .* hloforge's own"):
        read(f"{function}\nfunc.func @main(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}")


def test_a_function_without_a_body_is_refused() -> None:
    with pytest.raises(ImporterError, match=r"function @hal.device.query has no body"):
        read("""func.func private @hal.device.query() -> i32
          func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }""")


@pytest.mark.parametrize(
    "text",
    [
        "%e = tensor.extract %x[%i] : tensor<4xf32>",
        "%e = arith.divsi %i, %i : index",
        '"util.return"() : () -> ()',
        '%e = "flow.dispatch"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        "%m = memref.alloca() : memref<4xf32>\n%e = vector.load %m[%i] : memref<4xf32>, vector<4xf32>",
    ],
)
def test_operations_below_stablehlo_are_refused(text: str) -> None:
    with pytest.raises(ImporterError, match="is no operation of StableHLO but of dialect") as caught:
        read(f"func.func @main(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {{\n{text}\nreturn %x : tensor<4xf32> }}")
    assert str(caught.value.location).startswith("<string>:")


@pytest.mark.parametrize(
    "type_", ["!hal.buffer", "tensor<4x!hal.x>", "tensor<4xf32, #iree_encoding.x>", "tuple<tensor<f32>, !vm.ref<!x>>"]
)
def test_types_of_iree_are_refused(type_: str) -> None:
    with pytest.raises(ImporterError, match="is of dialect"):
        read(
            f"func.func @main(%x: {type_}) -> tensor<f32> {{ %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
            "return %c : tensor<f32> }"
        )


# --- What a file may bring is compared with the types.

SIGNATURE = {
    "parameter_names": '["a"]',
    "parameter_shapes": '["f32[4,8]{0,1}"]',
    "result_shape": '"(f32[4,8])"',
    "input_output_alias": '["{0}: (0, {}, may-alias)"]',
}


def signed(**changes: str) -> str:
    entries = ", ".join(f"hloforge.{name} = {value}" for name, value in (SIGNATURE | changes).items())
    return f"""module attributes {{{entries}}} {{
      func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{ return %x : tensor<4x8xf32> }} }}"""


def test_a_signature_that_agrees() -> None:
    program = read(signed(num_replicas="2 : i32", partitioned="unit"))
    assert str(program.signature) == "(a: f32[4,8]{0,1}) -> (f32[4,8])"
    assert read(program.text()).text() == program.text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameter_shapes": '["f32[4,9]"]'}, r"parameter 'a' is f32\[4,9\], and @main has tensor<4x8xf32>"),
        ({"parameter_shapes": '["f64[4,8]"]'}, r"parameter 'a' is f64\[4,8\]"),
        ({"parameter_shapes": '["f32[32]"]'}, r"parameter 'a' is f32\[32\]"),
        ({"parameter_shapes": '["f32[<=4,8]"]'}, r"parameter 'a' is f32\[<=4,8\]"),
        ({"parameter_shapes": '["token[]"]'}, r"parameter 'a' is token\[\]"),
        ({"parameter_shapes": '["(f32[4,8], f32[4,8])"]'}, "names 2 parameters, and @main has 1"),
        ({"parameter_names": "[]", "parameter_shapes": "[]", "input_output_alias": "[]"}, "names 0 parameters"),
        ({"result_shape": '"(f32[4,8], f32[4,8])"'}, "names 2 results, and @main has 1"),
        ({"result_shape": '"f32[1000000,8]"', "input_output_alias": "[]"}, "result 0 is f32"),
        ({"input_output_alias": '["{0}: (1, {}, may-alias)"]'}, "names no parameter or no result"),
        ({"input_output_alias": '["{1}: (0, {}, may-alias)"]'}, "names no parameter or no result"),
        ({"input_output_alias": '["{0}: (0, {3}, may-alias)"]'}, "names no parameter or no result"),
        ({"input_output_alias": '["{}: (0, {}, may-alias)"]'}, "a whole tuple has no buffer"),
        ({"num_replicas": "0 : i32"}, "num_replicas = 0 : i32 is no number of devices"),
        ({"num_partitions": '"two"'}, "is no number of devices"),
        ({"num_partitions": "-1 : i64"}, "is no number of devices"),
        ({"partitioned": "1 : i32"}, "hloforge.partitioned has the value 1"),
    ],
)
def test_a_signature_that_lies_is_one_located_error(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ImporterError, match=message) as caught:
        read(signed(**changes))
    assert str(caught.value.location).startswith("<string>")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('hloforge.result_shape = "(f32[4])"', "and the call returns other types"),
        ('hloforge.result_shape = "(f32[3], f32[3])"', "and the call returns other types"),
        ('hloforge.result_shape = "f32["', "is no shape"),
        ("hloforge.result_shape = 3 : i32", "is no shape"),
        (
            'hloforge.result_shape = "(f32[3])", hloforge.result_aliases = [#stablehlo.output_operand_alias<'
            "output_tuple_indices = [7], operand_index = 0, operand_tuple_indices = []>]",
            "has no element 7",
        ),
        ('hloforge.result_shape = "(f32[3])", hloforge.result_aliases = [1 : i32]', "result_aliases"),
        ('hloforge.result_shape = "(f32[3])", hloforge.result_aliases = "x"', "result_aliases"),
    ],
)
def test_a_call_that_lies_about_its_result(attributes: str, message: str) -> None:
    with pytest.raises(ImporterError, match=message):
        read(gather(call=attributes))
    assert "result_shape" in read(gather(call='hloforge.result_shape = "(f32[3])"')).text()


IDENTITY = "func.func @main(%x: tensor<2xf32>ARGUMENT) -> tensor<2xf32> { return %x : tensor<2xf32> }"
SEND = """func.func @main(%x: tensor<2xf32>, %t: !stablehlo.token) -> !stablehlo.token {
  %r = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    mhlo.frontend_attributes = {_xla_send_recv_source_target_pairs = "{{0,1},{2}}"}}
    : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token }"""


@pytest.mark.parametrize(
    ("argument", "module", "message"),
    [
        ("tf.aliasing_output = 1 : i32", "", "donated to result 1, and there are 1"),
        ("tf.aliasing_output = -1 : i32", "", "donated to result -1"),
        ('tf.aliasing_output = "x"', "", "tf.aliasing_output = .* is not what XLA or JAX write"),
        ("mhlo.sharding = 5 : i32", "", "mhlo.sharding = .* is not what XLA or JAX write"),
        ('mhlo.layout_mode = "{7}"', "", "malformed: .*expected a permutation"),
        ("", "mhlo.xla_entry_computation_parameter_layouts = 3 : i32", "malformed"),
        ("", "mhlo.input_output_alias = 3 : i32", "malformed"),
        ("", "mhlo.frontend_attributes = {xla.sdy.meshes = 3 : i32}", "is not what XLA or JAX write"),
        ("", "mhlo.num_replicas = 0 : i32", "is no number of devices"),
        (
            "",
            'mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = array<i64>, '
            "parameter_number = 44 : i64}, output_index = array<i64>}]",
            "names no parameter or no result",
        ),
    ],
)
def test_what_xla_and_jax_say_is_checked_too(argument: str, module: str, message: str) -> None:
    function = IDENTITY.replace("ARGUMENT", f" {{{argument}}}" if argument else "")
    with pytest.raises(ImporterError, match=message) as caught:
        read(f"module attributes {{{module}}} {{ {function} }}")
    assert str(caught.value.location).startswith("<string>:1:")


def test_what_xla_says_beside_operations_is_checked_too() -> None:
    with pytest.raises(ImporterError, match=r"mhlo.frontend_attributes = .* is not what"):
        read(SEND)
    assert "{0,1},{2,3}" in read(SEND.replace("{2}", "{2,3}")).text()
    for value in (
        "mhlo.backend_config = 3 : i32",
        "error_message = 3 : i32",
        "indices_of_shape_operands = dense<9> : tensor<1xi64>",
        "indices_of_shape_operands = dense<-1> : tensor<1xi64>",
        "indices_of_shape_operands = dense<0> : tensor<2xi64>",
        "indices_of_shape_operands = dense<0> : tensor<1xi32>",
    ):
        with pytest.raises(ImporterError, match="is not what XLA or JAX write"):
            read(gather(call=value))


PLACES = {
    "module": "module attributes {mhlo.num_partitions = LOC} { func.func @main(%x: T) -> T { return %x : T } }",
    "argument": "func.func @main(%x: T {foo.x = [LOC]}) -> T { return %x : T }",
    "result": "func.func @main(%x: T) -> (T {jax.result_info = LOC}) { return %x : T }",
    "operation": "func.func @main(%x: T) -> T { %y = stablehlo.abs %x {xla_shape = LOC} : T return %y : T }",
    "configuration": "func.func @main(%x: T) -> T { %y = stablehlo.custom_call @f(%x) "
    "{backend_config = {a = LOC}, api_version = 4 : i32} : (T) -> T return %y : T }",
    "composite": 'func.func @main(%x: T) -> T { %y = stablehlo.composite "chlo.tan" %x '
    "{composite_attributes = {k = LOC}, decomposition = @g} : (T) -> T return %y : T } "
    "func.func private @g(%x: T) -> T { return %x : T }",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_location_is_no_value(place: str) -> None:
    """jaxlib's bindings end the process where one is in a dictionary."""
    text = PLACES[place].replace("T", "tensor<2xf32>").replace("LOC", 'loc("a")')
    with pytest.raises(ImporterError, match="has a location for a value"):
        read(text)
    # As a text it means nothing, and harms nobody.
    read(text.replace('loc("a")', '"loc(a)"').replace("mhlo.num_partitions", "foo.x"))


def test_a_location_is_no_encoding() -> None:
    with pytest.raises(ImporterError, match="not of StableHLO"):
        read('func.func @main(%x: tensor<2xf32, loc("a")>) { return }')


def test_a_type_of_more_elements_than_numbers_is_refused() -> None:
    with pytest.raises(ImporterError, match="more elements than 64 bits can count"):
        read(f"func.func @main(%x: tensor<{1 << 33}x{1 << 33}xi8>) {{ return }}")


# --- Attacks of which the marks made memory errors.


def test_a_gather_that_says_it_is_in_bounds_is_clamped() -> None:
    x, wild = np.arange(4, dtype=np.float32), np.array([[-(10**12)], [2], [10**12]])
    text = gather(operation="hloforge.in_bounds, in_bounds").replace(
        "stablehlo.custom_call @of_the_user(%g)", "stablehlo.negate %g"
    )
    np.testing.assert_array_equal(hloforge.compile(text).load()(x, wild), [-0.0, -2, -3])


def test_a_scatter_that_says_it_is_in_bounds_skips_what_is_not() -> None:
    text = """func.func @main(%x: tensor<4x2xf32>, %i: tensor<3x1xi64>, %u: tensor<3x2xf32>) -> tensor<4x2xf32> {
      %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}> ({
        ^bb0(%old: tensor<f32>, %new: tensor<f32>):
          %sum = stablehlo.add %old, %new : tensor<f32>
          stablehlo.return %sum : tensor<f32>
      }) {hloforge.in_bounds, in_bounds} : (tensor<4x2xf32>, tensor<3x1xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
      return %s : tensor<4x2xf32> }"""
    wild, updates = np.array([[-(10**12)], [2], [10**12]]), np.ones((3, 2), np.float32)
    expected = np.zeros((4, 2), np.float32)
    expected[2] = 1
    np.testing.assert_array_equal(hloforge.compile(text).load()(np.zeros((4, 2), np.float32), wild, updates), expected)


def test_columns_that_a_sparse_matrix_does_not_have_are_not_read() -> None:
    text = """func.func @main(%d: tensor<3xf32>, %s: tensor<3xi32>, %c: tensor<3xi32>, %x: tensor<4x2xf32>)
        -> tensor<2x2xf32> {
      %g = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%d, %s, %c, %x) {api_version = 4 : i32, backend_config = {}}
        : (tensor<3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x2xf32>) -> tensor<2x2xf32>
      return %g : tensor<2x2xf32> }"""
    dense = np.arange(8, dtype=np.float32).reshape(4, 2)
    wild = np.int32([-(2**30), 1, 2**30])
    found = hloforge.compile(text).load()(np.ones(3, np.float32), np.int32([0, 1, 3]), wild, dense)
    np.testing.assert_array_equal(found, [dense[0], dense[1] + dense[3]])


def test_a_record_of_a_host_call_is_not_believed() -> None:
    """The record named @system, and whoever had that function gave it to a program that calls another one."""
    record = r'"{\"target\": \"system\", \"operands\": [\"f32[3]\"], \"result\": \"f32[3]\", \"version\": 1, '
    record += r'\"configuration\": \"\", \"attributes\": {}, \"aliases\": []}"'
    text = gather(call=f"hloforge.host_call = {record}", module='hloforge.host_functions = ["system", "of_the_user"]')
    with pytest.raises(hloforge.UnregisteredError, match="custom_call @of_the_user"):
        hloforge.compile(text)
    made = hloforge.compile(text, host_calls={"of_the_user"})
    assert [call.target for call in made.manifest.host_calls] == ["of_the_user"]


def test_numbers_of_a_profile_come_from_the_profile() -> None:
    from hloforge.runtime.profiling.labels import labelled

    text = """func.func @main(%x: tensor<4xf32> loc("hloforge.op.7")) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32> loc("hloforge.op.9")
      return %y : tensor<4xf32> }"""
    copy, found = labelled(read(text))
    numbers = {int(number) for number in re.findall(r'loc\("hloforge\.op\.(\d+)', copy.text(locations=True))}
    assert numbers == set(range(len(found.operations)))


def test_only_opt_believes_marks_and_only_if_asked() -> None:
    kept = read(gather(operation="hloforge.in_bounds"), keep_marks=True)
    (op,) = operations(kept.module, {"stablehlo.gather"})
    assert marks.IN_BOUNDS in op.attributes


# --- The list and the code.


def _strings(path: Path) -> set[str]:
    """The strings of a file, docstrings left out."""
    tree = ast.parse(path.read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            found.add(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
    return found


def _names_of_ours() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == ROOT / "dialect" / "marks.py":
                continue
            for text in _strings(path):
                if match := re.fullmatch(r"(?:hloforge[.#:][\w.\-]*|iree\.[\w.]+)", text):
                    found.setdefault(match[0], set()).add(str(path.relative_to(ROOT)))
    return found


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    inside = ROOT / "src" / "hloforge" / Path(*name.split(".")[1:])
    return any(each.with_suffix(".py").exists() or (each / "__init__.py").exists() for each in (path, inside))


def test_a_mark_that_is_used_is_listed() -> None:
    """A name of ours in the code is a mark, and its constant stands in ``dialect/marks.py``."""
    unlisted = {
        name: files
        for name, files in _names_of_ours().items()
        if not _is_module(name) and name not in OF_FILES and not name.startswith("iree.abi.")
    }
    assert not unlisted, "list these in dialect/marks.py, and take them from there"


def test_no_call_of_an_unlisted_name_can_be_made() -> None:
    builder = hloforge.Builder("b")
    with builder, pytest.raises(hloforge.OperationError, match="none of hloforge's functions"):
        hloforge.ops.custom_call("hloforge.of_tomorrow", [builder.parameter(0, "f32[4]", "x")], "f32[4]")


def test_a_mark_that_is_listed_is_used() -> None:
    names = {value: name for name, value in vars(marks).items() if isinstance(value, str) and name.isupper()}
    code = "\n".join(
        path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path.name != "marks.py"
    )
    for mark in MARKS.values():
        constant = names[mark.name]
        assert re.search(rf"\b{constant}\b", code) or mark.name in code, f"{mark.name} is listed and not used"
