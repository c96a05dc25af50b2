"""The one place where hloforge's version stands."""

__version__ = "0.1.0"
