"""``Builder``: opens a program, to which operations then add themselves.

::

    with Builder("double") as builder:
        x = builder.parameter(0, Shape.parse("f32[4]"), "x")
        program = builder.build(ops.add(x, x))

Operations find their program by their operands, so the ``with`` is needed for those without any (``iota`` …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from hloforge.dialect.emission import mlir_type_of
from hloforge.dialect.errors import Location, OperationError
from hloforge.dialect.mlir import context, ir
from hloforge.dialect.op import user_location
from hloforge.dialect.ops.program import constant
from hloforge.dialect.program import ENTRY, Alias, Parameter, Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.dialect.symbols import define_function, finish_function
from hloforge.dialect.values import OPEN, Value, as_value, leaves, nest

P = TypeVar("P", bound=Program)


class Builder(Generic[P]):
    """A program under construction: a module with ``main``, to which parameters and operations are added.

    Args:
        name: of the program.
        builds: the class of the finished program.
    """

    def __init__(self, name: str, builds: type[P]) -> None:
        self.name = name
        self.builds = builds
        self._context = context()
        self._parameters: dict[int, tuple[Parameter, list[Value]]] = {}
        self._aliases: list[Alias] = []
        self._names: list[str] = []
        self._entered: list[list[Any]] = []
        self._functions: dict[Any, tuple[str, Shape]] = {}
        # Operations whose computation failed: values that point into them may outlive the error.
        self.discarded: list[Any] = []
        with self._context, ir.Location.unknown():
            self._module = ir.Module.create()
            self._module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
            self._function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(ENTRY),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
                    "sym_visibility": ir.StringAttr.get("public"),
                },
                regions=1,
                ip=ir.InsertionPoint(self._module.body),
            )
            self._block = self._function.regions[0].blocks.append()
        OPEN[self._context] = self

    def __enter__(self) -> Self:
        self._check_open()
        scopes: list[Any] = [self._context, ir.InsertionPoint(self._block), ir.Location.unknown(self._context)]
        for scope in scopes:
            scope.__enter__()
        self._entered.append(scopes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for scope in reversed(self._entered.pop()):
            scope.__exit__(kind, error, traceback)

    def scopes(self, location: Location, entered: ir.Context | None) -> list[Any]:
        """What to enter so that an operation is added to this program at the user's line.

        Args:
            entered: the MLIR context that is current.
        """
        where: ir.Location = ir.Location.file(location.file, location.line, 0, context=self._context)
        for name in reversed(self._names):
            where = ir.Location.name(name, where, context=self._context)
        if entered is self._context:
            return [where]
        return [self._context, ir.InsertionPoint(self._block), where]

    def parameter(self, number: int, shape: Shape | str, name: str = "") -> Value:
        """Parameter ``number`` of the program (XLA "Parameter").

        Args:
            shape: of an array, token or tuple, with a layout if the caller passes one; text is parsed.
            name: what calls may name it by; default ``arg<number>``.

        Raises:
            OperationError: the number is negative or taken, the name is taken, or the shape is malformed.
        """
        parameter = Parameter(name or f"arg{number}", self._shape(shape))
        if number < 0 or number in self._parameters:
            reason = "is negative" if number < 0 else f"is {self._parameters[number][0].name} already"
            raise self._error(f"Parameter: number {number} {reason}")
        if any(parameter.name == known.name for known, _ in self._parameters.values()):
            raise self._error(f"Parameter: the name {parameter.name!r} is taken")
        with self._context, ir.Location.unknown():
            leaves_ = list(parameter.shape.leaves())
            arguments = [self._block.add_argument(mlir_type_of(leaf), ir.Location.unknown()) for leaf in leaves_]
        values = list(map(Value, arguments, leaves_))
        self._parameters[number] = (parameter, values)
        return nest(parameter.shape, iter(values))

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant of anything numpy takes; ``dtype`` names its element type (XLA "Constant")."""
        with self:
            return constant(value, dtype)

    def alias(
        self,
        output_index: Sequence[int],
        parameter_number: int,
        parameter_index: Sequence[int] = (),
        *,
        must: bool = False,
    ) -> None:
        """Donate a parameter: the result at ``output_index`` may (``must``: has to) reuse its buffer."""
        kind = "must-alias" if must else "may-alias"
        self._aliases.append(Alias(tuple(output_index), parameter_number, tuple(parameter_index), kind))

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Operations made inside carry ``name`` in their metadata (XLA's ``op_name``); scopes nest."""
        self._names.append(name)
        try:
            yield
        finally:
            self._names.pop()

    def function(
        self, key: Any, name: str, parameters: Sequence[Shape], trace: Callable[[list[Value]], Value]
    ) -> tuple[str, Shape]:
        """A private function of the module, made at its first use. ``key`` tells when two uses mean the same one."""
        if key not in self._functions:
            self._functions[key] = define_function(name, parameters, trace)
        return self._functions[key]

    def build(self, result: Any, *, shape: Shape | str | None = None) -> P:
        """Finish the program.

        Args:
            result: what it returns: a Value, or Values nested in tuples and lists.
            shape: the result's shape with the layout in which callers get it; default: as the operations infer it.

        Returns:
            The verified program. The builder takes no more operations.

        Raises:
            OperationError: parameter numbers have gaps, an alias names no parameter or result, or ``shape`` is not
                that of the result.
        """
        self._check_open()
        try:
            value = as_value(result)
        except OperationError as error:
            raise self._error(f"build: {error.message}", error.hint) from None
        result_shape = value.shape if shape is None else self._shape(shape)
        if result_shape.without_layout() != value.shape.without_layout():
            raise self._error(f"build: the result has shape {value.shape}, not {result_shape}")
        with self._context, ir.Location.unknown():
            self._order_parameters()
            try:
                finish_function(self._function, self._block, leaves(value))
            except OperationError as error:
                raise self._error(f"build: {error.message}", error.hint) from None
        numbered = tuple(self._parameters[number][0] for number in sorted(self._parameters))
        signature = Signature(numbered, result_shape, tuple(self._aliases))
        self._check_aliases(signature)
        self._verify()
        signature.attach(self._module)
        del OPEN[self._context]
        return self.builds(self._module, signature, self.name, self.name)

    def _order_parameters(self) -> None:
        """Arguments are in the order of their declaration so far; XLA's numbers decide."""
        numbers = list(self._parameters)
        if sorted(numbers) != list(range(len(numbers))):
            raise self._error(f"build: parameters are numbered {sorted(numbers)}, not 0 to {len(numbers) - 1}")
        if numbers == sorted(numbers):
            return
        declared = len(self._block.arguments)
        for number in sorted(numbers):
            for value in self._parameters[number][1]:
                fresh = self._block.add_argument(value.type, ir.Location.unknown())
                value.ir.replace_all_uses_with(fresh)
                value.ir = fresh
        for _ in range(declared):
            self._block.erase_argument(0)

    def _check_aliases(self, signature: Signature) -> None:
        for alias in signature.aliases:
            try:
                source = _member(signature.parameters[alias.parameter_number].shape, alias.parameter_index)
                target = _member(signature.result, alias.output_index)
            except (IndexError, TypeError):
                raise self._error(f"build: alias {alias} names no leaf of {signature}") from None
            if source.without_layout() != target.without_layout():
                raise self._error(f"build: alias {alias} joins a parameter of {source} with a result of {target}")

    def _verify(self) -> None:
        try:
            self._module.operation.verify()
        except ir.MLIRError as error:
            raise self._error(
                f"build: {error.error_diagnostics[0].message if error.error_diagnostics else error}"
            ) from None

    def _check_open(self) -> None:
        if OPEN.get(self._context) is not self:
            raise self._error(f"the program {self.name!r} is built already")

    def _shape(self, shape: Shape | str) -> Shape:
        try:
            return Shape.parse(shape) if isinstance(shape, str) else shape
        except ValueError as error:
            raise self._error(str(error)) from None

    @staticmethod
    def _error(message: str, hint: str = "") -> OperationError:
        return OperationError(message, location=user_location(), hint=hint)


def _member(shape: Shape, index: Sequence[int]) -> Shape:
    for number in index:
        assert shape.elements is not None or isinstance(number, int)
        shape = shape.elements[number]  # type: ignore[index]
    return shape
