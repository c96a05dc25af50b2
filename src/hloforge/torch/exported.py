"""Read ``torch.export``'s results: state, parameter names, and the kinds of outputs."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch._export.utils import _get_decomp_for_cia
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)
from torch.utils import _pytree as pytree

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.program import Alias, Program
from hloforge.torch.decompositions import decompositions
from hloforge.torch.interpreter import calls
from hloforge.torch.registry import lowering_of

# Numbers that a program computes; those that are known are ConstantArguments, or have an integer for a name.
_NUMBERS = (SymBoolArgument, SymFloatArgument, SymIntArgument)
_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
# Of a forward and backward pass in one graph the loss is what the module returns, as any other output.
RETURNED = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)


def prepared(exported: ExportedProgram) -> ExportedProgram:
    """The exported program with functional ATen operators only, those without lowering decomposed."""
    with warnings.catch_warnings():
        # What PyTorch warns of is within itself.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            exported = exported.run_decompositions(decompositions())
        except ValueError as error:
            # A decomposition makes other strides than the operator (attention of the CPU), and a view of its result
            # fails in PyTorch; a program has no strides.
            if "Cannot view a tensor" not in str(error):
                raise
            views = {torch.ops.aten.view.default: _viewed}
            exported = exported.run_decompositions({**decompositions(), **views})
        except AssertionError:
            # PyTorch makes no one graph where what is changed has two names.
            shared = _shared(exported)
            if not shared:
                raise
            merged = _under_names_of_buffers(exported)
            if merged is not None:
                return prepared(merged)
            raise UnsupportedError(
                f"{' and '.join(map(repr, shared))} share memory, and the model changes it",
                hint="keep one of them as a buffer, and make the other of it in forward()",
            ) from None
        # A library's operators: those that were defined after the table was made are not in it.
        while composite := _composite(exported):
            exported = exported.run_decompositions(
                {**decompositions(), **{op: _get_decomp_for_cia(op) for op in composite}}
            )
    return exported


def _under_names_of_buffers(exported: ExportedProgram) -> ExportedProgram | None:
    """The program with one name for memory that is a buffer and a constant as well; None if there is none such.

    A cache that a module keeps in an object, and registers as a buffer for its state (transformers' static caches), is
    lifted as a constant where the object is used, and the buffer is not used at all.
    """
    signature, constants = copy.deepcopy(exported.graph_signature), dict(exported.constants)
    graph_module = torch.fx.GraphModule(exported.graph_module, copy.deepcopy(exported.graph_module.graph))
    nodes = {node.name: node for node in graph_module.graph.nodes if node.op == "placeholder"}
    state = {**exported.state_dict, **constants}
    buffers: dict[Any, Any] = {}
    found = False
    for kind in (InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
        for spec in signature.input_specs:
            tensor = state.get(spec.target) if spec.kind == kind and spec.target is not None else None
            if not isinstance(tensor, torch.Tensor) or not tensor.numel():
                continue
            place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
            if kind == InputKind.BUFFER:
                buffers.setdefault(place, nodes[spec.arg.name])
            elif place in buffers:
                nodes[spec.arg.name].replace_all_uses_with(buffers[place])
                constants[str(spec.target)] = tensor.clone()
                found = True
    return exported._update(graph_module, signature, constants=constants) if found else None


def _shared(exported: ExportedProgram) -> list[str]:
    """The first parameters, buffers and constants that lie in one memory, by their names; empty if none do."""
    state = {**exported.state_dict, **exported.constants}
    places: dict[int, list[str]] = {}
    for spec in exported.graph_signature.input_specs:
        tensor = state.get(spec.target) if spec.target is not None else None
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            places.setdefault(tensor.untyped_storage().data_ptr(), []).append(str(spec.target))
    return next((names for names in places.values() if len(names) > 1), [])


def _viewed(x: torch.Tensor, sizes: Any) -> Any:
    """``view`` of an array whose strides do not allow one: of a copy."""
    if x.is_contiguous():
        return NotImplemented
    return torch.ops.aten.view.default(x.clone(memory_format=torch.contiguous_format), sizes)


def _composite(exported: ExportedProgram) -> set[Any]:
    """Operators of a graph that are functions of others, and have no lowering."""
    targets = {node.target for node in calls(exported.graph_module)}
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return {
        target
        for target in targets
        if isinstance(target, torch._ops.OpOverload)
        and target.namespace != "aten"
        and lowering_of(target) is None
        and target.has_kernel_for_dispatch_key(key)
    }


def names_of(exported: ExportedProgram) -> list[str]:
    """Names of the parameters of the program: weights and buffers by their qualified names."""
    return [spec.target or spec.arg.name for spec in exported.graph_signature.input_specs]


def overwritten(exported: ExportedProgram, program: Program) -> tuple[Alias, ...]:
    """The parameters that PyTorch changes in place, which the first results of an exported program may lie in."""
    outputs = [
        spec
        for spec in exported.graph_signature.output_specs
        if spec.kind is not OutputKind.TOKEN and not hasattr(spec.arg, "value")
    ]
    numbers = {parameter.name: number for number, parameter in enumerate(program.signature.parameters)}
    results = program.signature.flat_results
    found = []
    for number, (spec, shape) in enumerate(zip(outputs, results, strict=False)):
        place = numbers.get(spec.target) if spec.kind in (*_MUTATIONS, OutputKind.USER_INPUT_MUTATION) else None
        if place is not None and program.signature.parameters[place].shape == shape:
            found.append(Alias(() if program.signature.result.is_array else (number,), place))
    return tuple(found)


@dataclass(frozen=True)
class Convention:
    """How a call of a module becomes one of its program.

    Attributes:
        names, state: of the tensors that come before the user's, in order.
        constants: what leaves of the user's arguments have to be, by number: the program takes them not.
        in_spec, out_spec: pytrees of ``(args, kwargs)`` and of what is returned.
        updates: the state (by number) and the user's leaves (by number) that the first results replace.
        outputs: the leaves of what is returned: the number of a result, or a constant.
        gradients: the state (by number) and the user's leaves (by number) whose gradients the last results are.
    """

    names: tuple[str, ...]
    state: tuple[torch.Tensor, ...]
    constants: dict[int, Any]
    in_spec: Any
    out_spec: Any
    updates: tuple[tuple[str, int], ...]
    outputs: tuple[Any, ...]
    gradients: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Result:
    """A leaf of what is returned that the program computes.

    Attributes:
        number: among the results.
        is_number: whether it is a number of Python's, not a tensor.
    """

    number: int
    is_number: bool = False


def convention_of(exported: ExportedProgram, state: dict[str, torch.Tensor] | None = None) -> Convention:
    """The convention of an exported program that is ``prepared``.

    Args:
        state: the module's own parameters and buffers, which are used in the place of the exported copies.

    Raises:
        UnsupportedError: an input or output that is no tensor, number, string or None.
    """
    own = state or {}
    signature = exported.graph_signature
    targets: list[str] = []
    tensors: list[torch.Tensor] = []
    numbers: dict[str, int] = {}
    constants: dict[int, Any] = {}
    user = 0
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            numbers[spec.arg.name] = user
            if hasattr(spec.arg, "value"):  # ConstantArgument
                constants[user] = spec.arg.value
            user += 1
            continue
        if spec.kind is InputKind.TOKEN:
            continue
        if spec.target is None or spec.kind is InputKind.CUSTOM_OBJ:
            raise UnsupportedError(f"the exported program takes {spec.arg.name!r}, which is no tensor")
        numbers[spec.target] = len(tensors)
        targets.append(spec.target)
        found = own.get(spec.target)
        if found is None:
            found = exported.state_dict.get(spec.target)
        tensors.append(found if found is not None else exported.constants[spec.target])
    updates: list[tuple[str, int]] = []
    gradients: list[tuple[str, int]] = []
    outputs: list[Any] = []
    count = 0
    for out in signature.output_specs:
        argument = out.arg
        if out.kind is OutputKind.TOKEN:
            continue
        if hasattr(argument, "value"):  # ConstantArgument
            outputs.append(argument.value)
            continue
        if out.kind in _MUTATIONS:
            assert out.target is not None  # a mutation has one
            updates.append(("state", numbers[out.target]))
        elif out.kind is OutputKind.USER_INPUT_MUTATION:
            assert out.target is not None
            updates.append(("user", numbers[out.target]))
        elif out.kind is OutputKind.GRADIENT_TO_PARAMETER:
            assert out.target is not None
            gradients.append(("state", numbers[out.target]))
        elif out.kind is OutputKind.GRADIENT_TO_USER_INPUT:
            assert out.target is not None
            gradients.append(("user", numbers[out.target]))
        elif out.kind in RETURNED:
            outputs.append(Result(count, isinstance(argument, _NUMBERS)))
        else:
            raise UnsupportedError(f"the exported program returns {out.kind.name}")
        count += 1
    trees = exported.call_spec
    return Convention(
        tuple(targets),
        tuple(tensors),
        constants,
        trees.in_spec,
        trees.out_spec,
        tuple(updates),
        tuple(outputs),
        tuple(gradients),
    )


def leaves_of(convention: Convention, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The leaves of a call's arguments. Raises ValueError for another structure than was exported."""
    leaves: list[Any]
    leaves, spec = pytree.tree_flatten((arguments, named))
    if spec != convention.in_spec:
        raise ValueError(spec)
    return leaves
