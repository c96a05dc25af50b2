"""A manifest that lies about the program beside it is one error, when the file is loaded or when it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import Error, LoadError
from hloforge.runtime.session.modules import read_manifest
from tests.robustness.lying_manifests import compiled, lies, manifest_of, with_manifest

PROGRAM = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  x = f32[4] parameter(0)
  y = s32[2,3]{0,1} parameter(1)
  a = f32[4] add(x, x)
  n = s32[2,3]{0,1} negate(y)
  ROOT r = (f32[4], (s32[2,3]{0,1})) tuple(a, u)
}""".replace("n = s32", "n = s32").replace("  ROOT", "  u = (s32[2,3]{0,1}) tuple(n)\n  ROOT")


@pytest.fixture(scope="module")
def vmfb() -> bytes:
    return compiled(PROGRAM)


def loaded(vmfb: bytes, **changes: Any) -> hloforge.Session:
    fields = manifest_of(vmfb)
    fields["signature"] |= changes.pop("signature", {})
    return hloforge.load(with_manifest(vmfb, fields | changes))


def test_the_file_runs_with_its_own_manifest(vmfb: bytes) -> None:
    x, y = np.arange(4, dtype=np.float32), np.ones((2, 3), np.int32)
    doubled, (negated,) = loaded(vmfb)(x, y)
    assert (doubled == 2 * x).all() and (negated == -1).all()


X, Y = ["x", "f32[4]"], ["y", "s32[2,3]{0,1}"]


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ({"result": "(f32[4], (s32[200,3]{0,1}))"}, r"result 1: s32\[200,3\]\{0,1\}, and main returns tensor<3x2xi32>"),
        ({"result": "(f32[4], (s32[2,3]{1,0}))"}, "result 1"),
        ({"result": "(f64[4], (s32[2,3]{0,1}))"}, "result 0"),
        ({"result": "f32[4]"}, "main returns 1 arrays, and it returns 2"),
        ({"result": "(f32[4], (s32[2,3]{0,1}), token[], f32[])"}, "main returns 3 arrays"),
        ({"parameters": [X]}, "main takes 1 arrays, and it takes 2"),
        ({"parameters": [X, Y, X]}, "main takes 3 arrays"),
        ({"parameters": [["x", "f32[400]"], Y]}, r"parameter x: f32\[400\], and main takes tensor<4xf32>"),
        ({"parameters": [["x", "c64[4]"], Y]}, "parameter x"),
        ({"parameters": [["x", "f32[2,2]"], Y]}, "parameter x"),
        ({"aliases": ["{0}: (7, {}, may-alias)"]}, "donates parameter 7, which is none"),
        ({"aliases": ["{0}: (0, {1}, may-alias)"]}, "is of no leaf of the signature"),
        ({"aliases": ["{5}: (0, {}, may-alias)"]}, "is of no leaf of the signature"),
    ],
)
def test_a_signature_that_is_not_the_programs(vmfb: bytes, signature: dict[str, Any], message: str) -> None:
    with pytest.raises(LoadError, match=message) as caught:
        loaded(vmfb, signature=signature)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("threads", -1), ("threads", 10**9), ("threads", "2"), ("work", None), ("name", 7), ("target", "cpu:none")),
        *(("device", 3), ("weights_file", "../../secret"), ("weights_file", "/etc/passwd"), ("flags", [1])),
        *(("targets", ["cpu", 5]), ("versions", {"hloforge": 1}), ("weights", {"w": "token[]"}), ("sharded", [[[]]])),
        *(("sharded", [[[[4], [0], [0]]] * 2, [[[4], [1], [0]]] * 2]), ("host_calls", ["{}"]), ("extra", 1)),
    ],
)
def test_a_field_that_cannot_be(vmfb: bytes, field: str, value: Any) -> None:
    with pytest.raises(LoadError, match="manifest"):
        loaded(vmfb, **{field: value})


def test_any_manifest_ends_in_results_or_in_an_error_of_ours(vmfb: bytes) -> None:
    for number, fields in enumerate(lies(manifest_of(vmfb), 400, seed=7)):
        changed = with_manifest(vmfb, fields)
        try:
            str(read_manifest(changed))
            session = hloforge.load(changed)
            leaves = [leaf.shape for leaf in session.signature.flat_parameters]
            if all(shape.is_static and shape.is_array for shape in leaves):
                session(*(np.zeros(shape.dimensions, shape.element.dtype) for shape in leaves if shape.element))
        except Error:
            pass
        except Exception as error:
            raise AssertionError(f"manifest {number}: {fields}") from error
