"""Executables and their host as texts."""

from __future__ import annotations

import pytest

from hloforge.runtime.compile.assembly.executables import joined, moved, named, with_binaries, with_marks

EXECUTABLES = (
    """hal.executable public @kernel_a {
    hal.executable.variant public @embedded_elf target(<"llvm-cpu", "embedded-elf-x86_64", {cpu = "one"}>) {
      hal.executable.export public @kernel_a_sum ordinal(0) layout(#p) count(%d: !hal.device) -> (index) {
        %c1 = arith.constant 1 : index
        hal.return %c1 : index
      }
    }
  }""",
    """hal.executable public @kernel_b {
    hal.executable.variant public @embedded_elf target(<"llvm-cpu", "embedded-elf-x86_64", {cpu = "one"}>) {
      hal.executable.export public @kernel_b ordinal(0) layout(#p)
    }
  }""",
)


def test_executables_without_code_are_one_library() -> None:
    library = joined(EXECUTABLES)
    assert library.count("hal.executable.variant") == 1
    assert "@kernel_a_sum ordinal(0) layout" in library and "@kernel_b ordinal(1) layout" in library
    assert library.startswith("  hal.executable private @library {\n") and library.endswith(")\n    }\n  }")
    assert "hal.return %c1 : index" in library


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('cpu = "one"}>) {\n      hal.executable.export public @kernel_b', 'cpu = "two"}>) {\n      export'),
        ("hal.executable.export public @kernel_b", "hal.executable.constant.block(%d: !hal.device) -> i32"),
    ],
    ids=["another processor", "constants of its own"],
)
def test_what_cannot_be_one_library_is_refused(old: str, new: str) -> None:
    first, second = EXECUTABLES
    assert old in second
    with pytest.raises(ValueError, match=r"."):
        joined((first, second.replace(old, new)))


def test_a_host_calls_what_has_moved() -> None:
    host = (
        "stream.cmd.dispatch @main_1::@elf::@main_1_sum {\n"
        "stream.cmd.dispatch @main_1::@elf::@main_1 {\n"
        "stream.cmd.dispatch @main_10::@elf::@main_10_sum {\n"
        "stream.cmd.dispatch @main_1::@elf::@other {\n"
        "util.call @main_1_sum\n"
    )
    assert moved(host, {"main_1": ("library_x", "kernel_a")}) == (
        "stream.cmd.dispatch @library_x::@elf::@kernel_a_sum {\n"
        "stream.cmd.dispatch @library_x::@elf::@kernel_a {\n"
        "stream.cmd.dispatch @main_10::@elf::@main_10_sum {\n"
        "stream.cmd.dispatch @library_x::@elf::@other {\n"
        "util.call @main_1_sum\n"
    )


def test_names_are_said_once_as_json() -> None:
    host = 'util.func @main() attributes {iree.reflection = {a = "b"}} {\nutil.func @f() {iree.reflection = {}}'
    found = named(host, "names", {"kernel_1": "main_dispatch_0"})
    assert '{iree.reflection = {names = "{\\22kernel_1\\22: \\22main_dispatch_0\\22}", a = "b"}}' in found
    assert found.count("names") == 1


def test_marks_become_binaries() -> None:
    library = joined(EXECUTABLES).replace("@library", "@library_x", 1)
    host = f"module {{\n  util.global private @__device_0 = #hal.device.target<>\n{library}\n  util.func @main()\n}}"
    marked = with_marks(host, "embedded-elf-x86_64")
    assert '"hal.device.id" :: "local*"' in marked and "#hal.device.target<>" not in marked
    assert "hal.executable.variant" not in marked and "hal.executable.export" not in marked
    made = with_binaries(marked, {"library_x": b"\x7fELF"})
    assert 'dense<"0x7F454C46"> : vector<4xi8>' in made
    assert made.splitlines()[-2:] == ["  util.func @main()", "}"]
    with pytest.raises(ValueError, match="library_y"):
        with_binaries(marked, {"library_y": b"\x7fELF"})
