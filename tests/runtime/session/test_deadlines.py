"""A call that does not end becomes an error, and one that does is as without a deadline."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import ExecutionError, OptionError

_CALLS_HOST = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @wait(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def _session(function: object, deadline: float | None) -> hloforge.Session:
    executable = hloforge.compile(_CALLS_HOST, host_calls={"wait"}, cache=False)
    return executable.load(host={"wait": function}, deadline=deadline)


def test_a_call_that_hangs_ends_as_an_error_and_ends_the_session() -> None:
    go_on = threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        go_on.wait(30)
        return x

    session = _session(wait, 0.2)
    with pytest.raises(ExecutionError, match=r"did not end within 0\.2 s"):
        session(np.zeros(4, np.float32))
    with pytest.raises(ExecutionError, match="still running"):
        session(np.zeros(4, np.float32))
    go_on.set()


def test_a_call_in_time_gives_its_result() -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(_session(lambda v: v + 1, 30)(x), x + 1)


def test_what_a_host_function_raises_is_raised() -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        _session(fail, 30)(np.zeros(4, np.float32))


def test_a_deadline_is_positive() -> None:
    with pytest.raises(OptionError, match="positive"):
        _session(lambda x: x, 0)
