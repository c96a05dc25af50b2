"""Names of GPUs: IREE 3.13's names, and those that it lacks.

Each table maps names that users know to IREE's; the first of a table is the default where no device is at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Architectures of NVIDIA's GPUs, the default first: code for one runs on later ones. IREE names those without a PTX
# version itself; of the others, which its LLVM knows, it is told all that it wants to know (``cuda_device``).
CUDA_ARCHITECTURES: Mapping[str, str] = {
    "sm_80": "", "sm_60": "", "sm_70": "", "sm_72": "", "sm_75": "", "sm_86": "", "sm_87": "", "sm_89": "",
    "sm_90": "ptx78", "sm_100": "ptx86", "sm_101": "ptx86", "sm_103": "ptx88", "sm_110": "ptx90",
    "sm_120": "", "sm_121": "",
}  # fmt: skip
CUDA_PRODUCTS: Mapping[str, str] = {
    "pascal": "sm_60", "p100": "sm_60", "volta": "sm_70", "v100": "sm_70", "xavier": "sm_72", "turing": "sm_75",
    "t4": "sm_75", "rtx2080ti": "sm_75", "ampere": "sm_80", "a100": "sm_80", "a30": "sm_80", "a10": "sm_86",
    "a40": "sm_86", "rtx3090": "sm_86", "orin": "sm_87", "ada": "sm_89", "l4": "sm_89", "l40": "sm_89",
    "l40s": "sm_89", "rtx4090": "sm_89", "hopper": "sm_90", "h100": "sm_90", "h200": "sm_90", "gh200": "sm_90",
    "blackwell": "sm_100", "b100": "sm_100", "b200": "sm_100", "gb200": "sm_100", "b300": "sm_103", "thor": "sm_110",
    "rtx5090": "sm_120", "gb10": "sm_121",
}  # fmt: skip

ROCM_ARCHITECTURES: tuple[str, ...] = (
    "gfx942", "gfx908", "gfx90a", "gfx950", "gfx1100", "gfx1101", "gfx1103", "gfx1150",
    "gfx1151", "gfx1200", "gfx1201",
)  # fmt: skip
ROCM_PRODUCTS: Mapping[str, str] = {
    "mi100": "gfx908", "mi210": "gfx90a", "mi250": "gfx90a", "mi250x": "gfx90a", "mi300a": "gfx942",
    "mi300x": "gfx942", "mi325x": "gfx942", "mi350x": "gfx950", "mi355x": "gfx950",
    "rx7900xtx": "gfx1100", "w7900": "gfx1100", "rx7800xt": "gfx1101", "rx9060xt": "gfx1200",
    "rx9070xt": "gfx1201", "cdna2": "gfx90a", "cdna3": "gfx942", "cdna4": "gfx950", "rdna3": "gfx1100",
}  # fmt: skip

# The name for devices that nobody knows: what every Android device of 2022 has.
BASELINE = "baseline"
VULKAN_NAMES: Mapping[str, str] = {
    BASELINE: "vp_android_baseline_2022", "llvmpipe": "llvmpipe", "pascal": "pascal", "volta": "volta",
    "turing": "turing", "ampere": "ampere", "ada": "ada", "sm_75": "sm_75", "sm_80": "sm_80", "sm_86": "sm_86",
    "sm_89": "sm_89", "sm_120": "sm_120", "rtx3090": "rtx3090", "rtx4090": "rtx4090", "rdna1": "rdna1",
    "rdna2": "rdna2", "rdna3": "rdna3", "rdna4": "rdna4", "gfx1030": "gfx1030", "gfx1100": "gfx1100",
    "rx7900xtx": "rx7900xtx", "cdna3": "cdna3", "valhall1": "valhall1", "valhall4": "valhall4",
    "mali-g715": "mali-g715", "adreno": "adreno", "videocore_vii": "videocore_vii",
}  # fmt: skip

# Vulkan devices by what their drivers call them, and the target for each; the first that fits decides.
_VULKAN_DEVICES: tuple[tuple[str, str], ...] = (
    (r"llvmpipe", "llvmpipe"),
    (r"RTX 50\d\d|RTX PRO \d+ Blackwell", "sm_120"),
    (r"RTX 40\d\d|\bL4\b|\bL40S?\b|RTX \d+ Ada", "ada"),
    (r"RTX 30\d\d|RTX A\d+|\bA10\b|\bA40\b", "sm_86"),
    (r"\bA100\b|\bA30\b|\bH[12]00\b|\bGH200\b|\bB[123]00\b", "sm_80"),
    (r"RTX 20\d\d|GTX 16\d\d|\bT4\b|Quadro RTX", "turing"),
    (r"\bV100\b|TITAN V", "volta"),
    (r"GTX 10\d\d|\bP100\b|\bP40\b", "pascal"),
    (r"RX 9\d\d\d|gfx12\d\d|NAVI4\d", "rdna4"),
    (r"RX 7\d\d\d|gfx11\d\d|NAVI3\d|PRO W7\d\d\d|Radeon 7[468]0M", "rdna3"),
    (r"RX 6\d\d\d|gfx103\d|NAVI2\d|PRO W6\d\d\d|VANGOGH", "rdna2"),
    (r"RX 5\d\d\d|gfx101\d|NAVI1\d", "rdna1"),
    (r"Mali-G[67]15", "valhall4"),
    (r"Mali-G(57|68|77|78|310|510|610|710)", "valhall1"),
    (r"Adreno", "adreno"),
    (r"V3D 7", "videocore_vii"),
)


@dataclass(frozen=True)
class Lack:
    """Element types that a device does not have, and how IREE's device names say so."""

    elements: frozenset[str]
    reason: str


# What devices have no arithmetic for, by ``kind`` or ``kind:variant``, with the limit that forbids it.
LACKS: Mapping[str, Lack] = {
    "metal": Lack(frozenset({"f64", "c128"}), "Metal's shading language has no 64-bit floats"),
    f"vulkan:{BASELINE}": Lack(
        frozenset({"f16", "bf16", "f64", "c128", "s64", "u64"}),
        "the Android baseline of 2022 promises neither shaderFloat16, shaderFloat64 nor shaderInt64; name the GPU, as "
        "in vulkan:rdna3, if it has them",
    ),
}


def vulkan_name(device: str) -> str:
    """The target for a Vulkan device of this name; ``baseline`` for one that no row knows."""
    return next((name for form, name in _VULKAN_DEVICES if re.search(form, device, re.IGNORECASE)), BASELINE)


def cuda_flags(architecture: str) -> tuple[str, ...]:
    """IREE's flags for an NVIDIA GPU."""
    ptx = CUDA_ARCHITECTURES[architecture]
    if not ptx:
        return ("--iree-hal-target-device=cuda", f"--iree-cuda-target={architecture}")
    return (f"--iree-hal-target-device={_cuda_device(architecture, ptx)}",)


def _cuda_device(architecture: str, ptx: str) -> str:
    """A device of an architecture that IREE has no name for, with what it knows of Ampere's."""
    shapes = ", ".join(
        f"<NV_{kind}>"
        for kind in (
            "MMA_SYNC_F32_16x8x16_F16",
            "MMA_SYNC_F16_16x8x16_F16",
            "MMA_SYNC_F32_16x8x16_BF16",
            "WMMA_F32_16x16x16_F16",
            "WMMA_F16_16x16x16_F16",
        )
    )
    limits = (
        "compute = fp64|fp32|fp16|int64|int32|int16|int8, storage = b64|b32|b16|b8, subgroup = shuffle|arithmetic, "
        f"dot = dp4xi8toi32, mma = [{shapes}], subgroup_size_choices = [32], "
        "max_workgroup_sizes = [1024, 1024, 1024], max_thread_count_per_workgroup = 1024, "
        "max_workgroup_memory_bytes = 166912, max_workgroup_counts = [2147483647, 65535, 65535]"
    )
    info = f'#iree_gpu.target<arch = "{architecture}", features = "+{ptx}", wgp = <{limits}>>'
    executable = f'#hal.executable.target<"cuda", "cuda-nvptx-fb", {{iree_codegen.target_info = {info}}}>'
    return f'#hal.device.target<"cuda", [{executable}]>'
