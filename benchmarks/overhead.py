"""What a call costs beside the work: a tiny addition, numpy in and numpy out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hloforge
from benchmarks.engines import compile_plain
from benchmarks.hlo import text_of
from hloforge.runtime.devices import devices
from hloforge.runtime.devices.devices import rt


def calls() -> dict[str, Callable[[], Any]]:
    """The ways to call it, by name; ``raw`` is IREE's API used by hand as briefly as it goes."""
    text, _ = text_of(lambda nn: nn.new("f32[4]") + nn.new("f32[4]"))
    program = hloforge.read(text)
    a, b = np.ones(4, np.float32), np.ones(4, np.float32)
    session = hloforge.compile(program).load(device="local-sync")
    xla = hloforge.reference("xla", isolated=False).prepare(program)
    vmfb = compile_plain(program)
    return {
        "hloforge": lambda: session(a, b),
        "raw": _raw(vmfb, a, b),
        "iree.runtime": _high_level(vmfb, a, b),
        "xla": lambda: xla(a, b),
    }


def _raw(vmfb: bytes, a: Any, b: Any) -> Callable[[], Any]:
    device = devices.device("local-sync")
    module = rt.VmModule.copy_buffer(devices.instance(), vmfb)
    context = rt.VmContext(devices.instance(), modules=[rt.create_hal_module(devices.instance(), device), module])
    entry = module.lookup_function("main")
    memory, usage = int(rt.MemoryType.DEVICE_LOCAL), int(rt.BufferUsage.DEFAULT)

    def call() -> Any:
        inputs, outputs = rt.VmVariantList(2), rt.VmVariantList(1)
        for value in (a, b):
            view = device.allocator.allocate_buffer_copy(memory, usage, device, value, rt.HalElementType.FLOAT_32)
            inputs.push_ref(view.ref)
        context.invoke(entry, inputs, outputs)
        return outputs.get_as_object(0, rt.HalBufferView).map().asarray([4], a.dtype)

    return call


def _high_level(vmfb: bytes, a: Any, b: Any) -> Callable[[], Any]:
    config = rt.Config(driver_name="local-sync")
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, vmfb), config)
    main = module["main"]
    return lambda: main(a, b).to_host()
