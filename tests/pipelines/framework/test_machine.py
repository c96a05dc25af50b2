"""Models of processors: in settings, and in docs/machine.md."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hloforge.dialect.errors import OptionError
from hloforge.pipelines.framework.machine import AVX2, MACHINES, TUNABLE, Machine
from hloforge.runtime.options import CompileOptions
from tests.pipelines.framework import machine_page


def test_the_page_is_up_to_date() -> None:
    assert machine_page.PAGE.read_text() == machine_page.page(), "run: make tables"


def test_every_number_has_a_unit_a_meaning_and_what_set_it() -> None:
    for entry in fields(Machine):
        assert all(entry.metadata[key] for key in ("unit", "meaning", "measured")), entry.name


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("l4-bytes=1", "unknown number of a machine 'l4-bytes'"),
        ("l1-bytes=0", "l1-bytes must be positive, not 0"),
        ("l1-bytes=many", "invalid literal"),
    ],
)
def test_what_is_no_number_of_a_machine_is_refused(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AVX2.with_settings([setting])


def test_what_follows_from_a_number_follows_it() -> None:
    assert AVX2.with_settings(["l1-bytes=65536"]).packed_bytes == 2 * AVX2.packed_bytes


def test_what_may_be_tuned_holds_what_the_machines_have() -> None:
    for machine in MACHINES.values():
        assert all(machine.settings()[name] in values for name, values in TUNABLE.items())


def test_options_set_what_may_be_tuned_and_nothing_else() -> None:
    assert CompileOptions(machine=("l2-bytes=1048576",)).machine == ("l2-bytes=1048576",)
    for setting in ("workers=4", "l2-bytes=1", "l2-bytes", "l2-bytes=1048576 "):
        with pytest.raises(OptionError, match="l2-bytes"):
            CompileOptions(machine=(setting,))
