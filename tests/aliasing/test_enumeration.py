"""All programs that see an array in one way and update it in another: some in every run, more in `make test-all`."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tests.aliasing.__main__ import TOGETHER, bundles, examine, part
from tests.aliasing.examine import Finding
from tests.aliasing.programs import COUNT, TYPES, UPDATES, VIEWS, forms

# Of so many parts one runs in `make test`, and ten in `make test-all`; `python -m tests.aliasing` runs all.
_PARTS, _MORE = 100, 10
# A test is one bundle, which is compiled as one program, so that processes can share a part.
_BUNDLES = range(math.ceil(COUNT / _PARTS / TOGETHER))


def test_every_pair_of_views_meets_every_update() -> None:
    chosen = list(forms())
    assert len(chosen) == COUNT
    assert len(set(map(str, chosen))) > 0.98 * COUNT
    pairs = Counter((form.seen, form.updated, form.update) for form in chosen)
    for view in VIEWS:
        for other in VIEWS:
            assert all(pairs[(view,), (other,), update] >= 4 for update in UPDATES)
    assert set(Counter(form.element for form in chosen)) == set(TYPES)


def differing(number: int, bundle: int) -> list[Finding]:
    """The programs of a bundle of a part that differ from the reference."""
    chosen = list(bundles(part(number, _PARTS)))
    assert len(chosen) == len(_BUNDLES)
    return list(examine(chosen[bundle]))


@pytest.mark.wide(2)
@pytest.mark.parametrize("bundle", _BUNDLES)
def test_a_hundredth_agrees(bundle: int) -> None:
    assert not differing(0, bundle)


@pytest.mark.slow
@pytest.mark.parametrize("bundle", _BUNDLES)
@pytest.mark.parametrize("number", range(1, _MORE))
def test_a_tenth_agrees(number: int, bundle: int) -> None:
    assert not differing(number * (_PARTS // _MORE), bundle)
