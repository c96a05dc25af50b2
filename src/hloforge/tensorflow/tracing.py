"""From a function of TensorFlow to a program: traced for the sizes of a call, lowered to HLO by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.auto_control_deps_utils import get_read_only_resource_input_indices_graph

from hloforge.dialect import ops
from hloforge.dialect.builder import Builder
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.dialect.marks import GRAPH
from hloforge.dialect.program import Alias, Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.importers.freezing import freeze
from hloforge.importers.reader import read
from hloforge.importers.source import NamedBytes
from hloforge.tensorflow.arrays import variable_value
from hloforge.tensorflow.nests import Arguments, paths_of
from hloforge.tensorflow.refusals import UnknownConstant, refusal, refuse_growing_lists, unknown_constant
from hloforge.tensorflow.source_lines import CALLS, with_user_lines


@dataclass(frozen=True)
class Capture:
    """What a function reads beside its arguments.

    Attributes:
        name: of the variable, or of the constant.
        tensor: the variable's handle, or the constant.
        dtype: of the elements.
        is_variable: whether it is a handle.
    """

    name: str
    tensor: Any
    dtype: Any
    is_variable: bool

    def value(self) -> np.ndarray[Any, Any]:
        """Its elements now."""
        return variable_value(self.tensor, self.dtype) if self.is_variable else np.asarray(self.tensor)


@dataclass(frozen=True)
class Traced:
    """A function that was traced.

    Attributes:
        concrete: TensorFlow's concrete function of flat tensors.
        result: the nest of its results, with specs in place of tensors.
        captures: what follows its arguments.
        updates: the captures that it assigns, whose values follow its results; known once it is lowered.
    """

    concrete: Any
    result: Any
    captures: tuple[Capture, ...]
    updates: tuple[Capture, ...] = ()

    @property
    def result_specs(self) -> list[tf.TensorSpec]:
        """Of the tensors among the results."""
        leaves = tf.nest.flatten(self.result, expand_composites=True)
        return [leaf for leaf in leaves if isinstance(leaf, tf.TensorSpec)]

    @property
    def result_names(self) -> list[str]:
        """Of the tensors among the results: the paths to them, as far as these are more than a number."""
        leaves = tf.nest.flatten(self.result, expand_composites=True)
        paths = [".".join(path) for path in paths_of(self.result)]
        if len(paths) != len(leaves):
            return []
        names = [path for path, leaf in zip(paths, leaves, strict=True) if isinstance(leaf, tf.TensorSpec)]
        return [] if names == [""] else names

    def packed(self, tensors: Sequence[Any]) -> Any:
        """The nest of the results with these tensors."""
        rest = iter(tensors)
        leaves = tf.nest.flatten(self.result, expand_composites=True)
        flat = [next(rest) if isinstance(leaf, tf.TensorSpec) else leaf for leaf in leaves]
        return tf.nest.pack_sequence_as(self.result, flat, expand_composites=True)


@dataclass(eq=False)
class Tracer:
    """A function to be traced for the sizes of its arguments: the template of its program.

    Attributes:
        function: takes ``arguments`` and returns a nest of tensors.
        arguments: what it is traced for; sizes may be unknown.
        name: of the program.
        names: of variables, by ``id`` of their handles.
        constants: whether variables that the function does not assign become constants with the values that they
            have now; those that it assigns stay parameters, which their new values may overwrite.
        needed: numbers of arguments whose elements turned out to decide sizes.
        forms: what was lowered, by the sizes of the arguments.
    """

    function: Callable[..., Any]
    arguments: Arguments
    name: str
    names: Mapping[int, str] = field(default_factory=dict)
    constants: bool = False
    needed: frozenset[int] = frozenset()
    forms: dict[tuple[tuple[int, ...], ...], Traced] = field(default_factory=dict)
    _general: Traced | None = None

    def program(self) -> Program:
        """The program, or one with this template where sizes are known at a call only.

        Raises:
            UnsupportedError: an operation that XLA does not have, at its line; a resource that is no variable.
            Exception: what the function raises when it is traced.
        """
        specs = self.arguments.specs
        if all(spec.shape.is_fully_defined() for spec in specs):
            try:
                return self._lowered([tuple(spec.shape) for spec in specs], {})
            except _Needs as needs:
                self.needed |= needs.arguments
        return self._placeholder()

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """The arguments on whose elements a form depends, as far as is known."""
        return tuple(sorted(self.needed))

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for arguments of these shapes, followed by captures; it computes with the elements of some.

        Raises:
            ArgumentError: shapes that the function does not take, or elements decide sizes and ``values`` lacks them.
            UnsupportedError, Exception: as of ``program``.
        """
        specs = self.arguments.specs
        sizes = [tuple(shape.dimensions) for shape in shapes[: len(specs)]]
        for name, spec, given in zip(self.arguments.names, specs, sizes, strict=True):
            if not spec.shape.is_compatible_with(given):
                raise ArgumentError(f"argument {name!r}: expected {_shape(spec)}, got sizes {list(given)}")
        while True:
            missing = [self.arguments.names[number] for number in self.needed if number not in values]
            if missing:
                message = f"the elements of {', '.join(missing)} decide sizes, and they are known at a call only"
                raise ArgumentError(
                    message, hint="call the program with arrays, or fix them: a Python value, tf.constant"
                )
            try:
                return self._lowered(sizes, {number: np.asarray(values[number]) for number in self.needed})
            except _Needs as needs:
                self.needed |= needs.arguments

    def form(self, sizes: Sequence[tuple[int, ...]]) -> Traced:
        """What was lowered for arguments of these sizes."""
        return self.forms[tuple(sizes)]

    @property
    def captures(self) -> tuple[Capture, ...]:
        """What the program takes after the arguments."""
        traced = self._general or next(iter(self.forms.values()))
        return tuple(traced.captures[number] for number in self._kept(traced))

    @property
    def assigns(self) -> bool:
        """Whether calls may assign variables."""
        return not self.forms or any(form.updates for form in self.forms.values())

    def _lowered(self, sizes: Sequence[tuple[int, ...]], values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
        """The program for static sizes, and where elements are known. Raises _Needs, and as of ``program``."""
        specs = [tf.TensorSpec(dims, spec.dtype) for dims, spec in zip(sizes, self.arguments.specs, strict=True)]
        traced, proto = self._hlo(specs, values)
        program = read(NamedBytes(with_user_lines(proto, traced.concrete.graph), self.name), name=self.name)
        signature = program.signature
        numbers = {alias.output_index: alias.parameter_number for alias in signature.aliases}
        first = len(specs)
        traced = replace(traced, updates=tuple(traced.captures[numbers[key] - first] for key in sorted(numbers)))
        shapes = [parameter.shape for parameter in signature.parameters]
        names = _unique([*self.arguments.names, *(capture.name for capture in traced.captures)])
        parameters = tuple(map(Parameter, names, shapes))
        program.signature = replace(signature, parameters=parameters, aliases=())
        program.signature.attach(program.module)
        self.forms[tuple(sizes)] = traced
        renamed = {id(c.tensor): name for c, name in zip(traced.captures, names[first:], strict=True)}
        results = [*traced.result_names, *(renamed[id(update.tensor)] for update in traced.updates)]
        if len(results) == len(program.signature.flat_results):
            program.describe(result_names=results)
        if self.constants:
            return self._frozen(program, traced)
        if self._general is not None and _tensors(traced.captures) != _tensors(self._general.captures):
            raise UnsupportedError(
                "the function reads different variables for these sizes",
                hint="compile it separately for each choice of sizes",
            )
        return program

    def _kept(self, traced: Traced) -> list[int]:
        """The captures that are parameters: all, or those that may be assigned."""
        if not self.constants:
            return list(range(len(traced.captures)))
        graph = traced.concrete.graph
        first = len(graph.inputs) - len(traced.captures)
        read_only = set(get_read_only_resource_input_indices_graph(graph))
        return [n for n, c in enumerate(traced.captures) if c.is_variable and first + n not in read_only]

    def _frozen(self, program: Program, traced: Traced) -> Program:
        """The program with constants for what the function only reads; the results tell new values of the rest."""
        first, kept = len(self.arguments.specs), self._kept(traced)
        values = {first + n: c.value() for n, c in enumerate(traced.captures) if n not in kept}
        program = freeze(program, values)
        numbers = {id(traced.captures[n].tensor): first + place for place, n in enumerate(kept)}
        results = len(traced.result_specs)
        is_one = program.signature.result.is_array
        program.describe(
            aliases=[
                Alias(() if is_one else (results + n,), numbers[id(update.tensor)])
                for n, update in enumerate(traced.updates)
                if id(update.tensor) in numbers
            ]
        )
        return program

    def _hlo(self, specs: Sequence[tf.TensorSpec], values: Mapping[int, np.ndarray[Any, Any]]) -> tuple[Traced, bytes]:
        """What was traced, and its ``HloModuleProto``; constants from outside are taken in where they must."""
        takes_constants = False
        while True:
            traced, function = self._trace(specs, values, takes_constants)
            refuse_growing_lists(traced.concrete.graph)
            try:
                # On a machine with a GPU TensorFlow would lower for that.
                with tf.device("/CPU:0"):
                    return traced, function.experimental_get_compiler_ir(*specs)(stage="hlo_serialized")
            except (ValueError, tf.errors.OpError) as error:
                report = str(error)
            unknown = unknown_constant(report)
            if unknown is None:
                raise refusal(report, traced.concrete.graph)
            if not takes_constants and any(not capture.is_variable for capture in traced.captures):
                takes_constants = True
                continue
            arguments = _arguments_behind(traced.concrete.graph, unknown, len(specs)) - values.keys()
            if not arguments:
                raise refusal(report, traced.concrete.graph)
            raise _Needs(arguments)

    def _trace(
        self, specs: Sequence[tf.TensorSpec], values: Mapping[int, np.ndarray[Any, Any]], takes_constants: bool
    ) -> tuple[Traced, Any]:
        """The function as one of flat tensors, traced.

        Args:
            values: of arguments that are known.
            takes_constants: whether tensors outside of the function become constants in it.
        """
        result: Any = None

        def flat(*tensors: Any) -> list[Any]:
            nonlocal result
            known = [tf.constant(values[n]) if n in values else tensor for n, tensor in enumerate(tensors)]
            positional, named = self.arguments.packed(known)
            given = tf.nest.map_structure(_as_tensor, self.function(*positional, **named))
            result = tf.nest.map_structure(_result_spec, given)
            return [leaf for leaf in tf.nest.flatten(given, expand_composites=True) if isinstance(leaf, tf.Tensor)]

        function = tf.function(flat, jit_compile=True, autograph=False)
        concrete = function.get_concrete_function(*specs)
        if takes_constants:
            function, concrete = _with_constants(concrete, specs)
        return Traced(concrete, result, tuple(self._captures(concrete))), function

    def _captures(self, concrete: Any) -> list[Capture]:
        variables = {id(variable.handle): variable for variable in concrete.graph.variables}
        inputs = concrete.inputs[len(concrete.inputs) - len(concrete.captured_inputs) :]
        captures = []
        for tensor, inner in zip(concrete.captured_inputs, inputs, strict=True):
            if tensor.dtype != tf.resource:
                name = inner.op.name.rsplit("/", 1)[-1]
                captures.append(Capture(f"constant_{name}" if name.isdecimal() else name, tensor, tensor.dtype, False))
                continue
            held = getattr(tensor, "_handle_data", None)
            if held is None or not held.is_set or not held.shape_and_type:
                raise UnsupportedError(
                    f"the function uses {inner.op.name!r}, a resource that is no variable, such as a table or a queue",
                    hint="compute with it outside of the function",
                )
            variable = variables.get(id(tensor))
            name = self.names.get(id(tensor)) or (variable.name if variable is not None else inner.op.name)
            captures.append(Capture(name.split(":")[0], tensor, tf.as_dtype(held.shape_and_type[0].dtype), True))
        return captures

    def _placeholder(self) -> Program:
        """The program as far as it is known without sizes."""
        specs = self.arguments.specs
        self._general, _ = self._trace(specs, {}, False)
        captures = self.captures
        builder: Builder[Program] = Builder(self.name, Program)
        names = _unique([*self.arguments.names, *(capture.name for capture in captures)])
        shapes = [*map(_shape, specs), *(_capture_shape(capture) for capture in captures)]
        with builder:
            given = [
                builder.parameter(n, shape, name) for n, (shape, name) in enumerate(zip(shapes, names, strict=True))
            ]
            results = [ops.custom_call(GRAPH, given, _shape(spec)) for spec in self._general.result_specs]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        program.source = self.name
        program.template = self
        if len(results) == len(self._general.result_names):
            program.describe(result_names=self._general.result_names)
        return program


class _Needs(Exception):  # noqa: N818 - no failure
    """The elements of arguments decide sizes."""

    def __init__(self, arguments: frozenset[int]) -> None:
        super().__init__()
        self.arguments = arguments


def _with_constants(concrete: Any, specs: Sequence[tf.TensorSpec]) -> tuple[Any, Any]:
    """The function with its captured tensors, but not its variables, as constants."""

    def flat(*tensors: Any) -> Any:
        captured = [
            tensor if tensor.dtype == tf.resource else tf.constant(np.asarray(tensor))
            for tensor in concrete.captured_inputs
        ]
        return concrete._call_flat(list(tensors), captured)

    function = tf.function(flat, jit_compile=True, autograph=False)
    return function, function.get_concrete_function(*specs)


def _arguments_behind(graph: Any, unknown: UnknownConstant, count: int) -> frozenset[int]:
    """Which of the first arguments an operation's input is computed from; all integers where that is not found out."""
    found = _inputs_behind(graph, unknown)
    if found is not None:
        return frozenset(number for number in found if number < count)
    return frozenset(n for n, placeholder in enumerate(graph.inputs[:count]) if placeholder.dtype.is_integer)


def _inputs_behind(graph: Any, unknown: UnknownConstant) -> set[int] | None:
    """Which inputs of a graph an operation's input is computed from; None where the operation is not in the graph."""
    starts: list[Any] = []
    for op in graph.get_operations():
        if op.name == unknown.node:
            starts.append(op.inputs[unknown.number].op)
        elif op.type in CALLS:
            inner = getattr(graph._functions.get(op.get_attr("f").name), "graph", None)
            numbers = _inputs_behind(inner, unknown) if inner is not None else None
            starts += [op.inputs[number].op for number in numbers or ()]
    if not starts:
        return None
    seen: set[str] = set()
    while starts:
        op = starts.pop()
        if op.name not in seen:
            seen.add(op.name)
            starts += [tensor.op for tensor in op.inputs]
    return {number for number, placeholder in enumerate(graph.inputs) if placeholder.op.name in seen}


def _as_tensor(leaf: Any) -> Any:
    """A result as a tensor; None and what TensorFlow returns for an operation without results stay."""
    if leaf is None or isinstance(leaf, tf.Operation):
        return None
    is_tensor = isinstance(leaf, tf.Tensor | tf.__internal__.CompositeTensor) and not isinstance(leaf, tf.Variable)
    return leaf if is_tensor else tf.convert_to_tensor(leaf)


def _result_spec(leaf: Any) -> Any:
    if leaf is None:
        return None
    return tf.TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, tf.Tensor) else tf.type_spec_from_value(leaf)


def _tensors(captures: Sequence[Capture]) -> list[int]:
    return [id(capture.tensor) for capture in captures]


def _shape(spec: tf.TensorSpec) -> Shape:
    dims = spec.shape.as_list() if spec.shape.rank is not None else [None]
    element = element_type(np.dtype(spec.dtype.as_numpy_dtype))
    return Shape.array(element, *(-1 if size is None else size for size in dims))


def _capture_shape(capture: Capture) -> Shape:
    return Shape.array(element_type(np.dtype(capture.dtype.as_numpy_dtype)), *capture.value().shape)


def _unique(names: Sequence[str]) -> list[str]:
    """The names, later ones numbered where they come again."""
    found: dict[str, None] = {}
    for name in names:
        candidate, count = name, 0
        while candidate in found:
            count += 1
            candidate = f"{name}_{count}"
        found[candidate] = None
    return list(found)
