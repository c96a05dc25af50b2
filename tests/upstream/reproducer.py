"""Reproducers of IREE's faults: their headers, and what an installed IREE makes of them.

A file's first lines say what goes wrong, in comments::

    // A sum of x and itself is not twice x.
    // cause: the sum is folded to its first operand.
    // flags: --iree-opt-level=O2
    // fault: wrong
    // input: 3xf32=1 2 3
    // expected: 3xf32=2 4 6

The lines before the first key are the summary. ``cause`` is what is known of the cause (several lines may follow each
other), for the report. ``flags`` are added to those of the ``target``, which is ``cpu`` unless the file says ``wasm``,
``vulkan`` (any device), ``volta`` (NVIDIA's, by Vulkan), ``cuda`` or ``vm`` (text of IREE's own VM); code for other
machines is not run. ``fault`` is one of:
``compile-error "TEXT"``, ``run-error "TEXT"``, ``crash`` (of the compiler), ``run-crash``, ``wrong``,
``slow "SECONDS"`` (the compiler takes more processor time), and ``code "REGEX"`` (found in the dispatches' code, in
SPIR-V's or LLVM's dialect; a dot matches a newline). ``input`` and ``expected`` are arguments and results as
``iree-run-module`` takes them. ``function`` names what is called, if it is not ``main``, and ``device`` where, if it is
not ``local-sync``.
"""

from __future__ import annotations

import itertools
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hloforge.runtime.compile.iree import compiler_binary, runtime_binary

FOLDER = Path(__file__).parent
VERSIONS = FOLDER.parents[1] / "build" / "iree"
THERE, GONE, UNKNOWN = "there", "gone", "cannot tell"
TARGETS = {
    "cpu": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=generic",
    ),
    "vulkan": ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=vp_android_baseline_2022"),
    "volta": ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=volta"),
    "cuda": ("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"),
    "wasm": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=wasm32-unknown-emscripten",
        "--iree-llvmcpu-target-cpu-features=+simd128",
    ),
}
_INPUT = ("--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false")
_VM = ("--compile-mode=vm",)
_AS_CODE = ("--compile-to=executable-targets",)
_KINDS = ("compile-error", "run-error", "crash", "run-crash", "wrong", "slow", "code")
_OF_CALLS = ("run-error", "run-crash", "wrong")
_WITH_TEXT = ("compile-error", "run-error", "slow", "code")
_NOT_RUN = ("vulkan", "volta", "cuda", "wasm")
_KEYS = ("cause", "target", "flags", "fault", "device", "input", "expected", "function")
_LINE = re.compile(r"// ([a-z]+): (.+)")
_FAULT = re.compile(r'([a-z-]+)(?: "(.+)")?')
_COMMENT = re.compile(r"// ?(.*)")
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

    @classmethod
    def of(cls, version: str) -> Tools:
        """Those of a version, installed once beside the environment's. Raises CalledProcessError if pip finds none."""
        folder = VERSIONS / version
        tools = cls(folder / "iree/compiler/_mlir_libs/iree-compile", folder / "iree/_runtime_libs/iree-run-module")
        if not (tools.compiler.is_file() and tools.runner.is_file()):
            packages = [f"iree-base-{part}=={version}" for part in ("compiler", "runtime")]
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--upgrade", f"--target={folder}", *packages], check=True)
        return tools


@dataclass(frozen=True)
class Reproducer:
    """A file: the fault, how it is seen, and the program that shows it."""

    path: Path
    summary: str
    cause: str
    kind: str
    text: str
    target: str
    flags: tuple[str, ...]
    device: str
    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    function: str
    program: str

    @classmethod
    def read(cls, path: Path) -> Reproducer:
        """A file's header. Raises ValueError if it does not say what goes wrong, or does not say it completely."""
        lines: dict[str, list[str]] = {key: [] for key in _KEYS}
        text = path.read_text().splitlines()
        header = list(itertools.takewhile(_COMMENT.fullmatch, text))
        summary = []
        for line in header:
            if (found := _LINE.fullmatch(line)) and found[1] in lines:
                lines[found[1]].append(found[2])
            else:
                summary.append(line.removeprefix("//").strip())
        if len(lines["fault"]) != 1:
            raise ValueError(f"{path.name}: a reproducer has one line `// fault:`")
        found = _FAULT.fullmatch(lines["fault"][0])
        if found is None or found[1] not in _KINDS:
            raise ValueError(f"{path.name}: a fault is one of {', '.join(_KINDS)}")
        kind, pattern = found[1], found[2] or ""
        if (kind in _WITH_TEXT) != bool(pattern):
            raise ValueError(
                f"{path.name}: compile-error and run-error name a part of the message, slow the seconds, "
                "code a pattern; other faults name nothing"
            )
        if kind in _OF_CALLS and not lines["expected"]:
            raise ValueError(f"{path.name}: what a program returns needs a line `// expected:`")
        target = (lines["target"] or ["cpu"])[0]
        if target not in (*TARGETS, "vm"):
            raise ValueError(f"{path.name}: a target is one of {', '.join(TARGETS)}, vm")
        if target in _NOT_RUN and kind in _OF_CALLS:
            raise ValueError(f"{path.name}: code for other machines is not run, so its fault is one of the compiler")
        flags = tuple(" ".join(lines["flags"]).split())
        function = (lines["function"] or ["main"])[0]
        return cls(
            path=path,
            summary=" ".join(summary),
            cause=" ".join(lines["cause"]),
            kind=kind,
            text=pattern,
            target=target,
            flags=flags,
            device=(lines["device"] or ["local-sync"])[0],
            inputs=tuple(lines["input"]),
            expected=tuple(lines["expected"]),
            function=function,
            program="\n".join(text[len(header) :]).strip() + "\n",
        )

    @property
    def compilation(self) -> tuple[str, ...]:
        """The flags of ``iree-compile``."""
        flags = _VM if self.target == "vm" else (*TARGETS[self.target], *_INPUT)
        return (*flags, *self.flags, *(_AS_CODE if self.kind == "code" else ()))

    @property
    def runs(self) -> bool:
        """Whether what is compiled is called."""
        return bool(self.expected) and self.target not in _NOT_RUN and self.kind not in ("code", "slow")

    @property
    def call(self) -> tuple[str, ...]:
        """The flags of ``iree-run-module``, without the module and the results to compare with."""
        device = () if self.target == "vm" else (f"--device={self.device}",)
        return (*device, f"--function={self.function}", *(f"--input={value}" for value in self.inputs))


@dataclass(frozen=True)
class Outcome:
    """Whether a fault is there, and what was seen."""

    state: str
    seen: str


def judged(reproducer: Reproducer, tools: Tools) -> Outcome:
    """Compile and call a reproducer, each in a child process with a limit of time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        vmfb = Path(folder) / "module.vmfb"
        before = _seconds_of_children()
        status, errors = run([str(tools.compiler), str(reproducer.path), "-o", str(vmfb), *reproducer.compilation])
        took = _seconds_of_children() - before
        if reproducer.kind == "slow" and took > float(reproducer.text):
            return Outcome(THERE, f"the compiler takes {took:.0f} s of processor time")
        if status is None:
            return Outcome(UNKNOWN, f"the compiler was stopped after {_SECONDS} s")
        if status:
            return _of_compiler(reproducer, status, errors)
        if reproducer.kind == "code":
            found = re.search(reproducer.text, vmfb.read_text(errors="replace"), re.DOTALL)
            return Outcome(THERE, "the code is so") if found else Outcome(GONE, "the code is not so")
        if not reproducer.runs:
            return Outcome(GONE, f"it compiles in {took:.1f} s")
        call = [str(tools.runner), f"--module={vmfb}", *reproducer.call]
        if reproducer.target == "vm":
            return _of_runner(reproducer, *_run_vm(call, reproducer.expected))
        return _of_runner(reproducer, *run([*call, *(f"--expected_output={value}" for value in reproducer.expected)]))


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
        named = next((line for line in output.splitlines() if reproducer.text in line), "")
        return Outcome(THERE if named else UNKNOWN, _first_error(named or output))
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


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: list[str]) -> tuple[int | None, str]:
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
    """As ``run``, for functions of IREE's VM: ``iree-run-module`` only prints the numbers that these return."""
    status, output = run(command)
    printed = tuple(line.partition(": ")[2] for line in output.splitlines() if line.startswith("result["))
    return (1, _DIFFERS) if status == 0 and printed != expected else (status, output)
