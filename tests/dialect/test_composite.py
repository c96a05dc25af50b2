"""@composite: calls are operations of their name, whose meaning is the function's body."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge import Builder, OperationError, Value
from hloforge.dialect.composite import composite
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.textual import parse_pipeline
from tests.engines import interpret

X = np.array([1, -2, 3], np.float32)


@composite("my.scale", version=3, flavor="plain")
def scale(x: Value, *, by: float = 2.0, steps: tuple[int, ...] = ()) -> Value:
    return x * by


@composite("my.pair")
def pair(x: Value, y: Value) -> tuple[Value, Value]:
    return scale(x, by=3.0), y - x


def program(build: object) -> Builder:
    with Builder("composites") as builder:
        x = builder.parameter(0, "f32[3]", "x")
        return builder.build(build(x))


def test_name_version_and_attributes_of_defaults_and_calls() -> None:
    text = str(program(lambda x: scale(x, steps=(1, 2))))
    assert 'stablehlo.composite "my.scale"' in text
    assert 'composite_attributes = {by = 2.000000e+00 : f64, flavor = "plain", steps = array<i64: 1, 2>}' in text
    assert "version = 3 : i32" in text


def test_equal_calls_share_their_decomposition_and_others_do_not() -> None:
    module = program(lambda x: [scale(x), scale(x + 1.0), scale(x, by=2), scale(x, steps=[1]), scale(x, by=5.0)]).module
    # main; by 2.0; by 2 of another type; an unhashable list; by 5.0
    assert len(module.body.operations) == 5


def test_a_nested_composite_survives_and_computes() -> None:
    built = program(lambda x: pair(x, x * x))
    assert len(operations(built.module, {"stablehlo.composite"})) == 2
    PassManager(parse_pipeline("lower-composites")).run(built.module)
    tripled, difference = interpret(built.module, X)
    np.testing.assert_array_equal(tripled, 3 * X)
    np.testing.assert_array_equal(difference, X * X - X)


def test_hlo_keeps_composites_by_name() -> None:
    built = program(lambda x: pair(x, x))
    hlo = built.hlo_text()
    assert 'composite.name="my.pair"' in hlo
    assert 'composite.version="3"' in hlo
    # XLA's converter reads back those of one result alone.
    again = read(program(lambda x: scale(scale(x))).hlo_proto())
    assert again.text().count('stablehlo.composite "my.scale"') == 2


def test_a_pipeline_names_several_to_keep() -> None:
    built = program(lambda x: [*pair(x, x), scale(x)])
    PassManager(parse_pipeline("lower-composites{keep=my.other,my.scale}")).run(built.module)
    left = operations(built.module, {"stablehlo.composite"})
    assert [str(op.attributes["name"]) for op in left] == ['"my.scale"', '"my.scale"']
    assert LowerComposites(keep=("a.b", "c.d")) == parse_pipeline("lower-composites{keep=a.b,c.d}")[0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: composite("gelu")(lambda x: x)(x), "must have a namespace"),
        (lambda x: composite("my.gelu", version=-1)(lambda x: x)(x), "non-negative"),
        (lambda x: composite("my.gelu", what=object())(lambda x: x)(x), "cannot be a object"),
        (lambda x: scale(x, x), "too many positional arguments"),
        (lambda x: composite("my.leak")(lambda y: y + x)(x), "made in another computation"),
        (lambda x: scale(x, unknown=1), "unknown"),
    ],
    ids=["namespace", "version", "attribute", "operands", "capture", "keyword"],
)
def test_a_malformed_use_is_located(build: object, message: str) -> None:
    with pytest.raises(OperationError, match=message) as caught:
        program(build)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_an_attribute_that_is_a_parameter_too_is_refused() -> None:
    with pytest.raises(TypeError, match=r"my\.q: by is a parameter"):
        composite("my.q", by=1)(lambda x, *, by: x)
