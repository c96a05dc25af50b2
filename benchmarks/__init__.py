"""Measured comparisons of hloforge with plain IREE and XLA's CPU client; ``python -m benchmarks`` runs them."""
