"""Files of ``torch.export.save`` as programs: read in a child process, and without running what they bring along."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.wide(2)

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge  # noqa: E402
from hloforge.dialect.errors import ImporterError, UnsupportedError  # noqa: E402
from hloforge.importers.detect import Form, detect  # noqa: E402
from hloforge.importers.exported_program import vet  # noqa: E402
from hloforge.torch.archives import program_of_archive  # noqa: E402

nn = torch.nn
MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
SAMPLES = "data/sample_inputs/model.pt"


@dataclass
class Batch:
    """What a module may take and return that is a type of its library."""

    ids: Any
    more: list[Any]


torch.export.register_dataclass(Batch, serialized_type_name="library.Batch")


class Batched(nn.Module):
    def forward(self, batch: Batch) -> Batch:
        return Batch(batch.ids * 2, [each + 1 for each in batch.more])


class Scaled(nn.Module):
    """A dense layer, a buffer that each call changes, and a plain number."""

    def __init__(self, counts: bool = False) -> None:
        super().__init__()
        self.dense = nn.Linear(3, 2)
        self.counts = counts
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x: Any, scale: float = 2.0) -> dict[str, Any]:
        if self.counts:
            self.calls.add_(1)
        return {"y": self.dense(x) * scale + self.calls}


def saved(module: Any, x: Any, **options: Any) -> bytes:
    """The archive of an exported module."""
    stream = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,), **options), stream)
    return stream.getvalue()


def changed(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """An archive with one file changed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            new.writestr(entry, change(content) if entry.partition("/")[2] == name else content)
    return stream.getvalue()


def edited(data: bytes, name: str, old: str, new: str) -> bytes:
    """An archive with a text replaced, which stands in the file."""
    assert old in changed_text(data, name)
    return changed(data, name, lambda content: content.replace(old.encode(), new.encode()))


def changed_text(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return next(archive.read(n).decode() for n in archive.namelist() if n.partition("/")[2] == name)


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(0)
    return Scaled()


@pytest.fixture(scope="module")
def dynamic(module: Any) -> bytes:
    return saved(module, torch.randn(4, 3), dynamic_shapes={"x": {0: torch.export.Dim("n")}})


@pytest.mark.slow
def test_program_takes_the_inputs_alone_and_sizes_come_with_the_call(module: Any, dynamic: bytes) -> None:
    program = hloforge.read(dynamic)
    assert str(program.signature) == "(x: f32[?,3]) -> f32[?,2]"
    x = torch.randn(5, 3)
    found = hloforge.compile(program, cache=False).load()(x.numpy())
    np.testing.assert_allclose(found, module(x)["y"].detach(), 1e-5)


def test_program_is_read_by_a_child(dynamic: bytes) -> None:
    assert str(hloforge.read(dynamic).signature) == "(x: f32[?,3]) -> f32[?,2]"


def test_what_is_changed_is_an_argument_and_a_result(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved(Scaled(counts=True), torch.randn(4, 3)))
    program = program_of_archive(str(path))
    assert str(program.signature) == "(calls: f32[2], x: f32[4,3]) -> (f32[2], f32[4,2])"


def test_detected_among_archives(module: Any, dynamic: bytes) -> None:
    assert detect(dynamic) is Form.TORCH_EXPORT
    weights, script = io.BytesIO(), io.BytesIO()
    torch.save(module.state_dict(), weights)
    torch.jit.save(torch.jit.trace(nn.Linear(3, 2), (torch.randn(4, 3),)), script)
    with pytest.raises(ImporterError, match="this is weights of PyTorch"):
        detect(weights.getvalue())
    with pytest.raises(ImporterError, match="this is a TorchScript archive"):
        detect(script.getvalue())


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (MODEL, "torch.ops.aten.linear.default", "torch.os.system", "calls torch.os.system"),
        (MODEL, "torch.ops.aten.linear.default", "torch.ops.load_library", "calls torch.ops.load_library"),
        (MODEL, "torch.ops.aten.linear.default", "torch.ops.aten.__class__.mro", "calls torch.ops.aten.__class__.mro"),
        (MODEL, "torch.ops.aten.linear.default", "torch.ops.mine.linear.default", "calls torch.ops.mine.linear"),
        (MODEL, "Symbol('", "__import__('os').system('", "which is no arithmetic"),
        (MODEL, "Symbol('", "Symbol('print(1)", "which is no arithmetic"),
        (MODEL, '\\"builtins.dict\\"', '\\"collections.defaultdict\\"', "hold a collections.defaultdict"),
        (WEIGHTS, '"use_pickle": false', '"use_pickle": true', "'dense.weight' is a pickled object"),
        (WEIGHTS, '"path_name": "weight_', '"path_name": "opaque_', "'dense.weight' is a pickled object"),
        (WEIGHTS, '"type": "cpu"', '"type": "cuda"', "lies on a cuda"),
        (WEIGHTS, '{"config"', '{"confi"', "damaged archive"),
    ],
)
def test_what_may_run_code_is_refused_before_pytorch_reads_it(
    dynamic: bytes, name: str, old: str, new: str, message: str
) -> None:
    vet(dynamic)
    with pytest.raises(ImporterError, match=message):
        vet(edited(dynamic, name, old, new))


def test_pickled_sample_inputs_are_not_run(dynamic: bytes, tmp_path: Path) -> None:
    path, trace = tmp_path / "model.pt2", tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (trace,)

    stream = io.BytesIO()
    torch.save(((torch.zeros(4, 3), Evil()), {}), stream, pickle_module=pickle)
    path.write_bytes(changed(dynamic, SAMPLES, lambda _: stream.getvalue()))
    assert str(program_of_archive(str(path)).signature) == "(x: f32[?,3]) -> f32[?,2]"
    assert not trace.exists()


@pytest.mark.parametrize("part", [0.3, 0.9, 0.999])
def test_truncated_archives_are_refused(dynamic: bytes, part: float) -> None:
    with pytest.raises(ImporterError):
        detect(dynamic[: int(len(dynamic) * part)])


def test_json_of_another_shape_is_one_error(dynamic: bytes) -> None:
    for name in (MODEL, WEIGHTS):
        for content in (b"[]", b"{", b"{}", b"\xff", json.dumps({"config": {"a": 1}}).encode()):
            with pytest.raises(ImporterError):
                data = changed(dynamic, name, lambda _, content=content: content)
                vet(data)


@pytest.mark.slow
def test_operators_without_lowering_are_named(tmp_path: Path) -> None:
    class Hashed(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.hash_tensor(x)

    path = tmp_path / "model.pt2"
    path.write_bytes(saved(Hashed(), torch.randn(4, 3)))
    with pytest.raises(ImporterError, match=r"aten\.hash_tensor\.default") as caught:
        hloforge.read(path)
    assert any("test_archives.py" in note for note in caught.value.notes)


def test_structures_of_libraries_are_read_without_them() -> None:
    """The child that reads the file lacks the types that the module returns; results have the names of their parts."""

    class Output(dict[str, Any]):
        pass

    torch.utils._pytree.register_pytree_node(
        Output,
        lambda each: (list(each.values()), list(each)),
        lambda values, names: Output(zip(names, values, strict=True)),
        serialized_type_name="some.library.Output",
    )

    class Two(nn.Module):
        def forward(self, x: Any) -> Any:
            return Output(scores=x + 1, past=[x * 2, Output(key=x * 3)])

    program = hloforge.compile(saved(Two(), torch.ones(3)))
    assert program.load().signature.result_names == ("scores", "past.0", "past.1.key")
    for factor, result in zip((2, 2, 3), program(np.ones(3, np.float32)), strict=True):
        np.testing.assert_array_equal(result, np.full(3, factor, np.float32))


def test_products_of_groups_of_transformers_are_read_without_it() -> None:
    class Experts(nn.Module):
        def forward(self, x: Any) -> Any:
            ends = torch.tensor([1, 1, 4])
            return torch.ops.transformers.grouped_mm_fallback(x, torch.arange(12.0).reshape(3, 2, 2), ends)

    library = torch.library.Library("transformers", "FRAGMENT")
    try:
        if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
            library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
            like = lambda x, weight, _: x.new_empty(x.shape[0], weight.shape[2])  # noqa: E731
            torch.library.register_fake("transformers::grouped_mm_fallback", like, lib=library)
        data = saved(Experts(), torch.ones(4, 2))
    finally:
        library._destroy()
    x, weights = np.arange(8, dtype=np.float32).reshape(4, 2), np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(hloforge.compile(data)(x), np.concatenate([x[:1] @ weights[0], x[1:] @ weights[2]]))


def test_vmap_is_read() -> None:
    class Rows(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.vmap(lambda row, all: row * all.sum(), in_dims=(0, None))(x, x)

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(hloforge.compile(saved(Rows(), torch.from_numpy(x)))(x), x * 15)


def test_arguments_of_types_of_libraries_are_their_leaves(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved(Batched(), Batch(torch.randn(2, 3), [torch.randn(2, 3)])))
    code = (
        "from hloforge.torch.archives import program_of_archive\n"
        f"program = program_of_archive({str(path)!r})\n"
        "print(program.signature, program.signature.result_names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == (
        "(batch_ids: f32[2,3], batch_more_0: f32[2,3]) -> (f32[2,3], f32[2,3]) ('ids', 'more.0')"
    ), done.stderr


def test_operators_of_quantizers_are_read(tmp_path: Path) -> None:
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    operators = torch.ops.quantized_decomposed

    class Rounded(nn.Module):
        def forward(self, x: Any) -> Any:
            integers = operators.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
            return operators.dequantize_per_tensor(integers, 0.1, 3, -128, 127, torch.int8)

    module, x = Rounded(), torch.randn(4, 3)
    program = hloforge.read(saved(module, x))
    np.testing.assert_array_equal(hloforge.compile(program, cache=False).load()(x.numpy()), module(x))


def test_buffers_in_one_memory_are_named(tmp_path: Path) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("sums", torch.zeros(4))
            self.register_buffer("first", self.sums[:1])

        def forward(self, x: Any) -> Any:
            self.sums.add_(x)
            return self.first * 2

    path = tmp_path / "model.pt2"
    path.write_bytes(saved(Shared(), torch.ones(4)))
    with pytest.raises(UnsupportedError, match="'sums' and 'first' share memory, and the model changes it"):
        program_of_archive(str(path))


def test_a_cache_in_an_object_has_the_name_of_its_buffer(tmp_path: Path) -> None:
    """As transformers' static caches: the object's tensors are lifted as constants, the buffers are not used."""

    class Holder:
        def __init__(self) -> None:
            self.keys = torch.zeros(4, 3)

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.holder = Holder()
            self.register_buffer("keys", self.holder.keys, persistent=False)

        def forward(self, x: Any, position: Any) -> Any:
            self.holder.keys.index_copy_(0, position, x)
            return self.holder.keys.sum(0)

    model, x = Cached(), torch.randn(1, 3)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (x, torch.tensor([2]))), path)
    program = program_of_archive(str(path))
    assert program.signature.parameters[0].name == "keys"
    assert program.signature.result_names[0] == "keys"
    first = np.ones((4, 3), np.float32)
    keys, total = hloforge.compile(program, cache=False).load()(first, x.numpy(), np.array([2]))
    first[2] = x.numpy()[0]
    np.testing.assert_array_equal(keys, first)
    np.testing.assert_allclose(total, first.sum(0), 1e-6)


def _with_gradients() -> tuple[Any, Any, Any]:
    """A loss with its backward pass in one exported program, its module, and an input."""
    experimental = pytest.importorskip("torch.export.experimental")
    torch.manual_seed(0)

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=False)[0].square().mean()

    module, x = Loss(), torch.randn(2, 5, 8)
    return experimental._export_forward_backward(torch.export.export(module, (x,))), module, x


def test_gradients_are_results(tmp_path: Path) -> None:
    exported, module, x = _with_gradients()
    path = tmp_path / "model.pt2"
    torch.export.save(exported, path)
    program = program_of_archive(str(path))
    loss, *gradients = hloforge.compile(program, cache=False).load()(x.numpy())
    expected = module(x)
    expected.backward()
    np.testing.assert_allclose(loss, expected.detach(), 1e-5)
    wanted = {f"{name}.grad": parameter.grad for name, parameter in module.named_parameters()}
    found = dict(zip(program.signature.result_names[1:], gradients, strict=True))
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        np.testing.assert_allclose(found[name], gradient, 1e-4, 1e-6)


def test_gradients_are_added_as_by_backward() -> None:
    exported, module, x = _with_gradients()
    compiled = hloforge.torch.compile(exported, cache=False)
    for _ in range(2):
        loss = compiled(x)
        module(x).backward()
    torch.testing.assert_close(loss, module(x).detach())
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(exported.state_dict[name].grad, parameter.grad)


@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "bias"])
def test_gradients_of_attention_in_traced_graphs(kind: str) -> None:
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    torch.manual_seed(0)
    q, g = (torch.randn(2, 3, 5, 8) for _ in range(2))
    k, v = (torch.randn(2, 3, 5, 8) for _ in range(2))
    bias = torch.randn(2, 3, 5, 5)
    mask = {"mask": torch.where(bias > -1, 0.0, -torch.inf), "bias": bias}.get(kind)

    class Gradients(nn.Module):
        def forward(self, g: Any, q: Any, k: Any, v: Any) -> Any:
            out, sums = forward(q, k, v, 0.0, kind == "causal", attn_mask=mask)
            return backward(g, q, k, v, out, sums, 0.0, kind == "causal", attn_mask=mask)

    found = hloforge.torch.compile(Gradients(), (g, q, k, v), cache=False)(g, q, k, v)
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    options = {"is_causal": kind == "causal", "attn_mask": mask.double() if mask is not None else None}
    nn.functional.scaled_dot_product_attention(*wide, **options).backward(g.double())
    for gradient, x in zip(found, wide, strict=True):
        torch.testing.assert_close(gradient.double(), x.grad, rtol=1e-4, atol=1e-5)
