"""Gradients whose operators have lowerings of their own, against PyTorch's."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from tests.torch.gradients import by_aot, gradients  # noqa: E402
from tests.torch.opinfo import Case, cases_of, mismatch  # noqa: E402

functional = torch.nn.functional
POSITIONS, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4, 4])


def assert_gradients_agree(case: Case) -> None:
    expected = gradients(case.function, case)
    found = gradients(by_aot(case.function), case)
    wide = dataclasses.replace(case, function=lambda *_: tuple(expected), tolerance=(1e-3, 1e-4))
    assert not mismatch(wide, expected, found)


@pytest.mark.parametrize(
    "name",
    [
        "masked_scatter",
        "nn.functional.pdist",
        "_upsample_bilinear2d_aa",
        pytest.param("cdist", marks=pytest.mark.slow),
        pytest.param("nn.functional.pad.replicate", marks=pytest.mark.slow),
        pytest.param("nn.functional.pad.replicate_negative", marks=pytest.mark.slow),
        pytest.param("nn.functional.grid_sample", marks=pytest.mark.slow),
        pytest.param("grid_sampler_2d", marks=pytest.mark.slow),
        pytest.param("grid_sampler_3d", marks=pytest.mark.slow),
    ],
)
def test_samples_of_the_operator_database(name: str) -> None:
    for case in cases_of(name, 2):
        assert_gradients_agree(case)


@pytest.mark.parametrize("options", [{"mode": "sum"}, {"mode": "mean", "padding_idx": 4}, {"mode": "max"}])
def test_bags_of_rows(options: dict[str, object]) -> None:
    """An empty bag, equal rows, and rows that are left out."""
    torch.manual_seed(0)
    table = torch.randn(10, 4)
    table[4] = table[5]

    def bags(table: object, positions: object, offsets: object) -> object:
        return (functional.embedding_bag(positions, table, offsets, **options),)

    assert_gradients_agree(Case("bags", "bags", bags, (table, POSITIONS, OFFSETS)))


def test_weights_of_rows_in_a_bag() -> None:
    torch.manual_seed(0)

    def bags(table: object, weights: object, positions: object, offsets: object) -> object:
        named = {"mode": "sum", "per_sample_weights": weights, "padding_idx": 2}
        return (functional.embedding_bag(positions, table, offsets, **named),)

    assert_gradients_agree(Case("bags", "bags", bags, (torch.randn(10, 4), torch.rand(8), POSITIONS, OFFSETS)))


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("corners", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_places_at_the_ends_of_an_image(padding: str, corners: bool) -> None:
    """Where PyTorch takes the gradient of the place for 0, or for that of one side."""
    torch.manual_seed(0)
    grid = torch.tensor([-2.0, -1, -1 + 1 / 4, 0, 1, 3])
    places = torch.stack(torch.meshgrid(grid, grid, indexing="ij"), -1)[None]

    def sampled(x: object, places: object) -> object:
        return (functional.grid_sample(x, places, padding_mode=padding, align_corners=corners),)

    assert_gradients_agree(Case("grid", "grid", sampled, (torch.randn(1, 2, 4, 4), places)))
