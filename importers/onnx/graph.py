"""Walking a graph: each node becomes operations at the insertion point, or numpy computes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import TupleValue
from hloforge.importers.graphs import Importing
from hloforge.importers.onnx.bounded import Bounded, axis_after, hidden
from hloforge.importers.onnx.equal_nodes import is_single_regressor, joined, key_of
from hloforge.importers.onnx.folding import fold
from hloforge.importers.onnx.functions import MICROSOFT, TAKEN_OVER, Body, as_onnx, body_of
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import Handler, canonical, handler_of
from hloforge.importers.onnx.texts import TAKE_TEXT, TEXT_HINT, is_text, moved, refusal_of
from hloforge.importers.onnx.weights import of_weights
from hloforge.importers.tensors import lift, window

# Elements of a sparse tensor with its zeros: its few bytes may claim any number.
_MOST_DENSE = 1 << 28

# Initializers from here on are constants of the whole program: emitted once, under their names.
_SHARED_ELEMENTS, _SHARED_INTEGERS = 64, 1 << 14


@dataclass(frozen=True)
class Absent:
    """In the place of an output that is not computed: what to say to whoever uses it."""

    reason: str


@dataclass
class Scope:
    """The names that a graph or function sees.

    Attributes:
        functions: the model's own, by domain and name.
        tensors: by name; those of graphs around it included. A sequence is a list.
        versions: of the domains.
        attributes: of the function that is being inlined: what its nodes refer to.
    """

    importing: Importing
    functions: Mapping[tuple[str, str], Any]
    tensors: dict[str, Any]
    versions: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def run(self, graph: Any, inputs: Sequence[Any] | None = None) -> list[Any]:
        """The outputs of a sub-graph (a ``GraphProto``) for these inputs; it sees this scope."""
        inner = Scope(self.importing, self.functions, dict(self.tensors), self.versions, self.attributes)
        if inputs is not None:
            inner.tensors.update(zip((entry.name for entry in graph.input), inputs, strict=False))
        inner.add_initializers(graph)
        inner.add_nodes(graph.node)
        return _fixed([inner.named(entry.name) for entry in graph.output])

    def add_initializers(self, graph: Any) -> None:
        """The graph's own weights; an input of the same name goes before (it is a default then)."""
        given = {entry.name for entry in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in given or tensor.name not in self.tensors:
                self.tensors[tensor.name] = self.shared(tensor.name, array_of(tensor))
        for tensor in graph.sparse_initializer:
            self.tensors[tensor.values.name] = dense_of(tensor)

    def shared(self, name: str, array: np.ndarray[Any, Any]) -> Any:
        """A large array as a constant at the program's beginning; a small one stays known."""
        # Integers are indices and sizes as often as weights.
        least = _SHARED_INTEGERS if array.dtype.kind in "biu" else _SHARED_ELEMENTS
        if array.size < least or array.dtype.kind in "OSU":
            return array
        where = ir.Location.name(name, ir.Location.file(self.importing.file, 0, 0))
        with ir.InsertionPoint.at_block_begin(self.importing.entry), where:
            return constant(array)

    def named(self, name: str) -> Any:
        """The tensor of a name; None for the empty one.

        Raises:
            ImporterError: no node makes it.
            UnsupportedError: it is an output that an operator's function does not compute.
        """
        if not name:
            return None
        try:
            found = self.tensors[name]
        except KeyError:
            raise ImporterError(f"no node before it makes {name!r}") from None
        if isinstance(found, Absent):
            raise UnsupportedError(found.reason)
        return found

    def add_nodes(self, nodes: Sequence[Any]) -> None:
        seen: dict[Any, list[Any]] = {}
        ordered = in_order(nodes)
        for place, (number, proto) in enumerate(ordered):
            if all(name in self.tensors for name in proto.output) and is_single_regressor(proto):
                # Computed beside another one.
                continue
            with self.importing.at(_label(proto), number):
                key = key_of(proto, [self.named(name) for name in proto.input])
                outputs = seen.get(key) or self._of_rows(proto, ordered[place + 1 :]) or self._outputs(proto)
                if key is not None:
                    seen[key] = outputs
                for name, output in zip(proto.output, outputs, strict=False):
                    if name:
                        self.tensors[name] = output

    def _of_rows(self, proto: Any, following: Sequence[tuple[int, Any]]) -> list[Any] | None:
        """The output of a regressor with those of the following ones that read the same rows; None if it is alone."""
        if not is_single_regressor(proto):
            return None
        rows = self.named(proto.input[0])
        others = [
            other for _, other in following if is_single_regressor(other) and self.tensors.get(other.input[0]) is rows
        ]
        if not others:
            return None
        (scores,) = self._outputs(joined([proto, *others]))
        for number, other in enumerate(others, 1):
            self.tensors[other.output[0]] = window(scores, 1, number, number + 1)
        return [window(scores, 1, 0, 1)]

    def _outputs(self, proto: Any) -> list[Any]:
        inputs = [self.named(name) for name in proto.input]
        domain = canonical(proto.domain)
        version = self.versions.get(domain)
        own = (domain, proto.op_type) in self.functions
        if domain == MICROSOFT and not own and (since := TAKEN_OVER.get(proto.op_type)):
            scope = Scope(self.importing, self.functions, self.tensors, {**self.versions, "": since}, self.attributes)
            return scope._outputs(as_onnx(proto, since))
        if version is None:
            if not own:
                raise ImporterError(f"the model does not import the domain {domain or 'ai.onnx'!r}")
            version = 1
        attributes = {entry.name: self._attribute(entry) for entry in proto.attribute if self._is_given(entry)}
        if not own:
            folded = fold(self._resolved(proto), version, inputs)
            if folded is not None:
                return folded
            computed = of_weights(self._resolved(proto), version, inputs)
            if computed is not None:
                return [self.shared(name, array) for name, array in zip(proto.output, computed, strict=False)]
            handler = handler_of(domain, proto.op_type, version)
            if handler is not None:
                return self._handled(proto, version, inputs, attributes, handler)
        _fixed(inputs)
        body = body_of(self._resolved(proto), self.versions, inputs, self.functions)
        if body is None:
            if any(map(is_text, inputs)):
                raise UnsupportedError(refusal_of(proto.op_type), hint=TEXT_HINT)
            raise UnsupportedError(f"the operator {domain + '.' if domain else ''}{proto.op_type} is not imported")
        return self._inline(proto, body, inputs)

    def _handled(
        self, proto: Any, version: int, inputs: list[Any], attributes: dict[str, Any], handler: Handler
    ) -> list[Any]:
        """The outputs of an operator's function; it sees the numbers of strings, and bounded tensors padded."""
        bounded = {number: tensor for number, tensor in enumerate(inputs) if isinstance(tensor, Bounded)}
        if bounded:
            padded = [tensor.padded if isinstance(tensor, Bounded) else tensor for tensor in inputs]
            node, first = Node(proto, version, padded, attributes, self), bounded[min(bounded)]
            axis = None if any(map(is_text, inputs)) else axis_after(node, handler, bounded)
            if axis is None:
                hidden(first)
            outputs = _answers(handler, node)
            if any(map(is_text, outputs)):
                hidden(first)
            return [Bounded(lift(output), axis, first.size) for output in outputs]
        if proto.op_type in TAKE_TEXT or not any(map(is_text, inputs)):
            return _answers(handler, Node(proto, version, inputs, attributes, self))
        return moved(
            proto.op_type,
            inputs,
            lambda given: _fixed(_answers(handler, Node(proto, version, given, attributes, self))),
        )

    def _inline(self, proto: Any, body: Body, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a function, whose nodes see its inputs and attributes alone."""
        given = {**body.defaults, **{entry.name: entry for entry in self._resolved(proto).attribute}}
        inner = Scope(self.importing, self.functions, {}, body.versions, given)
        padded = [*inputs, *[None] * (len(body.proto.input) - len(inputs))]
        inner.tensors = dict(zip(body.proto.input, padded, strict=False))
        inner.add_nodes(body.proto.node)
        return [inner.tensors.get(name) for name in body.proto.output]

    def _is_given(self, entry: Any) -> bool:
        return not entry.ref_attr_name or entry.ref_attr_name in self.attributes

    def _attribute(self, entry: Any) -> Any:
        import onnx

        found = self.attributes[entry.ref_attr_name] if entry.ref_attr_name else entry
        if found.type == onnx.AttributeProto.TENSOR:
            return array_of(found.t)
        if found.type == onnx.AttributeProto.SPARSE_TENSOR:
            return dense_of(found.sparse_tensor)
        if found.type == onnx.AttributeProto.TENSORS:
            return [array_of(tensor) for tensor in found.tensors]
        value = onnx.helper.get_attribute_value(found)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return list(value) if found.type in (onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS) else value

    def _resolved(self, proto: Any) -> Any:
        """The node with the attributes of the function around it in the place of references to them."""
        if not any(entry.ref_attr_name for entry in proto.attribute):
            return proto
        import onnx

        copy = onnx.NodeProto()
        copy.CopyFrom(proto)
        del copy.attribute[:]
        for entry in proto.attribute:
            if self._is_given(entry):
                found = copy.attribute.add()
                found.CopyFrom(self.attributes[entry.ref_attr_name] if entry.ref_attr_name else entry)
                found.name = entry.name
        return copy


def in_order(nodes: Sequence[Any]) -> list[tuple[int, Any]]:
    """Nodes with their numbers from 1 on, each after those whose outputs it reads, else in the file's order.

    ONNX asks files for such an order, but ONNX Runtime sorts nodes by itself, and its converter to f16 writes
    its casts last.
    """
    makers = {name: number for number, proto in enumerate(nodes) for name in proto.output if name}
    needs = [{makers[name] for name in _read_by(proto) if name in makers} for proto in nodes]
    if all(number > max(before, default=-1) for number, before in enumerate(needs)):
        return list(enumerate(nodes, 1))
    order: dict[int, None] = {}
    begun: set[int] = set()
    for root in range(len(nodes)):
        waiting = [root]
        while waiting:
            number = waiting[-1]
            # A node of a cycle has begun already: whoever reads it finds that nothing makes its input.
            missing = [] if number in begun else sorted(needs[number] - order.keys() - begun, reverse=True)
            begun.add(number)
            waiting += missing
            if not missing:
                order[waiting.pop()] = None
    return [(number + 1, nodes[number]) for number in order]


def _read_by(proto: Any) -> Iterator[str]:
    """The names that a node reads, those that its graphs read of the graphs around them included."""
    yield from proto.input
    for entry in proto.attribute:
        for graph in (entry.g, *entry.graphs):
            for inner in graph.node:
                yield from _read_by(inner)
            yield from (output.name for output in graph.output)


def _label(proto: Any) -> str:
    return f'node "{proto.name or (proto.output[0] if proto.output else "")}" ({proto.op_type})'


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """A ``TensorProto`` as numpy sees it; narrow types by ml_dtypes. Raises ImporterError where it is damaged."""
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ImporterError(f"the tensor {tensor.name!r} is damaged: {told}") from error


def dense_of(tensor: Any) -> np.ndarray[Any, Any]:
    """A ``SparseTensorProto`` with its zeros."""
    values, indices = array_of(tensor.values), array_of(tensor.indices)
    name, size = tensor.values.name, prod(tensor.dims)
    if not 0 <= size <= _MOST_DENSE:
        raise ImporterError(
            f"the sparse tensor {name!r} claims {size:,} elements, and at most {_MOST_DENSE:,} are read"
        )
    dense = np.zeros(tuple(tensor.dims), values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (ValueError, IndexError) as error:
        raise ImporterError(f"the sparse tensor {name!r} is damaged: {error}") from error
    return dense


def _fixed(tensors: list[Any]) -> list[Any]:
    """Tensors where none may be bounded. Raises as ``hidden``."""
    for tensor in tensors:
        if isinstance(tensor, Bounded):
            hidden(tensor)
    return tensors


def _answers(handler: Handler, node: Node) -> list[Any]:
    """The outputs of an operator's function, with what to say of those that are used and that it does not compute."""
    outputs = _as_list(handler(node))
    node.check_read(handler)
    for number, name in enumerate(node.proto.output):
        if number >= len(outputs):
            outputs.append(None)
        if number and name and outputs[number] is None:
            outputs[number] = Absent(f"output {number} of {node.name} ({name!r}) is not imported")
    return outputs


def _as_list(outputs: Any) -> list[Any]:
    """An operator's function returns one output or a list; a tuple of the program counts as a list."""
    if isinstance(outputs, TupleValue):
        return list(outputs.elements)
    return list(outputs) if isinstance(outputs, Outputs) else [outputs]


class Outputs(list[Any]):
    """Several outputs of a node; a plain list is one output, a sequence."""
