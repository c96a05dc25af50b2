"""lower-feeds: the order of transfers, and what the host is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.host_calls import attributes_of
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations, string_attribute
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.replicas.grid import Grid, set_grid
from hloforge.pipelines.replicas.lower_feeds import LowerFeeds

TYPE = "tensor<4xf32>"


def send(value: str, channel: int, pairs: str = "") -> str:
    attributes = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>{pairs}"
    return f'"stablehlo.send"(%{value}, %t) {{{attributes}}} : ({TYPE}, !stablehlo.token) -> !stablehlo.token\n'


def recv(name: str, channel: int, pairs: str = "") -> str:
    attributes = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>{pairs}"
    return f'%{name}:2 = "stablehlo.recv"(%t) {{{attributes}}} : (!stablehlo.token) -> ({TYPE}, !stablehlo.token)\n'


def calls(body: str, devices: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the host in order, with what it is told."""
    token = "%t = stablehlo.after_all : !stablehlo.token"
    module = parse_module(f"func.func @main(%x: {TYPE}) -> {TYPE} {{\n{token}\n{body}\nreturn %x : {TYPE} }}")
    set_grid(module, Grid(devices))
    PassManager([LowerFeeds()]).run(module)
    found = operations(module, {"stablehlo.custom_call"})
    return [
        (
            string_attribute(op, "call_target_name").removeprefix("hloforge."),
            attributes_of(op.attributes["backend_config"]),
        )
        for op in found
    ]


def order(body: str) -> list[tuple[str, int]]:
    return [(name, what["channel"]) for name, what in calls(body)]


def test_a_send_goes_before_a_recv_that_it_does_not_need() -> None:
    body = recv("a", 1) + f"%y = stablehlo.add %x, %x : {TYPE}\n" + send("y", 2)
    assert order(body) == [("send", 2), ("recv", 1)]


def test_what_is_received_is_sent_after() -> None:
    body = recv("a", 1) + f"%y = stablehlo.add %a#0, %x : {TYPE}\n" + send("y", 2) + send("x", 3)
    assert order(body) == [("send", 3), ("recv", 1), ("send", 2)]


def test_a_channel_keeps_its_order() -> None:
    body = recv("a", 1) + send("a#0", 2) + send("x", 2)
    assert order(body) == [("recv", 1), ("send", 2), ("send", 2)]


def test_other_effects_keep_theirs() -> None:
    infeed = f'%i:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> ({TYPE}, !stablehlo.token)\n'
    assert order(recv("a", 1) + infeed + send("i#0", 2)) == [("recv", 1), ("infeed", 0), ("send", 2)]


PAIRS = ", source_target_pairs = dense<[[0, 1], [2, 0]]> : tensor<2x2xi64>"


def test_pairs_name_the_source_of_each_device() -> None:
    sent, received = calls(send("x", 1, PAIRS) + recv("a", 1, PAIRS), 3)
    assert sent[1]["sources"].tolist() == received[1]["sources"].tolist() == [[2, 0, -1]]


def test_a_transfer_with_the_host_has_no_pairs() -> None:
    ((_, what),) = calls(send("x", 1, PAIRS + ", is_host_transfer = true").replace("type = 1", "type = 2"), 3)
    assert "sources" not in what


def test_pairs_have_to_fit_the_grid() -> None:
    with pytest.raises(UnsupportedError, match="it names device 2"):
        calls(send("x", 1, PAIRS), 2)
