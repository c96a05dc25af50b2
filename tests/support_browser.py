"""A headless browser, which Debian packages, for pages that hloforge writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE, DESK = (360, 740), (1280, 900)
_PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_WAY_OUT = "make browser, or apt-get install chromium"

needs_browser = pytest.mark.skipif(_PROGRAM is None, reason=f"Chromium is not installed: {_WAY_OUT}")


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    # Chromium's own sandbox refuses to run as root.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_PROGRAM, args=arguments)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def page_of(opened: Browser, path: Path, size: tuple[int, int] = DESK) -> Iterator[Page]:
    """A page as a user opens its file; it must say nothing on the console and fetch nothing but itself."""
    said: list[str] = []
    fetched: list[str] = []
    context = opened.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page
        assert said == []
        assert [url for url in fetched if not url.startswith("data:")] == [path.as_uri()]
    finally:
        context.close()


def overflow(page: Page) -> int:
    """How many pixels the page is wider than the window."""
    found: Any = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return int(found)
