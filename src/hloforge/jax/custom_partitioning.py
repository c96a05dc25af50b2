"""``jax.experimental.custom_partitioning`` in programs of several devices: JAX's functions, asked from another process.

JAX registers them for XLA's partitioner in its own process, and finds what the user gave by a number in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hloforge.dialect.mlir import _hlo
from hloforge.runtime.compile.custom_partitioning import INFER, PROPAGATE, QUESTION, Message, answer_by, decode, encode


def register(module: Callable[[], Any]) -> None:
    """Answer the questions of the partitioner by JAX's functions.

    Args:
        module: gives the module of JAX that has them.
    """
    answer_by(partial(_answer, module))


def _answer(module: Callable[[], Any], question: dict[str, Any]) -> Message:
    of_jax = module()
    config, result = question["config"].encode(), _hlo.Shape(question["result"])
    if config not in of_jax._sharding_callbacks:
        raise RuntimeError("the program was lowered in another process, or no longer exists: lower it again")
    if question[QUESTION] == PROPAGATE:
        lies = decode(question["result_sharding"])
        return _result(of_jax._custom_partitioning_propagate_user_sharding(lies, result, config)), b""
    operands = [_hlo.Shape(text) for text in question["operands"]]
    shardings = [*map(decode, question["operand_shardings"])]
    if question[QUESTION] == INFER:
        found = of_jax._custom_partitioning_infer_sharding_from_operands(operands, shardings, result, config)
        return _result(found), b""
    lies = decode(question["result_sharding"])
    code, cut, lies = of_jax._custom_partitioning_partition(operands, shardings, result, lies, config)
    return _result(lies) | {"operand_shardings": [*map(encode, cut)]}, code


def _result(sharding: Any) -> dict[str, Any]:
    return {"result_sharding": encode(sharding)}
