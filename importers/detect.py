"""Detect the form of a program from its content; a file's suffix does not matter."""

from __future__ import annotations

import enum
import re

from hloforge.dialect.errors import ImporterError
from hloforge.importers.exported_program import archive_of_torch, is_exported
from hloforge.importers.guard import guarded
from hloforge.importers.hlo_instructions import has_instruction
from hloforge.importers.hlo_proto import unwrap
from hloforge.importers.hlo_text import without_opaque
from hloforge.importers.jax_export import unwrap as unwrap_export
from hloforge.importers.native import producer
from hloforge.importers.onnx.load import is_onnx
from hloforge.importers.saved_model import MARK, is_keras
from hloforge.importers.tflite.load import is_tflite


class Form(enum.Enum):
    """The forms of a program that hloforge reads; the value is the name for ``format=``."""

    HLO_TEXT = "hlo"
    HLO_PROTO = "hlo-proto"
    MLIR_TEXT = "mlir"
    MLIR_BYTECODE = "mlir-bytecode"
    PORTABLE_ARTIFACT = "portable-artifact"
    JAX_EXPORT = "jax-export"
    ONNX = "onnx"
    TFLITE = "tflite"
    TENSORFLOW = "tensorflow"
    TORCH_EXPORT = "torch-export"


_MLIR_MAGIC = b"ML\xefR"
_PORTABLE_PRODUCER = "StableHLO_v"

# Leading bytes of what people hand in by mistake, and the way out.
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"\x93NUMPY", "a NumPy array", "arrays are arguments: give them with --input=@file.npy"),
    (b"\x7fELF", "an ELF object or program", ""),
    (b"\x1f\x8b", "gzip-compressed data", "decompress it first"),
    (b"BZh", "bzip2-compressed data", "decompress it first"),
    (b"\xfd7zXZ", "xz-compressed data", "decompress it first"),
    (b"(\xb5/\xfd", "zstd-compressed data", "decompress it first"),
    (
        b"\x89HDF",
        "an HDF5 file (a model or weights of Keras)",
        "save the model as one: keras.saving.load_model(path).save('model.keras')",
    ),
    (b"BC\xc0\xde", "LLVM bitcode", "hloforge starts from HLO or StableHLO"),
    (b"\x80\x04", "a Python pickle", "export the model to StableHLO first"),
    (b"\x80\x02", "a Python pickle (PyTorch weights)", "export the model to StableHLO first"),
    (b"%PDF", "a PDF document", ""),
    (b"\x89PNG", "a PNG image", ""),
    (b"MZ", "a Windows program", ""),
)

_HLO_START = re.compile(r"\s*HloModule\b")
_MLIR_START = re.compile(
    r"\s*(?:module\b(?!\s*\(|\s*\{\s*(?:ROOT\s+)?%?[\w.\-]+\s*=\s*\(?\w+\[)|builtin\.module|[#!][\w.$-]+\s*=|func\.func\b)"
)
_MLIR_OP = re.compile(r'\bfunc\.func\b|"?(?:stablehlo|chlo|mhlo|vhlo|builtin)\.\w+')
# Data from which on the detection runs behind the guard, which costs as much as looking through so many bytes.
_LARGE = 1 << 20


def detect(data: bytes) -> Form:
    """The form of a program; in time that is linear in its size.

    Raises:
        ImporterError: it is none that hloforge reads; the message says what it looks like.
    """
    return guarded(_detect, data) if len(data) > _LARGE else _detect(data)


def _detect(data: bytes) -> Form:
    if not data.strip():
        raise ImporterError("the input is empty", hint=_EXPECTED)
    if data.startswith(_MLIR_MAGIC):
        return Form.PORTABLE_ARTIFACT if producer(data).startswith(_PORTABLE_PRODUCER) else Form.MLIR_BYTECODE
    if _MLIR_MAGIC.startswith(data):
        raise ImporterError("MLIR bytecode, cut off after its first bytes", hint="the file was not written to its end")
    if unwrap_export(data) is not None:
        return Form.JAX_EXPORT
    if is_tflite(data):
        return Form.TFLITE
    if data.startswith(MARK) or is_keras(data):
        return Form.TENSORFLOW
    if is_exported(data):
        return Form.TORCH_EXPORT
    _refuse_foreign(data)
    text = as_text(data)
    if text is not None and (form := _text_form(text)):
        return form
    if unwrap(data) is not None:
        return Form.HLO_PROTO
    if is_onnx(data):
        return Form.ONNX
    if text is not None:
        raise ImporterError(f"text that is neither HLO nor MLIR; it begins {_beginning(text)}", hint=_EXPECTED)
    if _looks_like_cut_proto(data):
        raise ImporterError("a damaged or truncated HloModuleProto", hint="the file was not written to its end")
    raise ImporterError(f"binary data of no known form; it begins {data[:8].hex(' ')}", hint=_EXPECTED)


_EXPECTED = (
    "a program is HLO text or proto, StableHLO text or bytecode, a StableHLO portable artifact, an export of JAX "
    "or PyTorch, or a model of ONNX, TFLite, TensorFlow or Keras"
)


def as_text(data: bytes) -> str | None:
    """The data as UTF-8 text without a byte-order mark and with Unix line ends; None if it is binary."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _text_form(text: str) -> Form | None:
    if not any(char in text for char in "{=("):
        return None
    plain = without_opaque(text)
    if _HLO_START.match(plain):
        return Form.HLO_TEXT
    if _MLIR_START.match(plain):
        return Form.MLIR_TEXT
    if has_instruction(plain):
        return Form.HLO_TEXT
    # MLIR's operations may be quoted, so its text is searched with the strings in.
    return Form.MLIR_TEXT if _MLIR_OP.search(text) else None


def is_plain(text: str) -> bool:
    """Whether a text begins as programs of its form do, so that nobody doubts which one it is."""
    plain = without_opaque(text)
    return bool(_HLO_START.match(plain) or _MLIR_START.match(plain))


def _refuse_foreign(data: bytes) -> None:
    if data.startswith(b"PK\x03\x04"):
        raise _foreign_zip(data)
    for magic, name, hint in _FOREIGN:
        if data.startswith(magic):
            raise ImporterError(f"this is {name}, not a program", hint=hint or _EXPECTED)
    if data[4:8] == b"IREE":
        raise ImporterError("this is a compiled IREE module (.vmfb)", hint="run it with: hloforge run")


def _foreign_zip(data: bytes) -> ImporterError:
    if b"module.fb" in data[:256]:
        return ImporterError("this is a compiled IREE module (.vmfb)", hint="run it with: hloforge run")
    kind = archive_of_torch(data)
    if kind:
        return ImporterError(
            f"this is {kind}, not a program",
            hint="write the model with torch.export.save(torch.export.export(…), path)",
        )
    return ImporterError(
        "this is a zip archive, not a program", hint="unpack it (a saved model holds its program inside)"
    )


def _looks_like_cut_proto(data: bytes) -> bool:
    """A module's first field is its name: key 0x0a, a length, printable text."""
    return data[0] == 0x0A and len(data) > 2 and data[2 : 2 + min(data[1], 16)].isascii() and 0 < data[1] < 0x80


def _beginning(text: str) -> str:
    line = " ".join(text.split())[:40]
    return repr(line)
