"""Reference engines: XLA's CPU client and StableHLO's interpreter, called like a session."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import OptionError, ReferenceEngineError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.reference.jaxlib_engines import ENGINES, FlatEngine, FlatFunction
from hloforge.runtime.reference.process import IsolatedEngine
from hloforge.runtime.reference.widen_floats import leave_out_narrow_results, wide, widen_floats
from hloforge.runtime.session.convention import flatten_arguments, nest_results

REFERENCES: tuple[str, ...] = tuple(ENGINES)


def reference(name: str, *, isolated: bool = True, timeout: float | None = None) -> ReferenceEngine:
    """The engine ``xla`` or ``interpreter``.

    Args:
        isolated: run it in a child process, so that an abort of the engine becomes an error; False saves half a second
            and leaves the caller's process at the engine's mercy.
        timeout: seconds for one compilation or call, where isolated.

    Raises:
        OptionError: no such engine.
    """
    if name not in ENGINES:
        raise OptionError(f"no reference engine is called {name!r}", hint=f"engines: {', '.join(REFERENCES)}")
    return ReferenceEngine(name, IsolatedEngine(name, timeout) if isolated else ENGINES[name]())


class ReferenceEngine:
    """An engine that says what a program should compute.

    Attributes:
        name: ``xla`` or ``interpreter``.
    """

    def __init__(self, name: str, engine: FlatEngine) -> None:
        self.name = name
        self._engine = engine

    def prepare(self, program: Program, *, float64: bool = False, partly: bool = False) -> ReferenceProgram:
        """Compile a copy of an imported program, which is normalized here; the program is left as it was.

        Args:
            float64: compute every float in f64 and every complex number in c128. The function takes the program's own
                types and gives f64 and c128 back: nearly the truth, to measure the errors of two engines against.
            partly: give NaN for those results that cannot be computed in f64, if there are others.

        Raises:
            ReferenceEngineError: the engine cannot evaluate it.
            Error: normalization failed.
        """
        prepared = program.clone()
        normalize(prepared.module)
        inline_dense_resources(prepared.module)
        _drop_tokens(prepared.module)
        if not float64:
            return ReferenceProgram(program.signature, self._engine.compile(_bytecode(prepared.module)))
        LowerComposites().run(prepared.module)
        if partly:
            leave_out_narrow_results(prepared.module)
        widen_floats(prepared.module)
        function = self._engine.compile(_bytecode(prepared.module))
        return ReferenceProgram(program.signature, lambda arguments: function(list(map(widened, arguments))))

    def close(self) -> None:
        """End the child process of an isolated engine."""
        if isinstance(self._engine, IsolatedEngine):
            self._engine.close()


@dataclass(frozen=True)
class ReferenceProgram:
    """A program on a reference engine; called like a ``Session``."""

    signature: Signature
    _function: FlatFunction

    def __call__(self, *arguments: Any) -> Any:
        """Evaluate the program.

        Args:
            arguments: one a parameter: arrays of exactly its element type and sizes, in nested tuples for a tuple.

        Returns:
            numpy arrays, nested in tuples as the result shape says; a token is None.

        Raises:
            ArgumentError: count, element type or sizes do not fit.
            ReferenceEngineError: the evaluation failed.
        """
        results = self._function(flatten_arguments(self.signature, arguments))
        expected = [leaf for leaf in self.signature.flat_results if crosses(leaf)]
        if len(results) != len(expected):
            raise ReferenceEngineError(f"{len(results)} results for the signature {self.signature}")
        return nest_results(self.signature.result, list(map(_of_sign, results, expected)))


def _of_sign(result: Any, shape: Shape) -> Any:
    """A result in the program's type: XLA's CPU client gives the bits of a signed rng_bit_generator as unsigned."""
    wanted = shape.element
    given = element_type(result.dtype)
    if wanted is None or not (wanted.is_integer and given.is_integer) or wanted.bits != given.bits:
        return result
    return result.view(wanted.dtype)


def widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats as f64 and complex numbers as c128, exactly; other arrays as they are."""
    return array.astype(wide(element_type(array.dtype)).dtype, copy=False)


def _bytecode(module: ir.Module) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _drop_tokens(module: ir.Module) -> None:
    """Tokens order effects inside a program; at its border they carry nothing."""
    with in_context(module):
        entry = entry_function(module)
        block = entry.regions[0].blocks[0]
        kept_arguments = [not _is_token(argument.type) for argument in block.arguments]
        terminator = list(block.operations)[-1].operation
        kept_results = [not _is_token(operand.type) for operand in terminator.operands]
        if all(kept_arguments) and all(kept_results):
            return
        with ir.InsertionPoint.at_block_begin(block):
            for argument, kept in zip(block.arguments, kept_arguments, strict=True):
                if not kept:
                    created = ir.Operation.create("stablehlo.after_all", results=[argument.type])
                    argument.replace_all_uses_with(created.results[0])
        with ir.InsertionPoint(terminator):
            values = [value for value, kept in zip(terminator.operands, kept_results, strict=True) if kept]
            ir.Operation.create(terminator.name, operands=values)
        terminator.erase()
        for number in reversed(range(len(kept_arguments))):
            if not kept_arguments[number]:
                block.erase_argument(number)
        inputs = [argument.type for argument in block.arguments]
        entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [v.type for v in values]))
        for name, kept_list in (("arg_attrs", kept_arguments), ("res_attrs", kept_results)):
            if name in entry.attributes:
                pairs = zip(ir.ArrayAttr(entry.attributes[name]), kept_list, strict=True)
                entry.attributes[name] = ir.ArrayAttr.get([attribute for attribute, kept in pairs if kept])


def _is_token(type_: ir.Type) -> bool:
    return "token" in str(type_) and not isinstance(type_, ir.RankedTensorType)
