"""``hloforge devices``: list drivers, devices and limits, and why a driver is not usable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hloforge.runtime.devices.drivers import Device, Driver

# Facts of a device that a table shows, by what drivers call them.
_SHOWN = {
    "type": "kind",
    "api": "Vulkan",
    "driver_info": "driver",
    "gpu-arch-name": "architecture",
    "gpu-compute-capability": "compute capability",
    "memory": "memory",
    "memory-total-global-memory-size": "memory",
    "block-max-thread-count": "threads of a block",
    "block-max-shared-memory": "shared memory of a block",
    "subgroup": "subgroups",
}
# Vulkan's names of features, and the element types that they bring.
_TYPES = {
    "shaderInt8": "8-bit integers",
    "shaderFloat16": "f16",
    "shaderBFloat16Type": "bf16",
    "storageBuffer8BitAccess": "8-bit storage",
    "storageBuffer16BitAccess": "16-bit storage",
    "shaderIntegerDotProduct": "integer dot products",
    "cooperativeMatrix": "cooperative matrices",
}


@click.command(short_help="List the devices of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all properties that the drivers report.")
@click.option("--check", metavar="DRIVER", help="Show this driver alone, and fail if it has no device.")
def command(as_json: bool, check: str | None) -> None:
    """Show the drivers of IREE's runtime, their devices and limits, and why a driver is not usable here.

    \b
    Example:
      hloforge devices
      hloforge devices --json
      hloforge devices --check=cuda && hloforge run model.hlo --target=cuda
    """
    from hloforge.dialect.errors import LoadError, OptionError
    from hloforge.runtime.devices import drivers

    names = tuple(drivers.DRIVERS)
    if check is not None and check not in names:
        raise OptionError(f"unknown driver {check!r}", hint=f"drivers: {', '.join(names)}")
    found = [drivers.driver(name) for name in ((check,) if check else names)]
    if check and not found[0].devices:
        raise LoadError(f"no device of driver {check}: {found[0].problem}", hint=found[0].way_out)
    if as_json:
        click.echo(json.dumps([_facts(driver) for driver in found], indent=2, ensure_ascii=False))
    else:
        for driver in found:
            _show(driver)


def _facts(driver: Driver) -> dict[str, Any]:
    devices = [
        {
            "uri": device.uri,
            "name": device.name,
            "target": _target(driver.name, device),
            "info": dict(device.info),
            "extensions": list(device.extensions),
        }
        for device in driver.devices
    ]
    return {"driver": driver.name, "devices": devices, "problem": driver.problem, "way_out": driver.way_out}


def _target(name: str, device: Device) -> str:
    """What ``--target`` takes for a device."""
    from hloforge.runtime.compile.targets import target_of_device

    target = target_of_device(name, device)
    return str(target) if target else ""


def _show(driver: Driver) -> None:
    from hloforge.runtime.devices.drivers import DRIVERS

    if driver.problem:
        click.echo(f"{driver.name:<11} not usable: {driver.problem}")
        click.echo(f"{'':<11} {driver.way_out}")
        return
    click.echo(f"{driver.name:<11} {DRIVERS[driver.name]}")
    for device in driver.devices:
        if not device.info:
            continue
        target = _target(driver.name, device)
        click.echo(f"{'':<11} {device.name}")
        click.echo(f"{'':<11}   --device={device.uri}" + (f" --target={target}" if target else ""))
        for label, value in _limits(device):
            click.echo(f"{'':<11}   {label}: {value}")


def _limits(device: Device) -> list[tuple[str, str]]:
    from hloforge.runtime.devices.drivers import words

    rows = [(label, _readable(name, device.info[name])) for name, label in _SHOWN.items() if name in device.info]
    features = words(device.info.get("features", ""))
    if features:
        rows.append(("has", ", ".join(text for name, text in _TYPES.items() if features.get(name) == "yes") or "none"))
        rows.append(("lacks", ", ".join(text for name, text in _TYPES.items() if features.get(name) == "no") or "none"))
    if device.extensions:
        rows.append(("extensions", f"{len(device.extensions)}, which --json lists"))
    return rows


def _readable(name: str, value: str) -> str:
    from hloforge.runtime.devices.drivers import words

    if name == "memory" and value.isdecimal():
        return f"{int(value) / 2**30:.1f} GiB"
    if name == "subgroup":
        sizes = words(value)
        return f"{sizes.get('minSubgroupSize', '?')} to {sizes.get('maxSubgroupSize', '?')} threads"
    return value
