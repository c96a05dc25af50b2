"""Tensors of PyTorch's whose sizes depend on elements: padded arrays, with rules for what may read them."""
