"""Operations that know themselves how they are cut over devices (``jax.experimental.custom_partitioning``).

XLA's partitioner asks functions of its own process: how the result lies where the operands are known, how the operands
where the result is, and for the program of one part. Ours runs in a process of its own (``partition_worker``), which
passes each question on to the process that has the functions. Shapes are texts, as XLA prints them, and shardings
serialized ``OpSharding`` messages as hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.mlir import _hlo, _jax

# The target of such an operation's custom call; its ``backend_config`` says which one.
TARGET = "CustomSPMDPartitioning"
# In a message of the worker: what it asks. Its last message has none.
QUESTION = "question"
PROPAGATE, PARTITION, INFER = "propagate", "partition", "infer"

Message: TypeAlias = tuple[dict[str, Any], bytes]
_answers: list[Callable[[dict[str, Any]], Message]] = []


def answer_by(function: Callable[[dict[str, Any]], Message]) -> None:
    """Have questions answered by a function: from a question to a message with shardings, and a part's module."""
    _answers[:] = [function]


def answered(question: dict[str, Any], failures: list[Exception]) -> Message:
    """The answer to a question of the worker; what the functions raise is told to it, and kept."""
    if not _answers:
        return {"error": f"@{TARGET} asks functions of JAX, which are not in this process"}, b""
    try:
        return _answers[0](question)
    except Exception as error:
        failures.append(error)
        return {"error": f"{type(error).__name__}: {error}"}, b""


def encode(sharding: Any) -> str | None:
    """A sharding as text."""
    return None if sharding is None else sharding.to_proto().SerializeToString().hex()


def decode(text: str | None) -> Any:
    """The ``HloSharding`` of a text."""
    if text is None:
        return None
    proto = _hlo.OpSharding()
    proto.ParseFromString(bytes.fromhex(text))
    return _hlo.HloSharding.from_proto(proto)


def pass_on(ask: Callable[[dict[str, Any]], Message]) -> None:
    """Let XLA's partitioner in this process ask another one."""

    def asked(name: str, config: bytes, result: Any, **facts: Any) -> Message:
        header, code = ask({QUESTION: name, "config": config.decode(), "result": str(result), **facts})
        if "error" in header:
            raise RuntimeError(header["error"])
        return header, code

    def propagate(sharding: Any, shape: Any, config: bytes) -> Any:
        return decode(asked(PROPAGATE, config, shape, result_sharding=encode(sharding))[0]["result_sharding"])

    def infer(shapes: Sequence[Any], shardings: Sequence[Any], result: Any, config: bytes) -> Any:
        operands = {"operands": [*map(str, shapes)], "operand_shardings": [*map(encode, shardings)]}
        return decode(asked(INFER, config, result, **operands)[0]["result_sharding"])

    def partition(
        shapes: Sequence[Any], shardings: Sequence[Any], result: Any, result_sharding: Any, config: bytes
    ) -> tuple[bytes, list[Any], Any]:
        operands = {"operands": [*map(str, shapes)], "operand_shardings": [*map(encode, shardings)]}
        header, code = asked(PARTITION, config, result, result_sharding=encode(result_sharding), **operands)
        return code, [*map(decode, header["operand_shardings"])], decode(header["result_sharding"])

    _jax.register_custom_call_partitioner(
        TARGET, propagate, partition, infer, can_side_effecting_have_replicated_sharding=True
    )
