"""Self-contained pages of HTML: templates, style and script of this folder in one text.

Everything that comes from a program (names, locations, IR) is escaped by Jinja, or travels as JSON that the script puts
into the page as text; a content security policy lets no other script run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from hloforge.tools.quantities import bytes_text, number, si_text

# Rows of a table; what is longer says how many were left out.
MOST_ROWS = 200
_TEMPLATES = ("page.html", "verification.html", "verify.html", "inspect.html")


def render(template: str, **facts: Any) -> str:
    """A page.

    Args:
        template: ``verify.html``, ``inspect.html``.
        facts: what it names; ``payload`` is plain data for the script.
    """
    # dagre 3.1.3 (MIT) from npm's @dagrejs/dagre lays out drawings of graphs.
    script = _text("dagre.min.js") + _text("inspect.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    frame = {"style": Markup(_text("style.css")), "script": Markup(script), "script_hash": f"'sha256-{digest}'"}
    page: str = _environment().get_template(template).render(frame | {"most_rows": MOST_ROWS} | facts)
    return page


@cache
def _environment() -> Environment:
    made = Environment(
        loader=DictLoader({name: _text(name) for name in _TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "bytes": bytes_text, "si": si_text}
    return made


def _text(name: str) -> str:
    return (files("hloforge.tools") / "templates" / name).read_text(encoding="utf-8")
