"""How a compiled program names its weights, for the passes that write it and the runtime that reads it."""

from __future__ import annotations

# The first part of every weight's name in a compiled program: what the runtime offers the file's arrays under.
SCOPE = "weights"
# The function of a program that returns what it has of them, so that calls without IREE's runtime read the same memory.
WEIGHTS = "__weights"
