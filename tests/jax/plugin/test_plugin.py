"""JAX with hloforge as its backend. The checks run in child processes, because a process chooses its backend once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
# The checks of one process, by how many devices it has: a process for each would start JAX 26 times.
GROUPS = (
    (
        1,
        (
            "transformations",
            "eager",
            "element_types",
            "transfers",
            "memory_outlives_its_array",
            "small_results_keep_no_large_ones",
        ),
    ),
    (1, ("donation", "donation_errors", "sharing", "cache_on_disk", "cache_that_others_may_write_to", "layouts")),
    (1, ("kinds_of_memory", "guards", "copies", "compiler_options", "ahead_of_time", "errors", "traces")),
    (1, ("long_programs_run_in_the_background", "threads", "callbacks", "executables", "exit_with_live_arrays")),
    (
        2,
        (
            "two_devices",
            "callbacks_of_two_devices",
            "custom_partitioning_of_two_devices",
            "asynchronous_collectives_of_two_devices",
            "donated_parts_of_two_devices",
            "traces_of_two_devices",
            "replicated_results_of_two_devices",
            "factorizations_of_two_devices",
        ),
    ),
)


# The same with hloforge in place of JAX's CPU, where the name matters.
GROUPS_AS_CPU = (
    (1, ("in_place_of_the_cpu", "callbacks", "sharing", "guards", "kinds_of_memory", "ahead_of_time")),
    (2, ("callbacks_of_two_devices",)),
)


@pytest.mark.parametrize(("devices", "names"), GROUPS, ids=[names[0] for _, names in GROUPS])
def test_checks(devices: int, names: tuple[str, ...]) -> None:
    _check(devices, names, {"JAX_PLATFORMS": "hloforge"})


@pytest.mark.parametrize(("devices", "names"), GROUPS_AS_CPU, ids=[names[0] for _, names in GROUPS_AS_CPU])
def test_checks_in_place_of_the_cpu(devices: int, names: tuple[str, ...]) -> None:
    _check(devices, names, {"JAX_PLATFORMS": "cpu", "HLOFORGE_JAX_PLATFORM": "cpu"})


def _check(devices: int, names: tuple[str, ...], platform: dict[str, str]) -> None:
    environment = os.environ | platform | {"HLOFORGE_JAX_DEVICES": str(devices)}
    script = FOLDER / ("checks_of_two.py" if devices == 2 else "checks.py")
    command = [sys.executable, "-X", "faulthandler", str(script), *names]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    passed = [line.removeprefix("passed ") for line in process.stdout.splitlines() if line.startswith("passed ")]
    assert passed == list(names), process.stderr[-4000:]
    # The interpreter ends in peace, too.
    assert process.returncode == 0
    # What JAX logs of the callback that fails is no complaint.
    assert not re.search("nanobind|leaked|fork|Fatal|warning", process.stderr, re.IGNORECASE), process.stderr


def test_every_check_is_in_a_group() -> None:
    scripts = "\n".join((FOLDER / name).read_text() for name in ("checks.py", "checks_of_two.py"))
    written = re.findall(r"^@check\ndef (\w+)", scripts, re.MULTILINE)
    assert sorted(written) == sorted(name for name in {name for _, names in GROUPS + GROUPS_AS_CPU for name in names})


def test_a_script_that_fails_ends_in_peace() -> None:
    # numpy's view of a result goes after JAX has ended; memory that was given back holds no old values.
    code = """
import jax, numpy as np
x = np.ones((3, 3), np.complex64)
f = jax.jit(lambda x: (x @ x * 2, x[:0]))
with jax.default_device(jax.devices("cpu")[0]):
    a = jax.device_get(f(x))
b = jax.device_get(f(x))
print([np.abs(p - q).max() for p, q in zip(a, b)])
"""
    environment = os.environ | {"JAX_PLATFORMS": "hloforge", "MALLOC_PERTURB_": "165"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.endswith("which has no identity\n")


@pytest.mark.parametrize("how", ["setting", "flag"])
def test_there_are_as_many_devices_as_of_the_cpu(how: str) -> None:
    setting = "jax.config.update('jax_num_cpu_devices', 3)" if how == "setting" else ""
    code = f"import jax; {setting}\nprint(jax.devices())"
    environment = {name: value for name, value in os.environ.items() if name != "HLOFORGE_JAX_DEVICES"}
    environment |= {"JAX_PLATFORMS": "hloforge"}
    if how == "flag":
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout.count("id=") == 3


def test_the_platforms_that_the_user_named_stay() -> None:
    code = "import jax; jax.devices(); print(jax.config.jax_platforms, jax.devices('cpu'))"
    environment = os.environ | {"JAX_PLATFORMS": "hloforge"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout == "hloforge [CpuDevice(id=0)]\n"


def test_the_cpu_stays_the_default() -> None:
    code = "import jax; print(jax.default_backend(), len(jax.devices('hloforge')))"
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout == "cpu 1\n"


def test_an_unknown_name_for_the_platform_is_told() -> None:
    environment = os.environ | {"JAX_PLATFORMS": "", "HLOFORGE_JAX_PLATFORM": "gpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "HLOFORGE_JAX_PLATFORM='gpu': give hloforge or cpu" in process.stderr


def test_a_missing_extension_is_told() -> None:
    code = """
import sys
sys.modules["hloforge.jax.plugin._pjrt"] = None
import jax
assert jax.default_backend() == "cpu"
jax.devices("hloforge")
"""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "extension module was not built" in process.stderr
