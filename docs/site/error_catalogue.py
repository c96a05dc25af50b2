"""The page of errors: each kind, and the messages that the sources raise of it with their ways out.

Messages are read from the sources, so that the page has what can be printed: ``…`` stands for what depends on the
input. Those that a function is given as an argument are not found.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "importers", "pipelines", "runtime", "tools", "src/hloforge")
_INTRODUCTION = """# Errors

Each error that hloforge raises on purpose is a `hloforge.Error`. It has a `message`, and mostly a `location`, the
operation's text `op` and a `hint`, the way out. The command line prints them and ends with status 1, or 2 for a wrong
command line ([exit status](command-line.md#exit-status-and-errors)). Below are the messages of each kind; … stands for
names and numbers of your input. Search this page for words of yours.
"""


def page() -> str:
    """The page in Markdown."""
    kinds = _kinds()
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for kind, message, hint in _raised(ast.parse(path.read_text()), kinds):
                found[kind].setdefault(message, hint)
    return "\n".join([_INTRODUCTION, *(_section(kind, text, found[kind]) for kind, text in kinds.items())])


def _kinds() -> dict[str, str]:
    """The classes of errors with their docstrings."""
    tree = ast.parse((ROOT / "dialect" / "errors.py").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Error")]
    return {node.name: ast.get_docstring(node) or "" for node in classes if node.name != "Error"}


def _section(kind: str, text: str, messages: dict[str, str]) -> str:
    lines = [f"## {kind}\n\n{text}\n"]
    for message in sorted(messages, key=lambda message: message.strip("…` ").lower()):
        hint = messages[message]
        lines.append(f"- {_code(message)}" + (f"<br>*way out*: {_code(hint)}" if hint else ""))
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _raised(tree: ast.AST, kinds: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """The kind, message and way out of each error that a module makes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in kinds:
            continue
        message = _text(node.args[0]) if node.args else ""
        hint = next((_text(word.value) for word in node.keywords if word.arg == "hint"), "")
        if len(message.strip("… :,.()'")) > 3:
            yield node.func.id, message, hint if hint.strip("… ") else ""


def _text(node: ast.expr) -> str:
    """A string as it is printed, with … for what is computed."""
    if isinstance(node, ast.Constant):
        return " ".join(str(node.value).split(" ")).replace("\n", " ")
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…"
