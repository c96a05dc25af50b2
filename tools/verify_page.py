"""A verification as one self-contained page of HTML."""

from __future__ import annotations

from hloforge.runtime.debug.verification import Verification
from hloforge.tools.page import render


def verification_page(found: Verification) -> str:
    """The page: a table of the trials, and under each its results with error statistics and histogram."""
    return render("verify.html", title=f"hloforge verify: {found.program}", found=found.to_json())
