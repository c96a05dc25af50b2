"""The typed client runs, and the types of options are those of ``CompileOptions``."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import numpy as np

from hloforge.runtime.options import CompileFields, CompileOptions
from tests.project import typed_client


def test_the_client_runs() -> None:
    for result in typed_client.main():
        np.testing.assert_allclose(result, np.full((8, 16), 1 / 16), rtol=1e-6)


def test_every_option_has_a_type() -> None:
    names = {field.name for field in dataclasses.fields(CompileOptions)}
    assert get_type_hints(CompileFields).keys() == names
