"""``python -m benchmarks.gpu.worker DEVICE``: measures the rows that it is asked for, a line of JSON each."""

from __future__ import annotations

import os
import sys

from benchmarks.gpu import conformance, kernels, measure
from benchmarks.gpu.machine import machine
from benchmarks.gpu.rows import Row
from benchmarks.gpu.watched import serve
from benchmarks.suite import CASES


def main(device: str) -> None:
    # XLA would take three quarters of the GPU's memory at its start.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    checked = machine(device)

    def answer(question: Row) -> Row:
        name, seconds = question["name"], question["seconds"]
        if question["part"] == "conformance":
            return conformance.row(name, checked)
        if question["part"] == "programs":
            return measure.case_row(CASES[name], checked, seconds)
        kernel = next(one for one in kernels.kernels(question["scale"]) if one.name == name)
        return measure.kernel_row(kernel, checked, seconds)

    serve(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
