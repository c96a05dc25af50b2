"""Products of all forms and sizes, against numpy, in memory with guards on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of, vector_of
from hloforge.pipelines.codegen.products import dot_products, tile_registers, tiled
from hloforge.pipelines.codegen.products.arithmetic import BF16, VNNI
from hloforge.pipelines.codegen.products.blocking import last_tile, unevenness
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.framework.machine import AVX2, AVX512, NEON

from .gemms import check, dense
from .jit import EXTENSIONS, HOST, TILED, WITH_TILES


def product(
    m: int, k: int, n: int, kind: str = "float", *, batch: Sequence[int] = (), turned: str = "", out: str = ""
) -> Gemm:
    """Dense matrices; ``turned`` names the factors that are stored with their sizes exchanged."""
    return Gemm(
        tuple(batch),
        m,
        n,
        k,
        dense(kind, batch, m, k, transposed="l" in turned),
        dense(kind, batch, k, n, transposed="r" in turned),
        dense(out or kind, batch, m, n),
    )


SIZES = [
    (1, 1, 1),
    (3, 3, 3),
    (4, 4, 4),
    (17, 5, 31),
    (64, 64, 64),
    (127, 70, 53),
    (100, 33, 17),
    (33, 300, 130),
    (5, 1, 40),
    (1, 40, 250),
    (2, 37, 130),
    (4, 19, 700),
    (1, 100, 1),
    (70, 45, 1),
    (1, 1, 50),
    (29, 2, 3),
    (70, 45, 3),
    (23, 40, 4),
    (6, 50, 200),
]


@pytest.mark.wide(2)
@pytest.mark.parametrize("turned", ["", "l", "r", "lr"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_orders(size: tuple[int, int, int], turned: str) -> None:
    check(product(*size, turned=turned))
    check(product(*size, turned=turned), at_end=False)


@pytest.mark.parametrize("kind", ["double", "i32", "i64", "half", "bfloat", "i8", "i16"])
@pytest.mark.parametrize("size", [(17, 5, 31), (40, 33, 70), (3, 50, 130), (2, 77, 9)], ids=str)
def test_types(size: tuple[int, int, int], kind: str) -> None:
    for turned in ("", "l", "r"):
        out = {"i8": "i32", "i16": "i32"}.get(kind, kind)
        check(product(*size, kind, turned=turned, out=out))


# Of this machine's processor.


@pytest.mark.wide(2)
@pytest.mark.parametrize("signs", ["ss", "uu", "su", "us"])
@pytest.mark.parametrize("has", [VNNI, "avx2"])
@pytest.mark.parametrize("size", [(17, 5, 31), (40, 32, 70), (13, 71, 130), (20, 4, 16)], ids=str)
def test_bytes_in_groups(size: tuple[int, int, int], has: str, signs: str) -> None:
    if has not in EXTENSIONS:
        pytest.skip(f"this processor has no {has}")
    for turned in ("", "l", "r", "lr"):
        gemm = product(*size, "i8", turned=turned, out="i32")
        lhs, rhs = (replace(one, signed=sign == "s") for one, sign in zip((gemm.lhs, gemm.rhs), signs, strict=True))
        gemm = replace(gemm, lhs=lhs, rhs=rhs, extensions=frozenset({has}))
        assert tiled.plan(gemm, HOST).arithmetic.group > 1
        for at_end in (True, False):
            check(gemm, at_end=at_end)
        check(gemm, machine=AVX2)


@pytest.mark.parametrize("signs", ["ss", "uu", "su", "us"])
@pytest.mark.parametrize("size", [(1, 64, 5), (1, 700, 3), (3, 213, 17), (4, 130, 40), (40, 200, 2)], ids=str)
def test_few_rows_of_bytes(size: tuple[int, int, int], signs: str) -> None:
    """Terms that lie next to each other in both factors are multiplied in groups."""
    if VNNI not in EXTENSIONS:
        pytest.skip("this processor has no instruction for it")
    gemm = product(*size, "i8", turned="r", out="i32")
    lhs, rhs = (replace(one, signed=sign == "s") for one, sign in zip((gemm.lhs, gemm.rhs), signs, strict=True))
    gemm = replace(gemm, lhs=lhs, rhs=rhs, extensions=frozenset({VNNI}))
    few = gemm.transposed() if size[0] > size[2] else gemm
    assert few.form(HOST) == "dots"
    assert dot_products.plan(few, HOST).arithmetic.group > 1
    check(gemm)
    check(gemm, machine=AVX2)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("size", [(5, 20, 31), (6, 16, 40), (7, 130, 9), (8, 700, 2)], ids=str)
def test_groups_of_rows(size: tuple[int, int, int], kind: str) -> None:
    """Where vectors are short, up to eight rows of floats are multiplied along the terms, in two groups."""
    for turned in ("r", "lr"):
        gemm = product(*size, kind, turned=turned, out=kind)
        assert gemm.form(AVX2) == "dots"
        for at_end in (True, False):
            check(gemm, machine=AVX2, at_end=at_end)
    assert product(9, 64, 40, kind, turned="r", out=kind).form(AVX2) == "tiles"


@pytest.mark.parametrize("kind", ["i8", "bfloat"])
@pytest.mark.parametrize("size", [(9, 130, 71), (16, 513, 16), (33, 100, 31), (40, 128, 70), (600, 64, 40)], ids=str)
def test_tile_registers(size: tuple[int, int, int], kind: str) -> None:
    """Rows, columns and terms that fill registers of tiles and that do not, in every order and of every sign."""
    for turned in ("", "l", "r", "lr"):
        gemm = product(*size, kind, turned=turned, out="float" if kind == "bfloat" else "i32")
        for signs in ("ss", "uu", "su", "us") if kind == "i8" and not turned else ("ss",):
            lhs, rhs = (replace(one, signed=sign == "s") for one, sign in zip((gemm.lhs, gemm.rhs), signs, strict=True))
            found = replace(gemm, lhs=lhs, rhs=rhs, extensions=WITH_TILES)
            assert found.form(TILED) == ("registers" if size[2] >= 16 else "transposed")
            check(found, at_end="r" in turned)


@pytest.mark.wide(6)
@pytest.mark.parametrize("turned", ["", "l", "r"])
@pytest.mark.parametrize(("kind", "out"), [("i8", "i32"), ("bfloat", "float"), ("bfloat", "bfloat")])
def test_strips_are_kept_for_further_rows(kind: str, out: str, turned: str) -> None:
    """Rows in place or copied in several chunks, of several matrices, which may have one right factor."""
    for rows, terms in ((1100, 512), (1100, 70)):
        gemm = replace(product(rows, terms, 70, kind, batch=(3,), turned=turned, out=out), extensions=WITH_TILES)
        for one in (gemm, replace(gemm, rhs=replace(gemm.rhs, batch=(0,)))):
            assert tile_registers.plan(one, TILED).keeps
            check(one)


@pytest.mark.wide(4)
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("kind", ["i8", "bfloat"])
@pytest.mark.parametrize("size", [(150, 512, 160), (141, 592, 70), (135, 70, 133), (140, 1040, 48)], ids=str)
def test_strips_are_packed_apart(
    size: tuple[int, int, int], kind: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that stay in the cache, or that are copied in blocks, from rows or from columns in memory."""
    if not allowed:
        monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    for turned in ("", "l", "lr"):
        gemm = product(*size, kind, batch=(2,), turned=turned, out="float" if kind == "bfloat" else "i32")
        check(replace(gemm, extensions=WITH_TILES, apart=True), at_end=turned == "l")


def test_which_strips_are_packed_apart() -> None:
    """Those that pieces with some rows each would pack again for themselves, or whose pieces would turn all rows."""
    for size, turned, is_apart in [
        ((4096, 256, 256), "", True),
        ((256, 2048, 256), "l", True),
        ((256, 2048, 256), "", False),
        ((4096, 4096, 4096), "", False),
        ((128, 64, 128), "", False),
    ]:
        gemm = replace(product(*size, "bfloat", turned=turned, out="float"), extensions=WITH_TILES)
        assert gemm.packs_apart(replace(TILED, workers=2)) == is_apart


def test_processes_without_tile_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux may refuse them: the same product by vectors, in the same memory."""
    monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    for kind, out in (("i8", "i32"), ("bfloat", "float")):
        gemm = replace(product(300, 300, 300, kind, batch=(2,), out=out), extensions=WITH_TILES)
        assert gemm.form(TILED) == "registers"
        check(gemm)


@pytest.mark.parametrize("kind", ["i16", "bfloat"])
@pytest.mark.parametrize("size", [(17, 5, 31), (40, 32, 70), (13, 71, 130)], ids=str)
def test_pairs(size: tuple[int, int, int], kind: str) -> None:
    has = BF16 if kind == "bfloat" else "avx2"
    if has not in EXTENSIONS:
        pytest.skip(f"this processor has no {has}")
    for turned in ("", "l", "r", "lr"):
        gemm = product(*size, kind, turned=turned, out="float" if kind == "bfloat" else "i32")
        gemm = replace(gemm, extensions=frozenset({has}))
        assert tiled.plan(gemm, HOST).arithmetic.group == 2
        check(gemm)


def test_groups_of_elements_that_lie_apart() -> None:
    gemm = product(20, 30, 40, "i8", out="i32")
    gemm = replace(gemm, rhs=Matrix("i8", (), 120, 3), extensions=EXTENSIONS & {VNNI, "avx2"})
    check(gemm)
    check(replace(gemm, lhs=Matrix("i8", (), 90, 3)))


@pytest.mark.parametrize("machine", [AVX2, AVX512, NEON], ids=["AVX2", "AVX512", "NEON"])
def test_machines(machine: Any) -> None:
    for size in ((40, 33, 70), (1, 50, 130), (9, 40, 19)):
        for turned in ("", "l", "r"):
            check(product(*size, turned=turned), machine=machine)


@pytest.mark.parametrize(
    "kinds",
    [
        ("i8", "i8", "i8"),
        ("i16", "i16", "i16"),
        ("float", "bfloat", "float"),
        ("half", "half", "float"),
        ("i8", "i32", "i32"),
        ("float", "float", "double"),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [(17, 40, 31), (3, 50, 130), (2, 77, 9), (40, 70, 1)], ids=str)
def test_mixed_types(size: tuple[int, int, int], kinds: tuple[str, str, str]) -> None:
    m, k, n = size
    left, right, out = kinds
    for turned in (False, True):
        factors = dense(left, (), m, k), dense(right, (), k, n, transposed=turned)
        check(Gemm((), m, n, k, *factors, dense(out, (), m, n)))


def test_factors_without_strides() -> None:
    check(Gemm((3,), 5, 20, 9, Matrix("float", (9,), 0, 1), Matrix("float", (0,), 20, 1), dense("float", (3,), 5, 20)))
    check(Gemm((), 9, 30, 40, Matrix("float", (), 40, 1), Matrix("float", (), 1, 0), dense("float", (), 9, 30)))


def _stored_as_half(function: Function, extra: Sequence[Value]) -> dict[str, Any]:
    """Sums as halves in an array of their own, 100 columns apart."""

    def store(sums: Value, places: Sequence[Value]) -> None:
        place = places[1] * 100 + places[2]
        function.store(sums.as_("half"), function.offset(extra[0], "half", place))

    return {"store": store}


@pytest.mark.parametrize("size", [(17, 40, 70), (3, 50, 100), (2, 77, 9), (40, 70, 1)], ids=str)
def test_store(size: tuple[int, int, int]) -> None:
    m, _, n = size
    found = check(product(*size), hooks=_stored_as_half, extra=np.zeros((m, 100), np.float16), compares=False)
    np.testing.assert_allclose(found.extra[:, :n], found.product, rtol=2e-3, atol=2e-3 * abs(found.product).max())
    assert not found.extra[:, n:].any()


@pytest.mark.parametrize("columns", [18, 40, 100, 200])
def test_last_strips(columns: int) -> None:
    """Columns that leave a part of a vector: the last strip has a tile of its own, with a narrow vector."""
    gemm = product(40, 37, columns)
    last = last_tile(tiled.plan(gemm, AVX512).tile, columns)
    assert 0 < columns % 16 <= last.tail < 16
    for turned in ("", "r"):
        check(product(40, 37, columns, turned=turned), machine=AVX512)
    if columns <= 100:
        found = check(
            gemm, machine=AVX512, hooks=_stored_as_half, extra=np.zeros((40, 100), np.float16), compares=False
        )
        sums = found.extra[:, :columns]
        np.testing.assert_allclose(sums, found.product, rtol=2e-3, atol=2e-3 * abs(found.product).max())


def test_rows_of_a_large_factor() -> None:
    small = replace(HOST, l2_bytes=1 << 14)
    gemm = product(7, 60, 300)
    assert gemm.form(small) == "rows"
    check(gemm, machine=small)


def test_terms_in_blocks() -> None:
    small = replace(HOST, l2_bytes=1 << 14)
    for turned in ("", "l", "r"):
        check(product(50, 400, 70, turned=turned), machine=small)
        pairs = product(50, 800, 70, "bfloat", turned=turned, out="float")
        check(replace(pairs, extensions=EXTENSIONS & {BF16}), machine=small)


@pytest.mark.parametrize("turned", ["", "l", "r", "lr"])
def test_many_results_of_few_terms(turned: str) -> None:
    small = replace(HOST, l2_bytes=1 << 14)
    for size in ((81, 20, 130), (200, 50, 70), (3, 2, 2000)):
        check(product(*size, turned=turned, batch=(2,)), machine=small)
    assert tiled.plan(product(81, 20, 130), small).by_rows


def test_batches_with_any_strides() -> None:
    check(product(20, 30, 40, batch=(2, 3)))
    # Attention's [batch, position, head, feature] without a copy; the right factor is shared.
    heads = Gemm(
        (2, 3), 5, 6, 8,
        Matrix("float", (5 * 3 * 8, 8), 3 * 8, 1),
        Matrix("float", (0, 8 * 6), 6, 1),
        Matrix("float", (5 * 3 * 6, 6), 3 * 6, 1),
    )  # fmt: skip
    check(heads)


def test_results_in_columns() -> None:
    gemm = product(20, 30, 40)
    check(replace(gemm, out=Matrix("float", (), 1, 20)))


@pytest.mark.parametrize("size", [(300, 300, 300), (1, 3000, 3000), (3000, 3000, 1), (2, 1500, 2000)], ids=str)
def test_pieces_are_about_equal(size: tuple[int, int, int]) -> None:
    for turned in ("", "r"):
        gemm = product(*size, turned=turned)
        assert gemm.workgroups(AVX512) > 1
        check(gemm)


def test_small_products_are_not_cut() -> None:
    assert product(64, 64, 64).workgroups(AVX512) == 1


def test_few_columns_of_many_terms_leave_no_worker_without_rows() -> None:
    """Such a strip is packed for each chunk of rows, which are few."""
    for workers in (1, 2, 4):
        machine = replace(HOST, workers=workers)
        gemm = product(200, 3000, 64, turned="l")
        assert gemm.workgroups(machine) >= workers
        check(gemm, machine=machine)


def _bias_and_clamp(function: Function, extra: Sequence[Value]) -> dict[str, Any]:
    """``max(sums + bias[column], 0) + row``."""

    def epilogue(sums: Value, places: Sequence[Value]) -> Value:
        bias = function.load(function.offset(extra[0], "float", places[2]), vector_of("float", lanes_of(sums.kind)))
        return (sums + bias).maximum(0.0) + places[1].as_("float")

    return {"epilogue": epilogue}


@pytest.mark.parametrize(
    "size", [(17, 5, 31), (100, 33, 70), (3, 50, 130), (20, 40, 1), (1, 60, 3), (70, 45, 3), (6, 50, 200)], ids=str
)
@pytest.mark.parametrize("turned", ["", "r"])
def test_epilogue(size: tuple[int, int, int], turned: str) -> None:
    bias = np.random.default_rng(1).standard_normal(size[2]).astype(np.float32)
    rows = np.arange(size[0])[:, None]
    check(
        product(*size, turned=turned),
        hooks=_bias_and_clamp,
        extra=bias,
        expect=lambda sums: np.maximum(sums + bias, 0) + rows,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 70), st.integers(1, 150), st.sampled_from(["", "l", "r", "lr"]),
    st.sampled_from(["float", "double", "i32"]), st.lists(st.integers(1, 3), max_size=2), st.booleans(),
)  # fmt: skip
def test_random_sizes(m: int, k: int, n: int, turned: str, kind: str, batch: list[int], at_end: bool) -> None:
    check(product(m, k, n, kind, batch=batch, turned=turned), at_end=at_end)


def test_packed_strips_are_shared_out_evenly() -> None:
    shares = [unevenness(units, 2) for units in (1, 8, 9, 10 + 2 / 3, 3.5)]
    assert shares == pytest.approx([2, 1, 10 / 9, 2 * (5 + 2 / 3) / (10 + 2 / 3), 4 / 3.5])
    for columns in (512, 1024):
        found = tiled.plan(product(64, 784, columns, turned="r"), AVX512)
        assert found.packs_right and unevenness(columns / found.tile.columns, AVX512.workers) == 1


def test_deep_products_are_packed_in_blocks() -> None:
    for rows, packs, blocked in ((16, False, False), (96, True, True), (300, True, True)):
        found = tiled.plan(product(rows, 4000, 300), AVX512)
        assert (found.packs_right, found.is_blocked) == (packs, blocked)


@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        ((96, 96, 300), False),
        ((300, 1000, 128), True),
        ((64, 512, 512), True),
        ((1024, 64, 1000), False),
        ((1024, 64, 1024), True),
    ],
    ids=["in the first cache", "beyond it", "sets of the second", "results by rows", "rows a page apart"],
)
def test_strips_that_leave_a_cache_are_packed(sizes: tuple[int, int, int], packs: bool) -> None:
    assert tiled.plan(product(*sizes), AVX2).packs_right == packs


@pytest.mark.parametrize(("sizes", "packs"), [((64, 784, 512), False), ((128, 768, 3072), True)])
def test_wide_vectors_read_strips_in_place(sizes: tuple[int, int, int], packs: bool) -> None:
    assert tiled.plan(product(*sizes), AVX512).packs_right == packs
