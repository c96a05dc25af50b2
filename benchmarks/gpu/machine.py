"""The device that is measured."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.gpu.peaks import Peaks, known_peaks, measured_peaks
from hloforge.dialect.errors import LoadError
from hloforge.runtime.compile.targets import Target, target_of_device
from hloforge.runtime.devices import drivers


@dataclass(frozen=True)
class Machine:
    """A device and what is known of it.

    Attributes:
        device: as ``--device`` takes it.
        name: of the product.
        target: what programs are compiled for.
        peaks: None for a product that no row knows.
    """

    device: str
    name: str
    target: Target
    peaks: Peaks | None


def machine(device: str) -> Machine:
    """The device to measure: ``cuda`` or its URI; ``local-task`` tries the measuring itself on processors.

    Raises:
        LoadError: this machine has no such device; says why, and what would help.
    """
    driver = device.partition("://")[0]
    if driver in ("local-sync", "local-task"):
        return Machine(device, "this machine's processor", Target(), measured_peaks())
    found = drivers.driver(driver)
    if not found.devices:
        raise LoadError(f"no device to check: {found.problem}", hint=found.way_out)
    gpu = next((one for one in found.devices if one.uri == device), found.devices[0])
    return Machine(device, gpu.name, target_of_device(driver, gpu) or Target.parse("cuda:sm_80"), known_peaks(gpu.name))
