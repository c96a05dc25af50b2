"""Tests compile what they test: nothing comes from an earlier run, and nothing is left in the user's folders."""

from __future__ import annotations

import os

from hypothesis import settings

# Read by child processes too.
os.environ["HLOFORGE_CACHE_DIR"] = ""

# How long an example takes says nothing on a machine that does other work.
settings.register_profile("hloforge", deadline=None)
settings.load_profile("hloforge")
