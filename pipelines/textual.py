"""Textual pipelines in MLIR's grammar: ``a,b{k=v},func.func(c)``.

A name is one of hloforge's passes or of MLIR's and StableHLO's; both mix freely at the top level. What is below an
anchor such as ``func.func(…)`` is MLIR's alone, because hloforge's passes work on a whole module.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from hloforge.dialect.errors import PipelineError
from hloforge.dialect.mlir import context
from hloforge.dialect.suggestions import did_you_mean
from hloforge.pipelines.catalogue import NATIVE_PASSES, passes_by_name
from hloforge.pipelines.framework.passes import NativePass, Pass, parse_native
from hloforge.pipelines.pass_names import PIPELINE_NAMES

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_WRAPPER = "builtin.module"
_OPEN = {"{": "}", "(": ")", "[": "]"}


def parse_pipeline(text: str) -> list[Pass]:
    """The passes that a textual pipeline names, in order. ``builtin.module(…)`` around the whole is accepted.

    Raises:
        PipelineError: malformed text, an unknown pass or option, or a value of the wrong type; says at which column.
    """
    return _Reader(text).pipeline()


@dataclasses.dataclass
class _Reader:
    text: str
    position: int = 0

    def pipeline(self) -> list[Pass]:
        passes = self.elements()
        if self.position != len(self.text):
            raise self.error("expected ',' or the end")
        return passes

    def error(self, message: str, at: int | None = None, hint: str = "") -> PipelineError:
        column = self.position if at is None else at
        caret = " " * column + "^"
        return PipelineError(f"pipeline: {message}", notes=(self.text, caret), hint=hint)

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def next_is(self, char: str) -> bool:
        self.skip_space()
        return self.text.startswith(char, self.position)

    def elements(self) -> list[Pass]:
        passes = self.element()
        while self.next_is(","):
            self.position += 1
            passes += self.element()
        return passes

    def element(self) -> list[Pass]:
        self.skip_space()
        start = self.position
        match = _NAME.match(self.text, start)
        if match is None:
            raise self.error("expected the name of a pass")
        self.position = match.end()
        name = match[0]
        if self.next_is("("):
            inner = self.bracketed()
            return self.anchored(name, inner, start)
        options = self.bracketed() if self.next_is("{") else ""
        return [self.single(name, options, start)]

    def anchored(self, anchor: str, inner: str, start: int) -> list[Pass]:
        if anchor == _WRAPPER:
            return _Reader(inner).pipeline()
        ours = [name for name in _NAME.findall(inner) if name in passes_by_name()]
        if ours:
            raise self.error(f"{ours[0]} works on a module, not on {anchor}", start, f"write it outside {anchor}(…)")
        return [self.native(f"{anchor}({inner})", start)]

    def bracketed(self) -> str:
        """The text between the bracket at the position and its partner; quotes protect brackets."""
        start = self.position
        closers = [_OPEN[self.text[start]]]
        quote = ""
        for at in range(start + 1, len(self.text)):
            char = self.text[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'":
                quote = char
            elif char in _OPEN:
                closers.append(_OPEN[char])
            elif char == closers[-1]:
                closers.pop()
                if not closers:
                    self.position = at + 1
                    return self.text[start + 1 : at]
        raise self.error(f"'{self.text[start]}' is never closed", start)

    def single(self, name: str, options: str, start: int) -> Pass:
        cls = passes_by_name().get(name)
        if cls is None:
            return self.native(name + (f"{{{options}}}" if options else ""), start)
        try:
            return cls(**_options(cls, options))
        except ValueError as error:
            raise self.error(f"{name}: {error}", start) from None

    def native(self, pipeline: str, start: int) -> Pass:
        with context():
            try:
                parse_native(pipeline)
            except PipelineError as error:
                name = pipeline.split("{")[0]
                if "restricted to 'func.func'" in error.message:
                    raise self.error(f"{name} works on a function", start, f"write func.func({pipeline})") from None
                # The name of a pipeline alone is taken before this reads it; within a text it is none.
                known = (*passes_by_name(), *NATIVE_PASSES, *(PIPELINE_NAMES if pipeline == self.text else ()))
                hint = did_you_mean(name, known, "hloforge opt --list-passes and --list-pipelines show all")
                raise self.error(error.message, start, hint) from None
        return NativePass(pipeline)


def _options(cls: type[Pass], text: str) -> dict[str, Any]:
    """Read ``k=v k2=v2`` by the types of the dataclass's fields."""
    fields = {field.name.replace("_", "-"): field for field in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for part in _split_options(text):
        key, equals, value = part.partition("=")
        field = fields.get(key)
        if field is None:
            known = ", ".join(fields) or "none"
            raise ValueError(f"unknown option {key!r}; it has: {known}")
        values[field.name] = _option_value(field, value if equals else "true")
    return values


def _split_options(text: str) -> list[str]:
    return re.findall(r"""[^\s=]+(?:=(?:"[^"]*"|'[^']*'|[^\s"']+))?""", text)


def _option_value(field: dataclasses.Field[Any], text: str) -> Any:
    text = text.strip("\"'")
    default = field.default
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError(f"option {field.name} takes true or false, not {text!r}")
        return text == "true"
    if isinstance(default, int):
        return int(text)
    if isinstance(default, float):
        return float(text)
    if isinstance(default, tuple):
        return tuple(part for part in text.split(",") if part)
    return text
