"""Nodes that one node computes: copies of another one, and single regressors that read the same rows.

skl2onnx writes a node for each tree of an ``IsolationForest`` or a ``BaggingRegressor``, with a node before each that
takes all columns. One ensemble of a target for each of them walks all trees at once, and its tables are one array each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.importers.onnx.registry import canonical

# Bytes of a node from which on copies of it are not looked for.
_MOST_BYTES = 1 << 12
_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")
_ML, _REGRESSOR = "ai.onnx.ml", "TreeEnsembleRegressor"
# Lists of the same length each, and those that have to be there.
_NODES = ("nodes_featureids", "nodes_falsenodeids", "nodes_modes", "nodes_nodeids", "nodes_truenodeids", "nodes_values")
_TARGETS = ("target_nodeids", "target_weights")
_TRACKS = "nodes_missing_value_tracks_true"
_TREES = ("nodes_treeids", "target_treeids")
_IGNORED = ("nodes_hitrates", "n_targets", "post_transform", "aggregate_function", "base_values", "target_ids", _TRACKS)


def key_of(proto: Any, inputs: Sequence[Any]) -> Any:
    """What says all of a node but its name; None where a copy may give something else, or is not looked for.

    Args:
        inputs: the tensors that it reads.
    """
    if proto.op_type.startswith(_RANDOM) or proto.ByteSize() > _MOST_BYTES:
        return None
    if any(entry.ref_attr_name or entry.HasField("g") or entry.graphs for entry in proto.attribute):
        return None
    attributes = tuple(sorted(entry.SerializeToString(deterministic=True) for entry in proto.attribute))
    used = tuple(bool(name) for name in proto.output)
    return canonical(proto.domain), proto.op_type, tuple(map(id, inputs)), attributes, used


def is_single_regressor(proto: Any) -> bool:
    """Whether a node is a sum of trees for one target, which others may be beside."""
    if canonical(proto.domain) != _ML or proto.op_type != _REGRESSOR or len(proto.output) != 1:
        return False
    given = {entry.name: entry for entry in proto.attribute}
    if any(entry.ref_attr_name for entry in proto.attribute) or not {*_NODES, *_TARGETS, *_TREES} <= given.keys():
        return False
    if given.keys() - {*_NODES, *_TARGETS, *_TREES, *_IGNORED}:
        return False
    texts = {name: given[name].s for name in ("post_transform", "aggregate_function") if name in given}
    return (
        texts.get("post_transform", b"NONE") == b"NONE"
        and texts.get("aggregate_function", b"SUM") == b"SUM"
        and ("n_targets" not in given or given["n_targets"].i == 1)
        and ("base_values" not in given or len(given["base_values"].floats) <= 1)
        and not any(given["target_ids"].ints if "target_ids" in given else ())
    )


def joined(protos: Sequence[Any]) -> Any:
    """One ensemble with a target for each of these nodes."""
    import onnx

    lists: dict[str, list[Any]] = {name: [] for name in (*_NODES, *_TARGETS, *_TREES, _TRACKS, "target_ids")}
    base: list[float] = []
    trees = 0
    for number, proto in enumerate(protos):
        given = {entry.name: onnx.helper.get_attribute_value(entry) for entry in proto.attribute}
        for name in (*_NODES, *_TARGETS):
            lists[name] += given[name]
        for name in _TREES:
            lists[name] += [trees + tree for tree in given[name]]
        lists[_TRACKS] += given.get(_TRACKS) or [0] * len(given["nodes_modes"])
        lists["target_ids"] += [number] * len(given["target_weights"])
        base += given.get("base_values") or [0.0]
        trees += max(given["nodes_treeids"], default=0) + 1
    if any(base):
        lists["base_values"] = base
    first, attributes = protos[0], {"domain": _ML, "n_targets": len(protos), **lists}
    made: Any = onnx.helper.make_node
    return made(_REGRESSOR, first.input, ["scores"], first.name, **attributes)
