"""The two engines of jaxlib that say what a program should compute, below any calling convention.

Both take a StableHLO module as MLIR bytecode and give a function from flat arrays to flat arrays. Either may abort the
process on an odd module: ``reference_process`` runs them in a process of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import ReferenceEngineError
from hloforge.dialect.mlir import _hlo, _jax, in_context, ir, parse_module, passmanager, provide_lapack, stablehlo
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import entry_function
from hloforge.dialect.values import Value

Arrays: TypeAlias = Sequence[np.ndarray[Any, Any]]
FlatFunction: TypeAlias = Callable[[Arrays], list[np.ndarray[Any, Any]]]


class FlatEngine(Protocol):
    """What an engine does: a module in, a function of flat arrays out."""

    def compile(self, module: bytes) -> FlatFunction:
        """Raises ReferenceEngineError, also from the function, for what the engine cannot evaluate."""


class XlaEngine:
    """XLA's CPU client with XLA's default flags, but for those in ``flags``: names without dashes and values."""

    def __init__(self, **flags: bool | int) -> None:
        self._flags = flags

    @cached_property
    def _client(self) -> Any:
        return _jax.get_tfrt_cpu_client(asynchronous=False)

    def compile(self, module: bytes) -> FlatFunction:
        device = self._client.devices()[0]
        if b"lapack_" in module:
            provide_lapack()
        options = _jax.CompileOptions()
        options.env_option_overrides = list(self._flags.items())
        try:
            executable = self._client.compile_and_load(module, _jax.DeviceList((device,)), options)
        except Exception as error:
            raise ReferenceEngineError(f"XLA's CPU client refuses the program: {_first_line(error)}") from None

        def call(arguments: Arrays) -> list[np.ndarray[Any, Any]]:
            try:
                buffers = [_device_put(argument, device) for argument in arguments]
                results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
                # Copies: the arrays otherwise show the client's own memory, read-only.
                return [np.array(shards[0]._single_device_array_to_np_array_did_copy()[0]) for shards in results]
            except Exception as error:
                raise ReferenceEngineError(f"XLA's CPU client failed to run it: {_first_line(error)}") from None

        return call


class _OneDevice(_jax.SingleDeviceSharding):  # type: ignore[misc]
    """The two members of a sharding that jax adds in Python and ``batched_device_put`` asks for."""

    memory_kind = None

    def _to_xla_hlo_sharding(self, rank: int) -> Any:
        return _hlo.HloSharding.replicate()


def _device_put(array: np.ndarray[Any, Any], device: Any) -> Any:
    """A client array that holds a copy of ``array``, of any element type."""
    array = np.asarray(array, order="C")
    described = SimpleNamespace(shape=array.shape, dtype=array.dtype, weak_type=False)
    semantics = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return _jax.batched_device_put(
        described, _OneDevice(device), [array], [device], host_buffer_semantics=semantics, enable_x64=True
    )


# The interpreter knows neither CHLO nor the operations that StableHLO has deprecated.
_MODERN_FORMS = "chlo-legalize-to-stablehlo,stablehlo-legalize-deprecated-ops{fail-on-unused=false}"

# About a microsecond an element: this many take some twenty seconds.
ELEMENT_LIMIT = 20_000_000


class InterpreterEngine:
    """StableHLO's reference interpreter: exact to the specification, and about a microsecond for each element."""

    def __init__(self, element_limit: int = ELEMENT_LIMIT) -> None:
        self.element_limit = element_limit

    def compile(self, module: bytes) -> FlatFunction:
        parsed = parse_module(module)
        with in_context(parsed):
            _run_native(parsed, f"builtin.module(func.func({_MODERN_FORMS}))")
            self._refuse_long_work(parsed)
            _copy_scatter_operands(parsed)
            rows = _make_results_readable(parsed)
            text = str(parsed.operation.get_asm(binary=False, enable_debug_info=False))

        def call(arguments: Arrays) -> list[np.ndarray[Any, Any]]:
            # A fresh context each time: the interpreter may write into attributes, which a context shares.
            fresh = parse_module(text)
            with in_context(fresh):
                attributes = [dense(np.array(argument), element_type(argument.dtype)) for argument in arguments]
                try:
                    parts = iter([np.array(part) for part in stablehlo.eval_module(fresh, attributes)])
                except Exception as error:
                    raise ReferenceEngineError(f"StableHLO's interpreter failed: {_first_line(error)}") from None
            return [_restored(row, parts) for row in rows]

        return call

    def _refuse_long_work(self, module: ir.Module) -> None:
        total, heaviest, most = 0, None, -1
        for op in operations(module):
            work = _elements_of_work(op)
            total += work
            if work > most:
                heaviest, most = op, work
        if total > self.element_limit and heaviest is not None:
            raise ReferenceEngineError(
                f"the program is too large for StableHLO's interpreter: {total:,} element steps, limit "
                f"{self.element_limit:,}; most in {heaviest.name}",
                location=location_of(heaviest),
                hint="use the other reference engine: --reference=xla",
            )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _run_native(module: ir.Module, pipeline: str) -> None:
    # What it cannot legalize stays and is refused by name at evaluation.
    with contextlib.suppress(ir.MLIRError):
        passmanager.PassManager.parse(pipeline).run(module.operation)


def _elements_of_work(op: ir.Operation) -> int:
    """Scalar steps of one execution of an operation, to the order of magnitude; loops count once."""
    results = sum(_element_count(result.type) for result in op.results)
    if op.name in ("stablehlo.constant", "stablehlo.while", "stablehlo.if", "stablehlo.case"):
        return 0
    if op.name in ("stablehlo.dot_general", "stablehlo.convolution"):
        lhs, rhs = (_element_count(operand.type) for operand in op.operands)
        # dot: lhs·rhs/contracted ~ sqrt(lhs·rhs·result); exact for a matrix product, near it for the others.
        return int((lhs * rhs * results) ** 0.5)
    return max(results, sum(_element_count(operand.type) for operand in op.operands))


def _element_count(type_: ir.Type) -> int:
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    return prod(max(type_.get_dim_size(d), 1) for d in range(type_.rank))


def _copy_scatter_operands(module: ir.Module) -> None:
    """The interpreter's scatter writes into its operands; reversing no dimension makes a copy of each."""
    for op in operations(module, ["stablehlo.scatter"]):
        with ir.InsertionPoint(op):
            for number in range(len(op.results)):
                operand = Value(op.operands[number])
                op.operands[number] = emit(
                    "stablehlo.reverse", [operand], operand.type, dimensions=ir.DenseI64ArrayAttr.get([])
                ).ir


def _make_results_readable(module: ir.Module) -> list[ElementType]:
    """Return only what Python can read of attributes; gives the element types of the results as they were.

    A complex result aborts the interpreter and becomes two, narrow floats become f32 and narrow integers bytes.
    """
    entry = entry_function(module)
    terminator = list(entry.regions[0].blocks[0].operations)[-1].operation
    results = [Value(operand) for operand in terminator.operands]
    with ir.InsertionPoint(terminator):
        parts = [part for value in results for part in _readable_parts(value)]
        ir.Operation.create(terminator.name, operands=[part.ir for part in parts])
    terminator.erase()
    function = ir.FunctionType.get(entry.type.inputs, [part.type for part in parts])
    entry.attributes["function_type"] = ir.TypeAttr.get(function)
    if "res_attrs" in entry.attributes:
        del entry.attributes["res_attrs"]
    return [value.element_type for value in results]


def _readable_parts(value: Value) -> list[Value]:
    row = value.element_type
    if row.is_complex:
        part = element_type("f32" if row.bits == 64 else "f64")
        return [_retyped(name, value, part) for name in ("stablehlo.real", "stablehlo.imag")]
    if row.is_float and row.bits < 32:
        return [_retyped("stablehlo.convert", value, element_type("f32"))]
    if row.is_sub_byte:
        return [_retyped("stablehlo.convert", value, element_type("s8" if row.kind is Kind.SIGNED else "u8"))]
    return [value]


def _retyped(name: str, value: Value, row: ElementType) -> Value:
    return emit(name, [value], ir.RankedTensorType.get(value.type.shape, ir.Type.parse(row.mlir)))


def _restored(row: ElementType, parts: Any) -> np.ndarray[Any, Any]:
    if not row.is_complex:
        return np.asarray(next(parts).astype(row.dtype))
    real, imaginary = next(parts), next(parts)
    result = np.empty(real.shape, row.dtype)
    result.real, result.imag = real, imaginary
    return result


ENGINES: dict[str, Callable[[], FlatEngine]] = {"xla": XlaEngine, "interpreter": InterpreterEngine}
