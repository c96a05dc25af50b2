"""Calls whose arguments are copied into buffers that stay between them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hloforge

TEXT = """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>) {
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %x, %y, %n : tensor<4xf32>, tensor<4xf32>, tensor<i32>
}
"""


@pytest.fixture(scope="module")
def session() -> hloforge.Session:
    return hloforge.compile(TEXT).load()


def test_a_returned_argument_is_the_callers(session: hloforge.Session) -> None:
    first = session(np.float32([1, 2, 3, 4]), np.int32(1) + np.zeros((), np.int32))
    x = np.float32([5, 6, 7, 8])
    second = session(x, np.array(2, np.int32))
    x[:] = 0
    assert [array.tolist() for array in first] == [[1, 2, 3, 4], [2, 4, 6, 8], 1]
    assert [array.tolist() for array in second] == [[5, 6, 7, 8], [10, 12, 14, 16], 2]
    second[0][0] = 9  # a result is the caller's to write to
    assert session(np.float32([5, 6, 7, 8]), np.array(2, np.int32))[0].tolist() == [5, 6, 7, 8]


def test_arguments_of_other_kinds_still_go(session: hloforge.Session) -> None:
    strided = np.arange(8, dtype=np.float32)[::2]
    assert session(strided, 3)[1].tolist() == [0, 4, 8, 12]
    assert session(session.put(strided, 0), arg1=np.int32(3))[2] == 3
    with pytest.raises(hloforge.ArgumentError, match=r"argument 'arg0': expected f32\[4\]"):
        session(np.zeros(3, np.float32), np.array(3, np.int32))
    with pytest.raises(hloforge.ArgumentError, match="argument 'arg1'"):
        session(np.zeros(4, np.float32), np.array(3, np.int64))


def test_threads_do_not_share_buffers(session: hloforge.Session) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        x, n = np.full(4, number, np.float32), np.array(number, np.int32)
        for _ in range(300):
            same, twice, count = session(x, n)
            if same[3] != number or twice[0] != 2 * number or count != number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
