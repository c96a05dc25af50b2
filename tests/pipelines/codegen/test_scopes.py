"""Which accesses of a kernel LLVM takes to be apart, by the rule of its language reference ("alias.scope")."""

from __future__ import annotations

import re

import pytest

from hloforge.pipelines.codegen.kernel_writer import with_scopes


class Scopes:
    """The scopes of accesses, read from a kernel's text and metadata."""

    def __init__(self, slots: int) -> None:
        self.text, nodes = with_scopes("\n".join(f"access, !KERNEL_SCOPE_{slot}!" for slot in range(slots)), slots, 7)
        self._nodes = {
            int(number): [int(part) for part in re.findall(r"!(\d+)", parts)]
            for number, parts in re.findall(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", nodes, re.MULTILINE)
        }
        self.accesses = [
            tuple(self._nodes[int(found)] for found in re.findall(r"!(\d+)", line)) for line in self.text.splitlines()
        ]

    def are_apart(self, one: int, other: int) -> bool:
        """Whether all scopes of one access in some domain are among those that the other one is not in."""
        scopes, without = self.accesses[one][0], self.accesses[other][1]
        for domain in {self._domain(scope) for scope in without}:
            own = {scope for scope in scopes if self._domain(scope) == domain}
            if own and own <= set(without):
                return True
        return False

    def _domain(self, scope: int) -> int:
        (domain,) = set(self._nodes[scope]) - {scope}
        return domain


@pytest.mark.parametrize("slots", [2, 3, 64, 65, 150])
def test_every_two_slots_are_apart_and_none_from_itself(slots: int) -> None:
    scopes = Scopes(slots)
    assert len(scopes.accesses) == slots
    for one in range(slots):
        for other in range(slots):
            assert scopes.are_apart(one, other) == (one != other)


def test_metadata_grows_with_the_logarithm_of_slots() -> None:
    assert max(len(list_) for access in Scopes(1000).accesses for list_ in access) == 10


def test_a_kernel_of_one_slot_has_no_metadata() -> None:
    assert Scopes(1).text == "access"
