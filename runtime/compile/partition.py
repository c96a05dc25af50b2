"""Partition a sharded program of whole arrays into the program of one device.

XLA's own partitioner does the work, in a process of its own (``partition_worker``): it propagates the shardings, cuts
every operation, and makes the collectives. So a program is cut here as XLA would cut it, whether Shardy or GSPMD
annotates it, manual computations over some axes of the mesh included. What comes back is a program like any other of
several devices; how whole arguments and results lie on them is kept beside it (``pipelines/replicas/shards.py``).
Source: XLA "SPMD partitioner"; Shardy "Propagation".
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import numpy as np

from hloforge.dialect.errors import CompileError, Location, OptionError, UnsupportedError
from hloforge.dialect.marks import PART_LABEL
from hloforge.dialect.mlir import dense_elements, in_context, ir, parse_module, stablehlo
from hloforge.dialect.operations import drop_argument_locations, file_location, operations
from hloforge.dialect.program import Program, entry_function
from hloforge.dialect.temporary import VARIABLE, prefix_of_child
from hloforge.pipelines.normalize.inline_calls import InlineCalls
from hloforge.pipelines.replicas.annotations import check_devices, drop_gspmd, is_sharded, uses_shardy
from hloforge.pipelines.replicas.combine_all_reduces import combine_all_reduces
from hloforge.pipelines.replicas.shards import Sharded, Sharding
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.custom_partitioning import QUESTION, answered
from hloforge.runtime.data.files import remove_temporary
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.options import CompileOptions

_WORKER = "hloforge.runtime.compile.partition_worker"
# Names that represent the locations of operations while XLA has them.
_LABEL = re.compile(rf"{PART_LABEL}(\d+)")
# The type of a channel that collectives use. Source: StableHLO, "channel_handle".
_DEVICE_TO_DEVICE = 1
# What XLA puts before a reason: the kind of error, and where MLIR found it.
_STATUS = re.compile(r'(?<=: )[A-Z_]+: (?:<unknown>:0: error: )?(?:loc\("[^"]*"\): )?')


def partitioned(program: Program, options: CompileOptions) -> Program:
    """One device's part of a sharded program that is to run on several partitions; any other program as it is.

    Raises:
        OptionError: the shardings are for another number of devices, for several replicas, or beside a file of weights.
        UnsupportedError: an argument or result of dynamic size.
        CompileError: XLA's partitioner refuses the program, or ran out of time.
    """
    if not is_to_cut(program, options):
        return program
    check_devices(program.module, options.grid)
    if options.weights is not None:
        raise OptionError(
            "a sharded program cannot load a file of weights", hint="pass them as arguments, which are sharded"
        )
    module, sharded, _ = _cut(program, options)
    signature = sharded.local(program.signature)
    signature.attach(module)
    sharded.attach(module)
    return Program(module, signature, program.name, program.source)


def inspections(program: Program, options: CompileOptions) -> list[tuple[str, bytes]]:
    """What ``@InspectSharding`` asks in a program that ``partitioned`` cuts.

    Returns:
        of each call its ``backend_config``, and how its operand lies as a serialized ``OpSharding``.

    Raises:
        as ``partitioned``.
    """
    if not is_to_cut(program, options):
        return []
    _, _, found = _cut(program, options)
    return [(config, bytes.fromhex(sharding)) for config, sharding in found]


def part_of(program: Program, options: CompileOptions) -> bytes:
    """One device's part of a program that ``partitioned`` cuts, as MLIR's bytecode that other tools read.

    Raises:
        as ``partitioned``.
    """
    module, _, _ = _cut(program, options)
    # As the passes that it is compiled by will have it.
    InlineCalls().run(module)
    combine_all_reduces(module)
    _drop_attributes(module, "hloforge.")
    with in_context(module):
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), options.partitions
        )
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def is_to_cut(program: Program, options: CompileOptions) -> bool:
    """Whether ``partitioned`` cuts it: one partition runs a sharded program whole."""
    return options.partitions > 1 and is_sharded(program.module)


def _check_static(program: Program) -> None:
    signature = program.signature
    for leaf in (*(parameter.shape for parameter in signature.flat_parameters), *signature.flat_results):
        if not leaf.is_token and not (leaf.is_array and leaf.is_static):
            raise UnsupportedError(
                f"an argument or result of shape {leaf} cannot be sharded over devices",
                location=Location(program.source),
                hint="run the program unsharded: with one partition",
            )


def _cut(program: Program, options: CompileOptions) -> tuple[Any, Sharded, list[tuple[str, str]]]:
    """The module of parts, how arguments and results lie on the devices, and what the program asks about others."""
    _check_static(program)
    whole = program.clone().module
    inline_dense_resources(whole)
    _drop_attributes(whole, "hloforge.")
    shardy = uses_shardy(whole)
    if shardy:
        drop_gspmd(whole)
    locations = _label(whole, program.source)
    parameters = [leaf.shape.dimensions for leaf in program.signature.flat_parameters]
    results = [leaf.dimensions for leaf in program.signature.flat_results]
    request = {
        "partitions": options.partitions,
        "shardy": shardy,
        "parameters": [len(sizes) for sizes in parameters],
        "results": [len(sizes) for sizes in results],
    }
    reply, bytecode = _ask(request, whole, options.timeout)
    if "error" in reply:
        raise CompileError(
            _LABEL.sub("an operation", _STATUS.sub("", reply["error"])),
            location=file_location(_original(reply["error"], locations)),
            hint=reply["hint"] or "run the program unsharded: with one partition",
        )
    module = parse_module(bytecode, whole.context)
    _drop_attributes(module, "mhlo.")
    _share(module, reply["owners"], options.partitions)
    for op in operations(module):
        op.location = _original(str(op.location), locations)
    made = (_shardings(*pair) for pair in zip((parameters, results), reply["sharded"], strict=True))
    return module, Sharded(*made), reply["inspected"]


def _share(module: ir.Module, owners: Sequence[int | None], devices: int) -> None:
    """Give all devices the results that XLA leaves on one: what a function of the host returned, as it came.

    Args:
        owners: of each result the device that has it, or None.
    """
    last = list(entry_function(module).regions[0].blocks[0].operations)[-1]
    for number, owner in enumerate(owners):
        operand = last.operands[number]
        if owner is None or stablehlo.TokenType.isinstance(operand.type):
            continue
        with in_context(module), ir.InsertionPoint(last), last.location:
            group = [owner, *(device for device in range(devices) if device != owner)]
            groups = dense_elements(np.array([group], np.int64))
            last.operands[number] = stablehlo.collective_broadcast(
                operand, groups, channel_handle=stablehlo.ChannelHandle.get(1, _DEVICE_TO_DEVICE)
            )


def _shardings(sizes: list[tuple[int, ...]], tilings: list[Any]) -> tuple[Sharding, ...]:
    pairs = zip(sizes, tilings, strict=True)
    return tuple(Sharding(own, *map(tuple, tiling)) for own, tiling in pairs)


def _drop_attributes(module: ir.Module, prefix: str) -> None:
    for name in [name for name in module.operation.attributes if name.startswith(prefix)]:
        del module.operation.attributes[name]


def _label(module: ir.Module, file: str) -> list[Any]:
    """Number operations by their locations, which become names that XLA keeps.

    Returns:
        what the numbers represent; the last one is the file, for what XLA adds.
    """
    with in_context(module):
        found = operations(module)
        locations = [op.location for op in found]
        for number, op in enumerate(found):
            op.location = ir.Location.name(f"{PART_LABEL}{number}")
        # A file may have called its arguments by numbers of ours.
        drop_argument_locations(module)
        return [*locations, ir.Location.file(file, 0, 0)]


def _original(text: str, locations: list[Any]) -> Any:
    """The location of the first operation that a text names."""
    match = _LABEL.search(text)
    return locations[int(match[1]) if match else -1]


def _ask(request: dict[str, Any], module: ir.Module, timeout: float | None) -> tuple[dict[str, Any], bytes]:
    """What the worker replies; of its end without a reply an error."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    failures: list[Exception] = []
    late = threading.Event()
    prefix = prefix_of_child()
    try:
        reply, result = _asked_server(request, stream.getvalue(), prefix, failures, (timeout, late)) or _asked_process(
            request, stream.getvalue(), prefix, failures, (timeout, late)
        )
    finally:
        remove_temporary(prefix)
    if late.is_set():
        return {"error": f"XLA's partitioner did not finish within {timeout:g} s", "hint": "allow it more time"}, b""
    if "error" in reply and failures:
        first = failures[0]
        raise CompileError(f"a function of custom_partitioning failed: {type(first).__name__}: {first}") from first
    return reply, result


_Reply = tuple[dict[str, Any], bytes]
# Seconds, and what is set when they are over.
_Limit = tuple[float | None, threading.Event]


@functools.cache
def _partitioner() -> server.Server:
    """The server of this process, whose children have XLA loaded: that takes ten times as long as a small program."""
    return server.kept(server.Server(lambda: (_WORKER,)))


def _asked_server(
    request: dict[str, Any], module: bytes, prefix: str, failures: list[Exception], limit: _Limit
) -> _Reply | None:
    """The reply of a child of the server; None where there is none, or it crashed: a process alone says why."""
    if not server.is_wanted():
        return None
    try:
        fields = {**request, "temporary": prefix}
        with _partitioner().request("partition", module, fields) as child, _timer(limit, child.end):

            def receive() -> _Reply:
                head, blob = child.receive()
                return json.loads(head), blob

            def send(answer: dict[str, Any], code: bytes) -> None:
                child.send([json.dumps(answer).encode(), code])

            return _converse(receive, send, failures)
    except server.GoneError:
        return ({}, b"") if limit[1].is_set() else None


def _asked_process(
    request: dict[str, Any], module: bytes, prefix: str, failures: list[Exception], limit: _Limit
) -> _Reply:
    """The reply of a process of its own."""
    # -P: a folder called hloforge where the user is must not hide the installed package.
    command = [sys.executable, "-P", "-m", _WORKER]
    with tempfile.TemporaryFile() as said:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, env=os.environ | {VARIABLE: prefix})
        questions, answers = cast(BinaryIO, process.stdout), cast(BinaryIO, process.stdin)

        def receive() -> _Reply:
            reply, _, blob = read_frame(questions)
            return reply, blob

        def send(answer: dict[str, Any], code: bytes) -> None:
            write_frame(answers, answer, (), code)

        try:
            with _timer(limit, process.kill):
                send({**request, "temporary": prefix}, module)
                return _converse(receive, send, failures)
        except (EOFError, BrokenPipeError):
            process.wait()
            said.seek(0)
            return {"error": _crash(process.returncode, said.read().decode(errors="replace")), "hint": ""}, b""
        finally:
            process.kill()
            process.communicate()


@contextmanager
def _timer(limit: _Limit, end: Callable[[], None]) -> Iterator[None]:
    """End a process when its time is over."""
    seconds, late = limit

    def stop() -> None:
        late.set()
        end()

    timer = threading.Timer(seconds or threading.TIMEOUT_MAX, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _converse(
    receive: Callable[[], _Reply], send: Callable[[dict[str, Any], bytes], None], failures: list[Exception]
) -> _Reply:
    """Answer what the worker asks, and return its reply."""
    while True:
        reply, result = receive()
        if QUESTION not in reply:
            return reply, result
        send(*answered(reply, failures))


def _crash(status: int, said: str) -> str:
    lines = said.splitlines()
    # `F1121 05:44:50.69 15372 file.cc:188] Check failed: …`: what follows the bracket is for the user.
    reasons = [line.split("] ", 1)[-1] for line in lines if "Check failed" in line or "LLVM ERROR" in line]
    how = f"crashed ({signal.Signals(-status).name})" if status < 0 else "ended without a result"
    return ": ".join([f"XLA's partitioner {how}", *reasons[:1]])
