"""Who may import whom: the table of docs/architecture.md, by the syntax trees of the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT: dict[str, frozenset[str]] = {
    "dialect": frozenset({"_version"}),
    "importers": frozenset({"dialect"}),
    "pipelines": frozenset({"dialect"}),
    "runtime": frozenset({"dialect", "pipelines"}),
    "tools": frozenset({"dialect", "importers", "pipelines", "runtime", "_version"}),
    "hloforge": frozenset({"dialect", "importers", "pipelines", "runtime", "tools"}),
}

# The one door to jaxlib's private modules and those to JAX's, and what that may speak to IREE and JAX.
JAXLIB_DOOR = {"dialect/mlir.py", "dialect/jaxlib_check.py"}
JAX_DOORS = {
    "src/hloforge/jax/platform.py",
    "src/hloforge/jax/backend.py",
    "src/hloforge/jax/names.py",
    "src/hloforge/jax/plugin/__init__.py",
}
FRAMEWORKS = {
    "src/hloforge/jax/": ("jax",),
    "src/hloforge/tensorflow/": ("tensorflow",),
    "src/hloforge/torch/": ("torch", "jax"),
}
IREE_FOLDERS = {"runtime"}

# Where the sources of the package itself lie, so that the clone's root does not shadow the installed one.
PLACES = {"hloforge": "src/hloforge"}
FILES = sorted(path for folder in MAY_IMPORT for path in (ROOT / PLACES.get(folder, folder)).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the whole name: from hloforge.…"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def complaints(path: Path) -> Iterator[str]:
    relative = path.relative_to(ROOT)
    folder = relative.parts[1] if relative.parts[0] == "src" else relative.parts[0]
    for line, name in imports(path):
        top, *rest = name.split(".")
        where = f"{relative}:{line}: {name}"
        if top in MAY_IMPORT and top != "hloforge":
            yield f"{where}: write hloforge.{name}"
        if (
            top == "hloforge"
            and rest
            and rest[0] in MAY_IMPORT
            and rest[0] != folder
            and rest[0] not in MAY_IMPORT[folder]
        ):
            yield f"{where}: {folder} may not import {rest[0]}"
        if (
            top == "hloforge"
            and rest
            and rest[0] not in MAY_IMPORT
            and folder != "hloforge"
            and rest[0] not in MAY_IMPORT[folder]
        ):
            yield f"{where}: {folder} may not import the front door"
        if top == "jaxlib" and str(relative) not in JAXLIB_DOOR:
            yield f"{where}: jaxlib is imported in dialect/mlir.py alone"
        if top == "iree" and folder not in IREE_FOLDERS:
            yield f"{where}: only runtime speaks to IREE"
        if name.startswith("jax._src") and str(relative) not in JAX_DOORS:
            yield f"{where}: JAX's private modules are imported in platform.py, backend.py and names.py"
        spoken = [top in tops for place, tops in FRAMEWORKS.items() if str(relative).startswith(place)]
        if top in ("jax", "torch", "tensorflow") and folder != "importers" and not any(spoken):
            yield f"{where}: frameworks are no dependency"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    assert list(complaints(path)) == []


def test_the_check_sees_a_wrong_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dialect"
    folder.mkdir()
    path = folder / "bad.py"
    path.write_text(
        "def f():\n    from hloforge.runtime.session.session import x\nimport dialect.shapes\nimport jaxlib\n"
    )
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert [text.partition(": ")[0] for text in complaints(path)] == [f"dialect/bad.py:{n}" for n in (3, 4, 2)]
