"""``python -m tests.fast``: the tests of what a change touches, then those of the project's shape, in five minutes.

Tests are in folders named like those of the sources, so that a changed file names its tests. What has not begun when
the time is over is left to ``make test``; failures of the last run come first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
# Folders of sources by where their tests are; ``src/hloforge/jax`` has ``tests/jax``.
_SOURCES = ("dialect", "importers", "pipelines", "runtime", "tools", "benchmarks", "examples", "src/hloforge")
_ALWAYS = ("tests/project", "tests/filecheck")


def changed(base: str = "main") -> list[str]:
    """Files that differ from where this branch left another one, and those that git does not know yet."""
    merge_base = _git("merge-base", base, "HEAD") or ["HEAD"]
    return [*_git("diff", "--name-only", merge_base[0]), *_git("ls-files", "--others", "--exclude-standard")]


def paths_for(names: Iterable[str]) -> list[str]:
    """The test files and folders for changed files, the nearest ones; then those that always run."""
    found: dict[str, None] = {}
    for name in names:
        if name.startswith("tests/") and Path(name).name.startswith("test_") and (ROOT / name).is_file():
            found[name] = None
        source = next((folder for folder in _SOURCES if name.startswith(f"{folder}/")), None)
        if source is None:
            continue
        inner = Path(name).relative_to(source)
        place = Path("tests") if source == "src/hloforge" else Path("tests", source)
        own = place / inner.parent / f"test_{inner.stem}.py"
        nearest = own if (ROOT / own).is_file() else place / inner.parent
        # A folder of tests for the whole of ``tests`` is everything.
        if (ROOT / nearest).exists() and nearest != Path("tests"):
            found[str(nearest)] = None
    return [*found, *(name for name in _ALWAYS if name not in found)]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def main() -> None:
    """Run them; further arguments are pytest's."""
    names = paths_for(changed())
    options = ["-n", "auto", "-m", "not slow", "--failed-first", "-q", f"--session-timeout={SECONDS}", *sys.argv[1:]]
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", *options, *names], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
