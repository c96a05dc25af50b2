"""``python -m benchmarks.start_up``: what starting costs, in processes of their own beside ``import iree.runtime``.

Processor time and the greatest resident memory of a process, medians of turns; the table stands in docs/deployment.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.render import ROOT, fill, machine_line
from benchmarks.tables import seconds, table, times

RESULTS = ROOT / "benchmarks" / "results" / "start_up.json"
DOCUMENT = ROOT / "docs" / "deployment.md"

# What is started, by its name in the table: Python's words, with VMFB for a small program.
_LOAD = "import numpy, hloforge; hloforge.load('VMFB')(numpy.ones(4, numpy.float32))"
_COMPLETE = "import os; os.environ.update(_HLOFORGE_COMPLETE='bash_complete', COMP_WORDS='hloforge co', COMP_CWORD='1')"
_MAIN = "import sys; sys.argv = ['hloforge', *sys.argv[1:]]; from hloforge.tools.start import main; main()"
STARTS: Mapping[str, Sequence[str]] = {
    "`import iree.runtime`": ("-c", "import iree.runtime"),
    "`import hloforge`": ("-c", "import hloforge"),
    "`hloforge.load` of a small vmfb, and a call": ("-c", _LOAD),
    "`hloforge run small.vmfb`": ("-c", _MAIN, "run", "VMFB", "--input=4xf32=1"),
    "`hloforge --help`": ("-c", _MAIN, "--help"),
    "completion of a command": ("-c", f"{_COMPLETE}; {_MAIN}"),
}
_PROGRAM = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


def measure(turns: int) -> dict[str, dict[str, float]]:
    """Seconds of processor time and MB of memory of each start. Raises CalledProcessError if one fails."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as folder:
        vmfb = str(Path(folder, "small.vmfb"))
        Path(folder, "small.mlir").write_text(_PROGRAM)
        subprocess.run([sys.executable, "-m", "hloforge", "compile", f"{folder}/small.mlir", "-o", vmfb], check=True)
        for _ in range(turns):
            for name, words in STARTS.items():
                taken[name].append(_started([word.replace("VMFB", vmfb) for word in words]))
    middle = {name: [statistics.median(of) for of in zip(*every, strict=True)] for name, every in taken.items()}
    return {name: {"seconds": second, "megabytes": megabytes} for name, (second, megabytes) in middle.items()}


def _started(words: Sequence[str]) -> tuple[float, float]:
    """A child of the child, so that its memory is not that of a copy of this process."""
    code = (
        "import json, resource, subprocess, sys\n"
        "subprocess.run([sys.executable, *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, cwd=ROOT)
    used, megabytes = json.loads(done.stdout)
    return used, megabytes


def document(results: Mapping[str, Any]) -> str:
    """The table: each start beside the first one."""
    starts = results["starts"]
    base = next(iter(starts.values()))
    rows = [
        [name, seconds(of["seconds"]), times(of["seconds"] / base["seconds"]), f"{of['megabytes']:.0f} MB"]
        for name, of in starts.items()
    ]
    return f"{machine_line(results)}\n\n{table(['', 'processor time', 'ratio', 'memory'], rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up", description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    results = {"machine": machine(), "starts": measure(parser.parse_args().turns)}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    DOCUMENT.write_text(fill(DOCUMENT.read_text(), {"start-up": document(results)}))
    print(f"wrote {RESULTS.relative_to(ROOT)} and {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
