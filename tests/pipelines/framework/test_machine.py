"""Models of processors: as options of passes, in settings, and in docs/machine.md."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hloforge.dialect.errors import OptionError, PipelineError
from hloforge.pipelines.framework.machine import AVX2, AVX512, MACHINES, TUNABLE, Machine
from hloforge.pipelines.framework.passes import MachinePass
from hloforge.pipelines.kernels.attention.attention_kernel import Tile
from hloforge.pipelines.named import pipeline
from hloforge.pipelines.textual import parse_pipeline
from hloforge.runtime.options import CompileOptions
from tests.pipelines.framework import machine_page


def test_the_page_is_up_to_date() -> None:
    assert machine_page.PAGE.read_text() == machine_page.page(), "run: make tables"


def test_every_number_has_a_unit_a_meaning_and_what_set_it() -> None:
    for entry in fields(Machine):
        assert all(entry.metadata[key] for key in ("unit", "meaning", "measured")), entry.name


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
def test_passes_for_a_machine_are_read_back(machine: Machine) -> None:
    passes = [entry for entry in pipeline("cpu", machine) if isinstance(entry, MachinePass)]
    assert {entry.machine for entry in passes} == {machine}
    assert parse_pipeline(",".join(map(str, passes))) == passes


def test_a_number_of_the_machine_is_an_option_of_a_pass() -> None:
    (made,) = parse_pipeline("dispatch-matmuls{vector-bytes=64 vector-count=32 l2-bytes=1048576}")
    assert isinstance(made, MachinePass)
    assert made.machine == AVX512.with_settings(["l2-bytes=1048576"])
    assert str(made) == "dispatch-matmuls{vector-bytes=64 vector-count=32 l2-bytes=1048576}"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("l4-bytes=1", "unknown option 'l4-bytes'"),
        ("machine=AVX2", "unknown option 'machine'"),
        ("l1-bytes=0", "l1-bytes must be positive, not 0"),
        ("l1-bytes=many", "invalid literal"),
    ],
)
def test_what_is_no_number_of_a_machine_is_refused(option: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_pipeline(f"dispatch-matmuls{{{option}}}")


def test_thresholds_follow_from_the_time_of_a_dispatch() -> None:
    dear = AVX2.with_settings(["dispatch-work=262144"])
    assert dear.dispatch_elements == 4 * AVX2.dispatch_elements
    assert dear.work_of(8) == 4 * AVX2.work_of(8)
    assert AVX512.has_wide_vectors
    assert not AVX2.has_wide_vectors


def test_kernels_have_the_vectors_that_they_were_measured_with() -> None:
    for machine in MACHINES.values():
        assert (machine.half_line, machine.unrolled_bytes) == (32, 256)
        assert Tile.of(machine) == Tile(16, 128, 16 if machine is AVX512 else 6)


def test_what_may_be_tuned_holds_what_the_machines_have() -> None:
    for machine in MACHINES.values():
        assert all(machine.settings()[name] in values for name, values in TUNABLE.items())


def test_options_set_what_may_be_tuned_and_nothing_else() -> None:
    assert CompileOptions(machine=("group-elements=16384",)).machine == ("group-elements=16384",)
    for setting in ("workers=4", "group-elements=1", "group-elements", "group-elements=16384 "):
        with pytest.raises(OptionError, match="group-elements"):
            CompileOptions(machine=(setting,))
