"""``python -m tests.operations.reference_page`` writes docs/operations.md from the operations' docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from hloforge.dialect.op import Op, describe, registry
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from tests.operations.examples import run_example, sections
from tests.operations.headings import GROUPS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
_HEAD = """# Operations

Every operation of XLA's Operation Semantics, as a function of `hloforge.ops`. This page is made of their docstrings by
`make tables`; every example is executed by the tests. [builder.md](builder.md) is the guide.
"""


def page(engines: list[ReferenceEngine]) -> str:
    """The whole page."""
    entries = registry()
    parts = [_HEAD, _contents(entries)]
    for group, headings in GROUPS.items():
        parts.append(f"## {group.replace('_', ' ').capitalize()}\n")
        parts += [_section(entries[heading], engines) for heading in headings.split() if heading in entries]
    return "\n".join(parts)


def _contents(entries: dict[str, Op]) -> str:
    lines = ["| group | operations |", "|---|---|"]
    for group, headings in GROUPS.items():
        links = " ".join(f"[{entries[h].name}](#{h.lower()})" for h in headings.split() if h in entries)
        lines.append(f"| {group.replace('_', ' ')} | {links} |")
    return "\n".join(lines) + "\n"


def _section(entry: Op, engines: list[ReferenceEngine]) -> str:
    parts = sections(entry)
    outcome = run_example(entry, engines)
    facts = [
        f"- First operand: {describe(entry.on)}." if entry.on else "- No operands.",
        f"- StableHLO: {', '.join(f'`{name}`' for name in entry.emits)}; HLO: `{entry.hlo}`.",
    ]
    lines = [f"### {entry.heading}\n", f"```python\n{_signature(entry)}\n```\n", f"{parts['']}\n", *facts, ""]
    for title in ("Args", "Returns", "Raises"):
        if title in parts:
            lines.append(f"**{title}.** {_listed(parts[title])}\n")
    code = outcome.source.rstrip("\n")
    result = "\n".join(f"# {line}" for line in outcome.got.splitlines())
    body = re.search(r"func\.func public @main.*?\n  }", outcome.program.text(), re.S)
    emitted = inspect.cleandoc(body[0]) if body else ""
    lines.append(f"```python\n{code}\n{result}\n```\n\n```mlir\n{emitted}\n```\n")
    return "\n".join(lines)


def _signature(entry: Op) -> str:
    text = f"{entry.name}{inspect.signature(entry.function)}"
    return _bare(text) if len(text) < 110 else _wrapped(entry)


def _wrapped(entry: Op) -> str:
    signature = inspect.signature(entry.function)
    parameters = "".join(f"    {parameter},\n" for parameter in map(str, signature.parameters.values()))
    returns = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    return _bare(f"{entry.name}(\n{parameters}){returns}")


def _bare(signature: str) -> str:
    """Annotations, which are strings to Python, as they were written."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)


def _listed(text: str) -> str:
    """The entries ``name: what`` of a section, as a list."""
    entries = re.split(r"\n(?=[\w, *]+: )", text)
    if len(entries) == 1 and not re.match(r"[\w, *]+: ", text):
        return " ".join(text.split())
    return "\n" + "\n".join(f"- {' '.join(entry.split())}" for entry in entries)


def main() -> None:
    """Write the page."""
    engines = [reference("xla"), reference("interpreter")]
    try:
        PAGE.write_text(page(engines))
    finally:
        for engine in engines:
            engine.close()


if __name__ == "__main__":
    main()
