"""Dimensions of CUDA's blocks that no thread asks for; the tests on an emulated GPU have values."""

from __future__ import annotations

import pytest

from hloforge.runtime.codegen_fixes.repeated_threads import without_repeated_threads

_X = "%x = nvvm.read.ptx.sreg.tid.x range <i32, 0, 8> : i32"
_Y = "%y = nvvm.read.ptx.sreg.tid.y range <i32, 0, 4> : i32"
_BLOCK = "%b = nvvm.read.ptx.sreg.ctaid.x : i32"


def _sizes(*lines: str) -> tuple[str, str]:
    """The sizes that the program launches and those that the code is made for."""
    text = [
        "      hal.executable.export public @main_0 ordinal(0) layout(#layout) count(%arg0: !hal.device) {",
        "        hal.return %c1, %c1, %c1 : index, index, index",
        "      } <workgroup_size = [8 : index, 4 : index, 2 : index], subgroup_size = 32>",
        "      builtin.module {",
        "        llvm.func @main_0(%arg0: !llvm.ptr<1>) attributes {gpu.known_block_size = array<i32: 8, 4, 2>} {",
        *("          " + line for line in lines),
        "          llvm.return",
        "        }",
        "      }",
    ]
    code = without_repeated_threads("\n".join(text).encode()).decode()
    return code.partition("workgroup_size = [")[2].partition("]")[0], code.partition("<i32: ")[2].partition(">}")[0]


@pytest.mark.parametrize(
    ("lines", "launched", "made"),
    [
        ([_X], "8 : index, 1 : index, 1 : index", "8, 1, 1"),
        ([_Y, _BLOCK], "1 : index, 4 : index, 1 : index", "1, 4, 1"),
        ([_BLOCK, "nvvm.barrier"], "1 : index, 1 : index, 1 : index", "1, 1, 1"),
    ],
)
def test_what_is_read(lines: list[str], launched: str, made: str) -> None:
    assert _sizes(*lines) == (launched, made)


@pytest.mark.parametrize(
    "line",
    [
        "%0 = nvvm.shfl.sync bfly %a, %b, %c, %d : f32 -> f32",
        "nvvm.barrier id = %a number_of_threads = %b",
        "%0 = nvvm.read.ptx.sreg.laneid : i32",
        "%0 = nvvm.read.ptx.sreg.ntid.x : i32",
        "%0 = llvm.atomicrmw add %p, %a monotonic : !llvm.ptr<1>, i32",
        "llvm.switch %a : i32, ^bb1 [",
    ],
)
def test_where_more_than_the_places_tells_threads_apart(line: str) -> None:
    assert _sizes(_X, line) == ("8 : index, 4 : index, 2 : index", "8, 4, 2")
