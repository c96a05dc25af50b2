"""Reproducers of IREE's faults: their headers, and what an installed IREE makes of them.

A file's first lines say what goes wrong, in comments::

    // flags: --iree-opt-level=O2
    // fault: wrong
    // input: 3xf32=1 2 3
    // expected: 3xf32=2 4 6

``flags`` are added to those of the ``target``, which is ``cpu`` unless the file says ``vulkan``, ``cuda`` or
``vm`` (text of IREE's own VM); code for GPUs is not run. ``fault`` is one of: ``compile-error "TEXT"``,
``run-error "TEXT"``, ``crash`` (of the compiler), ``run-crash`` and ``wrong``. ``input`` and ``expected`` are arguments
and results as ``iree-run-module`` takes them. ``function`` names what is called, if it is not ``main``.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hloforge.runtime.compile.iree import compiler_binary, runtime_binary

FOLDER = Path(__file__).parent
THERE, GONE, UNKNOWN = "there", "gone", "cannot tell"
TARGETS = {
    "cpu": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=generic",
    ),
    "vulkan": ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=vp_android_baseline_2022"),
    "cuda": ("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"),
}
_INPUT = ("--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false")
_VM = ("--compile-mode=vm",)
_KINDS = ("compile-error", "run-error", "crash", "run-crash", "wrong")
_OF_CALLS = ("run-error", "run-crash", "wrong")
_KEYS = ("target", "flags", "fault", "input", "expected", "function")
_LINE = re.compile(r"// ([a-z]+): (.+)")
_FAULT = re.compile(r'([a-z-]+)(?: "(.+)")?')
# What iree-run-module prints of numbers that differ.
_DIFFERS = "does not match the expected"
_SECONDS, _BYTES = 120, 8 << 30


@dataclass(frozen=True)
class Tools:
    """The programs of one IREE."""

    compiler: Path
    runner: Path

    @classmethod
    def found(cls, compiler: Path | None = None) -> Tools:
        """Those of the environment, or a compiler elsewhere with the ``iree-run-module`` beside it, if there is one."""
        installed = Path(runtime_binary("iree-run-module"))
        if compiler is None:
            return cls(Path(compiler_binary()), installed)
        beside = compiler.with_name("iree-run-module")
        return cls(compiler, beside if beside.is_file() else installed)


@dataclass(frozen=True)
class Reproducer:
    """The header of a file: the fault, and how it is seen."""

    path: Path
    kind: str
    text: str
    target: str
    flags: tuple[str, ...]
    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    function: str

    @classmethod
    def read(cls, path: Path) -> Reproducer:
        """A file's header. Raises ValueError if it does not say what goes wrong, or does not say it completely."""
        lines: dict[str, list[str]] = {key: [] for key in _KEYS}
        for line in path.read_text().splitlines():
            if (found := _LINE.fullmatch(line)) and found[1] in lines:
                lines[found[1]].append(found[2])
        if len(lines["fault"]) != 1:
            raise ValueError(f"{path.name}: a reproducer has one line `// fault:`")
        found = _FAULT.fullmatch(lines["fault"][0])
        if found is None or found[1] not in _KINDS:
            raise ValueError(f"{path.name}: a fault is one of {', '.join(_KINDS)}")
        kind, text = found[1], found[2] or ""
        if kind.endswith("-error") != bool(text):
            raise ValueError(
                f"{path.name}: compile-error and run-error name a part of the message, other faults do not"
            )
        if kind in _OF_CALLS and not lines["expected"]:
            raise ValueError(f"{path.name}: what a program returns needs a line `// expected:`")
        target = (lines["target"] or ["cpu"])[0]
        if target not in (*TARGETS, "vm"):
            raise ValueError(f"{path.name}: a target is one of {', '.join(TARGETS)}, vm")
        if target in ("vulkan", "cuda") and kind in _OF_CALLS:
            raise ValueError(f"{path.name}: code for GPUs is not run, so its fault is one of the compiler")
        flags = tuple(" ".join(lines["flags"]).split())
        function = (lines["function"] or ["main"])[0]
        return cls(path, kind, text, target, flags, tuple(lines["input"]), tuple(lines["expected"]), function)


@dataclass(frozen=True)
class Outcome:
    """Whether a fault is there, and what was seen."""

    state: str
    seen: str


def judged(reproducer: Reproducer, tools: Tools) -> Outcome:
    """Compile and call a reproducer, each in a child process with a limit of time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        vmfb = Path(folder) / "module.vmfb"
        flags = _VM if reproducer.target == "vm" else (*TARGETS[reproducer.target], *_INPUT)
        status, errors = _run([str(tools.compiler), str(reproducer.path), "-o", str(vmfb), *flags, *reproducer.flags])
        if status is None:
            return Outcome(UNKNOWN, f"the compiler was stopped after {_SECONDS} s")
        if status:
            return _of_compiler(reproducer, status, errors)
        if not reproducer.expected:
            return Outcome(GONE, "it compiles")
        call = [f"--module={vmfb}", f"--function={reproducer.function}"]
        call += [f"--input={value}" for value in reproducer.inputs]
        if reproducer.target == "vm":
            return _of_runner(reproducer, *_run_vm([str(tools.runner), *call], reproducer.expected))
        call += ["--device=local-sync", *(f"--expected_output={value}" for value in reproducer.expected)]
        return _of_runner(reproducer, *_run([str(tools.runner), *call]))


def _of_compiler(reproducer: Reproducer, status: int, errors: str) -> Outcome:
    crashed = status < 0 or "PLEASE submit a bug report" in errors
    seen = "the compiler crashes" if crashed else _first_error(errors)
    if reproducer.kind == "crash":
        return Outcome(THERE if crashed else UNKNOWN, seen)
    named = reproducer.kind == "compile-error" and reproducer.text in errors
    return Outcome(THERE if named else UNKNOWN, seen)


def _of_runner(reproducer: Reproducer, status: int | None, output: str) -> Outcome:
    if status == 0:
        return Outcome(GONE, "it compiles, and the results are right")
    if status is None:
        return Outcome(UNKNOWN, f"the call was stopped after {_SECONDS} s")
    if reproducer.kind == "run-error":
        return Outcome(THERE if reproducer.text in output else UNKNOWN, _first_error(output))
    if status < 0:
        return Outcome(THERE if reproducer.kind == "run-crash" else UNKNOWN, "the call crashes")
    # Results of another type than the header says are a mistake of the header.
    if _DIFFERS not in output:
        return Outcome(
            UNKNOWN, next((line for line in output.splitlines() if "[FAILED]" in line), _first_error(output))
        )
    return Outcome(THERE if reproducer.kind == "wrong" else UNKNOWN, "the results are wrong")


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if "error:" in line), lines[0] if lines else "no message")
    return first.rpartition("error: ")[2][:100]


def _run(command: list[str]) -> tuple[int | None, str]:
    """Exit status, None if it took too long, and all that it printed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def _run_vm(command: list[str], expected: tuple[str, ...]) -> tuple[int | None, str]:
    """As ``_run``, for functions of IREE's VM: ``iree-run-module`` only prints the numbers that these return."""
    status, output = _run(command)
    printed = tuple(line.partition(": ")[2] for line in output.splitlines() if line.startswith("result["))
    return (1, _DIFFERS) if status == 0 and printed != expected else (status, output)
