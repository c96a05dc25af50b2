"""Data from and to the host while a program runs, and between programs.

Tokens order these operations; without one each starts a chain of its own. ``recv`` and ``send`` begin a transfer, and
``recv_done`` and ``send_done`` await it. StableHLO has one operation for each such pair: a transfer out is where it
begins, one in where it is awaited. So in a program that says ``recv``, ``send``, ``recv_done``, ``send_done``, as XLA
orders the four, the data leave before the program waits for the other side's.

Source: XLA "Infeed", "Outfeed", "Send", "SendDone", "Recv", "RecvDone", "Scheduling of channel instructions";
StableHLO specification "infeed", "outfeed", "send", "recv".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect.channels import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, channel, pairs
from hloforge.dialect.emission import emit, emit_all, flag, i64, text
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir
from hloforge.dialect.op import ARRAY, NOTHING, TUPLE, op
from hloforge.dialect.ops.program import create_token
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Results, TupleValue, Value, as_value, leaves, nest


@op("Infeed", emits="stablehlo.infeed", on=NOTHING)
def infeed(shape: Shape | str, token: Value | None = None, infeed_config: str = "") -> Value:
    """The next item of the stream that the host feeds to the device.

    Args:
        shape: of the item: an array, or a tuple of arrays; the layout is the one in which the host passes it.
        token: what has to happen before; without one, this infeed waits for nothing.
        infeed_config: passed to the backend.

    Returns:
        The item, or with a token the tuple of the item and the token of what follows.

    Raises:
        OperationError: the shape is malformed, dynamic, a token or a nested tuple, or ``token`` is none.

    Example:
        >>> infeed("f32[3]").shape
        f32[3]
        >>> infeed("(f32[3], s32[])", create_token()).shape
        ((f32[3], s32[]), token[])
    """
    item = _item(_parsed(shape))
    arrays = list(item.leaves())
    laid_out = any(leaf.layout is not None for leaf in arrays)
    *data, after = emit_all(
        "stablehlo.infeed",
        [_token(token)],
        [*arrays, Shape.token()],
        infeed_config=text(infeed_config) if infeed_config else None,
        layout=ir.ArrayAttr.get([_order(leaf) for leaf in arrays]) if laid_out else None,
    )
    value = nest(item, iter(data))
    return value if token is None else TupleValue([value, after])


@op("Outfeed", emits="stablehlo.outfeed", on=ARRAY | TUPLE)
def outfeed(operand: Results, token: Value | None = None, outfeed_config: str = "") -> Value:
    """Append an item to the stream that the host reads from the device.

    Args:
        operand: an array, or a tuple of arrays.
        token: what has to happen before; without one, this outfeed waits for nothing.
        outfeed_config: passed to the backend.

    Returns:
        The token of what follows.

    Raises:
        OperationError: the operand is a token or a nested tuple, or ``token`` is none.

    Example:
        >>> outfeed(constant([1.0, 2.0], "f32")).shape
        token[]
    """
    value = as_value(operand)
    _item(value.shape)
    return emit(
        "stablehlo.outfeed",
        [*leaves(value), _token(token)],
        Shape.token(),
        outfeed_config=text(outfeed_config) if outfeed_config else None,
    )


class Transfer(Value):
    """A transfer under way: XLA's context of a buffer, a request number and a token.

    Attributes:
        finish: what its ``send_done`` or ``recv_done`` gives, once.
    """

    __slots__ = ("finish", "token")

    def __init__(self, shape: Shape, token: Value, finish: Callable[[], Value]) -> None:
        self._shape = Shape.tuple_of(shape, Shape.array("u32"), Shape.token())
        self.token = token
        self.finish: Callable[[], Value] | None = finish

    @property
    def type(self) -> Any:
        return self.token.type

    def __getattr__(self, name: str) -> Any:
        # `ir` is the one slot that stays empty.
        if name == "ir":
            raise OperationError("a transfer under way can only be awaited", hint="pass it to send_done or recv_done")
        raise AttributeError(name)


class Sending(Transfer):
    """What ``send`` returns."""

    __slots__ = ()


class Receiving(Transfer):
    """What ``recv`` returns."""

    __slots__ = ()


@op("Send", emits="stablehlo.send", on=ARRAY)
def send(
    operand: Value,
    channel_handle: int,
    token: Value | None = None,
    *,
    is_host_transfer: bool = False,
    source_target_pairs: Sequence[Sequence[int]] = (),
) -> Value:
    """Begin to send data to the ``recv`` of the same channel.

    Args:
        operand: an array.
        channel_handle: a positive number that this ``send`` shares with one ``recv``.
        token: what has to happen before; without one, this transfer waits for nothing.
        is_host_transfer: the other side is the host.
        source_target_pairs: which devices send to which; default: the channel says it all.

    Returns:
        The transfer, for one ``send_done``.

    Raises:
        OperationError: the channel is not positive, the operand is no static array, ``token`` is none, or a pair is
            malformed.

    Example:
        >>> send(constant([1.0, 2.0], "f32"), 7).shape
        (f32[2], u32[], token[])
    """
    _array(operand.shape)
    kind = DEVICE_TO_HOST if is_host_transfer else DEVICE_TO_DEVICE
    attributes = _transfer_attributes(channel_handle, kind, is_host_transfer, source_target_pairs)
    sent = emit("stablehlo.send", [operand, _token(token)], Shape.token(), **attributes)
    return Sending(operand.shape, sent, lambda: sent)


@op("SendDone", emits="stablehlo.send", on=TUPLE, hlo="send-done")
def send_done(transfer: Value) -> Value:
    """Await the end of a ``send``.

    Args:
        transfer: what ``send`` returned; it is awaited once.

    Returns:
        The token of what follows.

    Raises:
        OperationError: it is no ``send``, or awaited already.

    Example:
        >>> send_done(send(constant([1.0, 2.0], "f32"), 7)).shape
        token[]
    """
    return _finish(transfer, Sending, "send")


@op("Recv", emits="stablehlo.recv", on=NOTHING)
def recv(
    shape: Shape | str,
    channel_handle: int,
    token: Value | None = None,
    *,
    is_host_transfer: bool = False,
    source_target_pairs: Sequence[Sequence[int]] = (),
) -> Value:
    """Begin to receive data from the ``send`` of the same channel.

    Args:
        shape: of the data, an array; text is parsed.
        channel_handle, token, is_host_transfer, source_target_pairs: as of ``send``.

    Returns:
        The transfer, for one ``recv_done``; nothing is received without.

    Raises:
        OperationError: the shape is malformed or no static array, or as of ``send``.

    Example:
        >>> recv("f32[2]", 7).shape
        (f32[2], u32[], token[])
    """
    data_shape = _array(_parsed(shape))
    kind = HOST_TO_DEVICE if is_host_transfer else DEVICE_TO_DEVICE
    attributes = _transfer_attributes(channel_handle, kind, is_host_transfer, source_target_pairs)
    before = _token(token)

    def receive() -> Value:
        return TupleValue(emit_all("stablehlo.recv", [before], [data_shape, Shape.token()], **attributes))

    return Receiving(data_shape, before, receive)


@op("RecvDone", emits="stablehlo.recv", on=TUPLE, hlo="recv-done")
def recv_done(transfer: Value) -> Value:
    """Await the data of a ``recv``.

    Args:
        transfer: what ``recv`` returned; it is awaited once.

    Returns:
        The tuple of the data and the token of what follows.

    Raises:
        OperationError: it is no ``recv``, or awaited already.

    Example:
        >>> recv_done(recv("f32[2]", 7)).shape
        (f32[2], token[])
    """
    return _finish(transfer, Receiving, "recv")


def _finish(transfer: Value, kind: type[Transfer], name: str) -> Value:
    if not isinstance(transfer, kind):
        raise OperationError(f"it takes what {name} returns, not a value of shape {transfer.shape}")
    if transfer.finish is None:
        raise OperationError(f"this {name} is awaited already")
    result, transfer.finish = transfer.finish(), None
    return result


def _transfer_attributes(
    number: int, kind: int, is_host_transfer: bool, source_target_pairs: Sequence[Sequence[int]]
) -> dict[str, Any]:
    return {
        "channel_handle": channel(number, kind),
        "is_host_transfer": flag(True) if is_host_transfer else None,
        "source_target_pairs": pairs(source_target_pairs, distinct=False) if source_target_pairs else None,
    }


def _token(token: Value | None) -> Value:
    if token is None:
        return create_token()
    if not token.shape.is_token:
        raise OperationError(f"token must be a token, not {token.shape}")
    return token


def _parsed(shape: Shape | str) -> Shape:
    try:
        return Shape.parse(shape) if isinstance(shape, str) else shape
    except ValueError as error:
        raise OperationError(str(error)) from None


def _item(shape: Shape) -> Shape:
    """The shape of an item that is fed: an array, or a tuple of arrays."""
    for element in shape.elements if shape.elements is not None else (shape,):
        if element.is_tuple:
            raise OperationError(f"nested tuples are not transferred, such as {shape}")
        _array(element)
    return shape


def _array(shape: Shape) -> Shape:
    if not shape.is_array:
        raise OperationError(f"arrays are transferred, not {shape}")
    if not shape.is_static:
        raise OperationError(f"{shape} is dynamic; what is transferred has one size")
    return shape


def _order(shape: Shape) -> Any:
    return ir.ArrayAttr.get([i64(number) for number in shape.layout_or_default.minor_to_major])
