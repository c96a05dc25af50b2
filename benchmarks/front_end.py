"""``python -m benchmarks.front_end``: what a small program waits for besides the code generator, stage by stage.

In a process that has compiled one program before, each program is new: its sizes are those of no other. Stages are
called one after the other as ``hloforge.compile`` calls them, and then all of them by ``hloforge.compile`` itself,
whose time is told without that of IREE's compiler. JAX is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hloforge
from benchmarks.render import ROOT
from benchmarks.tables import table
from hloforge.dialect.mlir import context
from hloforge.pipelines.named import lower
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions

Times = dict[str, list[float]]

# Where code is made: what is called there is none of ours.
_CODE = ("hloforge.runtime.compile.by_iree.run_compiler",)
# Seconds for processes that are started beside a first program to be ready.
_SETTLE = 1.0


def multiplication(size: int) -> str:
    return f"""
func.func @main(%a: tensor<{size}x8xf32>, %b: tensor<{size}x8xf32>) -> tensor<{size}x8xf32> {{
  %0 = stablehlo.multiply %a, %b : tensor<{size}x8xf32>
  return %0 : tensor<{size}x8xf32>
}}
"""


def softmax(size: int) -> str:
    array, row = f"tensor<{size}x64xf32>", f"tensor<{size}xf32>"
    return f"""
func.func @main(%x: {array}, %y: {array}) -> {array} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.add %x, %y : {array}
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1]
    : ({array}, tensor<f32>) -> {row}
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : ({row}) -> {array}
  %d = stablehlo.subtract %s, %mb : {array}
  %e = stablehlo.exponential %d : {array}
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : ({array}, tensor<f32>) -> {row}
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : ({row}) -> {array}
  %r = stablehlo.divide %e, %tb : {array}
  return %r : {array}
}}
"""


def layers(size: int) -> str:
    """Twelve products, each with a bias and a maximum."""
    array, square = f"tensor<{size}x32xf32>", "tensor<32x32xf32>"
    lines = []
    for number in range(12):
        lines += [
            f"  %p{number} = stablehlo.dot_general %x{number}, %w, contracting_dims = [1] x [0]"
            f" : ({array}, {square}) -> {array}",
            f"  %q{number} = stablehlo.add %p{number}, %x0 : {array}",
            f"  %x{number + 1} = stablehlo.maximum %q{number}, %z : {array}",
        ]
    body = "\n".join(lines)
    return f"""
func.func @main(%x0: {array}, %w: {square}) -> {array} {{
  %z = stablehlo.constant dense<0.0> : {array}
{body}
  return %x12 : {array}
}}
"""


PROGRAMS: dict[str, Callable[[int], str]] = {"multiplication": multiplication, "softmax": softmax, "layers": layers}


class Recorder:
    """Times by name."""

    def __init__(self) -> None:
        self.times: Times = {}
        self.code = 0.0

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Measure what is done meanwhile, without the code generator."""
        before, start = self.code, time.perf_counter()
        yield
        taken = time.perf_counter() - start - (self.code - before)
        self.times.setdefault(name, []).append(taken)

    @contextmanager
    def seeing_code(self) -> Iterator[None]:
        """Know how long the code generator takes, which is in other processes or native."""

        def seen(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                start = time.perf_counter()
                try:
                    return function(*arguments, **named)
                finally:
                    self.code += time.perf_counter() - start

            return call

        patches = []
        for name in _CODE:
            module, _, attribute = name.rpartition(".")
            original = getattr(sys.modules[module], attribute)
            patches.append(mock.patch(name, seen(original)))
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()


def _arguments(program: hloforge.Program) -> list[Any]:
    return [np.ones(leaf.shape.dimensions, np.float32) for leaf in program.signature.flat_parameters]


def stages(name: str, rounds: int, folder: Path) -> Times:
    """The stages of one kind of program."""
    recorder, options, target = Recorder(), CompileOptions(), Target()
    path = folder / "program.mlir"
    with recorder.seeing_code():
        for number in range(rounds):
            path.write_text(PROGRAMS[name](1000 + 2 * number))
            with recorder.of("read"):
                program = hloforge.read(path)
            with recorder.of("look up"):
                cache.entry(path.read_bytes(), {"name": None}, target, options).find()
            with recorder.of("clone"):
                copy = program.clone()
            with recorder.of("passes"):
                lower(copy.module, target=target.pipeline, machine=target.machine)
            with recorder.of("print"):
                copy.text(locations=True).encode()
            with recorder.of("context"):
                context()
            path.write_text(PROGRAMS[name](1001 + 2 * number))
            with recorder.of("compile, all but code"):
                executable = hloforge.compile(path)
            with recorder.of("load"):
                session = executable.load()
            arguments = _arguments(program := hloforge.read(path))
            with recorder.of("first call"):
                session(*arguments)
            with recorder.of("compile, cached"):
                hloforge.compile(path)
    return recorder.times


def of_jax(rounds: int) -> Times:
    """JAX's first calls on hloforge as its platform."""
    import jax
    import jax.numpy as jnp

    from hloforge.jax.plugin import execution

    recorder, own = Recorder(), Recorder()
    compile_program = execution.compile_program

    def seen(*arguments: Any) -> Any:
        with own.of("jit: hloforge, but for code"):
            return compile_program(*arguments)

    jax.jit(lambda x: jnp.tanh(x @ x) + 1)(jnp.ones((3, 3))).block_until_ready()
    time.sleep(_SETTLE)
    with own.seeing_code(), mock.patch.object(execution, "compile_program", seen):
        recorder.code = own.code
        for number in range(rounds):
            x = jax.device_put(np.ones((number + 5, 64), np.float32))
            jax.block_until_ready(x)
            function = jax.jit(lambda x: jax.nn.softmax(x * 2.0))
            start, code = time.perf_counter(), own.code
            function(x).block_until_ready()
            recorder.times.setdefault("jit: first call, but for code", []).append(
                time.perf_counter() - start - (own.code - code)
            )
            with recorder.of("jit: second call"):
                function(x).block_until_ready()
        softmax_times = own.times
        own.times = {}
        for number in range(rounds):
            x = jax.device_put(np.ones((number + 5, 65), np.float32))
            jax.block_until_ready(x)
            with recorder.of("eager: first call"):
                (x * x).block_until_ready()
            with recorder.of("eager: second call"):
                (x * x).block_until_ready()
        recorder.times |= softmax_times
        recorder.times["eager: hloforge"] = own.times.get("jit: hloforge, but for code", [])
    return recorder.times


def _run(kind: str, rounds: int, environment: dict[str, str]) -> Times:
    command = [sys.executable, "-m", "benchmarks.front_end", "--child", kind, "--rounds", str(rounds)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return found


def _child(kind: str, rounds: int) -> Times:
    if kind == "jax":
        return of_jax(rounds)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.mlir")
        first.write_text(multiplication(3))
        session = hloforge.compile(first).load()
        session(*_arguments(hloforge.read(first)))
        time.sleep(_SETTLE)
        return stages(kind, rounds, Path(folder))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--child", choices=[*PROGRAMS, "jax"])
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(_child(chosen.child, chosen.rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HLOFORGE_CACHE_DIR": folder}
        found = {name: _run(name, chosen.rounds, environment) for name in PROGRAMS}
        found["jax"] = _run("jax", chosen.rounds, environment | {"JAX_PLATFORMS": "hloforge"})
    for name, times in found.items():
        rows = [
            [stage, f"{1e3 * statistics.median(taken):.2f}", f"{1e3 * min(taken):.2f}"]
            for stage, taken in times.items()
            if taken
        ]
        print(table([name, "median, ms", "least, ms"], rows), end="\n\n")


if __name__ == "__main__":
    main()
