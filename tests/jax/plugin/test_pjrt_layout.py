"""The declarations of PJRT against XLA's own header, which TensorFlow ships: places of fields, order of functions."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

_PLUGIN = Path(__file__).resolve().parents[3] / "src" / "hloforge" / "jax" / "plugin"
_COMPILER = shutil.which("cc")
# Structs of arguments that have no function of their name in the table, and ours.
_OTHERS = {
    "PJRT_NamedValue": "PJRT_NamedValue",
    "PJRT_Program": "PJRT_Program",
    "PJRT_ExecuteOptions": "PJRT_ExecuteOptions",
    "PJRT_Extension_Base": "PJRT_Extension",
    "PJRT_Buffer_MemoryLayout": "PJRT_Layout",
    "PJRT_Plugin_Attributes_Args": "PJRT_PluginAttributes_Args",
    "PJRT_Layouts_MemoryLayout_Serialize_Args": "PJRT_Owned_Args",
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args": "PJRT_Related_Args",
    "PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args": "PJRT_DefaultLayout_Args",
    "PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args": "PJRT_DefaultLayout_Args",
    "PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args": "PJRT_ExecutableLayouts_Args",
    "PJRT_Profiler_Extension": "PJRT_ProfilerExtension",
    "PLUGIN_Profiler_Error_Destroy_Args": "PJRT_ProfilerError_Args",
    "PLUGIN_Profiler_Error_Message_Args": "PJRT_ProfilerErrorText_Args",
    "PLUGIN_Profiler_Error_GetCode_Args": "PJRT_ProfilerErrorCode_Args",
    "PLUGIN_Profiler_Create_Args": "PJRT_ProfilerCreate_Args",
    "PLUGIN_Profiler_Destroy_Args": "PJRT_Profiler_Args",
    "PLUGIN_Profiler_Start_Args": "PJRT_Profiler_Args",
    "PLUGIN_Profiler_Stop_Args": "PJRT_Profiler_Args",
    "PLUGIN_Profiler_CollectData_Args": "PJRT_ProfilerCollect_Args",
    "PLUGIN_Profiler_Api": "PJRT_ProfilerFunctions",
}
_PROFILER = "backends/profiler/plugin/profiler_c_api.h"
# The parts of a union, by the name of their field in ours.
_PARTS = {"PJRT_Buffer_MemoryLayout_Tiled": "tiled", "PJRT_Buffer_MemoryLayout_Strides": "strides"}
# Structs of which hloforge reads the first fields, in memory of the caller.
_LONGER = {"PJRT_Client_Create_Args", "PJRT_ExecuteOptions"}
_CONSTANTS = {
    "PJRT_Error_Code_OK": 0,
    "PJRT_Error_Code_INVALID_ARGUMENT": 3,
    "PJRT_Error_Code_NOT_FOUND": 5,
    "PJRT_Error_Code_FAILED_PRECONDITION": 9,
    "PJRT_Error_Code_UNIMPLEMENTED": 12,
    "PJRT_Error_Code_INTERNAL": 13,
    "PJRT_NamedValue_kInt64List": 2,
    "PJRT_NamedValue_kFloat": 3,
    "PJRT_NamedValue_kBool": 4,
    "PJRT_Buffer_MemoryLayout_Type_Tiled": 0,
    "PJRT_Buffer_MemoryLayout_Type_Strides": 1,
    "PJRT_HostBufferSemantics_kImmutableOnlyDuringCall": 0,
    "PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes": 1,
    "PJRT_HostBufferSemantics_kImmutableZeroCopy": 2,
    "PJRT_Extension_Type_Profiler": 1,
    "PJRT_Extension_Type_Layouts": 4,
}

needs_compiler = pytest.mark.skipif(_COMPILER is None, reason="no C compiler is installed: apt-get install gcc")


@pytest.fixture(scope="module")
def published() -> Path:
    """XLA's folder of headers."""
    found = importlib.util.find_spec("tensorflow")
    for folder in (found.submodule_search_locations or []) if found else []:
        if (header := Path(folder) / "include" / "xla" / "pjrt" / "c" / "pjrt_c_api.h").exists():
            return header.parent
    pytest.skip("no pjrt_c_api.h is installed: pip install 'hloforge[tensorflow]'")


def compiled(text: str, tmp_path: Path, *folders: Path) -> str:
    """What the compiler says against a C text; nothing where all that it asserts holds."""
    source = tmp_path / "asserts.c"
    source.write_text(text)
    command = [str(_COMPILER), "-std=c11", "-fsyntax-only", *(f"-I{folder}" for folder in folders), str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stderr


@cache
def ours() -> dict[str, list[tuple[str, int]]]:
    """Fields and offsets that pjrt_layout.h pins, by struct, in order; the size at the end, as of the field ``.``."""
    text = (_PLUGIN / "pjrt_layout.h").read_text()
    rows: dict[str, list[tuple[str, int]]] = {}
    for struct, field, offset in re.findall(r"\bAT\((\w+), ([\w.\[\]]+), (\d+)\);", text):
        rows.setdefault(struct, []).append((field, int(offset)))
    for struct, size in re.findall(r"\bSIZE\((\w+), (\d+)\);", text):
        rows[struct].append((".", int(size)))
    return rows


def fields_of(header: str) -> dict[str, list[str]]:
    """The names of each struct's fields in XLA's header; of a union, its first member."""
    structs = {}
    for struct, body in re.findall(
        r"\bstruct ((?:PJRT|PLUGIN)_\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", re.sub(r"//[^\n]*", "", header)
    ):
        body = re.sub(r"union\s*\{\s*([^;]*);[^{}]*\}", r"\1", body)
        found = [re.search(r"\(\*\s*(\w+)\)|(\w+)\s*$", line) for line in body.split(";") if line.strip()]
        structs[struct] = [match[1] or match[2] for match in found if match]
    return structs


def functions_of_xla(header: str) -> list[str]:
    names = re.findall(r"^  _PJRT_API_STRUCT_FIELD\(PJRT_(\w+)\);", header, re.MULTILINE)
    return [name.replace("AsyncHostToDeviceTransferManager", "TransferManager") for name in names]


def our_functions() -> list[str]:
    return re.findall(r"\bX\((\w+)\)", (_PLUGIN / "pjrt_table.h").read_text().partition("#define PJRT_SLOT")[0])


def structs_of_functions() -> dict[str, str]:
    """Our struct of arguments of each function that the plugin has."""
    sources = "\n".join(path.read_text() for path in sorted(_PLUGIN.glob("*.[ch]")))
    types = dict(re.findall(r"PJRT_Error \*(\w+)\((PJRT_\w+_Args) \*", sources))
    filled = re.findall(r"FILL\(table, (\w+), (\w+)\)", sources)
    return {name: types[function] for name, function in filled if function in types}


def asserts(struct: str, fields: list[str], pinned: list[tuple[str, int]]) -> list[str]:
    """XLA's struct against our offsets, field by field, and its size."""
    *rows, (_, size) = pinned
    fields = [field for field in fields if field not in ("struct_size", "extension_start")]
    rows = [(field, offset) for field, offset in rows if field not in ("struct_size", "extension_start")]
    if struct in _LONGER:
        fields, size = fields[: len(rows)], -1
    assert len(fields) == len(rows), (struct, fields, rows)
    lines = [
        f'_Static_assert(offsetof({struct}, {field}) == {offset}, "{struct}.{field} lies elsewhere than {own}");'
        for field, (own, offset) in zip(fields, rows, strict=True)
    ]
    return lines if size < 0 else [*lines, f'_Static_assert(sizeof({struct}) == {size}, "size of {struct}");']


@needs_compiler
def test_our_declarations_lie_where_they_are_pinned(tmp_path: Path) -> None:
    assert compiled('#include "pjrt_layout.h"\n', tmp_path, _PLUGIN) == ""
    assert len(ours()) >= 45
    moved = '#include "pjrt.h"\n_Static_assert(offsetof(PJRT_Text_Args, size) == 24, "moved");\n'
    assert "moved" in compiled(moved, tmp_path, _PLUGIN)


def test_every_struct_is_pinned() -> None:
    header = re.sub(r"/\*.*?\*/", "", (_PLUGIN / "pjrt.h").read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"^\} (PJRT_\w+);", header, re.MULTILINE))
    kinds = {"PJRT_Code", "PJRT_HostSemantics", "PJRT_Statistic"}
    assert declared - kinds == {struct for struct in ours() if struct != "PJRT_Api"}


@needs_compiler
def test_fields_lie_where_xla_has_them(published: Path, tmp_path: Path) -> None:
    names = ("pjrt_c_api.h", "pjrt_c_api_layouts_extension.h", "pjrt_c_api_profiler_extension.h")
    headers = [*(published / name for name in names), published.parents[1] / _PROFILER]
    structs = fields_of("\n".join(header.read_text() for header in headers))
    pairs = {f"PJRT_{name}_Args": struct for name, struct in structs_of_functions().items()} | _OTHERS
    known = {struct: own for struct, own in pairs.items() if struct in structs}
    lines = [f'#include "{header}"' for header in headers]
    for struct, own in known.items():
        rows = [(field, offset) for field, offset in ours()[own] if not field.startswith(("tiled.", "strides."))]
        lines += asserts(struct, structs[struct], rows)
    for struct, part in _PARTS.items():
        start = dict(ours()["PJRT_Layout"])["tiled"]
        rows = [(field, offset - start) for field, offset in ours()["PJRT_Layout"] if field.startswith(f"{part}.")]
        fields = [field for field in structs[struct] if field not in ("struct_size", "extension_start")]
        lines += [
            f'_Static_assert(offsetof({struct}, {field}) == {offset}, "{struct}.{field}");'
            for field, (_, offset) in zip(fields, rows, strict=True)
        ]
    lines += [f'_Static_assert({name} == {value}, "{name}");' for name, value in _CONSTANTS.items()]
    first = dict(ours()["PJRT_Api"])["functions"]
    lines.append(f'_Static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) == {first}, "the table");')
    assert len(known) > 95
    assert compiled("\n".join(lines), tmp_path, published.parents[2]) == ""


def test_functions_stand_in_xlas_order(published: Path) -> None:
    xla = functions_of_xla((published / "pjrt_c_api.h").read_text())
    own = our_functions()
    common = min(len(xla), len(own))
    assert common > 100
    assert own[:common] == xla[:common]
    # What the other test compares: all functions but those that are newer than the header.
    structs = fields_of((published / "pjrt_c_api.h").read_text())
    without = {name for name in structs_of_functions() if f"PJRT_{name}_Args" not in structs}
    assert without <= set(own[common:])
