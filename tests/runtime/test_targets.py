"""Targets and options: what is understood, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from hloforge.dialect.errors import OptionError
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.targets import Target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cpu", Target("cpu", "host")),
        ("cpu:host", Target("cpu", "host")),
        ("cpu:generic", Target("cpu", "generic")),
        ("cpu:znver3,+avx2,-fma", Target("cpu", "znver3", "+avx2,-fma")),
    ],
)
def test_parse(text: str, target: Target) -> None:
    assert Target.parse(text) == target
    assert Target.parse(str(target)) == target
    assert Target.parse(target) is target


def test_flags() -> None:
    flags = Target.parse("cpu:znver3,+avx2").flags()
    assert "--iree-llvmcpu-target-cpu=znver3" in flags
    assert "--iree-llvmcpu-target-cpu-features=+avx2" in flags
    assert "--iree-input-demote-f64-to-f32=false" in flags


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("vulkan", "unknown target 'vulkan'", "cpu"),
        ("", "unknown target ''", "cpu"),
        ("cpu:zenver3", "unknown processor 'zenver3'", "znver3"),
        ("cpu:generic,avx2", "malformed features 'avx2'", "+name"),
        ("cpu:generic,+a b", "malformed features", "+name"),
        ("cpu:host,+avx2", "the host's processor", "cpu:generic,+avx2"),
    ],
)
def test_what_is_unknown(text: str, said: str, hint: str) -> None:
    with pytest.raises(OptionError) as caught:
        Target.parse(text)
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"flags": ("-O3",)}, "'-O3' is no flag of IREE's compiler"),
        ({"flags": ("--iree-x; rm",), "isolation": "thread"}, "unknown isolation 'thread'"),
        ({"timeout": 0}, "timeout must be positive"),
        ({"memory_limit": -1}, "memory_limit must be positive"),
        ({"timeout": 1, "isolation": "none"}, "needs isolation 'process'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        CompileOptions(**options)
