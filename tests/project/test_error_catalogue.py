"""The site's page of errors has every kind, and the messages that are printed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import hloforge
from hloforge.dialect import errors

PATH = Path(__file__).resolve().parents[2] / "docs" / "site" / "error_catalogue.py"


@pytest.fixture(scope="module")
def page() -> str:
    spec = importlib.util.spec_from_file_location("error_catalogue", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: str = module.page()
    return made


def test_every_kind_is_there(page: str) -> None:
    kinds = {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert set(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == kinds - {"Error"}


@pytest.mark.parametrize("source", ["", "\x00\x01", "HloModule m\nENTRY e { ROOT x = f32[4] constant({...}) }\n"])
def test_what_is_printed_is_found(page: str, source: str) -> None:
    with pytest.raises(hloforge.Error) as caught:
        hloforge.read(source)
    entries = re.findall(r"^- `+ ?(.*?) ?`+(?:<br>|$)", page, re.MULTILINE)
    patterns = [".+".join(map(re.escape, entry.split("…"))) for entry in entries]
    assert any(re.fullmatch(pattern, caught.value.message) for pattern in patterns), caught.value.message
