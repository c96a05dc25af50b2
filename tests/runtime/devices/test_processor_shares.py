"""Which processors each of several devices gets."""

from __future__ import annotations

import pytest

from hloforge.runtime.devices.processor_shares import share


@pytest.mark.parametrize("count", [4, 7, 9])
def test_every_processor_is_somebodys_and_nobody_elses(count: int) -> None:
    processors = range(10, 10 + count)
    shares = [share(processors, place, 2, {"weights": None})["threads"] for place in range(2)]
    assert [*shares[0], *shares[1]] == list(processors)
    assert abs(len(shares[0]) - len(shares[1])) < 2


@pytest.mark.parametrize("processors", [(), (3,), (0, 1)], ids=["unknown", "one", "two"])
def test_a_share_of_one_processor_is_the_calling_thread(processors: tuple[int, ...]) -> None:
    assert [share(processors, place, 2, {"threads": None}) for place in range(2)] == [
        {"threads": None, "device": "local-sync"}
    ] * 2


@pytest.mark.parametrize("given", [{"device": "local-task"}, {"threads": 3}], ids=["device", "threads"])
def test_who_says_where_to_run_is_obeyed(given: dict[str, object]) -> None:
    assert share(range(8), 0, 2, given) == given
