"""What mkdocs is told beside mkdocs.yml: pages made of the sources, and files of the repository that pages link to.

Documents link to each other as files of the repository, so that they can be read there too. For the site README,
CONTRIBUTING and CHANGELOG become pages, and other files outside this folder are copied below ``source/`` as text.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import error_catalogue
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# Files that become pages, by their path in the repository.
_PAGES = {"README.md": "quickstart.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# A link of Markdown with its target; none with a scheme, and none to an anchor of the same page.
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and what pages link to."""
    made = {"commands.md": _commands(), "api.md": _api(), "errors.md": error_catalogue.page()}
    made |= {page: (ROOT / name).read_text() for name, page in _PAGES.items()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    linked: set[str] = set()
    for file in files.documentation_pages():
        linked.update(target for target in _targets(file.src_uri, file.content_string) if _is_copied(target))
    for name in sorted(linked):
        files.append(File.generated(config, f"source/{name}.txt", content=(ROOT / name).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links to where the site has the files."""
    here = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        target = _in_repository(page.file.src_uri, match[2])
        if target in _PAGES:
            place = _PAGES[target]
        elif _is_copied(target):
            place = f"source/{target}.txt"
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            return match[0]
        return f"{match[1]}{posixpath.relpath(place, here or '.')}{match[3]}"

    return _LINK.sub(moved, markdown)


def _targets(page: str, markdown: str) -> Iterator[str]:
    for match in _LINK.finditer(_CODE.sub("", markdown)):
        yield _in_repository(page, match[2])


def _in_repository(page: str, target: str) -> str:
    """What a link of a page names, as a path in the repository."""
    made_of = {made: name for name, made in _PAGES.items()}
    here = posixpath.dirname(made_of.get(page, f"docs/{page}"))
    return posixpath.normpath(posixpath.join(here, target))


def _is_copied(target: str) -> bool:
    return target not in _PAGES and not target.startswith("docs/") and (ROOT / target).is_file()


def _commands() -> str:
    """The page of the command line: mkdocs-click reads the commands themselves."""
    return (
        "# Options of every command\n\nWhat `hloforge COMMAND --help` prints. [A tour](command-line.md) explains the "
        "commands.\n\n::: mkdocs-click\n    :module: hloforge.tools.main\n    :command: cli\n"
        "    :prog_name: hloforge\n    :depth: 1\n    :style: table\n"
    )


def _api() -> str:
    """The page of Python's names: signatures and docstrings of all that `hloforge` exports, by kind."""
    tree = ast.parse((ROOT / "src" / "hloforge" / "__init__.py").read_text())
    homes: dict[str, str] = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_HOMES"
    )
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, home in sorted(homes.items()):
        # Modules have pages of their own: operations.md, shapes.md, host-calls.md, jax.md.
        if home in ("hloforge", "hloforge.dialect", "hloforge.runtime.host") or name == "jit":
            continue
        kind = "Errors" if name.endswith("Error") else "Classes" if name[0].isupper() else "Functions"
        groups[kind].append(f"::: {home}.{name}\n")
    order = ("Functions", "Classes", "Errors")
    parts = [f"## {kind}\n\n" + "\n".join(groups[kind]) for kind in order]
    return (
        "# Python\n\nEvery name is imported from `hloforge`: `hloforge.compile`, `hloforge.Session`.\n\n"
        + "\n".join(parts)
    )
