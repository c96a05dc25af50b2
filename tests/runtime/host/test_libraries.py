"""A program calls what a library itself defines, or what the user lists, and nothing that the library links."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import LoadError, UnregisteredError
from hloforge.runtime.host.libraries import Library
from tests.runtime.native_libraries import built

OWN = ("copied", "started", "weak")
FOREIGN = ("system", "memcpy", "printf", "exit", "_init", "_fini", "a_number", "hidden", "of_this_file", "none")
X = np.arange(8, dtype=np.int8)


def calling(name: str) -> str:
    return f"""func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {{
      %y = stablehlo.custom_call @{name}(%x) : (tensor<8xi8>) -> tensor<8xi8>
      return %y : tensor<8xi8> }}"""


@pytest.fixture(scope="module")
def library() -> Path:
    return built("names.c")


@pytest.mark.parametrize("name", [*OWN, *FOREIGN])
def test_a_library_gives_its_own_functions(library: Path, name: str) -> None:
    assert (Library.parse(library).function(name) is not None) == (name in OWN)


def test_a_program_that_calls_system_is_refused(library: Path) -> None:
    np.testing.assert_array_equal(hloforge.compile(calling("copied"), libraries=(library,)).load()(X), X)
    with pytest.raises(UnregisteredError, match="custom_call @system is not supported") as caught:
        hloforge.compile(calling("system"), libraries=(library,))
    assert caught.value.location is not None and caught.value.location.line == 2
    promised = hloforge.compile(calling("system"), host_calls={"system"})
    with pytest.raises(LoadError, match="that are not registered: system"):
        promised.load(libraries=[library])
    with pytest.raises(LoadError, match="no symbol 'system' of its own"):
        hloforge.host.register("system", library)


def test_names_that_the_user_lists(library: Path) -> None:
    listed = f"{library}:copied,weak"
    np.testing.assert_array_equal(hloforge.compile(calling("weak"), libraries=(listed,)).load()(X), X)
    with pytest.raises(UnregisteredError, match="@started is not supported"):
        hloforge.compile(calling("started"), libraries=(listed,))
    for name in ("system", "hidden", "none"):
        with pytest.raises(LoadError, match=f"defines no function '{name}'"):
            hloforge.compile(calling("weak"), libraries=(f"{library}:weak,{name}",))


def test_a_file_whose_name_has_a_colon(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "lib:copied"
    shutil.copy(library, path)
    assert Library.parse(path) == Library(str(path))
    assert Library.parse(f"{path}:weak,copied") == Library(str(path), frozenset({"weak", "copied"}))
    assert Library.parse("C:\\lib.dll") == Library("C:\\lib.dll")


def test_a_library_whose_table_was_taken_away(library: Path, tmp_path: Path) -> None:
    """Without sections' headers the system still loads it, and nobody says what is its own."""
    bare = tmp_path / "libbare.so"
    data = bytearray(library.read_bytes())
    # e_shoff, and e_shentsize, e_shnum and e_shstrndx of a file of 64 bits.
    data[40:48], data[58:64] = bytes(8), bytes(6)
    bare.write_bytes(data)
    with pytest.raises(LoadError, match="no table of symbols that can be read"):
        Library.parse(bare).function("copied")


def test_a_library_of_the_system() -> None:
    try:
        found = Library.parse("libm.so.6").function("cos")
    except LoadError:
        pytest.skip("no libm.so.6 is here")
    assert found is not None
    assert Library.parse("libm.so.6").function("system") is None
