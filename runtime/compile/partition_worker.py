"""The process that partitions programs: a StableHLO module of whole arrays becomes one of parts.

Run as ``python -m hloforge.runtime.compile.partition_worker`` it reads one request from its input. Given the number of
a socket, it is a server, which has jaxlib loaded and forks a child for each request (``assembly/server.py``): that
takes 0.04 s of processor time where a process takes 0.2, and eager programs of JAX are many. Questions of XLA's go back
and forth before the reply (``custom_partitioning``). XLA's CPU client has one way to its partitioner, which is to
compile for several devices. The module as it is right after the partitioner is taken from what XLA writes down on
request. What becomes of it then does not matter: nine tenths of the time would go into code that nobody runs, so that
this process ends as soon as it has replied.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import CompileError, Error, UnsupportedError
from hloforge.dialect.forked import end_with_parent, fork
from hloforge.dialect.hlo_groups import with_listed_groups
from hloforge.dialect.mlir import _hlo, _jax, hlo_proto_to_stablehlo, in_context, ir, parse_module
from hloforge.dialect.operations import operations, string_attribute
from hloforge.dialect.protobuf import fields
from hloforge.dialect.temporary import PREFIX
from hloforge.runtime.compile.assembly.messages import receive, send
from hloforge.runtime.compile.custom_partitioning import TARGET, Message, pass_on
from hloforge.runtime.data.frames import read_frame, write_frame

_PASS = "spmd-partitioning"
# A custom call that asks how its operand lies; whom to tell is the address of a function in its configuration.
_INSPECTION, _CONFIG = "InspectSharding", "backend_config"
# JAX tells by this attribute how many dimensions of a library call's operands count problems.
_BATCHED = b"num_batch_dims"
# The names of such calls among the strings of bytecode, JAX's and ours.
_LIBRARY = re.compile(rb"(?:lapack_|hloforge\.)\w+")
# The field of HloProto that holds the module.
_HLO_MODULE = 1
# What devices that share a part of an array have of it.
_Kind: Any = _hlo.OpSharding.Type
# Seconds between looks at what XLA has written.
_LOOK = 0.01


def partition(module: bytes, partitions: int, shardy: bool, prefix: str = PREFIX) -> bytes:
    """Run XLA's partitioner.

    Args:
        module: MLIR bytecode, annotated by Shardy or by GSPMD.
        prefix: of the names of temporary files.

    Returns:
        the ``HloModuleProto`` of one device's program.

    Raises:
        CompileError: XLA refuses the program.
    """
    client = _jax.get_tfrt_cpu_client(asynchronous=False, num_devices=partitions)
    devices = _jax.DeviceList(tuple(client.devices()))
    refusals: list[str] = []

    def compile_whole() -> None:
        try:
            client.compile_and_load(module, devices, _options(partitions, shardy, folder))
        except Exception as error:
            refusals.append(str(error).strip().partition("\n")[0])

    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        compiling = threading.Thread(target=compile_whole, daemon=True)
        compiling.start()
        while (proto := _written(folder)) is None and compiling.is_alive():
            compiling.join(_LOOK)
        proto = proto or _written(folder)
    if proto is None:
        reason = refusals[0] if refusals else "it wrote nothing down"
        raise CompileError(f"XLA's partitioner refuses the program: {reason}")
    return proto


def _written(folder: str) -> bytes | None:
    """The module that XLA wrote after its partitioner, once all of it is there."""
    for path in Path(folder).rglob(f"*.after_{_PASS}.*.pb"):
        with suppress(ValueError):
            return next((bytes(one.payload) for one in fields(path.read_bytes()) if one.number == _HLO_MODULE), None)
    return None


def _options(partitions: int, shardy: bool, folder: str) -> Any:
    options = _jax.CompileOptions()
    options.num_partitions = partitions
    build = options.executable_build_options
    build.num_partitions = partitions
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = shardy
    # What is not annotated lies as suits what is computed with it.
    build.allow_spmd_sharding_propagation_to_parameters = [True]
    build.allow_spmd_sharding_propagation_to_output = [True]
    debug = build.debug_options
    debug.xla_dump_to = folder
    debug.xla_dump_hlo_pass_re = _PASS
    debug.xla_dump_hlo_as_proto = True
    debug.xla_backend_optimization_level = 0
    return options


class Inspections:
    """What XLA finds of the arrays that ``@InspectSharding`` asks about.

    Attributes:
        found: the configuration of each call, and the OpSharding of its operand, serialized, as hexadecimal digits.
    """

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._functions: list[Any] = []

    def listen(self, module: bytes) -> bytes:
        """The module, its calls addressed to this object, which must outlive the partitioner."""
        if _INSPECTION.encode() not in module:
            return module
        parsed = parse_module(module)
        with in_context(parsed):
            for op in operations(parsed, {"stablehlo.custom_call"}):
                if string_attribute(op, "call_target_name") == _INSPECTION:
                    op.attributes[_CONFIG] = ir.StringAttr.get(self._listener(string_attribute(op, _CONFIG) or ""))
        stream = io.BytesIO()
        parsed.operation.write_bytecode(stream)
        return stream.getvalue()

    def _listener(self, config: str) -> bytes:
        def listen(sharding: Any) -> None:
            self.found.append((config, sharding.to_proto().SerializeToString().hex()))

        self._functions.append(listen)
        address: bytes = _jax.encode_inspect_sharding_callback(listen)
        return address


def shardings(proto: bytes, parameters: Sequence[int], results: Sequence[int], devices: int) -> list[list[Any]]:
    """How the parameters and results of these ranks lie, each as ``tiling`` says.

    After those of the parameters and of the results is, for each result, the one device that has it, or None.

    Raises:
        UnsupportedError: a parameter lies on one device, or one lies in another way that is no tiling.
    """
    module = _hlo.HloModule.from_serialized_hlo_module_proto(proto)
    output = module.spmd_output_sharding
    # None of a program without parameters.
    given = (module.spmd_parameters_shardings or [], [output] if output is not None else [])
    of_parameters, of_results = (
        _leaves(one, len(ranks)) for one, ranks in zip(given, (parameters, results), strict=True)
    )
    # Replicated arrays are maximal as well, without devices: each device has its own, which may differ (unchecked).
    owners = [next(iter(one.tile_assignment_devices()), None) if one.is_maximal() else None for one in of_results]
    return [
        [tiling(one, rank, devices) for one, rank in zip(of_parameters, parameters, strict=True)],
        [tiling(one, rank, devices, may_have_owner=True) for one, rank in zip(of_results, results, strict=True)],
        owners,
    ]


def _leaves(given: Sequence[Any], count: int) -> list[Any]:
    if not count:  # an empty tuple has a sharding all the same
        return []
    leaves = [leaf for one in map(_hlo.HloSharding.from_proto, given) for leaf in one.tuple_elements() or [one]]
    return leaves or [_hlo.HloSharding.replicate()] * count


def tiling(sharding: Any, rank: int, devices: int, may_have_owner: bool = False) -> list[list[int]]:
    """The parts of each dimension, each device's part, and the number of its term if parts are sums (unreduced)."""
    # What is manual has no whole: each device has its own array, which is read as a replicated one is.
    if sharding.is_replicated() or sharding.is_manual() or (may_have_owner and sharding.is_maximal()):
        return [[1] * rank, [0] * devices]
    if sharding.is_unreduced():
        return [[1] * rank, [0] * devices, list(range(devices))]
    kinds = sharding.subgroup_types()
    if not sharding.is_tiled() or not {*kinds} <= {_Kind.REPLICATED, _Kind.MANUAL, _Kind.UNREDUCED}:
        raise UnsupportedError(
            f"an argument or result of the program has the unsupported sharding {sharding}",
            hint="shard it over the mesh, or replicate it",
        )
    tiles = list(sharding.tile_assignment_dimensions())
    # After the dimensions of the array are those of devices that share a part.
    groups = tiles[rank:]
    sharing = prod(groups)
    places, terms = [0] * devices, [0] * devices
    for number, device in enumerate(sharding.tile_assignment_devices()):
        places[device] = number // sharing
        if _Kind.UNREDUCED in kinds:
            terms[device] = _term(number % sharing, groups, kinds)
    return [tiles[:rank], places, *([terms] if any(terms) else [])]


def _term(number: int, groups: Sequence[int], kinds: Sequence[Any]) -> int:
    """The number of a device's term, from the device's among those that share a part."""
    term, weight = 0, 1
    for size, kind in zip(reversed(groups), reversed(kinds), strict=True):
        number, index = divmod(number, size)
        if kind == _Kind.UNREDUCED:
            term += index * weight
            weight *= size
    return term


def _answer(request: dict[str, Any], module: bytes, ask: Callable[[dict[str, Any]], Message]) -> Message:
    """The reply to a request.

    Args:
        ask: whoever has sent it.
    """
    inspections = Inspections()
    if TARGET.encode() in module:
        pass_on(ask)
    if _BATCHED in module:
        # Without this XLA gathers all problems on all devices.
        for name in {*_LIBRARY.findall(module)}:
            _jax.register_custom_call_as_batch_partitionable(name.decode())
    try:
        proto = partition(
            inspections.listen(module), request["partitions"], request["shardy"], prefix=request["temporary"]
        )
        *sharded, owners = shardings(proto, request["parameters"], request["results"], request["partitions"])
        reply = {"sharded": sharded, "owners": owners, "inspected": inspections.found}
        return reply, hlo_proto_to_stablehlo(with_listed_groups(proto))
    except Error as error:
        return {"error": error.message, "hint": error.hint}, b""


def _one() -> None:
    """Answer the request that comes through this process's input."""
    # Replies keep the pipe to themselves: what a library prints goes to stderr.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request, _, module = read_frame(sys.stdin.buffer)

    def ask(question: dict[str, Any]) -> Message:
        write_frame(replies, question)
        answer, _, code = read_frame(sys.stdin.buffer)
        return answer, code

    reply, made = _answer(request, module, ask)
    write_frame(replies, reply, (), made)


def _serve(control: socket.socket) -> None:
    """Answer the requests that come through a socket, each in a child of its own, until its other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getpid()
    while True:
        said, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not said:
            return
        with socket.socket(fileno=descriptors[0]) as connection:
            if fork() == 0:
                control.close()
                try:
                    end_with_parent(parent)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _answer_through(connection)
                except BaseException:
                    # For whoever debugs this: what this process says goes nowhere.
                    traceback.print_exc()
                finally:
                    # XLA may be compiling, and would be waited for.
                    os._exit(0)


def _answer_through(connection: socket.socket) -> None:
    send(connection, [str(os.getpid()).encode()])
    head, module = receive(connection)

    def ask(question: dict[str, Any]) -> Message:
        send(connection, [json.dumps(question).encode(), b""])
        answer, code = receive(connection)
        return json.loads(answer), code

    reply, made = _answer(json.loads(head), module, ask)
    send(connection, [json.dumps(reply).encode(), made])


def main() -> None:
    """Serve, where a socket is given; answer one request elsewhere."""
    if sys.argv[1:]:
        _serve(socket.socket(fileno=int(sys.argv[1])))
        return
    _one()
    # XLA may be compiling, and would be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
