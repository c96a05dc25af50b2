"""Lowerings, a file a category."""
