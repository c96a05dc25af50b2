"""``python -m benchmarks.gpu.packed PACK``: runs what ``benchmarks.gpu.pack`` compiled, on a machine without hloforge.

It takes Python, numpy and ml_dtypes; IREE's runtime comes in the pack. XLA and PyTorch are measured beside it where the
machine has them for its GPU. Rows, files and options are those of ``python -m benchmarks.gpu``.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.gpu.checking import add_options, check
from benchmarks.gpu.kernels import Array, Kernel, jax_function, torch_call
from benchmarks.gpu.peaks import known_peaks, measured_peaks
from benchmarks.gpu.progress import PARTS, Progress
from benchmarks.gpu.rows import Row, compared, judged, rates
from benchmarks.gpu.sampled import Sampled
from benchmarks.gpu.watched import Watched, serve

INDEX, STAND_IN = "pack.json", "libcuda.so"
_SAMPLES = 30
_LOCAL = ("local-sync", "local-task")


class Pack:
    """The zip of a pack. ``array`` reads one of its arrays, whose dtype and sizes stand in the index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path)
        self.index: Row = json.loads(self._zip.read(INDEX))
        self.items: dict[tuple[str, str], Row] = {(item["part"], item["name"]): item for item in self.index["items"]}

    def read(self, name: str) -> bytes:
        return self._zip.read(name)

    def array(self, said: Row) -> Array:
        kind = np.dtype(getattr(ml_dtypes, said["dtype"], said["dtype"]))
        return np.frombuffer(self.read(said["file"]), kind).reshape(said["shape"])

    def provide(self, folder: Path) -> None:
        """Make IREE's runtime importable, and NVIDIA's library loadable by the name that IREE opens."""
        for wheel in (name for name in self._zip.namelist() if name.endswith(".whl")):
            made = folder / Path(wheel).name
            made.write_bytes(self.read(wheel))
            zipfile.ZipFile(made).extractall(folder)
        with suppress(ImportError):
            import iree.runtime  # noqa: F401  what is installed goes first

            return
        sys.path.insert(0, str(folder))

    def load_cuda(self, folder: Path) -> None:
        """Load the stand-in for ``libcuda.so`` where the machine has ``libcuda.so.1`` alone."""
        with suppress(OSError):
            ctypes.CDLL("libcuda.so")
            return
        if STAND_IN in self._zip.namelist():
            path = folder / STAND_IN
            path.write_bytes(self.read(STAND_IN))
            with suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


class Device:
    """A device of IREE's runtime, and programs and arrays on it."""

    def __init__(self, uri: str) -> None:
        import iree.runtime as rt

        kind, _, path = uri.partition("://")
        driver = rt._binding.create_hal_driver(kind)
        self.name = str(driver.query_available_devices()[0]["name"]).strip()
        self._rt, self._instance = rt, rt.VmInstance()
        self._device = driver.create_device_by_uri(uri) if path else driver.create_default_device()

    def put(self, array: Array, element_type: int) -> Any:
        rt = self._rt
        memory = int(rt.MemoryType.DEVICE_LOCAL)
        usage = int(rt.BufferUsage.DEFAULT) | (int(rt.BufferUsage.MAPPING_SCOPED) if self.name == "default" else 0)
        data = np.array(array, order="C")
        flat = data.view(np.uint8).reshape(-1) if data.ndim else data.reshape(1).view(np.uint8)
        allocator = self._device.allocator
        buffer = allocator.allocate_buffer_copy(
            memory_type=memory, allowed_usage=usage, device=self._device, buffer=flat
        )
        return rt.HalBufferView(buffer, list(array.shape), element_type)

    def load(self, vmfb: bytes, arguments: Sequence[Any]) -> Callable[[], list[Any]]:
        """A program's call on arrays of the device; it returns the results as views, once they are there."""
        rt = self._rt
        module = rt.VmModule.copy_buffer(self._instance, vmfb)
        context = rt.VmContext(self._instance, modules=[rt.create_hal_module(self._instance, self._device), module])
        entry = module.lookup_function("main")

        def call() -> list[Any]:
            inputs, outputs = rt.VmVariantList(len(arguments)), rt.VmVariantList(4)
            for view in arguments:
                inputs.push_ref(view.ref)
            context.invoke(entry, inputs, outputs)
            return [outputs.get_as_object(number, rt.HalBufferView) for number in range(outputs.size)]

        return call

    def fetch(self, view: Any) -> bytes:
        """A view's bytes, copied by the device's queue unless the host sees them."""
        rt = self._rt
        buffer = view.get_buffer()
        mapped = int(rt.BufferUsage.MAPPING_SCOPED)
        if not view.byte_length:
            return b""
        if not buffer.allowed_usage() & mapped:
            memory = int(rt.MemoryType.HOST_LOCAL) | int(rt.MemoryType.DEVICE_VISIBLE)
            usage = int(rt.BufferUsage.TRANSFER_TARGET) | mapped
            staging = self._device.allocator.allocate_buffer(memory, usage, view.byte_length)
            semaphore = self._device.create_semaphore(0)
            fences = (rt.HalFence.create_at(semaphore, 0), rt.HalFence.create_at(semaphore, 1))
            self._device.queue_copy(buffer, staging, wait_semaphores=fences[0], signal_semaphores=fences[1])
            semaphore.wait(1)
            buffer = staging
        shown = buffer.map().asarray([view.byte_length], np.dtype(np.uint8))
        return np.array(shown, copy=True).tobytes()


def main(arguments: Sequence[str] | None = None) -> int:
    """The check; returns the exit status: 1 where there is no device, or a result is wrong."""
    options = _options().parse_args(arguments)
    if options.serve:
        _serve(options)
        return 0
    pack = Pack(options.pack)
    child = Watched(["-m", "benchmarks.gpu.packed", str(options.pack), f"--device={options.device}", "--serve"])
    described = child.ask({"part": "", "name": "the device"}, options.limit)
    if "error" in described:
        child.close()
        print(f"gpu-check cannot run here: {described['error']}", file=sys.stderr)
        return 1
    peaks = measured_peaks() if options.device in _LOCAL else known_peaks(described["device"])
    machine = {"device": options.device, "name": described["device"], "target": pack.index["target"]}
    head = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine | {"peaks": asdict(peaks) if peaks else None},
        "versions": pack.index["versions"],
    }
    progress = Progress(head, options.results, options.document, budget=options.budget, resume=options.resume)
    try:
        check(progress, child, _questions(pack, options), options.limit)
    finally:
        child.close()
    print(f"wrote {options.document} and {options.results}")
    return 1 if progress.is_wrong else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.packed", description=__doc__)
    parser.add_argument("pack", type=Path, help="what python -m benchmarks.gpu.pack wrote")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    add_options(parser)
    return parser


def _questions(pack: Pack, options: argparse.Namespace) -> Iterator[Row]:
    for part in options.part or PARTS:
        for item_part, name in pack.items:
            if item_part == part and options.only in name:
                yield {"part": part, "name": name, "seconds": options.seconds}


def _serve(options: argparse.Namespace) -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pack = Pack(options.pack)
        pack.provide(folder)
        if options.device.startswith("cuda"):
            pack.load_cuda(folder)
        device = Device(options.device)
        on_gpu = options.device not in _LOCAL

        def answer(question: Row) -> Row:
            if not question["part"]:
                return {"name": question["name"], "device": device.name}
            item = pack.items[question["part"], question["name"]]
            return {"name": item["name"]} | row(pack, item, device, question["seconds"], on_gpu=on_gpu)

        serve(answer)


def row(pack: Pack, item: Row, device: Device, seconds: float, *, on_gpu: bool) -> Row:
    """What a program of the pack makes of the device."""
    kernel = (
        Kernel(**item["kernel"] | {"shapes": tuple(map(tuple, item["kernel"]["shapes"]))}) if "kernel" in item else None
    )
    arguments = kernel.arguments() if kernel else [pack.array(said) for said in item["arguments"]]
    placed = [device.put(array, kind) for array, kind in zip(arguments, item["types"], strict=True)]
    call = device.load(pack.read(item["vmfb"]), placed)
    results = [device.fetch(view) for view in call()]
    if item["part"] == "conformance":
        said = _difference(pack, item, results)
        return {"stage": "numerics" if said else "", "reason": said}
    calls: dict[str, Callable[[], Any]] = {"hloforge": call}
    failures: dict[str, str] = {}
    if kernel is not None:
        kind = np.dtype(ml_dtypes.bfloat16 if kernel.element == "bf16" else np.float32)
        found: Row = {"kind": kernel.kind, "element": kernel.element}
        found |= judged(kernel, arguments, np.frombuffer(results[0], kind).reshape(item["result_shape"]))
        _try(calls, failures, "torch", lambda: torch_call(kernel, arguments, "cuda" if on_gpu else "cpu"))
        _try(calls, failures, "xla", lambda: _jax_call(kernel, arguments, on_gpu=on_gpu))
        peaks = known_peaks(device.name) if on_gpu else measured_peaks()
        return found | rates(kernel, peaks, compared(_times(calls, seconds))) | {"failures": failures}
    if item["results"]:
        said = _difference(pack, item, results)
        found = {"agrees": not said} | ({"difference": said} if said else {})
    else:
        found = {}
    _try(calls, failures, "xla", lambda: _xla_call(pack.read(item["stablehlo"]), arguments, on_gpu=on_gpu))
    return {"kind": item["kind"]} | found | compared(_times(calls, seconds)) | {"failures": failures}


def _kernel_of(item: Row) -> Kernel | None:
    if "kernel" not in item:
        return None
    return Kernel(**item["kernel"] | {"shapes": tuple(map(tuple, item["kernel"]["shapes"]))})


def _difference(pack: Pack, item: Row, results: Sequence[bytes]) -> str:
    """What is wrong with the results; nothing if they are right."""
    if len(results) != len(item["results"]):
        return f"{len(results)} results instead of {len(item['results'])}"
    for number, (said, data) in enumerate(zip(item["results"], results, strict=True)):
        if problem := Sampled.of(said, pack.array).difference(data):
            return f"result {number}: {problem}"
    return ""


def _try(
    calls: dict[str, Callable[[], Any]], failures: dict[str, str], engine: str, prepare: Callable[[], Callable[[], Any]]
) -> None:
    try:
        call = prepare()
        call()
    except Exception as error:  # another engine's failure, of whatever kind, is no failure of the row
        failures[engine] = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
    else:
        calls[engine] = call


def _times(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Medians of calls that take turns, within some seconds."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    end = time.monotonic() + seconds
    while len(taken["hloforge"]) < 3 or (time.monotonic() < end and len(taken["hloforge"]) < _SAMPLES):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in taken.items()}


def _jax_device(*, on_gpu: bool) -> Any:
    import jax

    return jax.devices("gpu" if on_gpu else "cpu")[0]


def _jax_call(kernel: Kernel, arguments: Sequence[Array], *, on_gpu: bool) -> Callable[[], Any]:
    import jax

    placed = [jax.device_put(array, _jax_device(on_gpu=on_gpu)) for array in arguments]
    compiled = jax.jit(jax_function(kernel.kind)).lower(*placed).compile()
    return lambda: jax.block_until_ready(compiled(*placed))


def _xla_call(artifact: bytes, arguments: Sequence[Array], *, on_gpu: bool) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxlib import _jax

    device = _jax_device(on_gpu=on_gpu)
    executable = device.client.compile_and_load(artifact, _jax.DeviceList((device,)), _jax.CompileOptions())
    placed = [jax.device_put(array, device) for array in arguments]

    def call() -> Any:
        shards = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [shard[0].block_until_ready() for shard in shards]

    return call


if __name__ == "__main__":
    sys.exit(main())
