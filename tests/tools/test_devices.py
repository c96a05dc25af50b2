"""``hloforge devices``: what the machine has, and what is said of what it lacks."""

from __future__ import annotations

import json

import pytest

from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices import drivers
from hloforge.runtime.devices.drivers import Device, Driver, read_info
from tests.tools.command import Call

# As IREE 3.13's drivers describe devices, shortened.
VULKAN = """name: AMD Radeon RX 7900 XTX (RADV NAVI31)
api: 1.3.255
type: discrete-gpu
driver: radv
features: shaderInt8=yes shaderFloat16=yes shaderBFloat16Type=no cooperativeMatrix=yes
subgroup: size=64 operations=0x000000ff minSubgroupSize=32 maxSubgroupSize=64
memory_heaps: 2
  [0] size=25753026560 flags=0x00000001
  [1] size=16777216 flags=0x00000000
device_extensions: 2
  VK_KHR_8bit_storage
  VK_KHR_16bit_storage
"""
CUDA = """
- gpu-compute-capability: 9.0
- block-max-thread-count: 1024
- block-max-shared-memory: 227 KB
- memory-total-global-memory-size: 143771 MB
"""


def device(uri: str, name: str, text: str) -> Device:
    return Device(uri, name, *read_info(text))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "local-sync": Driver("local-sync", (Device("local-sync", "default"),)),
        "local-task": Driver("local-task", (Device("local-task", "default"),)),
        "vulkan": Driver("vulkan", (device("vulkan://GPU-1", "AMD Radeon RX 7900 XTX (RADV NAVI31)", VULKAN),)),
        "cuda": Driver("cuda", (device("cuda://GPU-2", "NVIDIA H200", CUDA),)),
        "hip": Driver("hip", (), "no libamdhip64.so", "install it"),
        "metal": Driver("metal", (), "no driver", "take a Mac"),
    }
    monkeypatch.setattr(drivers, "driver", found.__getitem__)


@pytest.mark.usefixtures("machine")
def test_the_table(call: Call) -> None:
    shown = call("devices").stdout
    assert "--device=vulkan://GPU-1 --target=vulkan:rdna3" in shown
    assert "memory: 24.0 GiB" in shown
    assert "subgroups: 32 to 64 threads" in shown
    assert "has: 8-bit integers, f16, cooperative matrices" in shown
    assert "lacks: bf16" in shown
    assert "--device=cuda://GPU-2 --target=cuda:sm_90" in shown
    assert "shared memory of a block: 227 KB" in shown
    assert "hip         not usable: no libamdhip64.so" in shown


@pytest.mark.usefixtures("machine")
def test_json(call: Call) -> None:
    rows = {row["driver"]: row for row in json.loads(call("devices", "--json").stdout)}
    assert list(rows) == list(drivers.DRIVERS)
    gpu = rows["vulkan"]["devices"][0]
    assert (gpu["uri"], gpu["target"]) == ("vulkan://GPU-1", "vulkan:rdna3")
    assert gpu["extensions"] == ["VK_KHR_8bit_storage", "VK_KHR_16bit_storage"]
    assert rows["cuda"]["devices"][0]["info"]["gpu-compute-capability"] == "9.0"
    assert rows["hip"]["problem"] == "no libamdhip64.so"


@pytest.mark.usefixtures("machine")
def test_a_driver_alone(call: Call) -> None:
    assert call("devices", "--check=cuda").exit_code == 0
    result = call("devices", "--check=hip")
    assert result.exit_code == 1
    assert "no device of driver hip: no libamdhip64.so" in result.stderr
    assert "install it" in result.stderr
    result = call("devices", "--check=tpu")
    assert result.exit_code == 1
    assert "local-sync, local-task, vulkan, cuda" in result.stderr


@pytest.mark.usefixtures("machine")
def test_a_target_without_a_variant_is_the_device_at_hand() -> None:
    assert Target.parse("vulkan") == Target("vulkan", "rdna3")
    assert Target.parse("cuda") == Target("cuda", "sm_90")
    assert Target.parse("rocm") == Target("rocm", "gfx942")  # none at hand: the default


def test_this_machine(call: Call) -> None:
    """Whatever it has: each driver lists devices, or tells a problem and a way out."""
    rows = {row["driver"]: row for row in json.loads(call("devices", "--json").stdout)}
    assert rows["local-sync"]["devices"]
    assert rows["local-task"]["devices"]
    for row in rows.values():
        assert bool(row["devices"]) != bool(row["problem"])
        assert bool(row["problem"]) == bool(row["way_out"])
