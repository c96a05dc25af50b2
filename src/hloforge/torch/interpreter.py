"""Running a graph of PyTorch's on arrays of JAX, each node at the user's line.

JAX writes the innermost frame of Python that is not its own into the location of an operation. A node is therefore
called from a frame whose code says the file and line of the user's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.extend import source_info_util
from torch import fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from hloforge.dialect.errors import Error, ImporterError, Location, UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, rule_of
from hloforge.torch.bounded.sizes import Sizes, fit, is_open, known, open_dims
from hloforge.torch.host_operators import call_host, reason_against
from hloforge.torch.registry import Call, lowering_of, name_of, number
from hloforge.torch.types import dtype_of, to_numpy

_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?')
_OWN = str(Path(__file__).parent)
_TORCH = str(Path(torch.__file__).parent)
_PLAIN_MODULES = ("_operator", "operator", "math", "builtins", "torch")

source_info_util.register_exclusion(_OWN)


def place_of(node: fx.Node) -> tuple[str, int, str] | None:
    """File and line of the user's code that made a node, and its module or function; None if the graph does not say.

    The innermost line outside of PyTorch, if there is one: a layer of ``torch.nn`` in a Sequential has none.
    """
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    file, line, function = (own or frames)[-1]
    modules = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path]
    return file, int(line), (modules[-1] if modules else function) or node.name


def location_of(node: fx.Node) -> Location | None:
    """The position for an error."""
    place = place_of(node)
    return Location(place[0], place[1]) if place else None


def check(graph_module: fx.GraphModule) -> None:
    """Refuse a graph with operators that are not imported: one error names them all, with their lines.

    Raises:
        UnsupportedError: there are such.
    """
    missing: dict[str, list[fx.Node]] = {}
    for node in calls(graph_module):
        if _is_plain(node.target):
            continue
        value = node.meta.get("val")
        if is_open(value) or (isinstance(value, torch.SymInt) and isinstance(known(value), int)):
            continue
        if _is_open(node):
            is_imported = rule_of(node.target) is not None
        else:
            found = (lowering_of(node.target), rule_of(node.target))
            is_imported = any(each is not None for each in found) or reason_against(node) is None
        if not is_imported:
            missing.setdefault(name_of(node.target), []).append(node)
    if not missing:
        return
    notes = tuple(f"{name}: {_places(nodes)}{_reason(name, nodes[0])}" for name, nodes in sorted(missing.items()))
    first = next(iter(missing.values()))[0]
    what = "1 operator" if len(missing) == 1 else f"{len(missing)} operators"
    raise UnsupportedError(
        f"{what} of the graph cannot be imported: {', '.join(sorted(missing))}",
        location=location_of(first),
        notes=notes,
        hint="write them with other operators, or run that part in PyTorch",
    )


def _places(nodes: Sequence[fx.Node]) -> str:
    places = [str(location_of(node) or f"node {node.name}") for node in nodes]
    return ", ".join(dict.fromkeys(places))


def _reason(name: str, node: fx.Node) -> str:
    found = next((reason for prefix, reason in _REFUSED.items() if name.startswith(prefix)), "")
    if not found and not name.startswith(("aten.", "prims.", "higher_order.")):
        found = f"PyTorch cannot be called for it: {reason_against(node)}"
    if not found and _is_open(node):
        found = "a size depends on elements, and no rule says what it makes of padding"
    return found and f"; {found}"


def calls(graph_module: fx.GraphModule) -> Iterator[fx.Node]:
    """The calls of a graph, and of the graphs that it refers to."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function":
            yield node
        elif node.op == "get_attr":
            attribute = _attribute(graph_module, node.target)
            if isinstance(attribute, fx.GraphModule):
                yield from calls(attribute)


def is_token(node: fx.Node) -> bool:
    """Whether a placeholder only tells the order of effects, of which a program has none."""
    users = [user.target for user in node.users]
    return bool(users) and all(target is torch.ops.higher_order.with_effects for target in users)


def _is_plain(target: Any) -> bool:
    """Whether a function is Python's own arithmetic, of sizes and tuples."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator):
        return False
    module = getattr(target, "__module__", "")
    return (module in _PLAIN_MODULES and target.__name__ in _PLAIN) or target is operator.getitem


_PLAIN = frozenset(
    (
        *(
            "getitem",
            "add",
            "sub",
            "mul",
            "floordiv",
            "truediv",
            "mod",
            "neg",
            "pow",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "and_",
        ),
        *("or_", "not_", "sym_max", "sym_min", "sym_not", "sym_float", "sym_int", "sym_ite"),
        *("sym_sqrt", "_sym_sqrt", "floor", "ceil", "trunc", "round", "max", "min", "abs", "sqrt", "index"),
    )
)


_REFUSED = {
    "aten._to_sparse": "sparse tensors are not imported",
    "aten._to_dense": "sparse tensors are not imported",
}


# Python's and PyTorch's functions of numbers that a program computes.
_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name: getattr(jnp, name)(x).astype(np.int64) for name in ("trunc", "floor", "ceil")},
    "sym_int": lambda x: jnp.trunc(x).astype(np.int64),
    "sym_float": lambda x: x.astype(np.float64),
    "sym_not": jnp.logical_not,
    "sym_max": jnp.maximum,
    "sym_min": jnp.minimum,
    "sym_ite": jnp.where,
}


def _plain(function: Callable[..., Any], arguments: Any, named: Any) -> Any:
    """Python's arithmetic, of numbers or of arrays."""
    if any(isinstance(each, jax.Array) for each in arguments):
        function = _OF_ARRAYS.get(function.__name__, function)
    return function(*arguments, **named)


class Interpreter:
    """Runs graphs.

    Args:
        seed: an array of JAX, an integer, from which random numbers are drawn; None if there are none.
        room: of ``Sizes``.
        has_doubles: whether the target is known to compute f64.
    """

    def __init__(self, seed: Any = None, room: int | None = None, *, has_doubles: bool = False) -> None:
        self._seed, self._has_doubles = seed, has_doubles
        self._drawn = 0
        self.sizes = Sizes(room)

    def key(self) -> Any:
        """A key that no other use of random numbers in the program has."""
        self._drawn += 1
        return jax.random.fold_in(jax.random.key(self._seed), self._drawn)

    def run(self, graph_module: fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """What the graph returns for these arguments, one a placeholder."""
        values: dict[fx.Node, Any] = {}
        given = iter(arguments)
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
                self._bind(node.meta.get("val"), values[node])
            elif node.op == "get_attr":
                values[node] = _loaded(_attribute(graph_module, node.target))
            elif node.op == "call_function":
                values[node] = _at(place_of(node), self._call, node, values)
            elif node.op == "output":
                return _mapped(node.args[0], values)
            else:
                raise ImporterError(f"a node of kind {node.op} in a graph", location=location_of(node))
        raise ImporterError("a graph without output")

    def run_inner(self, graph_module: fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """``run`` of a graph within the graph, such as a branch: what its sizes are is gone afterwards."""
        outer, self.sizes = self.sizes, self.sizes.inner()
        try:
            return self.run(graph_module, arguments)
        finally:
            self.sizes = outer

    @property
    def _graphs(self) -> tuple[Callable[..., Any], Callable[..., tuple[Any, Any]], Callable[[Any], None]]:
        """How a lowering runs graphs within the graph."""
        return self.run_inner, self.run_counted, self.note_turns

    def run_counted(self, graph_module: fx.GraphModule, arguments: Sequence[Any]) -> tuple[Any, Any]:
        """``run_inner``, and the most turns of a loop in it that keeps the values of all: ``note_turns`` says so."""
        outer, self.sizes = self.sizes, self.sizes.inner(self.sizes.room)
        try:
            found = self.run(graph_module, arguments)
            return found, reduce(jnp.maximum, self.sizes.turns, jnp.zeros((), np.int64))
        finally:
            self.sizes = outer

    def note_turns(self, turns: Any) -> None:
        """Say how many turns a loop has made that keeps the values of all."""
        self.sizes.turns.append(turns)

    def _call(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        arguments, named = _mapped(node.args, values), _mapped(node.kwargs, values)
        value = node.meta.get("val")
        try:
            if isinstance(value, torch.SymInt) and isinstance(known(value), int):
                return known(value)
            if is_open(value) and self.sizes.knows(value):
                return self.sizes.real(value)
            if self.sizes.is_certain(value):
                return True
            if _is_plain(node.target):
                result = _plain(node.target, arguments, named)
                self.sizes.bind(value, None, result)
                return result
            function = lowering_of(node.target)
            if _is_open(node) or (function is None and rule_of(node.target)):
                return self._call_open(node, arguments, named)
            value, said = self.sizes.padded((value, _fakes(node)))
            if _is_empty(node.target, value):
                return pytree.tree_map(lambda each: jnp.zeros(each.shape, dtype_of(each.dtype)), value)
            call = Call(node.target, value, said, self.key, *self._graphs, has_doubles=self._has_doubles)
            if function is None:
                return _as_declared(call_host(node, arguments, named), call.value)
            result = _as_declared(function(call, *arguments, **named), call.value)
            self.sizes.bind(value, None, result)  # a number that may be a size
            return result
        except Error as error:
            error.location = error.location or location_of(node)
            error.op = error.op or name_of(node.target)
            raise
        except GuardOnDataDependentSymNode as error:
            raise UnsupportedError(
                f"{name_of(node.target)}: the sizes of its result depend on elements, and those of a program do not",
                location=location_of(node),
            ) from error
        except Exception as error:  # whatever JAX raises while it traces; the user's line is what helps
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UnsupportedError(
                f"this use of {name_of(node.target)} is not imported: {reason}", location=location_of(node)
            ) from error

    def _bind(self, value: Any, given: Any) -> None:
        """Say what the symbols of an input are."""
        if isinstance(value, torch.Tensor) and given is not None:
            for wanted, size in zip(value.shape, given.shape, strict=True):
                if not is_open(wanted):
                    self.sizes.bind(wanted, size, size)
        elif isinstance(value, torch.SymInt):
            self.sizes.bind(value, given if isinstance(given, int) else None, given)

    def _call_open(self, node: fx.Node, arguments: Any, named: Any) -> Any:
        """What an operator makes of arrays that are padded: its rule knows."""
        rule = rule_of(node.target)
        if rule is None:
            raise UnsupportedError(
                f"{name_of(node.target)} of a size that depends on elements is not imported",
                hint="torch.where and masks instead of indices keep sizes known",
            )
        value = node.meta.get("val")
        said = _fakes(node)
        call = OpenCall(
            node.target,
            value,
            self.sizes.padded(said),
            self.key,
            *self._graphs,
            has_doubles=self._has_doubles,
            sizes=self.sizes,
            said=said,
            result=value,
        )
        found = rule(call, *arguments, **named)
        wanted = self.sizes.padded(value)
        return _as_declared(_fitted(found, wanted), wanted)


def _fitted(found: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and found is not None:  # None: a token
        return fit(found, value.shape)
    if isinstance(value, list | tuple) and isinstance(found, list | tuple):
        return tuple(_fitted(f, v) for f, v in zip(found, value, strict=True))
    return found


def _is_open(node: fx.Node) -> bool:
    """Whether a node reads or makes a tensor whose sizes depend on elements."""
    leaves = pytree.tree_leaves((_fakes(node), node.kwargs and _named_fakes(node), node.meta.get("val")))
    return any(open_dims(leaf) for leaf in leaves)


def _named_fakes(node: fx.Node) -> Any:
    return fx.node.map_arg(node.kwargs, lambda argument: argument.meta.get("val"))


def _fakes(node: fx.Node) -> tuple[Any, ...]:
    """The positional arguments as PyTorch knows them."""
    found: tuple[Any, ...] = fx.node.map_arg(node.args, lambda argument: argument.meta.get("val"))
    return found


def _mapped(arguments: Any, values: dict[fx.Node, Any]) -> Any:
    return fx.node.map_arg(arguments, values.__getitem__)


def _attribute(graph_module: fx.GraphModule, target: Any) -> Any:
    found: Any = graph_module
    for part in target.split("."):
        found = getattr(found, part)
    return found


def _loaded(attribute: Any) -> Any:
    return jnp.asarray(to_numpy(attribute)) if isinstance(attribute, torch.Tensor) else attribute


def _is_empty(target: Any, value: Any) -> bool:
    """Whether an operator's results are tensors without elements, which no lowering has to compute.

    So no lowering needs to care for what has no meaning there: reshapes to -1, quotients of sizes, pools of nothing.
    """
    leaves = pytree.tree_leaves(value)
    return (
        isinstance(target, torch._ops.OpOverload)
        and bool(leaves)
        and all(isinstance(leaf, torch.Tensor) and _has_no_elements(leaf) for leaf in leaves)
    )


def _has_no_elements(tensor: torch.Tensor) -> bool:
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def _as_declared(result: Any, value: Any) -> Any:
    """The results in the element types that PyTorch says they have; a token is None."""
    if result is None:
        return None
    if isinstance(value, torch.Tensor):
        dtype = dtype_of(value.dtype)
        array = result if isinstance(result, jax.Array | np.ndarray) else jnp.asarray(result, dtype)
        if array.ndim != value.ndim or any(
            isinstance(wanted, int) and wanted != size for wanted, size in zip(value.shape, array.shape, strict=True)
        ):
            raise ValueError(f"sizes {list(array.shape)} where PyTorch has {list(value.shape)}")
        return converted(array, dtype)
    if isinstance(value, list | tuple) and isinstance(result, list | tuple):
        return tuple(_as_declared(r, v) for r, v in zip(result, value, strict=True))
    return result


def converted(array: Any, dtype: Any) -> Any:
    """An array in another element type, as PyTorch converts: complex numbers lose their imaginary parts.

    Transforms of functions (``torch.func.grad``) leave numbers of Python where tensors were.
    """
    if isinstance(array, bool | int | float | complex):
        return number(array, dtype)
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        array = jnp.real(array)
    return array.astype(dtype)


@cache
def _frame(file: str, line: int, name: str) -> FunctionType:
    """A function whose calls look like calls from a line of a file."""
    code: CodeType = compile("def frame(f, *a): return f(*a)", file, "exec").co_consts[0]
    return FunctionType(code.replace(co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name), {})


def _at(place: tuple[str, int, str] | None, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments) if place is None else _frame(*place)(function, *arguments)


def flat(outputs: Any) -> list[Any]:
    """The outputs of a graph, leaf by leaf."""
    leaves: list[Any] = pytree.tree_leaves(outputs, is_leaf=lambda leaf: leaf is None)
    return leaves
