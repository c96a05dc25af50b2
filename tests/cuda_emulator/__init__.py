"""Tests of the emulated GPU (`emulator/`), and of what hloforge does on it."""
