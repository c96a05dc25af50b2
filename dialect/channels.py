"""Attributes of communication: groups of replicas, source-target pairs, channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.emission import i64_matrix
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir

# XLA's kinds of channels.
DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3


def channel(number: int | None, kind: int = DEVICE_TO_DEVICE) -> Any:
    """A channel handle, or None without a number.

    Raises:
        OperationError: the number is not positive.
    """
    if number is None:
        return None
    if number < 1:
        raise OperationError(f"channel {number} must be a positive number")
    return ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {number}, type = {kind}>")


def device_attributes(groups: Sequence[Sequence[int]], channel_id: int | None, by_device: bool) -> dict[str, Any]:
    """``channel_handle`` and ``use_global_device_ids``.

    Raises:
        OperationError: the channel is not positive, or groups of devices come without a channel or groups.
    """
    if by_device and (channel_id is None or not groups):
        missing = "replica_groups" if channel_id is not None else "channel_id"
        raise OperationError(f"use_global_device_ids needs {missing}")
    return {"channel_handle": channel(channel_id), "use_global_device_ids": ir.UnitAttr.get() if by_device else None}


def replica_group_matrix(groups: Sequence[Sequence[int]], *, equal: bool, every: bool = True) -> Any:
    """Groups of replicas, one a row.

    Args:
        equal: all groups must have one size.
        every: the groups must hold all numbers from 0.

    Raises:
        OperationError: a group is empty, a number is negative or is in two places, or a rule above is broken.
    """
    members = [member for group in groups for member in group]
    shown = [list(group) for group in groups]
    if not all(shown):
        raise OperationError(f"replica_groups {shown} hold an empty group")
    if min(members, default=0) < 0:
        raise OperationError(f"replica_groups {shown} hold a negative number")
    if len(set(members)) < len(members):
        raise OperationError(f"replica_groups {shown} name a replica twice")
    if every and members and max(members) >= len(members):
        missing = next(number for number in range(len(members)) if number not in members)
        raise OperationError(f"replica_groups {shown} leave out replica {missing}")
    if equal and len({len(group) for group in groups}) > 1:
        raise OperationError(f"replica_groups {shown} must have equal sizes")
    return i64_matrix(groups, max(map(len, groups), default=0))


def pairs(source_target_pairs: Sequence[Sequence[int]], *, distinct: bool) -> Any:
    """Pairs of a source and a target, one a row.

    Args:
        distinct: no source and no target may be in two pairs.

    Raises:
        OperationError: an entry is no pair of non-negative numbers, or that rule is broken.
    """
    shown = [tuple(pair) for pair in source_target_pairs]
    for pair in shown:
        if len(pair) != 2 or min(pair) < 0:
            raise OperationError(f"{pair} is no pair of a source and a target, both from 0")
    for what, numbers in (("source", [pair[0] for pair in shown]), ("target", [pair[1] for pair in shown])):
        if distinct and len(set(numbers)) < len(numbers):
            raise OperationError(f"source_target_pairs {shown} name a {what} twice")
    return i64_matrix(shown, 2)
