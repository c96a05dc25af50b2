"""What is known of calls that nothing here computes: their meaning is elsewhere than in the program.

A function of the host may still compute them, so that they are no decompositions that refuse; the audit shows these
sentences beside its own way out.
"""

from __future__ import annotations

import re

_BYTES_OF_A_STRUCTURE = (
    "TransformerEngine before release 1.13 writes settings as the bytes of a C structure, which differs between "
    "releases: export the model with a later one, whose targets end with _ffi"
)
_KERNEL = "its meaning is the code of a GPU kernel: export the model without Triton and Pallas kernels"
_ELSEWHERE = "it sends tokens to other devices over NCCL communicators, which the program does not name"

# Patterns of targets, of which the first that fits counts, and what is known of them.
_KNOWN: tuple[tuple[str, str], ...] = (
    (r"te_.*_triton|(__gpu\$)?(xla\.gpu\.)?triton.*", _KERNEL),
    (r"te_fused_attn_score_mod_.*", "it is a serialized graph of cuDNN, which only cuDNN reads"),
    (r"te_ep_.*", _ELSEWHERE),
    (r"te_inspect_ffi", "it writes an array and its statistics to files: export the model without inspect_array"),
    (r"te_rht_amax_ffi", "it prepares floats of 4 bits (NVFP4) by a random Hadamard transform, which is not computed"),
    (r"te_grouped_(quantize|gemm)_(v2_)?ffi", "it is of groups that are quantized each by scales of their own"),
    (r"te_(?!.*_ffi$).*", _BYTES_OF_A_STRUCTURE),
    (
        r"__cudnn\$fmhaSoftmax(Backward)?F8",
        "which of its weights cuDNN rounds to 8 bits, before or after their sum, is not documented: "
        "export the model with attention in bf16",
    ),
    (r"__cudnn\$convForwardGraph", "it is a serialized graph of operations that cuDNN fuses with a convolution"),
    (
        r"__cublas\$lt\$matmul\$mx|__cublas\$lt\$groupedMatmul.*",
        "its scales stand in an order of cuBLAS, or its groups are not computed",
    ),
    (r"__onednn\$.*", "it is one of oneDNN's that XLA's sources do not describe"),
    (
        r"InvertDiagBlocks(Lower|Upper)Triangular",
        "it is XLA's for TPUs, part of a triangular solve: export the model for another platform",
    ),
    (r"tpu_custom_call", "its meaning is a Mosaic kernel for TPUs: export the model without Pallas kernels"),
)


def what_is_known(target: str) -> str:
    """A sentence about a target that nothing computes; empty for others."""
    return next((known for pattern, known in _KNOWN if re.fullmatch(pattern, target)), "")
