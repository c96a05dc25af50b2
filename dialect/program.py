"""A program: a module with ``main``, and XLA's calling convention for it.

The convention (names, tuples, layouts, donation) is kept as attributes of the module, in XLA's own text, so that it
survives printing and parsing::

    module attributes {hloforge.parameter_names = ["x"], hloforge.parameter_shapes = ["f32[4,8]{0,1}"],
                       hloforge.result_shape = "(f32[8]{0})", hloforge.input_output_alias = ["{0}: (0, {}, may-alias)"]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.marks import (
    INPUT_OUTPUT_ALIAS,
    LABELS,
    PARAMETER_NAMES,
    PARAMETER_SHAPES,
    RESULT_NAMES,
    RESULT_SHAPE,
)
from hloforge.dialect.mlir import AnyOp, entries, in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.shapes import Shape

if TYPE_CHECKING:
    from hloforge.dialect.bounded_sizes import BoundedSize

ENTRY = "main"


@dataclass(frozen=True)
class Parameter:
    """One parameter of the entry computation; its shape may be a tuple."""

    name: str
    shape: Shape


@dataclass(frozen=True)
class Alias:
    """Donation: the result at ``output_index`` may (or must) reuse a parameter's buffer (XLA's input_output_alias)."""

    output_index: tuple[int, ...]
    parameter_number: int
    parameter_index: tuple[int, ...] = ()
    kind: str = "may-alias"

    _TEXT = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}, (may-alias|must-alias)\)")

    def __str__(self) -> str:
        return f"{_index(self.output_index)}: ({self.parameter_number}, {_index(self.parameter_index)}, {self.kind})"

    @classmethod
    def parse(cls, text: str) -> Alias:
        match = cls._TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"not an alias: {text!r}")
        return cls(_numbers(match[1]), int(match[2]), _numbers(match[3]), match[4])


def _index(numbers: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class Signature:
    """XLA's program shape, with names and donation.

    ``main`` of the module takes the leaves of the parameters, tuples flattened in order, and returns the leaves of the
    result. A tuple result is given back to Python as a tuple, an array result as an array.

    Attributes:
        result_names: of the leaves of the result, where the program's source has names for them; else empty.
        labels: what numbers of a parameter or result stand for, by its name: of a tensor of strings, the string of each
            number; of scores, the class of each column.
    """

    parameters: tuple[Parameter, ...]
    result: Shape
    aliases: tuple[Alias, ...] = ()
    result_names: tuple[str, ...] = ()
    labels: tuple[tuple[str, tuple[str | int, ...]], ...] = ()

    def __str__(self) -> str:
        inputs = ", ".join(f"{parameter.name}: {parameter.shape}" for parameter in self.parameters)
        return f"({inputs}) -> {self.result}"

    @property
    def flat_parameters(self) -> tuple[Parameter, ...]:
        """The leaves, named ``x`` for an array and ``x{1,0}`` for a leaf of a tuple (XLA's index notation)."""
        return tuple(leaf for parameter in self.parameters for leaf in _flatten(parameter.name, parameter.shape, ()))

    @property
    def flat_results(self) -> tuple[Shape, ...]:
        return tuple(self.result.leaves())

    def attach(self, module: ir.Module) -> None:
        """Write the signature onto the module as attributes.

        Raises:
            UnsupportedError: a layout has ``padded_dimensions``, which XLA's text cannot say.
        """
        for shape in (*(leaf.shape for leaf in self.flat_parameters), *self.flat_results):
            if shape.layout is not None and shape.layout.padded_dimensions:
                raise UnsupportedError(
                    f"{shape} with padded_dimensions {list(shape.layout.padded_dimensions)} cannot be passed",
                    hint="pass the padded array and take its corner with slice",
                )
        with in_context(module):
            attributes = module.operation.attributes
            attributes[PARAMETER_NAMES] = _strings(parameter.name for parameter in self.parameters)
            attributes[PARAMETER_SHAPES] = _strings(str(parameter.shape) for parameter in self.parameters)
            attributes[RESULT_SHAPE] = ir.StringAttr.get(str(self.result))
            attributes[INPUT_OUTPUT_ALIAS] = _strings(map(str, self.aliases))
            # What an earlier signature had is not this one's.
            for name in (RESULT_NAMES, LABELS):
                if name in attributes:
                    del attributes[name]
            if self.result_names:
                attributes[RESULT_NAMES] = _strings(self.result_names)
            if self.labels:
                attributes[LABELS] = ir.StringAttr.get(json.dumps(dict(self.labels)))

    @classmethod
    def of(cls, module: Any) -> Signature:
        """Read the signature from the module's attributes, else from the type of ``main``.

        Raises:
            ImporterError: the module has no public function ``main``, or its attributes do not parse.
        """
        entry = entry_function(module)
        attributes = module.operation.attributes
        if PARAMETER_SHAPES not in attributes:
            return _from_function(entry)
        try:
            names, shapes = _texts(attributes[PARAMETER_NAMES]), _texts(attributes[PARAMETER_SHAPES])
            parameters = tuple(Parameter(n, Shape.parse(s)) for n, s in zip(names, shapes, strict=True))
            aliases = tuple(map(Alias.parse, _texts(attributes[INPUT_OUTPUT_ALIAS])))
            result = Shape.parse(ir.StringAttr(attributes[RESULT_SHAPE]).value)
            result_names = tuple(_texts(attributes[RESULT_NAMES])) if RESULT_NAMES in attributes else ()
            if result_names and len(result_names) != len(list(result.leaves())):
                raise ValueError(f"{len(result_names)} names for the results {result}")
            labels = labels_of_json(ir.StringAttr(attributes[LABELS]).value) if LABELS in attributes else ()
            return cls(parameters, result, aliases, result_names, labels)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            reason = str(error).partition("\n")[0]
            raise ImporterError(f"malformed hloforge.* signature attributes: {reason}") from None


def labels_of_json(text: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """The labels of a signature from JSON. Raises ValueError for anything else."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(
        isinstance(entries, list) and all(isinstance(entry, str | int) for entry in entries)
        for entries in found.values()
    ):
        raise ValueError("labels are lists of strings and integers by name")
    return tuple((name, tuple(entries)) for name, entries in found.items())


def _flatten(name: str, shape: Shape, index: tuple[int, ...]) -> list[Parameter]:
    if shape.elements is None:
        suffix = "{" + ",".join(map(str, index)) + "}" if index else ""
        return [Parameter(name + suffix, shape)]
    return [leaf for i, member in enumerate(shape.elements) for leaf in _flatten(name, member, (*index, i))]


def _strings(texts: Any) -> ir.Attribute:
    return ir.ArrayAttr.get([ir.StringAttr.get(text) for text in texts])


def _texts(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(entry).value for entry in ir.ArrayAttr(attribute)]


def entry_function(module: ir.Module) -> Any:
    """The ``func.func @main`` of a module. Raises ImporterError if there is none."""
    names = []
    for op in module.body.operations:
        if op.operation.name != "func.func":
            continue
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        if name == ENTRY:
            return op
        names.append(f"@{name}")
    raise ImporterError(
        "the module has no function @main",
        hint=f"it has {', '.join(names)}: rename the entry function" if names else "a program needs func.func @main",
    )


def _from_function(entry: AnyOp) -> Signature:
    type_ = ir.FunctionType(ir.TypeAttr(entry.operation.attributes["function_type"]).value)
    arguments: Any = entry.operation.attributes.get("arg_attrs", None)
    parameters = []
    aliases = []
    for i, input_type in enumerate(type_.inputs):
        attributes = {} if arguments is None else entries(arguments[i])
        parameters.append(Parameter(f"arg{i}", _border_shape(input_type)))
        if "tf.aliasing_output" in attributes:
            output = ir.IntegerAttr(attributes["tf.aliasing_output"]).value
            if not 0 <= output < len(type_.results):
                raise ImporterError(
                    f"argument {i} of @main is donated to result {output}, and there are {len(type_.results)}",
                    location=location_of(entry),
                    hint="remove its attribute tf.aliasing_output",
                )
            aliases.append(Alias((output,) if len(type_.results) != 1 else (), i))
    results = tuple(map(_border_shape, type_.results))
    result = results[0] if len(results) == 1 else Shape.tuple_of(*results)
    return Signature(tuple(parameters), result, tuple(aliases))


def _border_shape(type_: ir.Type) -> Shape:
    try:
        return Shape.of_type(type_)
    except ValueError:
        raise ImporterError(
            f"@main takes or returns {type_}, which is no array of an XLA element type",
            hint="convert it inside the program: quantized values to their storage type, other types to a wider one",
        ) from None


class Template(Protocol):
    """What a program is made of separately for each choice of sizes, where its module cannot be refined to them."""

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """The positions of parameters whose elements decide sizes, as far as is known yet."""

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for arguments of these shapes, one for each leaf, and of these elements where they decide sizes.

        Raises:
            ArgumentError: shapes or elements that the program does not take.
        """


@dataclass(eq=False)
class Program:
    """A module and what is known of where it came from. Two programs are equal if they are one.

    Attributes:
        module: ``ir.Module`` with ``main``; passes rewrite it in place.
        signature: XLA's calling convention of ``main``.
        name: the module's name.
        source: what to call the input in messages: a file name, ``<stdin>``, ``<string>``.
        template: makes the program for given sizes; ``module`` then only tells what it takes and returns.
        open_sizes: of its arguments with their bounds (``BoundedSize``), where its source tells them.
    """

    module: Any
    signature: Signature
    name: str
    source: str
    template: Template | None = None
    open_sizes: tuple[BoundedSize, ...] = ()

    def text(self, *, locations: bool = False, elide: int | None = None) -> str:
        """The module as MLIR text; ``elide`` leaves out the values of constants larger than that many elements."""
        asm: str = self.module.operation.get_asm(enable_debug_info=locations, large_elements_limit=elide)
        return asm

    def describe(
        self,
        *,
        result_names: Sequence[str] | None = None,
        labels: Mapping[str, Sequence[str | int]] | None = None,
        aliases: Sequence[Alias] | None = None,
    ) -> None:
        """Give the leaves of the result names, numbers of parameters and results what they stand for, and results
        parameters that they may lie in. What is None stays as it is."""
        signature = self.signature
        stand = tuple((name, tuple(entries)) for name, entries in labels.items()) if labels is not None else None
        self.signature = replace(
            signature,
            result_names=tuple(result_names) if result_names is not None else signature.result_names,
            labels=stand if stand is not None else signature.labels,
            aliases=tuple(aliases) if aliases is not None else signature.aliases,
        )
        self.signature.attach(self.module)

    def hlo_proto(self) -> bytes:
        """A serialized ``HloModuleProto``, by XLA's own converter.

        Raises:
            CompileError: the converter knows no HLO for an operation.
        """
        from hloforge.dialect.hlo_export import hlo_proto

        return hlo_proto(self)

    def hlo_text(self) -> str:
        """HLO text, constants written in full, with metadata; errors as of ``hlo_proto``."""
        from hloforge.dialect.hlo_export import hlo_text

        return hlo_text(self)

    def clone(self) -> Program:
        """A copy whose module can be rewritten without touching this one."""
        # Operation by operation: by bytecode all constants would be in memory once more.
        given = self.module.operation
        with in_context(self.module):
            module = ir.Module.create(given.location)
            for name in given.attributes:
                module.operation.attributes[name] = given.attributes[name]
            with ir.InsertionPoint(module.body):
                for op in self.module.body.operations:
                    op.operation.clone()
        return Program(module, self.signature, self.name, self.source, self.template)
