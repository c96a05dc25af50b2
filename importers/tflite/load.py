"""From a flatbuffer to plain Python: graphs of tensors and operators, with every offset checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import ImporterError, UnsupportedError

Array = np.ndarray[Any, Any]
Entry = TypeVar("Entry")

_MAGIC = b"TFL3"
_INSTALL = "pip install 'hloforge[tflite]', in a clone '.[tflite]'"
# Source: TensorType of schema.fbs, by its numbers. Strings, resources and variants are no arrays.
_ELEMENTS = {
    0: "f32",
    1: "f16",
    2: "s32",
    3: "u8",
    4: "s64",
    6: "pred",
    7: "s16",
    8: "c64",
    9: "s8",
    10: "f64",
    11: "c128",
    12: "u64",
    15: "u32",
    16: "u16",
    17: "s4",
    18: "bf16",
}
_FOREIGN = {5: "a string", 13: "a resource", 14: "a variant"}


@dataclass(frozen=True)
class Quantization:
    """How stored integers represent numbers: ``(stored - zero point) * scale``.

    Attributes:
        scale: f32, one number, or one for each position along an axis.
        zero_point: s64, as many as scales.
        axis: the quantized dimension.
    """

    scale: Array
    zero_point: Array
    axis: int

    def same(self, other: Quantization | None) -> bool:
        """Whether equal integers mean equal numbers."""
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph.

    Attributes:
        sizes: -1 for those that come with the call; None if not even the rank is known.
        kind: the number of its TensorType.
        data: its bytes if it is a constant.
        variable: whether it keeps its elements from one operator to the next: a state.
    """

    name: str
    sizes: tuple[int, ...] | None
    kind: int
    data: bytes | None
    quantization: Quantization | None
    variable: bool
    sparse: bool

    @property
    def row(self) -> ElementType:
        """The element type. Raises UnsupportedError for what is no array of XLA."""
        if self.kind not in _ELEMENTS:
            what = _FOREIGN.get(self.kind, f"of element type {self.kind}")
            raise UnsupportedError(
                f"tensor {self.name!r} is {what}, which is no array of XLA", hint="keep it outside of the program"
            )
        return element_type(_ELEMENTS[self.kind])

    def array(self) -> Array:
        """The elements of a constant. Raises ImporterError if its bytes do not fit its sizes."""
        if self.sparse:
            raise UnsupportedError(
                f"tensor {self.name!r} is stored sparsely", hint="convert the model without sparse weights"
            )
        sizes = self.sizes or ()
        count = int(np.prod(sizes, dtype=np.int64))
        data = self.data or b""
        if self.row.name == "s4":
            packed = np.frombuffer(data, np.int8)
            pairs = np.stack([np.left_shift(packed, 4) >> 4, packed >> 4], -1).reshape(-1)
            elements = pairs[:count].astype(ml_dtypes.int4)
        else:
            elements = np.frombuffer(data, self.row.dtype)
        if min(sizes, default=0) < 0 or elements.size != count:
            raise ImporterError(f"tensor {self.name!r} of sizes {list(sizes)} has {elements.size} elements")
        return elements.reshape(sizes)


@dataclass(frozen=True)
class Operator:
    """One operator of a graph.

    Attributes:
        name: of the builtin operator; ``CUSTOM`` for others.
        custom: the name of a custom operator.
        inputs, outputs: numbers of tensors; -1 for what is left out.
        options: the table of its options, or None.
        custom_options: the bytes of a custom operator's options.
    """

    name: str
    custom: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    custom_options: bytes = b""


@dataclass(frozen=True)
class Graph:
    """A graph: the model's first one, or the body of a loop or branch."""

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Model:
    """A model: its graphs, of which the first is called."""

    graphs: tuple[Graph, ...] = field(default=())


def is_tflite(data: bytes) -> bool:
    """Whether the bytes look like a TFLite model: told without the package."""
    return data[4:8] == _MAGIC


def load_model(data: bytes) -> Model:
    """The model in ``data``.

    Raises:
        ImporterError: the package tflite is missing, or the bytes are damaged.
    """
    try:
        import tflite
    except ImportError:
        raise ImporterError(
            "TFLite models are read with the package tflite, which is not installed", hint=_INSTALL
        ) from None
    if not is_tflite(data):
        raise ImporterError("a damaged TFLite model: its identifier TFL3 is missing")
    with damage():
        return _Reader(data, tflite).model()


@contextmanager
def damage() -> Iterator[None]:
    """Say of what flatbuffers raises on damaged bytes that they are damaged."""
    try:
        yield
    except (struct.error, ValueError, IndexError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ImporterError(f"a damaged or truncated TFLite model: {reason}") from None


class _Reader:
    """Reads tables; neither all lists nor all buffers together are longer than the file, though they may overlap."""

    def __init__(self, data: bytes, schema: Any) -> None:
        self.data = data
        self.entries_left = self.bytes_left = len(data)
        self.contents: dict[int, bytes | None] = {}
        self.schema = schema
        self.root = schema.Model.GetRootAs(data, 0)
        names = vars(schema.BuiltinOperator)
        self.operator_names: dict[int, str] = {n: name for name, n in names.items() if isinstance(n, int)}
        self.option_names = self._unions(schema.BuiltinOptions), self._unions(schema.BuiltinOptions2)

    def model(self) -> Model:
        codes = self._each(self.root.OperatorCodes, self.root.OperatorCodesLength())
        self.codes = [(self._operator_name(code), _text(code.CustomCode()), code.Version()) for code in codes]
        self.buffers = self._each(self.root.Buffers, self.root.BuffersLength())
        graphs = tuple(map(self._graph, self._each(self.root.Subgraphs, self.root.SubgraphsLength())))
        if not graphs:
            raise ValueError("it has no graph")
        return Model(graphs)

    def _graph(self, table: Any) -> Graph:
        tensors = tuple(map(self._tensor, self._each(table.Tensors, table.TensorsLength())))
        operators = tuple(map(self._operator, self._each(table.Operators, table.OperatorsLength())))
        graph = Graph(_text(table.Name()), tensors, operators, _ints(table, "Inputs"), _ints(table, "Outputs"))
        used = [n for op in operators for n in (*op.inputs, *op.outputs)]
        if any(not 0 <= n < len(tensors) for n in (*graph.inputs, *graph.outputs)) or any(
            not -1 <= n < len(tensors) for n in used
        ):
            raise ValueError("a tensor's number is out of range")
        return graph

    def _tensor(self, table: Any) -> Tensor:
        sizes: tuple[int, ...] | None = _ints(table, "Shape")
        signature = _ints(table, "ShapeSignature")
        if signature and len(signature) == len(sizes or ()):
            sizes = signature
        if not sizes and not table.HasRank() and not table.Buffer():
            # A scalar is written like a tensor of unknown rank; what makes it tells.
            sizes = ()
        return Tensor(
            _text(table.Name()),
            sizes,
            table.Type(),
            self._data(table.Buffer()),
            _quantization(table.Quantization()),
            bool(table.IsVariable()),
            table.Sparsity() is not None,
        )

    def _data(self, number: int) -> bytes | None:
        """A buffer's bytes: inside the flatbuffer or, in models above 2 GB, after it."""
        if not number:
            return None
        if number not in self.contents:
            self.contents[number] = found = self._content(self.buffers[number])
            self.bytes_left -= len(found or b"")
            if self.bytes_left < 0:
                raise ValueError("its buffers are larger than the file")
        return self.contents[number]

    def _content(self, buffer: Any) -> bytes | None:
        if buffer.Offset() > 1:
            start, size = buffer.Offset(), buffer.Size()
            if start + size > len(self.data):
                raise ValueError("a buffer extends beyond the file")
            return self.data[start : start + size]
        return None if buffer.DataIsNone() else np.asarray(buffer.DataAsNumpy()).tobytes()

    def _operator(self, table: Any) -> Operator:
        name, custom, version = self.codes[table.OpcodeIndex()]
        options = self._options(table.BuiltinOptionsType(), table.BuiltinOptions(), self.option_names[0])
        if options is None:
            options = self._options(table.BuiltinOptions2Type(), table.BuiltinOptions2(), self.option_names[1])
        said = b"" if table.CustomOptionsIsNone() else np.asarray(table.CustomOptionsAsNumpy()).tobytes()
        return Operator(name, custom, version, _ints(table, "Inputs"), _ints(table, "Outputs"), options, said)

    def _options(self, kind: int, table: Any, names: dict[int, str]) -> Any:
        if not kind or table is None or kind not in names:
            return None
        options = getattr(self.schema, names[kind])()
        options.Init(table.Bytes, table.Pos)
        return options

    def _operator_name(self, code: Any) -> str:
        # The first field is a byte: later operators have the second one.
        number = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
        return self.operator_names.get(number, f"number {number}")

    def _each(self, get: Callable[[int], Entry], count: int) -> list[Entry]:
        self.entries_left -= count
        if self.entries_left < 0:
            raise ValueError("its lists are longer than the file")
        return [get(number) for number in range(count)]

    def _unions(self, union: Any) -> dict[int, str]:
        names = {name: number for name, number in vars(union).items() if isinstance(number, int) and name != "NONE"}
        return {number: name for name, number in names.items() if hasattr(self.schema, name)}


def _quantization(table: Any) -> Quantization | None:
    if table is None or not table.ScaleLength():
        return None
    scale = np.array(table.ScaleAsNumpy(), np.float32)
    zero = np.zeros(len(scale), np.int64)
    if table.ZeroPointLength():
        zero = np.broadcast_to(np.array(table.ZeroPointAsNumpy(), np.int64), scale.shape)
    return Quantization(scale, zero, table.QuantizedDimension())


def _ints(table: Any, name: str) -> tuple[int, ...]:
    if not getattr(table, f"{name}Length")():
        return ()
    return tuple(int(number) for number in np.asarray(getattr(table, f"{name}AsNumpy")()).reshape(-1))


def _text(found: Any) -> str:
    return str(found, "utf-8", "replace") if found else ""
