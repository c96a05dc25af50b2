"""What code generation says of a program that it does not take."""

from __future__ import annotations


class RefusedError(Exception):
    """A program is left to IREE's own code generator, for the reason that is the message."""
