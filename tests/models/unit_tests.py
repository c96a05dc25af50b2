"""The HLO modules in XLA's unit tests, each compiled, run on random inputs, and judged by XLA's CPU client.

``python -m tests.models.unit_tests XLA.git out.jsonl [names.txt]``, with a git directory of XLA's sources, appends a
line for each module that neither the file nor ``unit_tests_judged.txt`` has yet: its name (never its text), the verdict
and its cause. With names these alone are judged, again if need be.
The judge takes the original text through XLA's own converter, or hloforge's import where XLA refuses that. Everything
runs in children with limits of time and memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import jax
import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import _hlo, _jax, hlo_proto_to_stablehlo, ir, parse_module, provide_lapack
from hloforge.dialect.program import Program
from hloforge.importers import hlo_text
from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import second_opinions
from hloforge.runtime.reference.engines import reference
from hloforge.runtime.replicas.replicas import Replicas

Outcome: TypeAlias = tuple[str, Any]
Grid: TypeAlias = tuple[int, int]

_OURS_SECONDS, _THEIRS_SECONDS, _MEMORY = 30, 30, 7 << 30
_LARGEST_ARRAY, _MOST_DEVICES = 300e6, 16
_LITERAL = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
# The text begins with a module, and nothing in it is to be filled in.
_MODULE = re.compile(r"\s*(//[^\n]*\n\s*)*HloModule\b")
_OPEN = re.compile(r"\$\d|\$\{|%s|\{[a-z_]*\}(?=\[)")
_SHAPE = re.compile(r"\b(pred|[suc]\d+|b?f\d+\w*)\[([\d,<= ]*)\]")
_COLLECTIVE = re.compile(
    r"\b(all-reduce|all-gather|all-to-all|reduce-scatter|collective-\w+|ragged-all-to-all|\w+-id)(-start)?\("
)
_REDUCES_OR_GATHERS = re.compile(r"\b(all-reduce|all-gather|reduce-scatter)(-start)?\(")
_GROUPS = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d, ]*\}[, ]*)*)\}")
_ROWS = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=")
# What waits for somebody outside.
_RANDOM = re.compile(r"\brng\(|GetRngSeed")
_FEEDS = re.compile(r"\b(infeed|recv|send|recv-done)\(")


def modules(repository: str, reference_name: str = "main") -> dict[str, str]:
    """The complete modules of the tests, and the HLO files, by ``path:line``; equal ones once."""
    git = ["git", f"--git-dir={repository}"]
    listing = subprocess.run([*git, "ls-tree", "-r", reference_name], capture_output=True, text=True, check=True).stdout
    found: dict[str, tuple[str, str]] = {}
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as blobs:
        assert blobs.stdin is not None
        assert blobs.stdout is not None
        for line in listing.splitlines():
            facts, path = line.split("\t")
            if not path.endswith(".hlo") and not ("test" in path and path.endswith(".cc")):
                continue
            blobs.stdin.write(f"{facts.split()[2]}\n".encode())
            blobs.stdin.flush()
            head = blobs.stdout.readline().split()
            if len(head) < 3:
                continue  # A partial copy lacks it.
            text = blobs.stdout.read(int(head[2]) + 1)[:-1].decode("utf8", "replace")
            for name, module in [(path, text)] if path.endswith(".hlo") else _literals(path, text):
                same = re.sub(r"^\s*HloModule\s+[\w.\-]+", "HloModule m", re.sub(r"\s+", " ", module))
                found.setdefault(same, (name, module))
        blobs.stdin.close()
    return dict(found.values())


def _literals(path: str, text: str) -> Iterator[tuple[str, str]]:
    for match in _LITERAL.finditer(text):
        if _MODULE.match(match[2]) and "ENTRY" in match[2] and not _OPEN.search(match[2]):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}", match[2]


def grid_of(text: str) -> Grid:
    """Replicas and partitions that a module is for, by its head or the devices that it names."""
    head = hlo_text.replication(text)
    replicas, partitions = head.get("replica_count", 1), head.get("num_partitions", 1)
    if not _COLLECTIVE.search(text):
        return 1, 1
    if replicas * partitions > 1 and not ("sharding=" in text and partitions > 1):
        return replicas, partitions
    numbers = [int(number) for match in _GROUPS.finditer(text) for number in re.findall(r"\d+", match[1])]
    numbers += [int(match[1]) * int(match[2]) - 1 for match in _ROWS.finditer(text)]
    count = max(numbers, default=0) + 1
    if "use_global_device_ids=true" in text:
        return 1, count
    return (count, 1) if not re.search("channel_id=[1-9]", text) or _REDUCES_OR_GATHERS.search(text) else (1, count)


def in_child(function: Callable[..., Outcome], seconds: float, *arguments: Any) -> Outcome:
    """A function's outcome, or ``timeout``, ``crash`` or ``memory``."""
    with TemporaryDirectory() as folder:
        answer, log = Path(folder, "answer"), Path(folder, "log")
        child = os.fork()
        if not child:
            _answer(function, arguments, answer, log)
        end, status = time.monotonic() + seconds, 0
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done or time.monotonic() > end:
                break
            time.sleep(0.01)
        # Its own children are in its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not done:
            os.waitpid(child, 0)
            return "timeout", f"{seconds} s"
        if not answer.exists():
            return "crash", f"signal {status & 127}: {log.read_text(errors='replace')[-400:]}"
        found: Outcome = pickle.loads(answer.read_bytes())
        return found


def _answer(function: Callable[..., Outcome], arguments: Sequence[Any], answer: Path, log: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(log, os.O_CREAT | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        outcome = function(*arguments)
    except MemoryError:
        outcome = "memory", ""
    except Exception as error:
        outcome = "exception", repr(error)[:1000]
    answer.write_bytes(pickle.dumps(outcome))
    os._exit(0)


def _read(text: str) -> Program:
    return read(text.encode(), elided="random", drop_unknown_attributes=True)


def _ours(text: str, grid: Grid) -> Outcome:
    """``ok`` with the inputs and results of each device, ``compiled``, or ``refused`` with the error."""
    stage = "read"
    try:
        program = _read(text)
        stage = "compile"
        options = CompileOptions(timeout=_OURS_SECONDS, replicas=grid[0], partitions=grid[1])
        executable = compile_program(program, options=options)
        if _FEEDS.search(text):
            return "compiled", None
        stage, inputs = "run", _drawn(program, grid)
        one = len(inputs) == 1
        outs = [executable.load()(*inputs[0])] if one else Replicas(executable, *grid, timeout=20).each(inputs)
        return "ok", (inputs, [[np.asarray(leaf) for leaf in _leaves(out)] for out in outs])
    except Error as error:
        line = getattr(error.location, "line", None)
        return "refused", {"stage": stage, "kind": type(error).__name__, "line": line, "message": str(error)[:1000]}


def _drawn(program: Program, grid: Grid) -> list[Any]:
    """Random inputs of each device; flags and counts are those of all devices, whose loops turn evenly then."""
    drawn = [plausible_inputs(program, seed=number) for number in range(grid[0] * grid[1])]
    return [_with_integers_of(drawn[0], one) for one in drawn]


def _ends(text: str, grid: Grid) -> Outcome:
    """``ok`` where XLA's client computes the same inputs."""
    return _theirs(text, grid, _drawn(_read(text), grid))


def _with_integers_of(first: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_with_integers_of, first, value))
    return first if value is None or value.dtype.kind in "biu" else value


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [] if value is None else [value]


def _theirs(text: str, grid: Grid, inputs: Sequence[Any] | None) -> Outcome:
    """``ok`` with the results of each device, those of XLA's client; without inputs whether it compiles."""
    count, stage = grid[0] * grid[1], "parse"
    try:
        proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        stage = "convert"
        bytecode = hlo_proto_to_stablehlo(proto)
        stage = "compile"
        jax.config.update("jax_num_cpu_devices", count)
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        devices = jax.devices("cpu")
        options = _jax.CompileOptions()
        options.num_replicas, options.num_partitions = grid
        if grid[1] > 1:
            # Each device runs the text as it is: XLA's partitioner, which has to run, leaves what is manual alone.
            options.executable_build_options.use_spmd_partitioning = True
            bytecode = _manual(bytecode)
        numbers = np.array([device.id for device in devices]).reshape(grid)
        options.device_assignment = _jax.DeviceAssignment.create(numbers)
        if b"lapack_" in bytecode:
            provide_lapack()
        executable = devices[0].client.compile_and_load(bytecode, _jax.DeviceList(tuple(devices)), options)
        if inputs is None:
            return "ok", None
        stage = "run"
        mesh = jax.sharding.Mesh(np.array(devices), ("devices",))
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        arguments = [
            jax.make_array_from_single_device_arrays(column[0].shape, whole, list(map(jax.device_put, column, devices)))
            for column in zip(*map(_leaves, inputs), strict=True)
        ]
        shards = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
        return "ok", [[np.array(shard[number]) for shard in shards] for number in range(count)]
    except Exception as error:
        return f"XLA does not {stage}", str(error)[:500]


def _manual(bytecode: bytes) -> bytes:
    """A module of StableHLO whose operations are all sharded by hand."""
    module = parse_module(bytecode)
    with module.context:
        one = ir.StringAttr.get("{manual}")

        def mark(operation: ir.Operation) -> ir.WalkResult:
            count = len(operation.results)
            # Of loops the conversion leaves out what does not change; what they carry is inferred.
            if count and operation.name.startswith("stablehlo.") and operation.name != "stablehlo.while":
                shardings = ", ".join(["{manual}"] * count)
                operation.attributes["mhlo.sharding"] = one if count == 1 else ir.StringAttr.get(f"{{{shardings}}}")
            elif operation.name == "func.func":
                kind = operation.opview.type
                for name, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
                    of_each = [ir.DictAttr.get({"mhlo.sharding": one})] * len(types)
                    operation.attributes[name] = ir.ArrayAttr.get(of_each)
            return ir.WalkResult.ADVANCE

        module.operation.walk(mark)
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()


def _compared(text: str, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]) -> Outcome:
    want = [list(map(_valid, ours, theirs)) for ours, theirs in zip(got, want, strict=True)]
    reports = [compare(tuple(ours), tuple(theirs)) for ours, theirs in zip(got, want, strict=True)]
    if len(got) == 1 and not reports[0].agrees:
        try:
            truth = reference("xla", isolated=False).prepare(_read(text), float64=True)(*inputs[0])
            reports = [second_opinions(reports[0], tuple(got[0]), tuple(want[0]), tuple(_leaves(truth)))]
        except (Error, ValueError):
            pass
    apart = [report.text() for report in reports if not report.agrees]
    if apart and len(got) == 1:
        # XLA adds initial values that are no identity once for each part of a reduction.
        try:
            literal = reference("interpreter", timeout=_THEIRS_SECONDS).prepare(_read(text))(*inputs[0])
            apart = [] if compare(tuple(got[0]), tuple(_leaves(literal))).agrees else apart
        except (Error, ValueError):
            pass
    verdict = ("differs, random" if _RANDOM.search(text) else "differs") if apart else "agrees"
    return verdict, apart[0][:1500] if apart else ""


def _valid(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The begin of a buffer of XLA's, of which the client does not tell how much a result of dynamic size takes."""
    smaller = ours.ndim == theirs.ndim and all(map(int.__le__, ours.shape, theirs.shape))
    return theirs.reshape(-1)[: ours.size].reshape(ours.shape) if smaller else theirs


def _by_import(text: str, inputs: Sequence[Any], got: Sequence[Any]) -> Outcome:
    try:
        want = _leaves(reference("xla", isolated=False).prepare(_read(text))(*inputs[0]))
    except Error as error:
        return "no judge", str(error)[:300]
    found, cause = _compared(text, inputs, got, [want])
    return f"{found} by import", cause


def verdict(text: str) -> dict[str, Any]:
    """What becomes of a module: ``verdict``, ``cause`` and the grid of devices."""
    sizes = [np.prod([int(size) for size in re.findall(r"\d+", match[2])] or [1]) for match in _SHAPE.finditer(text)]
    grid = grid_of(text)
    count = grid[0] * grid[1]
    if 4 * max(sizes, default=0) * count > _LARGEST_ARRAY * min(count, 2):
        return {"verdict": "too large", "grid": grid}
    if count > _MOST_DEVICES:
        return {"verdict": "too many devices", "grid": grid}
    outcome, value = in_child(_ours, _OURS_SECONDS + 5, text, grid)
    wanted = re.search(r"as (\d+) devices do", str(value)) if outcome == "refused" and count == 1 else None
    if wanted and int(wanted[1]) <= _MOST_DEVICES:
        grid = int(wanted[1]), 1
        outcome, value = in_child(_ours, _OURS_SECONDS + 5, text, grid)
    if outcome == "refused" and grid[1] > 1 and "it names replica" in str(value):
        grid = grid[::-1]
        outcome, value = in_child(_ours, _OURS_SECONDS + 5, text, grid)
    if outcome == "compiled":
        return {"verdict": "compiles", "grid": grid}
    if outcome != "ok":
        theirs, _ = in_child(_theirs, _THEIRS_SECONDS, text, grid, None)
        if outcome == "timeout" and in_child(_ends, _THEIRS_SECONDS, text, grid)[0] == "timeout":
            return {"verdict": "never ends", "cause": value, "xla": theirs, "grid": grid}
        both = outcome == "refused" and theirs != "ok"
        return {"verdict": "neither takes it" if both else outcome, "cause": value, "xla": theirs, "grid": grid}
    inputs, got = value
    theirs, want = in_child(_theirs, _THEIRS_SECONDS, text, grid, inputs)
    if theirs == "ok":
        found, cause = in_child(_compared, 2 * _THEIRS_SECONDS, text, inputs, got, want)
    elif len(got) == 1:
        found, cause = in_child(_by_import, 2 * _THEIRS_SECONDS, text, inputs, got)
        found = "no judge" if found in ("crash", "timeout", "memory") else found
    else:
        found, cause = "no judge", want
    return {"verdict": found, "cause": cause, "xla": theirs, "grid": grid}


def judged() -> set[str]:
    """The names of modules that were judged before, of which the file beside this one has the verdicts."""
    lines = Path(__file__).with_name("unit_tests_judged.txt").read_text().splitlines()
    pairs = [line.partition(": ") for line in lines if not line.startswith(("#", "["))]
    return {f"{path}:{line}" if line else path for path, _, found in pairs for line in found.split() or [""]}


def main(repository: str, output: str, names: str = "") -> None:
    """Judge what the output does not have yet, in an order that is random and always the same."""
    texts = modules(repository)
    lines = Path(output).read_text().splitlines() if Path(output).exists() else []
    done = {json.loads(line)["name"] for line in lines} | (judged() if not names else set())
    wanted = Path(names).read_text().split() if names else sorted(texts, key=lambda n: hashlib.md5(n.encode()).digest())
    for name in wanted:
        if name not in done:
            row = {"name": name, **verdict(texts[name])}
            with Path(output).open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
