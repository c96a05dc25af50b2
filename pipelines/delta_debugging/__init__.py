"""Reduce a program while a property of it holds: the search of ``hloforge bisect``."""
