"""Rows and malformed uses of feeds and transfers, which need a host, so that no engine computes them."""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from tests.operations.row import Malformed, Row, varying

_ONE = frozenset({"f32"})
_REASON = "no engine here has a host on the other side: the values are those of the queues"
_ITEM = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
_VECTOR = np.array([1.5, -2.0], np.float32)

ROWS = (
    Row(
        "Infeed",
        lambda: ops.infeed("f32[2,3]{0,1}"),
        oracle=lambda: _ITEM,
        feed=lambda feeds: feeds.infeed.put(_ITEM),
        reason=_REASON,
    ),
    Row(
        "Infeed",
        lambda: ops.infeed("(f32[2,3], s32[])", ops.create_token())[0],
        variant="tuple",
        oracle=lambda: (_ITEM, np.int32(7)),
        feed=lambda feeds: feeds.infeed.put((_ITEM, np.int32(7))),
        reason=_REASON,
    ),
    Row(
        "Outfeed",
        lambda x: ops.optimization_barrier([x, ops.outfeed([x, x], ops.create_token(), "config")])[0],
        (varying(4),),
        on=_ONE,
        oracle=lambda x: (x, (x, x)),
        drain=lambda feeds: feeds.outfeed.get(),
        reason=_REASON,
    ),
    Row(
        "Send",
        lambda x: ops.optimization_barrier([x, ops.send_done(ops.send(x, 1, is_host_transfer=True))])[0],
        (varying(4),),
        on=_ONE,
        oracle=lambda x: (x, x),
        drain=lambda feeds: feeds.channel(1).get(),
        reason=_REASON,
    ),
    Row(
        "SendDone",
        lambda x: ops.optimization_barrier([x, ops.send_done(ops.send(x, 1, source_target_pairs=[(0, 0)]))])[0],
        (varying(4),),
        on=_ONE,
        oracle=lambda x: (x, x),
        drain=lambda feeds: feeds.channel(1).get(),
        reason=_REASON,
    ),
    Row(
        "Recv",
        lambda: ops.recv_done(ops.recv("f32[2]", 1, is_host_transfer=True))[0],
        oracle=lambda: _VECTOR,
        feed=lambda feeds: feeds.channel(1).put(_VECTOR),
        reason=_REASON,
    ),
    Row(
        "RecvDone",
        lambda: ops.recv_done(ops.recv("f32[2]", 1))[0],
        oracle=lambda: _VECTOR,
        feed=lambda feeds: feeds.channel(1).put(_VECTOR),
        reason=_REASON,
    ),
)


def _awaited_twice() -> None:
    transfer = ops.recv("f32[2]", 1)
    ops.recv_done(transfer)
    ops.recv_done(transfer)


MALFORMED = (
    Malformed("Infeed", lambda p: ops.infeed("f33[2]"), "f33"),
    Malformed("Infeed", lambda p: ops.infeed("((f32[2]))"), "nested tuples"),
    Malformed("Infeed", lambda p: ops.infeed("token[]"), "arrays are transferred, not token"),
    Malformed("Infeed", lambda p: ops.infeed("f32[<=2]"), "is dynamic"),
    Malformed("Infeed", lambda p: ops.infeed("f32[2]", p("f32[]")), "token must be a token, not f32[]"),
    Malformed("Outfeed", lambda p: ops.outfeed(p("((f32[2]))")), "nested tuples"),
    Malformed("Outfeed", lambda p: ops.outfeed(p("token[]")), "not token"),
    Malformed("Outfeed", lambda p: ops.outfeed(p("(f32[], token[])")), "arrays are transferred"),
    Malformed("Outfeed", lambda p: ops.outfeed(p("f32[2]"), p("f32[]")), "token must be a token"),
    Malformed("Send", lambda p: ops.send(p("f32[2]"), 0), "channel 0 must be a positive number"),
    Malformed("Send", lambda p: ops.send(p("f32[2]"), 1, p("f32[]")), "token must be a token"),
    Malformed("Send", lambda p: ops.send(p("(f32[2])"), 1), "not tuple"),
    Malformed("Send", lambda p: ops.send(p("f32[2]"), 1, source_target_pairs=[(0,)]), "is no pair"),
    Malformed("SendDone", lambda p: ops.send_done(p("f32[2]")), "takes tuples"),
    Malformed("SendDone", lambda p: ops.send_done(ops.recv("f32[2]", 1)), "it takes what send returns"),
    Malformed(
        "SendDone",
        lambda p: (lambda t: [ops.send_done(t), ops.send_done(t)])(ops.send(p("f32[2]"), 1)),
        "this send is awaited already",
    ),
    Malformed("Recv", lambda p: ops.recv("f32[2]", -1), "channel -1"),
    Malformed("Recv", lambda p: ops.recv("(f32[2])", 1), "arrays are transferred"),
    Malformed("Recv", lambda p: ops.recv("f32[2", 1), "f32[2"),
    Malformed("Recv", lambda p: ops.recv("f32[2]", 1, p("f32[]")), "token must be a token"),
    Malformed("RecvDone", lambda p: ops.recv_done(p("(f32[2], u32[], token[])")), "it takes what recv returns"),
    Malformed("RecvDone", lambda p: _awaited_twice(), "this recv is awaited already"),
    Malformed("RecvDone", lambda p: ops.recv_done(p("f32[2]")), "takes tuples"),
)
