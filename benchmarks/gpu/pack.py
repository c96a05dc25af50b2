"""``python -m benchmarks.gpu.pack``: compiles a GPU check into a zip, for a machine without network and hloforge.

Here, without a GPU: each program's vmfb, its arguments, some elements of its results by XLA's CPU client and
StableHLO's interpreter, and IREE's runtime. There: ``python3 -m benchmarks.gpu.packed build/gpu-pack.zip``, or
``make gpu-check``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from benchmarks.gpu import conformance, kernels, packed
from benchmarks.gpu.checking import ROOT
from benchmarks.gpu.measure import brief
from benchmarks.gpu.progress import PARTS
from benchmarks.gpu.rows import Row
from benchmarks.gpu.sampled import step_of
from benchmarks.one_case import program_of
from benchmarks.suite import CASES
from hloforge.dialect.abi import physical_shape
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.runtime.artifact.manifest import tool_versions
from hloforge.runtime.devices.cuda_library import stand_in
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.tolerances import tolerance_of
from hloforge.runtime.session.arrays import hal_type
from hloforge.tools.forms import portable_artifact

# Of the rows: what the pack keeps small, and every GPU of CUDA computes.
_ELEMENTS = ("f32", "s32", "bf16", "f64", "s64", "pred")
_COMPILER = 300.0
Array = kernels.Array


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pack; returns the exit status."""
    options = _options().parse_args(arguments)
    options.pack.parent.mkdir(parents=True, exist_ok=True)
    target = hloforge.Target.parse(options.target)
    made = options.pack.with_name(f".{options.pack.name}.new")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        writer = Writer(file, options.most * 2**20)
        _put_runtime(file, options.python)
        for part, name in _names(options):
            print(part, name, _outcome(writer, part, name, target, options.scale), flush=True)
        index = {"target": str(target), "versions": dict(tool_versions()), "items": writer.items}
        file.writestr(packed.INDEX, json.dumps(index, indent=1))
    made.replace(options.pack)
    print(f"wrote {options.pack}: {len(writer.items)} programs, {options.pack.stat().st_size / 2**20:.1f} MiB")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.pack", description=__doc__)
    parser.add_argument("--target", default="cuda:sm_90", help="what to compile for")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these; by default all")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes of the kernels")
    parser.add_argument("--share", type=int, default=4, help="one of this many conformance rows")
    parser.add_argument("--most", type=float, default=60.0, help="MiB of the pack; what would exceed them is left out")
    parser.add_argument("--python", default="3.12", help="version there, for the wheel of IREE's runtime; '' for none")
    parser.add_argument("--pack", type=Path, default=ROOT / "build" / "gpu-pack.zip")
    return parser


def _names(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    names = {
        "kernels": [kernel.name for kernel in kernels.kernels(options.scale)],
        "programs": list(CASES),
        "conformance": conformance.rows(options.share),
    }
    for part in options.part or PARTS:
        yield from ((part, name) for name in names[part] if options.only in name)


def _outcome(writer: Writer, part: str, name: str, target: hloforge.Target, scale: int) -> str:
    try:
        if part == "kernels":
            return _kernel(writer, next(one for one in kernels.kernels(scale) if one.name == name), target)
        return _case(writer, name, target) if part == "programs" else _row(writer, name, target)
    except Exception as error:  # one program less, and its reason on the terminal
        return f"left out: {brief(error)}"


class Writer:
    """Puts programs and arrays into the zip, up to a size.

    Attributes:
        items: what the index says of each program.
    """

    def __init__(self, file: zipfile.ZipFile, most: float) -> None:
        self.items: list[Row] = []
        self._file, self._most, self._count = file, most, 0

    def data(self, content: bytes) -> str:
        """The name of a new file of this content."""
        self._count += 1
        self._file.writestr(str(self._count), content)
        return str(self._count)

    def array(self, array: Array) -> Row:
        return {"dtype": array.dtype.name, "shape": list(array.shape), "file": self.data(array.tobytes())}

    @property
    def is_full(self) -> bool:
        return sum(info.compress_size for info in self._file.infolist()) > self._most


def _compiled(program: Program, target: hloforge.Target) -> hloforge.Executable:
    return hloforge.compile(program, target, timeout=_COMPILER)


def _item(writer: Writer, part: str, name: str, program: Program, target: hloforge.Target) -> Row:
    if writer.is_full:
        raise ValueError("the pack is full (--most)")
    executable = _compiled(program, target)
    types = [hal_type(physical_shape(one.shape).element) for one in program.signature.parameters]
    return {"part": part, "name": name, "vmfb": writer.data(executable.vmfb), "types": types}


def _kernel(writer: Writer, kernel: kernels.Kernel, target: hloforge.Target) -> str:
    program = read(kernel.text(), name=kernel.name)
    item = _item(writer, "kernels", kernel.name, program, target)
    (result,) = program.signature.flat_results
    writer.items.append(item | {"kernel": asdict(kernel), "result_shape": list(result.dimensions)})
    return "packed"


def _case(writer: Writer, name: str, target: hloforge.Target) -> str:
    case = CASES[name]
    if case.needs():
        return f"left out: {case.needs()}"
    program, arguments = program_of(case)
    arguments = [_rounded(array) for array in arguments]
    results = _expected(writer, program, arguments, ("xla",)) if case.compared else []
    item = _item(writer, "programs", name, program, target)
    item |= {"arguments": [writer.array(array) for array in arguments], "results": results, "kind": case.kind}
    writer.items.append(item | {"stablehlo": writer.data(portable_artifact(program.clone()))})
    return "packed"


def _row(writer: Writer, name: str, target: hloforge.Target) -> str:
    from tests.operations.programs import elements_of, program_of as row_program
    from tests.operations.suite import EXPECTATIONS, elements_left
    from tests.operations.tables import ROWS

    row = ROWS[name]
    if row.oracle or row.feed or row.drain:
        return "left out: it talks to its host, or no engine computes it"
    left = elements_left(name, EXPECTATIONS)
    chosen = [element for element in elements_of(row) if element in _ELEMENTS and element in left]
    if not chosen:
        return "left out: none of its element types"
    program, arguments = row_program(row, chosen)
    results = _expected(writer, program, arguments, (row.judge, "xla" if row.judge == "interpreter" else "interpreter"))
    item = _item(writer, "conformance", name, program, target)
    writer.items.append(item | {"arguments": [writer.array(array) for array in arguments], "results": results})
    return f"packed: {', '.join(chosen)}"


def _expected(writer: Writer, program: Program, arguments: Sequence[Array], engines: Sequence[str]) -> list[Row]:
    """What the engines that answer make of each result, and the first one's in f64."""
    answers, truth, failure = [], None, ""
    for name in engines:
        engine = hloforge.reference(name, timeout=_COMPILER)
        try:
            answers.append(_leaves(engine.prepare(program)(*arguments)))
            truth = truth or _truth(engine, program, arguments)
        except hloforge.Error as error:
            failure = error.message
    if not answers:
        raise ValueError(failure)
    rows = []
    for number, result in enumerate(program.signature.flat_results):
        step = step_of(answers[0][number].size)
        wide = truth[number] if truth and truth[number].dtype.kind in "fc" else None
        rows.append(
            {
                "dtype": answers[0][number].dtype.name,
                "step": step,
                "relative": tolerance_of(result.element).relative,
                "expected": [writer.array(answer[number].reshape(-1)[::step]) for answer in answers],
                "truth": None if wide is None else writer.array(wide.reshape(-1)[::step]),
            }
        )
    return rows


def _truth(engine: ReferenceEngine, program: Program, arguments: Sequence[Array]) -> list[Array] | None:
    try:
        return _leaves(engine.prepare(program, float64=True)(*arguments))
    except hloforge.Error:
        return None


def _leaves(value: Any) -> list[Array]:
    if isinstance(value, tuple | list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [] if value is None else [np.asarray(value)]


def _rounded(array: Array) -> Array:
    """Floats with the upper half of their bits: half the size in the pack, and no easier to compute with."""
    if array.dtype != np.float32:
        return array
    return (np.ascontiguousarray(array).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).reshape(array.shape)


def _put_runtime(file: zipfile.ZipFile, python: str) -> None:
    """IREE's runtime for the other machine's Python, from PyPI, and a stand-in for NVIDIA's library."""
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder]
        command += ["--platform", "manylinux_2_28_x86_64", "--python-version", python]
        subprocess.run([*command, f"iree-base-runtime=={version('iree-base-runtime')}"], check=True)
        for wheel in Path(folder).glob("*.whl"):
            file.write(wheel, wheel.name, zipfile.ZIP_STORED)
        file.write(stand_in("libcuda.so", "libcuda.so.1", Path(folder)), packed.STAND_IN)


if __name__ == "__main__":
    sys.exit(main())
