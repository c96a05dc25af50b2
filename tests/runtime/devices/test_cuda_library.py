"""The stand-in for ``libcuda.so``, made for another library: no GPU is needed to see whether the linker finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hloforge.runtime.devices.cuda_library import load_stand_in

SCRIPT = """
import ctypes, sys
from pathlib import Path
from hloforge.runtime.devices.cuda_library import load_stand_in
ctypes.CDLL("libz.so.1")
try:
    ctypes.CDLL("libstandin.so")
except OSError:
    pass
else:
    raise SystemExit("the name was there before")
load_stand_in("libstandin.so", "libz.so.1", Path(sys.argv[1]))
# What IREE does: it opens the name, and looks its functions up in what it gets.
found = ctypes.CDLL("libstandin.so").zlibVersion
found.restype = ctypes.c_char_p
print(found().decode())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems know libraries by their files")
def test_a_library_is_found_by_a_name_that_no_file_has(tmp_path: Path) -> None:
    probe = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libz.so.1')"], check=False)
    if probe.returncode:
        pytest.skip("the machine has no libz.so.1")
    for _ in range(2):  # made, and found again
        done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()[0].isdecimal()
    assert [path.name for path in tmp_path.iterdir()] == ["libstandin.so"]


def test_a_folder_that_others_may_write_to_is_not_believed(tmp_path: Path) -> None:
    """What lies there would be loaded: it is native code."""
    (tmp_path / "libstandin.so").write_text("not ours")
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match=f"every user may write to {tmp_path}"):
        load_stand_in("libstandin.so", "libz.so.1", tmp_path)
