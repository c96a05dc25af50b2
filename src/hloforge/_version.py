"""The version of hloforge, defined here only."""

__version__ = "0.1.0"
