"""``python -m emulator`` builds the library and prints its folder, for ``LD_LIBRARY_PATH``."""

from emulator.library import library, missing

if reason := missing():
    raise SystemExit(reason)
print(library().parent)
