"""``make gpu-check``: what an NVIDIA GPU makes of hloforge's programs, beside XLA and PyTorch on the same GPU."""
