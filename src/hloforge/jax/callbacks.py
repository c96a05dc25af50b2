"""Python functions that programs of JAX's backend call (``pure_callback``, ``io_callback``, ``debug.print`` …).

JAX hands the functions of a program to its client by their order, and a plugin gets the program alone. So a program
lowered for a backend names them by numbers of this process; the program that JAX compiles keeps them alive.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from hloforge.dialect.host_calls import JAX_CALLBACKS
from hloforge.dialect.mlir import entries, ir
from hloforge.jax.buffer_callbacks import TARGET, returning

_CONFIG, _INDEX = "mhlo.backend_config", "index"

# What a rule of the CPU asks about the backend that it lowers for.
CPU_BACKEND = SimpleNamespace(platform="cpu")

_lock = threading.Lock()
_numbers = itertools.count()
_functions: weakref.WeakValueDictionary[int, Callable[..., Any]] = weakref.WeakValueDictionary()


def adopt(module_context: Any, before: int, operations: Sequence[Any]) -> None:
    """Number the callbacks that a rule has added to a module, in what it wrote.

    Args:
        before: how many there were before the rule.
        operations: what the rule wrote.
    """
    added = module_context.host_callbacks[before:]
    if not added:
        return
    del module_context.host_callbacks[before:]
    for op in operations:
        if _is_callback(op):
            _adopt(op, added, before, module_context.add_keepalive)


def adopt_all(module: Any, functions: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Number the callbacks of a whole module.

    Args:
        functions: by the numbers that JAX gave them.

    Returns:
        The functions that must live as long as the program.
    """
    kept: list[Callable[..., Any]] = []

    def visit(op: Any) -> Any:
        if _is_callback(op):
            _adopt(op, functions, 0, kept.append)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
    return kept


def _is_callback(op: Any) -> bool:
    return op.operation.name == "stablehlo.custom_call" and _target(op) in (*JAX_CALLBACKS, TARGET)


def _adopt(op: Any, functions: Sequence[Callable[..., Any]], first: int, keep: Callable[[Any], None]) -> None:
    """Let a call name its function by a number of this process.

    Args:
        functions: from number ``first`` on, as JAX counts them.
        keep: is given what must live as long as the program.
    """
    config = entries(op.attributes[_CONFIG])
    function = functions[ir.IntegerAttr(config[_INDEX]).value - first]
    if _target(op) == TARGET:
        function = returning(function, op)
        op.attributes["call_target_name"] = ir.StringAttr.get(JAX_CALLBACKS[0])
    config[_INDEX] = ir.IntegerAttr.get(config[_INDEX].type, _numbered(function, keep))
    op.attributes[_CONFIG] = ir.DictAttr.get(config)


def _target(op: Any) -> str:
    return str(op.attributes["call_target_name"].value)


def number(module_context: Any, function: Callable[..., Any]) -> int:
    """The number of a function, which the program keeps alive."""
    return _numbered(function, module_context.add_keepalive)


def _numbered(function: Callable[..., Any], keep: Callable[[Any], None]) -> int:
    keep(function)
    with _lock:
        found = next(_numbers)
        _functions[found] = function
    return found


def functions_of(numbers: Sequence[int]) -> tuple[Any, ...]:
    """The functions by their numbers, as ``hloforge.host`` takes them: all up to the highest, the others of no use."""
    with _lock:
        found = {number: _functions.get(number, _gone) for number in numbers}
    return tuple(found.get(number, _gone) for number in range(max(numbers, default=-1) + 1))


def functions_among(kept: Iterable[Any]) -> tuple[Any, ...]:
    """The same of all callbacks among what a program keeps alive; nothing if there are none."""
    wanted = {id(each) for each in kept}
    with _lock:
        numbers = [number for number, function in _functions.items() if id(function) in wanted]
    return functions_of(numbers) if numbers else ()


def _gone(*_: Any) -> Any:
    raise RuntimeError(
        "the program calls a Python function that no longer exists: it was lowered by another process or program"
    )
