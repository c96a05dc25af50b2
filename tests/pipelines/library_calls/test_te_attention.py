"""TransformerEngine's fused attention against numpy in float64, token by token, as its documentation defines it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.runtime.compile.compiler import compile_program
from tests.pipelines.library_calls.ffi_calls import program, run, shape

BF16 = ml_dtypes.bfloat16
FORWARD, BACKWARD = "te_fused_attn_forward_ffi", "te_fused_attn_backward_ffi"
NO_MASK, PADDING, CAUSAL, PADDING_CAUSAL, BOTTOM_RIGHT, PADDING_BOTTOM_RIGHT = range(6)
BS3HD, BSHD_BS2HD, BSHD, T3HD, THD_T2HD, THD = 5, 7, 9, 10, 12, 14
EMPTY = np.zeros(0, np.float32)


@dataclass(frozen=True)
class Case:
    """A call: sizes, settings, lengths of sequences."""

    layout: int = BSHD
    mask: int = NO_MASK
    batch: int = 2
    queries: int = 6
    keys: int = 8
    heads: int = 4
    groups: int = 2
    depth: int = 4
    width: int = 4
    scale: float = 0.5
    bias: tuple[int, int] | None = None
    bias_type: int = 0
    window: tuple[int, int] = (-1, -1)
    sink: bool = False
    offset: bool = True
    dtype: Any = np.float32
    # For each row of the batch, the lengths of its sequences among queries and among keys, and where they start.
    q_lengths: tuple[tuple[int, ...], ...] = ()
    k_lengths: tuple[tuple[int, ...], ...] = ()
    gap: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ragged(self) -> bool:
        return self.layout in (T3HD, THD_T2HD, THD)

    @property
    def segments(self) -> int:
        return max(map(len, self.q_lengths), default=1)

    def spans(self, lengths: tuple[tuple[int, ...], ...], row: int, size: int) -> list[tuple[int, int]]:
        """First tokens and lengths of the sequences in a row of the batch."""
        if not lengths:
            return [(0, size)]
        starts = np.cumsum([0, *(n + self.gap for n in lengths[row])])
        return [(int(start), length) for start, length in zip(starts, lengths[row], strict=False)]


def arrays(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """q, k, v, the gradient of the output, a bias and sinks, as float64 of what their types hold."""
    draw = np.random.default_rng(case.mask + 10 * case.layout)
    sizes = {
        "q": (case.batch, case.queries, case.heads, case.depth),
        "k": (case.batch, case.keys, case.groups, case.depth),
        "v": (case.batch, case.keys, case.groups, case.width),
        "do": (case.batch, case.queries, case.heads, case.width),
        "bias": (*(case.bias or (1, 1)), case.queries, case.keys),
    }
    found = {name: draw.normal(size=dims).astype(case.dtype).astype(float) for name, dims in sizes.items()}
    return {**found, "sinks": draw.normal(size=case.heads).astype(np.float32).astype(float)}


def seen(case: Case, row: int) -> list[list[list[int]]]:
    """For each query the keys that it attends to."""
    found: list[list[int]] = [[] for _ in range(case.queries)]
    pads = case.mask in (PADDING, PADDING_CAUSAL, PADDING_BOTTOM_RIGHT)
    of_queries = case.spans(case.q_lengths if pads else (), row, case.queries)
    of_keys = case.spans(case.k_lengths if pads else (), row, case.keys)
    is_causal = case.mask in (CAUSAL, PADDING_CAUSAL, BOTTOM_RIGHT, PADDING_BOTTOM_RIGHT)
    from_end = case.mask in (BOTTOM_RIGHT, PADDING_BOTTOM_RIGHT)
    for (q_start, q_count), (k_start, k_count) in zip(of_queries, of_keys, strict=True):
        for i in range(q_count):
            place = i + (k_count - q_count if from_end else 0)
            for j in range(k_count):
                if is_causal and j > place:
                    continue
                if case.window[0] >= 0 and j < place - case.window[0]:
                    continue
                if case.window[1] >= 0 and j > place + case.window[1]:
                    continue
                found[q_start + i].append(k_start + j)
    return found  # type: ignore[return-value]


def attended(case: Case, given: dict[str, Any]) -> dict[str, Any]:
    """The output, the statistics and all gradients, by the chain rule for one query after the other."""
    zero = {name: np.zeros_like(value) for name, value in given.items()}
    out, logs = np.zeros_like(given["do"]), np.full((case.batch, case.heads, case.queries), -np.inf)
    for row in range(case.batch):
        keys_of = seen(case, row)
        for head in range(case.heads):
            group = head // (case.heads // case.groups)
            for query, keys in enumerate(keys_of):
                if not keys:
                    continue
                q, k, v = given["q"][row, query, head], given["k"][row, keys, group], given["v"][row, keys, group]
                scores = k @ q
                place = row % given["bias"].shape[0], head % given["bias"].shape[1], query
                if case.bias_type == 1:
                    scores = scores + given["bias"][place][keys]
                scores = scores * case.scale
                if case.bias_type == 2:
                    scores = scores + given["bias"][place][keys]
                powers = np.exp(scores)
                total = powers.sum() + (np.exp(given["sinks"][head]) if case.sink else 0)
                weights = powers / total
                out[row, query, head], logs[row, head, query] = weights @ v, np.log(total)
                do = given["do"][row, query, head]
                by_weights = v @ do
                by_scores = weights * (by_weights - weights @ by_weights)
                zero["q"][row, query, head] = case.scale * by_scores @ k
                np.add.at(zero["k"], (row, keys, group), case.scale * by_scores[:, None] * q)
                np.add.at(zero["v"], (row, keys, group), weights[:, None] * do)
                zero["bias"][place][keys] += by_scores * (case.scale if case.bias_type == 1 else 1)
                zero["sinks"][head] -= np.exp(given["sinks"][head]) / total * (weights @ by_weights)
    return {"out": out, "logs": logs, **{f"d{name}": value for name, value in zero.items()}}


def packed(case: Case, q: Any, k: Any, v: Any) -> list[Any]:
    """q, k and v in the arrays of the layout, empty ones where it uses fewer."""
    empty = np.zeros(0, q.dtype)
    if case.layout in (BS3HD, T3HD):
        return [np.stack([q, k, v], 2), empty, empty]
    if case.layout in (BSHD_BS2HD, THD_T2HD):
        return [q, np.stack([k, v], 2), empty]
    return [q, k, v]


def lengths(case: Case) -> list[Any]:
    """Cumulated lengths and offsets of queries and keys, then the arrays that the call does not read."""
    found, offsets = [], []
    for per_row, size in ((case.q_lengths, case.queries), (case.k_lengths, case.keys)):
        spans = [case.spans(per_row, row, size) for row in range(case.batch)]
        count = case.batch * case.segments
        counts = [n for row in spans for _, n in row]
        starts = [row * size + first for row, each in enumerate(spans) for first, _ in each]
        counts += [0] * (count - len(counts))
        starts += [case.batch * size] * (case.batch * (case.segments + 1) - len(starts))
        found.append(np.cumsum([0, *counts]).astype(np.int32))
        offsets.append(np.array(starts, np.int32).reshape(case.batch, -1))
    return [*found, *(offsets if case.is_ragged else [EMPTY, EMPTY]), EMPTY, EMPTY, EMPTY, EMPTY]


def settings(case: Case) -> dict[str, Any]:
    heads = "qk_head_dim" if case.offset else "head_dim"
    return {
        "input_batch": case.batch,
        "bias_batch": (case.bias or (0, 0))[0],
        "bias_heads": (case.bias or (0, 0))[1],
        "q_max_seqlen": case.queries,
        "kv_max_seqlen": case.keys,
        "attn_heads": case.heads,
        "num_gqa_groups": case.groups,
        heads: case.depth,
        **({"v_head_dim": case.width, "softmax_type": 2 if case.sink else 0} if case.offset else {}),
        "max_segments_per_seq": case.segments,
        "scaling_factor": case.scale,
        "dropout_probability": 0.0,
        "bias_type": case.bias_type,
        "mask_type": case.mask,
        "qkv_layout": case.layout,
        "is_training": True,
        "deterministic": False,
        "window_size_left": case.window[0],
        "window_size_right": case.window[1],
        **case.more,
    }


@dataclass(frozen=True)
class Written:
    """The operands and results of both calls."""

    case: Case
    given: dict[str, Any]

    @property
    def head(self) -> list[Any]:
        """q, k, v, bias and the softmax offset."""
        arrays_of = packed(self.case, *(self.given[name].astype(self.case.dtype) for name in "qkv"))
        bias = (self.given["bias"] if self.case.bias else np.zeros(0)).astype(self.case.dtype)
        sinks = self.given["sinks"].astype(np.float32).reshape(1, -1, 1, 1) if self.case.sink else EMPTY
        return [*arrays_of, bias, *([sinks] if self.case.offset else [])]

    def forward(self) -> tuple[list[str], list[Any]]:
        case = self.case
        seed = np.array([7, 9], np.uint32)
        statistics = (case.queries, case.heads) if case.is_ragged else (case.heads, case.queries)
        out = np.zeros((case.batch, case.queries, case.heads, case.width), case.dtype)
        results = [shape(out), f"f32[{case.batch},{statistics[0]},{statistics[1]},1]", "u32[2,4]", "u8[48]"]
        return results, [*self.head, seed, *lengths(case)]

    def backward(self, statistics: Any, state: Any, out: Any) -> tuple[list[str], list[Any]]:
        head = self.head
        results = [*map(shape, head), "u8[16]"]
        do = self.given["do"].astype(self.case.dtype)
        return results, [*head, statistics, state, out, do, *lengths(self.case)]


def check(case: Case) -> None:
    given = arrays(case)
    want = attended(case, given)
    written = Written(case, given)
    exact = case.dtype == np.float32
    close = {"rtol": 2e-5, "atol": 2e-5} if exact else {"rtol": 2e-2, "atol": 4e-2}
    results, operands = written.forward()
    out, statistics, state, _ = run(FORWARD, results, operands, settings(case))
    np.testing.assert_allclose(out.astype(float), want["out"], **close)
    logs = statistics[..., 0].swapaxes(1, 2) if case.is_ragged else statistics[..., 0]
    np.testing.assert_allclose(logs, want["logs"], rtol=1e-5, atol=1e-5)
    assert state[0, :2].tolist() == [7, 9]
    results, operands = written.backward(statistics, state, out)
    found = run(BACKWARD, results, operands, settings(case))
    wanted = packed(case, want["dq"], want["dk"], want["dv"])
    wanted.append(want["dbias"] if case.bias else np.zeros(0))
    if case.offset:
        wanted.append(want["dsinks"].reshape(1, -1, 1, 1) if case.sink else np.zeros(0))
    for got, expected in zip(found, wanted, strict=False):
        np.testing.assert_allclose(got.astype(float), expected, **close)


LENGTHS: dict[str, Any] = {"q_lengths": ((6,), (3,)), "k_lengths": ((8,), (5,))}
RAGGED: dict[str, Any] = {"queries": 8, "q_lengths": ((3, 2), (2, 4)), "k_lengths": ((4, 2), (1, 5)), "gap": 1}
PACKED: dict[str, Any] = {**RAGGED, "groups": 4, "k_lengths": ((3, 2), (2, 4))}
CASES = {
    "whole": Case(),
    "causal": Case(mask=CAUSAL),
    "causal, square, one head": Case(mask=CAUSAL, queries=8, heads=1, groups=1),
    "causal from the end": Case(mask=BOTTOM_RIGHT),
    "padding": Case(mask=PADDING, **LENGTHS),
    "padding, causal": Case(mask=PADDING_CAUSAL, **LENGTHS),
    "padding, causal from the end": Case(mask=PADDING_BOTTOM_RIGHT, **LENGTHS),
    "empty sequence": Case(mask=PADDING, q_lengths=((6,), (0,)), k_lengths=((8,), (0,))),
    "no softmax offset, as before release 2.9": Case(mask=PADDING_CAUSAL, offset=False, **LENGTHS),
    "window": Case(mask=CAUSAL, window=(2, 0), queries=8),
    "window to both sides": Case(mask=PADDING, window=(2, 1), **LENGTHS),
    "window from the end": Case(
        mask=PADDING_BOTTOM_RIGHT, window=(3, 0), more={"bottom_right_diagonal": True}, **LENGTHS
    ),
    "bias": Case(bias=(1, 4), bias_type=2),
    "bias of all, before the scale": Case(bias=(1, 1), bias_type=1, mask=CAUSAL),
    "bias of each": Case(bias=(2, 4), bias_type=2, mask=PADDING, **LENGTHS),
    "softmax offset": Case(sink=True, mask=PADDING_CAUSAL, **LENGTHS),
    "values of another depth": Case(width=3, mask=CAUSAL),
    "packed": Case(layout=BS3HD, groups=4, queries=8, mask=CAUSAL),
    "keys with values": Case(layout=BSHD_BS2HD, mask=CAUSAL),
    "segments": Case(layout=THD, mask=PADDING, **RAGGED),
    "segments, causal": Case(layout=THD, mask=PADDING_CAUSAL, **RAGGED),
    "segments, causal from the end": Case(layout=THD, mask=PADDING_BOTTOM_RIGHT, **RAGGED),
    "segments, keys with values": Case(layout=THD_T2HD, mask=PADDING_CAUSAL, **RAGGED),
    "segments, packed": Case(layout=T3HD, mask=PADDING_CAUSAL, **PACKED),
    "bf16": Case(dtype=BF16, mask=PADDING_CAUSAL, **LENGTHS),
    "f16, segments": Case(dtype=np.float16, layout=THD, mask=PADDING_CAUSAL, **RAGGED),
}


@pytest.mark.wide(8)
@pytest.mark.parametrize("name", CASES)
def test_against_its_definition(name: str) -> None:
    check(CASES[name])


def test_gradient_uses_the_statistics_that_it_is_given() -> None:
    """A ring of devices has a part of the keys each, and the statistics and the result of all."""
    case = Case()
    given = arrays(case)
    want = attended(case, given)
    half = Case(keys=4)
    part = {**given, "k": given["k"][:, 4:], "v": given["v"][:, 4:]}
    statistics, out = want["logs"][..., None].astype(np.float32), want["out"].astype(np.float32)
    results, operands = Written(half, part).backward(statistics, np.zeros((2, 4), np.uint32), out)
    _, dk, dv, *_ = run(BACKWARD, results, operands, settings(half))
    np.testing.assert_allclose(dk, want["dk"][:, 4:], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(dv, want["dv"][:, 4:], rtol=2e-5, atol=2e-5)


def test_compiled() -> None:
    case = Case(
        mask=PADDING_CAUSAL,
        dtype=BF16,
        queries=32,
        keys=32,
        depth=8,
        width=8,
        q_lengths=((32,), (20,)),
        k_lengths=((32,), (20,)),
    )
    given = arrays(case)
    want = attended(case, given)
    written = Written(case, given)
    results, operands = written.forward()
    out, statistics, state, _ = compile_program(program(FORWARD, results, operands, settings(case))).load()(*operands)
    np.testing.assert_allclose(np.asarray(out).astype(float), want["out"], rtol=2e-2, atol=2e-2)
    results, operands = written.backward(statistics, state, out)
    found = compile_program(program(BACKWARD, results, operands, settings(case))).load()(*operands)
    for got, name in zip(found, ("dq", "dk", "dv"), strict=False):
        np.testing.assert_allclose(np.asarray(got).astype(float), want[name], rtol=3e-2, atol=5e-2)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dropout_probability": 0.1}, "drops weights with probability 0.1"),
        ({"qkv_layout": 4}, "has the layout 4"),
        ({"bias_type": 3}, "ALiBi"),
        ({"mask_type": 6}, "mask type 6"),
        ({"new_setting": 1}, "new_setting"),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, Any], message: str) -> None:
    case = Case(more=more)
    results, operands = Written(case, arrays(case)).forward()
    with pytest.raises(UnsupportedError, match=message) as caught:
        run(FORWARD, results, operands, settings(case))
    assert caught.value.location


def test_dropout_of_inference_drops_nothing() -> None:
    case = Case()
    given = arrays(case)
    results, operands = Written(case, given).forward()
    configuration = {**settings(case), "is_training": False, "dropout_probability": 0.5}
    out, *_ = run(FORWARD, results, operands, configuration)
    np.testing.assert_allclose(out, attended(case, given)["out"], rtol=2e-5, atol=2e-5)
