"""Archives of ``torch.export.save`` (``.pt2``): told by their content, and vetted before PyTorch reads them.

``torch.export.load`` runs what a file brings along: pickled objects, sizes as expressions of Python, operators that are
looked up by any name, libraries of AOTInductor. ``vet`` reads the archive's JSON without PyTorch, and lets pass what
describes numbers and operators alone; ``hloforge.torch.worker`` then loads the file in a process of its own.
"""

from __future__ import annotations

import ast
import io
import json
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import ImporterError
from hloforge.dialect.program import Program
from hloforge.dialect.temporary import PREFIX
from hloforge.importers.saved_model import Child, read_model

_PYTORCH = Child(
    "hloforge.torch.worker",
    "PyTorch",
    "hloforge.torch.compile(torch.export.load(path)) reads the file in your own process, and shows where it ends",
)
_MARK = "/archive_format"
_PIECE = 1 << 20
# What zipfile raises for damaged archives, as the position of the damage has it.
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError),
    RuntimeError,
)
_CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
# Of raw elements; what is pickled has other names, or ``use_pickle``.
_RAW = re.compile(r"(?:weight|tensor)_\d+")
_TARGET = re.compile(
    r"torch\.ops\.(?:aten|prims|prim)\.(?!__class|__init|__dict|__sub|__reduce|__get|__set)\w+(?:\.(?!_)\w+)?"
    # What PT2E's quantizer writes, which PyTorch itself defines.
    r"|torch\.ops\.quantized_decomposed\.(?!_)\w+(?:\.(?!_)\w+)?"
    # What libraries define, and the child that reads the file declares (``hloforge.torch.operators.grouped``).
    r"|torch\.ops\.transformers\.grouped_mm_fallback(?:\.default)?"
    r"|torch\.ops\.higher_order\.(?:cond|while_loop|scan|map_impl|associative_scan|wrap_with_set_grad_enabled"
    r"|wrap_with_autocast|invoke_subgraph|with_effects)"
    r"|_operator\.(?:eq|ne|l[te]|g[te]|neg|pos|mul|add|sub|floordiv|truediv|mod|pow|and_|or_|lshift|rshift|getitem)"
    r"|math\.(?:trunc|floor|ceil|sqrt)"
    # The bounds of ``vmap``, which PyTorch's own decomposition resolves.
    r"|torch\._functorch\.predispatch\.(?:lazy_load_decompositions|_(?:add|remove)_batch_dim"
    r"|_vmap_(?:increment|decrement)_nesting)"
    r"|torch\.sym_(?:not|int|float|ite|max|min|sqrt|sum)"
)
# What sizes are written with, as ``sympy.srepr`` does, and as text.
_FUNCTIONS = frozenset(
    (
        *("Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Max", "Min", "Abs", "And", "Or", "Not"),
        *("Equality", "Unequality", "LessThan", "GreaterThan", "StrictLessThan", "StrictGreaterThan"),
        *("Eq", "Ne", "Lt", "Le", "Gt", "Ge", "floor", "ceiling", "sqrt", "exp", "log"),
        *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv"),
        *("LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv", "TruncToFloat", "TruncToInt"),
        *("RoundToInt", "RoundDecimal", "ToFloat", "Identity", "IsNonOverlappingAndDenseIndicator"),
    )
)
_ARITHMETIC = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant),
    *(ast.Load, ast.keyword),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
# What makes PyTorch's reader of structures import a module by a name in the file.
_IMPORTING = ("__enum__", "collections.defaultdict")
_TRUSTED = "if you trust the file: hloforge.torch.compile(torch.export.load(path))"


def is_exported(data: bytes) -> bool:
    """Whether the bytes are an archive of ``torch.export.save``, of PyTorch 2.8 or newer."""
    return data.startswith(b"PK\x03\x04") and any(name.endswith(_MARK) for name in _names(data))


def read_exported(data: bytes, file: str, parse: Callable[[bytes], Program]) -> Program:
    """The program of an archive, its weights constants; with a template where sizes are known at a call only.

    Args:
        file: the path that the bytes came from, or what else to call them.
        parse: makes a program of MLIR bytecode.

    Raises:
        ImporterError: as of ``vet``; PyTorch is missing, or cannot read the archive; operators that are not imported.
    """
    vet(data)
    if _holds(file, data):
        return read_model(file, parse, _PYTORCH)
    copy = tempfile.NamedTemporaryFile(prefix=PREFIX, suffix=".pt2")  # noqa: SIM115 - a template reads it again
    copy.write(data)
    copy.flush()
    program = read_model(copy.name, parse, _PYTORCH)
    if program.template is not None:
        program.template.copy = copy  # type: ignore[attr-defined]
    return program


def _holds(file: str, data: bytes) -> bool:
    path = Path(file)
    if not path.is_file() or path.stat().st_size != len(data):
        return False
    # By pieces: weights would be in memory twice.
    with path.open("rb") as stream:
        return all(stream.read(_PIECE) == data[start : start + _PIECE] for start in range(0, len(data), _PIECE))


def archive_of_torch(data: bytes) -> str:
    """What another archive of PyTorch's is: an older export, TorchScript, weights; nothing if it is none."""
    names = _names(data)
    if "serialized_exported_program.json" in names:
        return "an export of PyTorch 2.7 or older"
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner:
        return "a TorchScript archive"
    return "weights of PyTorch (torch.save)" if "data.pkl" in inner else ""


def _names(data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (*_BROKEN, ValueError):
        return []


def vet(data: bytes) -> None:
    """Refuse an archive that makes ``torch.export.load`` run code of its own, or is none of one program.

    Raises:
        ImporterError: with what is refused, and the way out.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            files = {name.partition("/")[2]: name for name in names}
            if len(files) != len(names):
                raise ImporterError("the archive holds files of the same name", hint=_DAMAGED)
            if sum(entry.file_size for entry in archive.infolist()) > len(data):
                raise ImporterError("the files in the archive are larger than itself", hint=_DAMAGED)
            _check_files(files)
            for name in _CONFIGS:
                _check_payloads(json.loads(archive.read(files[name])))
            _check_model(json.loads(archive.read(files["models/model.json"])))
    except ImporterError:
        raise
    except (*_BROKEN, KeyError, UnicodeDecodeError) as error:
        raise ImporterError(f"a damaged archive of torch.export: {error}", hint=_DAMAGED) from None
    except (ValueError, AttributeError, TypeError) as error:
        raise ImporterError(f"a malformed archive of torch.export: {error}", hint=_DAMAGED) from None


_DAMAGED = "the file was not written to its end, or is not what torch.export.save wrote"


def _check_files(files: dict[str, str]) -> None:
    programs = [name for name in files if name.startswith("models/") and name.endswith(".json")]
    if any(name.startswith("data/aotinductor") for name in files):
        raise ImporterError(
            "the archive holds machine code of AOTInductor, no program", hint="write it with torch.export.save(…)"
        )
    if programs != ["models/model.json"]:
        raise ImporterError(
            f"the archive holds {len(programs)} programs, none of which torch.export.save wrote",
            hint="write each with torch.export.save(…)",
        )
    if any(name.startswith(("data/weights/", "data/constants/")) and name.endswith(".pt") for name in files):
        raise ImporterError("its weights are pickled, by an older PyTorch", hint=_TRUSTED)
    missing = [name for name in _CONFIGS if name not in files]
    if missing:
        raise ImporterError(f"a damaged archive of torch.export: {missing[0]} is missing", hint=_DAMAGED)


def _check_payloads(config: Any) -> None:
    for name, payload in config["config"].items():
        if payload["use_pickle"] or not _RAW.fullmatch(payload["path_name"]):
            raise ImporterError(f"{name!r} is a pickled object, and to read it may run any code", hint=_TRUSTED)
        device = payload["tensor_meta"]["device"]["type"]
        if device != "cpu":
            raise ImporterError(f"{name!r} lies on a {device}", hint="export the model after model.cpu()")


def _check_model(model: Any) -> None:
    if not isinstance(model["graph_module"]["graph"]["nodes"], list):
        raise ImporterError("a malformed archive of torch.export: it has no nodes", hint=_DAMAGED)
    for each in _dictionaries(model):
        target = each.get("target")
        if "inputs" in each and isinstance(target, str) and not _TARGET.fullmatch(target):
            raise ImporterError(f"the program calls {target}, which is no operator that is imported", hint=_TRUSTED)
        expression = each.get("expr_str")
        if expression is not None and not _is_arithmetic(expression):
            raise ImporterError(f"a size is {expression!r:.80}, which is no arithmetic", hint=_TRUSTED)
        for key in ("in_spec", "out_spec"):
            found = [name for name in _IMPORTING if name in str(each.get(key, ""))]
            if found:
                raise ImporterError(f"arguments or results hold a {found[0]}", hint=_TRUSTED)


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def _is_arithmetic(expression: str) -> bool:
    """Whether a size is what PyTorch writes: sums, products and known functions of symbols and numbers."""
    try:
        nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return all(isinstance(node, _ARITHMETIC) and _is_plain(node) for node in nodes)


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        # Text names a symbol, or is a number; sympy would evaluate any other.
        return isinstance(node.value, int | float) or bool(re.fullmatch(r"[\w.]+", str(node.value)))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
    return not isinstance(node, ast.Name) or "__" not in node.id
