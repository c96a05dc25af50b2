"""Lowerings of PyTorch's operators, one file per category."""
