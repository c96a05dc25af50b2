"""Small files of every form that hloforge reads, made here, and what reads them."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

import hloforge
from hloforge.dialect.protobuf import encode
from hloforge.importers.exported_program import vet
from hloforge.runtime.artifact import weights
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.artifact.plain_vmfb import signature_of_declaration
from hloforge.runtime.compile.cache import Entry
from hloforge.runtime.data.array_files import Archive, FormatError, load_arrays
from hloforge.runtime.session.modules import read_manifest
from hloforge.runtime.tuning.tuned_profile import Profile
from hloforge.tools.forms import translate
from tests.robustness import models

HLO = """HloModule sample, entry_computation_layout={(f32[2,3]{0,1}, (s32[], pred[4]))->(f32[2,3], s32[])}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %a, f32[] %b), metadata={op_name="jit(f)/add" source_file="f.py" source_line=3}
}

%doubled (d: f32[2,3]) -> f32[2,3] {
  %d = f32[2,3] parameter(0)
  ROOT %twice = f32[2,3] add(%d, %d)
}

%body (p: (s32[], f32[2,3])) -> (s32[], f32[2,3]) {
  %p = (s32[], f32[2,3]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[2,3] get-tuple-element(%p), index=1
  %y = f32[2,3] fusion(%x), kind=kLoop, calls=%doubled
  ROOT %t = (s32[], f32[2,3]) tuple(%next, %y)
}

%condition (q: (s32[], f32[2,3])) -> pred[] {
  %q = (s32[], f32[2,3]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %three), direction=LT
}

ENTRY %main (x: f32[2,3], t: (s32[], pred[4])) -> (f32[2,3], s32[]) {
  %x.1 = f32[2,3]{0,1} parameter(0), sharding={replicated}
  %t.1 = (s32[], pred[4]) parameter(1)
  %c = f32[2,3] constant({{1, -2.5, inf}, {nan, 0, 3e-2}})
  %zero = f32[] constant(0)
  %r = f32[2] reduce(%x.1, %zero), dimensions={1}, to_apply=%add
  %wide = f32[2,3] broadcast(%r), dimensions={0}
  %start = s32[] get-tuple-element(%t.1), index=0
  %state = (s32[], f32[2,3]) tuple(%start, %wide)
  %loop = (s32[], f32[2,3]) while(%state), condition=%condition, body=%body, backend_config={"n":"3"}
  %last = f32[2,3] get-tuple-element(%loop), index=1
  %k = f32[3,2] custom-call(%last), custom_call_target="host_function", api_version=API_VERSION_STATUS_RETURNING
  %d = f32[2,2] dot(%last, %k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %padded = f32[2,3] pad(%d, %zero), padding=0_0x0_1
  %sum.1 = f32[2,3] add(%padded, %c)
  ROOT %result = (f32[2,3], s32[]) tuple(%sum.1, %start)
}
"""
SMALL_HLO = (
    "HloModule m\nENTRY e { x = f32[4] parameter(0)\n c = f32[4] constant({1, 2, 3, 4})\n ROOT y = f32[4] add(x, c) }"
)
MLIR = """module @sample attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<2x3xf32> {jax.buffer_donor = true}, %n: tensor<?xi32>)
      -> (tensor<2x3xf32>, tensor<i1>) {
    %c = stablehlo.constant dense<"0x0000803F000000400000404000008040000000410000C040"> : tensor<2x3xf32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %sum = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
    %p = stablehlo.compare GT, %sum, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %r = "stablehlo.if"(%p) ({
      %a = stablehlo.add %x, %c : tensor<2x3xf32>
      stablehlo.return %a : tensor<2x3xf32>
    }, {
      %b = func.call @other(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      stablehlo.return %b : tensor<2x3xf32>
    }) : (tensor<i1>) -> tensor<2x3xf32>
    return %r, %p : tensor<2x3xf32>, tensor<i1>
  }
  func.func private @other(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %y = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %z = stablehlo.reshape %y : (tensor<3x2xf32>) -> tensor<2x3xf32>
    return %z : tensor<2x3xf32>
  }
}
"""
_HOST = {"host_calls": frozenset({"host_function"})}


@dataclass(frozen=True)
class Reader:
    """A form of file.

    Attributes:
        make: sound files.
        suffix: of a file of it.
        read: reads a file, whose bytes are given too; raises one of ``refusals`` for a damaged one, and nothing else.
        slow: whether one file takes seconds, in a process of its own.
    """

    make: Callable[[], list[bytes]]
    suffix: str
    read: Callable[[Path, bytes], object]
    refusals: tuple[type[Exception], ...] = (hloforge.Error,)
    slow: bool = False


def _program(format: str | None, path: Path, data: bytes) -> None:
    """Half of the files are read as what they were, half as what they look like."""
    program = hloforge.read(data, format=format if len(data) % 2 else None)
    str(program.signature)
    program.text()


def _forms(form: str) -> list[bytes]:
    sources = (HLO, SMALL_HLO) if form == "hlo-proto" else (HLO, SMALL_HLO, MLIR)
    return [translate(hloforge.read(source), form) for source in sources]


def _protos() -> list[bytes]:
    module = _forms("hlo-proto")[0]
    proto = encode(1, module)  # HloProto
    return [module, proto, encode(1, proto)]  # and HloSnapshot


def _exports() -> list[bytes]:
    import jax
    import jax.numpy as jnp

    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) @ x), platforms=("cpu", "cuda"))
    return [bytes(exported(jax.ShapeDtypeStruct((4, 4), jnp.float32)).serialize())]


def _onnx() -> list[bytes]:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    sizes = numpy_helper.from_array(np.array([-1, 2], np.int64), "s")
    branch = helper.make_graph([helper.make_node("Relu", ["h"], ["r"])], "then", [], [_value("r", None)])
    other = helper.make_graph([helper.make_node("Neg", ["h"], ["m"])], "else", [], [_value("m", None)])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Reshape", ["h", "s"], ["f"]),
        helper.make_node(
            "ConstantOfShape", ["s2"], ["o"], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])
        ),
        helper.make_node("If", ["c"], ["i"], then_branch=branch, else_branch=other),
        helper.make_node("Add", ["f", "o"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([4, 2], np.int64), "s2")
    graph = helper.make_graph(
        nodes,
        "sample",
        [_value("x", [2, 3]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [_value("y", [4, 2]), _value("i", [2, 4])],
        [weight, sizes, shape],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.checker.check_model(made)
    return [made.SerializeToString()]


def _value(name: str, sizes: list[int] | None) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)


def _tflite() -> list[bytes]:
    from tests.tflite.files import S8, S32, Op, T, model

    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    dense = model(
        [T("x", (2, 3)), T("w", (4, 3), data=weight), T("b", (4,), data=np.ones(4, np.float32)), T("y", (2, 4))],
        [Op("FULLY_CONNECTED", (0, 1, 2), (3,), "FullyConnectedOptions", {"FusedActivationFunction": 1})],
        (0,),
        (3,),
    )
    reshaped = model(
        [
            T("q", (1, 6), S8, scale=(0.5,), zero=(3,)),
            T("s", (2,), S32, np.array([2, 3], np.int32)),
            T("r", (2, 3), S8, scale=(0.5,), zero=(3,)),
        ],
        [Op("RESHAPE", (0, 1), (2,))],
        (0,),
        (2,),
    )
    return [dense, reshaped]


def _torch_archives() -> list[bytes]:
    import torch

    stream = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),)), stream)
    return [stream.getvalue()]


def _saved_models() -> dict[str, Reader]:
    part = models.PARTS[0]
    make, read = partial(models.parts_of_saved_models, part), partial(models.read_saved_model, part)
    found = {"tensorflow": Reader(make, ".file", read, slow=True)}
    for part in models.PARTS:
        make, read = partial(models.parts_of_saved_models, part), partial(models.read_saved_model_here, part)
        found[f"tensorflow{Path(part).suffix} (without a child)"] = Reader(make, ".file", read, slow=True)
    return found


def _compiled(*flags: str) -> hloforge.Executable:
    return hloforge.compile(SMALL_HLO, "cpu:generic", flags=flags, cache=False)


def _vmfbs() -> list[bytes]:
    return [_compiled().vmfb]


def _vmfb(path: Path, data: bytes) -> None:
    """Every other one from its bytes; one that is not refused gives the right numbers."""
    given = path if len(data) % 2 else data
    read_manifest(given)
    session = hloforge.load(given)
    np.testing.assert_array_equal(session(np.ones(4, np.float32)), np.array([2, 3, 4, 5], np.float32))


def _manifests() -> list[bytes]:
    program = hloforge.read(HLO)
    manifest = Manifest("sample", program.signature, "cpu", ("--iree-opt-level=O2",), (("hloforge", "1"),), 3)
    return [manifest.to_json().encode()]


def _manifest(path: Path, data: bytes) -> None:
    Manifest.from_json(data.decode("utf-8", "replace")).to_json()


def _declarations() -> list[bytes]:
    return [
        b"sync func @main(%input0: tensor<4xf32>, %input1: tensor<2x?xi8> {iree.abi.encoding = tensor<2x?xui8>})"
        b" -> (%output0: tensor<complex<f32>>)"
    ]


def _declaration(path: Path, data: bytes) -> None:
    signature_of_declaration(data.decode("utf-8", "replace"))


def _cache_entries() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.cached"
        Entry(path).store(_compiled())
        return [path.read_bytes()]


def _cache_entry(path: Path, data: bytes) -> None:
    Entry(path).find()


def _profiles() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        Profile(("--iree-opt-level=O2",), "local-task", 2).save(path)
        return [path.read_bytes()]


def _profile(path: Path, data: bytes) -> None:
    Profile.load(path).applied(hloforge.CompileOptions())


def _arrays(path: Path, data: bytes) -> None:
    arrays = load_arrays(path)
    if isinstance(arrays, Archive):
        for name in arrays.names:
            arrays[name]


def _weights(path: Path, data: bytes) -> None:
    weights.described(path)
    weights._opened(path).items()


def _saved(suffix: str) -> list[bytes]:
    arrays = {"x": np.arange(12, dtype=np.float32), "y": np.ones((3, 4), np.int8)}
    savers: dict[str, Callable[[Path], Any]] = {
        ".npy": lambda path: np.save(path, arrays["y"]),
        ".npz": lambda path: np.savez_compressed(path, **arrays),  # type: ignore[arg-type]
        ".safetensors": lambda path: save_file(arrays, path),
        ".irpa": lambda path: weights.write(path, ".irpa", arrays),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        savers[suffix](path)
        stored = path.read_bytes()
        if suffix != ".npz":
            return [stored]
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return [stored, path.read_bytes()]


READERS: dict[str, Reader] = {
    "hlo": Reader(lambda: [HLO.encode(), SMALL_HLO.encode()], ".hlo", partial(_program, "hlo")),
    "hlo-proto": Reader(_protos, ".pb", partial(_program, "hlo-proto")),
    "mlir": Reader(lambda: [MLIR.encode(), _forms("mlir-generic")[0]], ".mlir", partial(_program, "mlir")),
    "mlir-bytecode": Reader(partial(_forms, "bytecode"), ".mlirbc", partial(_program, "mlir-bytecode")),
    "portable-artifact": Reader(partial(_forms, "portable"), ".mlirbc", partial(_program, "portable-artifact")),
    "jax-export": Reader(_exports, ".bin", partial(_program, "jax-export")),
    "onnx": Reader(_onnx, ".onnx", partial(_program, "onnx")),
    "tflite": Reader(_tflite, ".tflite", partial(_program, "tflite")),
    "torch-export (vetting)": Reader(_torch_archives, ".pt2", lambda path, data: vet(data)),
    "torch-export": Reader(_torch_archives, ".pt2", partial(_program, "torch-export"), slow=True),
    "keras": Reader(models.keras_files, ".keras", lambda path, data: hloforge.read(path), slow=True),
    "keras (without a child)": Reader(models.keras_files, ".keras", models.read_keras_here, slow=True),
    **_saved_models(),
    "vmfb": Reader(_vmfbs, ".vmfb", _vmfb),
    "manifest": Reader(_manifests, ".json", _manifest),
    "declaration of a foreign vmfb": Reader(_declarations, ".txt", _declaration),
    "cache entry": Reader(_cache_entries, ".cached", _cache_entry, ()),
    "profile": Reader(_profiles, ".json", _profile),
    "npy": Reader(partial(_saved, ".npy"), ".npy", _arrays, (FormatError,)),
    "npz": Reader(partial(_saved, ".npz"), ".npz", _arrays, (FormatError,)),
    "safetensors": Reader(partial(_saved, ".safetensors"), ".safetensors", _weights),
    "irpa": Reader(partial(_saved, ".irpa"), ".irpa", _weights),
}
