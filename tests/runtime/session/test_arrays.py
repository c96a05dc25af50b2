"""Arrays at the border: what a session takes, what it refuses, and whose memory results lie in."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.element_types import is_of_numpy
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.session.arrays import _import_dtype

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 1e-40]


def busy_memory() -> list[Any]:
    """Takes over memory that was freed too early."""
    return [np.full((64, 64), -1, np.float32) for _ in range(8)]


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128"])
def test_types_are_compared_by_value(name: str) -> None:
    """numpy's types are objects of their own after pickle, as from another process."""
    dtype = np.dtype(name)
    foreign = pickle.loads(pickle.dumps(dtype))
    assert foreign == dtype and foreign is not dtype
    assert _import_dtype(foreign) == dtype and is_of_numpy(foreign)
    assert not is_of_numpy(np.dtype(ml_dtypes.bfloat16)) and _import_dtype(np.dtype(ml_dtypes.bfloat16)) == np.uint16


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 4, 32])
def test_strides_and_alignment_of_arguments_do_not_matter(layouts: Any, order: Any, offset: int, aligned: Any) -> None:
    w, x = aligned((64, 64), order, offset), aligned((64, 64), order, offset) * 3
    for _ in range(5):
        difference, double = layouts.load()(w, x)
        gc.collect()
        noise = busy_memory()
        np.testing.assert_array_equal(difference, w - x)
        np.testing.assert_array_equal(double, x + x)
        assert noise
    assert difference.strides == (4, 256)
    assert double.strides == (256, 4)


def test_tiled_arrays_come_and_go_as_arrays(compiled: Any) -> None:
    session = compiled("""HloModule tiled, entry_computation_layout={
      (bf16[20,130]{1,0:T(8,128)(2,1)S(1)}, s4[3,5]{0,1:T(2,2)E(4)})
      ->(bf16[20,130]{0,1:T(8,128)}, s4[3,5]{1,0:T(2,2)E(4)})}
      ENTRY main { a = bf16[20,130]{1,0:T(8,128)(2,1)S(1)} parameter(0)
                   b = s4[3,5]{0,1:T(2,2)E(4)} parameter(1)
                   c = bf16[20,130]{0,1:T(8,128)} negate(a)
                   ROOT both = (bf16[20,130]{0,1:T(8,128)}, s4[3,5]{1,0:T(2,2)E(4)}) tuple(c, b) }""").load()
    a = np.arange(2600).reshape(20, 130).astype(ml_dtypes.bfloat16)
    b = (np.arange(15).reshape(3, 5) - 8).astype(ml_dtypes.int4)
    negated, same = session(a, b)
    np.testing.assert_array_equal(negated, -a)
    np.testing.assert_array_equal(same, b)
    stored = session.put(a, 0)
    assert stored.shape == (20, 130)
    np.testing.assert_array_equal(np.asarray(stored), a)
    np.testing.assert_array_equal(session(stored, b)[0], -a)
    # A buffer of other tiles is no argument here.
    with pytest.raises(ArgumentError, match="a device array"):
        session(session.call_device(a, b)[0], b)


def test_negative_and_wide_strides(layouts: Any, aligned: Any) -> None:
    w, x = aligned((128, 64))[::-2], aligned((64, 128))[:, 1::2]
    difference, _ = layouts.load()(w, x)
    np.testing.assert_array_equal(difference, w - x)


def test_a_read_only_array_is_taken_and_left_alone(layouts: Any, aligned: Any) -> None:
    w = aligned((64, 64))
    w.flags.writeable = False
    before = w.copy()
    difference, _ = layouts.load()(w, np.zeros((64, 64), np.float32))
    np.testing.assert_array_equal(difference, before)
    np.testing.assert_array_equal(w, before)


def test_a_view_of_a_result_outlives_result_and_session(layouts: Any, aligned: Any) -> None:
    x = aligned((64, 64))
    session = layouts.load()
    row = session(x, x)[1].T[3]
    del session
    gc.collect()
    noise = busy_memory()
    np.testing.assert_array_equal(row, (x + x)[:, 3])
    assert noise


def test_a_result_is_never_the_argument_that_it_repeats(swap: Any, aligned: Any) -> None:
    a, b = aligned((64, 64)), aligned((64, 64)) + 1
    kept_a, kept_b = a.copy(), b.copy()
    session = swap.load()
    first, second = session(a, b)
    on_device, _ = session.call_device(a, b)
    a[:] = b[:] = 0
    np.testing.assert_array_equal(first, kept_b)
    np.testing.assert_array_equal(second, kept_a)
    np.testing.assert_array_equal(on_device, kept_b)


def test_a_device_array_never_changes(swap: Any, aligned: Any) -> None:
    source = aligned((64, 64))
    kept = source.copy()
    session = swap.load()
    array = session.put(source, "arg0")
    source[:] = 0
    result, _ = session(array, array)
    result[:] = 7
    np.testing.assert_array_equal(array, kept)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(array)[0] = 1


UPDATES = {
    "dynamic-update-slice": """ROOT r = f32[200,100] dynamic-update-slice(x, u, i, zero)""",
    "scatter": """indices = s32[10,1] broadcast(i), dimensions={}
      ROOT r = f32[200,100] scatter(x, indices, u), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
    "while": """start = (s32[], f32[200,100], f32[10,100]) tuple(i, x, u)
      end = (s32[], f32[200,100], f32[10,100]) while(start), condition=condition, body=body
      ROOT r = f32[200,100] get-tuple-element(end), index=1""",
}
PARTS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
condition { p = (s32[], f32[200,100], f32[10,100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(20)
  ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[200,100], f32[10,100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[200,100] get-tuple-element(p), index=1
  u = f32[10,100] get-tuple-element(p), index=2
  one = s32[] constant(1)
  ten = s32[] constant(10)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  row = s32[] multiply(i, ten)
  y = f32[200,100] dynamic-update-slice(x, u, row, zero)
  ROOT t = (s32[], f32[200,100], f32[10,100]) tuple(next, y, u) }
ENTRY main { x = f32[200,100] parameter(0)
  u = f32[10,100] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
"""


def updated(kind: str, x: np.ndarray[Any, Any], u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the programs of ``UPDATES`` make of ``x`` and ``u`` from row or step 3."""
    result = x.copy()
    if kind == "dynamic-update-slice":
        result[3:13] = u
    elif kind == "scatter":
        for row in u:
            result[3] += row
    else:
        result[30:] = np.tile(u, (17, 1))
    return result


DONATION = ", input_output_alias={ {}: (0, {}, must-alias) }"


@pytest.mark.parametrize("donation", ["", DONATION], ids=["kept", "donated"])
@pytest.mark.parametrize("kind", UPDATES)
def test_no_program_changes_an_array_of_numpy(compiled: Any, aligned: Any, kind: str, donation: str) -> None:
    """Not even a donated one."""
    session = compiled(f"HloModule m{donation}\n{PARTS}{UPDATES[kind]} }}").load()
    x, u = aligned((200, 100)), aligned((10, 100)) * 2
    before, expected = x.copy(), updated(kind, x, u)
    result = session(x, u, 3)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    session(x, u, 5)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kind", UPDATES)
def test_donated_device_arrays_are_updated_in_place_and_end(compiled: Any, aligned: Any, kind: str) -> None:
    session = compiled(f"HloModule m{DONATION}\n{PARTS}{UPDATES[kind]} }}").load()
    x, u = aligned((200, 100)), aligned((10, 100)) * 2
    expected = updated(kind, x, u)
    given = session.put(x, "x")
    place = given.host.ctypes.data
    result = session.call_device(given, u, 3)
    # A loop in one dispatch has a place of its own.
    assert kind == "while" or result.host.ctypes.data == place
    np.testing.assert_allclose(np.array(result), expected, rtol=1e-5, atol=1e-5)
    for use in (np.asarray, lambda array: session(array, u, 3), lambda array: session.put(array, "u")):
        with pytest.raises(ArgumentError, match="donated as argument 'x'"):
            use(given)
    again = session.put(x, "x")
    with pytest.raises(ArgumentError, match="'x' is donated, and the same device array"):
        compiled(
            f"HloModule m{DONATION}\nENTRY main {{ x = f32[200,100] parameter(0)\n"
            "y = f32[200,100] parameter(1)\nROOT s = f32[200,100] add(x, y) }"
        ).load()(again, again)
    np.testing.assert_allclose(session(again, u, 3), expected, rtol=1e-5, atol=1e-5)


def test_donated_device_arrays_that_others_see_are_copied(compiled: Any, aligned: Any) -> None:
    update = f"HloModule m{DONATION}\n{PARTS}{UPDATES['dynamic-update-slice']} }}"
    session = compiled(update).load()
    x, u = aligned((200, 100)), aligned((10, 100)) * 2
    before = x.copy()
    seen = session.put(x, "x")
    shown = np.asarray(seen)
    original = session.put(x, "x")
    alias = session.put(original, "x")
    same = compiled("HloModule same\nENTRY main { ROOT x = f32[200,100] parameter(0) }").load()
    argument = same.put(x, 0)
    returned = same.call_device(argument)
    for given in (seen, alias, returned):
        session(given, u, 3)
    for kept in (shown, original, argument):
        np.testing.assert_array_equal(kept, before)


@pytest.mark.parametrize("kind", UPDATES)
def test_no_program_changes_a_device_array(compiled: Any, aligned: Any, kind: str) -> None:
    session = compiled(f"HloModule m\n{PARTS}{UPDATES[kind]} }}").load()
    x, u = aligned((200, 100)), aligned((10, 100)) * 2
    before, expected = x.copy(), updated(kind, x, u)
    on_device = session.put(x, "x")
    for _ in range(2):
        result = session.call_device(on_device, session.put(u, "u"), 3)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(on_device, before)
    kept = np.array(result)
    session(result, u, 5)
    np.testing.assert_array_equal(result, kept)


def test_each_result_has_memory_of_its_own(compiled: Any, aligned: Any) -> None:
    constant = ", ".join(map(str, range(3000)))
    session = compiled(f"""func.func @main(%a: tensor<3000xf32>, %e: tensor<0xf32>) -> (tensor<3000xf32>,
        tensor<3000xf32>, tensor<0xf32>, tensor<3000xf32>, tensor<3000xf32>, tensor<3000xi32>, tensor<3000xi32>) {{
      %sum = stablehlo.add %a, %a : tensor<3000xf32>
      %c = stablehlo.constant dense<[{constant}]> : tensor<3000xi32>
      return %sum, %a, %e, %sum, %a, %c, %c : tensor<3000xf32>, tensor<3000xf32>, tensor<0xf32>, tensor<3000xf32>,
        tensor<3000xf32>, tensor<3000xi32>, tensor<3000xi32> }}""").load()
    a = aligned((3000,))
    before = a.copy()
    expected = [a + a, before, np.empty(0), a + a, before, np.arange(3000), np.arange(3000)]
    for _ in range(2):
        results = session(a, np.empty(0, np.float32))
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, right)
            result[:] = -7
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_device_arrays_go_from_call_to_call(layouts: Any, order: Any, aligned: Any) -> None:
    w, x = aligned((64, 64), order), aligned((64, 64), order) * 3
    session = layouts.load()
    placed = session.put(w, 0)
    np.testing.assert_array_equal(placed, w)
    difference, double = session.call_device(placed, session.put(x, "x"))
    again, _ = session(difference, double)
    np.testing.assert_array_equal(again, (w - x) - (x + x))
    assert (difference.shape, difference.dtype, difference.ndim) == ((64, 64), np.float32, 2)
    with pytest.raises(ArgumentError, match=r"argument 'w': expected f32\[64,64\]\{0,1\}, got a device array"):
        session(double, double)


def test_dlpack_and_array_protocols(add: Any) -> None:
    class ByDlpack:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    class ByArray:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones(4, np.float32)

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(add.load()(ByDlpack(x), ByArray()), x + 1)
    session = add.load()
    shared = np.from_dlpack(session.call_device(x, x))
    np.testing.assert_array_equal(shared, x + x)


def bits(array: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(array)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.itemsize < 16 else array.view("u8")


TYPES = {
    "i1": [False, True, True],
    "i2": np.array([-2, 0, 1]).astype(ml_dtypes.int2),
    "ui2": np.array([0, 1, 3]).astype(ml_dtypes.uint2),
    "i4": np.array([-8, -1, 7]).astype(ml_dtypes.int4),
    "ui4": np.array([0, 8, 15]).astype(ml_dtypes.uint4),
    "ui8": np.array([0, 128, 255], np.uint8),
    "i16": np.array([-(2**15), 0, 2**15 - 1], np.int16),
    "ui64": np.array([0, 2**63, 2**64 - 1], np.uint64),
    "bf16": np.array(SPECIAL).astype(ml_dtypes.bfloat16),
    "f16": np.array(SPECIAL).astype(np.float16),
    "f32": np.array(SPECIAL, np.float32),
    "f64": np.array([*SPECIAL, 5e-324]),
    "f8E4M3FN": np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e4m3fn),
    "f8E3M4": np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e3m4),
    "f8E8M0FNU": np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": np.arange(64).astype(np.uint8).view(ml_dtypes.float6_e2m3fn),
    "f4E2M1FN": np.arange(16).astype(np.uint8).view(ml_dtypes.float4_e2m1fn),
    "complex<f32>": np.array([1 - 2j, complex(np.nan, -0.0)], np.complex64),
    "complex<f64>": np.array([1 - 2j, complex(-0.0, np.inf)]),
}


def test_every_kind_of_element_crosses_bit_for_bit(compiled: Any) -> None:
    arrays = [np.asarray(values) for values in TYPES.values()]
    types = [f"tensor<{array.size}x{name}>" for name, array in zip(TYPES, arrays, strict=True)]
    parameters = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    names, listed = ", ".join(f"%a{i}" for i in range(len(types))), ", ".join(types)
    session = compiled(f"func.func @main({parameters}) -> ({listed}) {{ return {names} : {listed} }}").load()
    placed = [session.put(array, number) for number, array in enumerate(arrays)]
    for results in (session(*arrays), session(*placed)):
        for array, result in zip(arrays, results, strict=True):
            assert result.dtype == array.dtype
            np.testing.assert_array_equal(bits(result), bits(array))


def test_empty_arrays(compiled: Any) -> None:
    session = compiled("""func.func @main(%a: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
      return %a, %sum : tensor<0x3xf32>, tensor<3xf32> }""").load()
    same, sums = session(np.empty((0, 3), np.float32))
    assert same.shape == (0, 3)
    np.testing.assert_array_equal(sums, np.zeros(3))


def test_dynamic_sizes(compiled: Any, aligned: Any) -> None:
    session = compiled("""func.func @main(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %0 = stablehlo.add %a, %a : tensor<?x2xf32> return %0 : tensor<?x2xf32> }""").load()
    for size in (0, 1, 5, 3000):
        x = aligned((size, 2)) if size else np.empty((0, 2), np.float32)
        np.testing.assert_array_equal(session(x), x + x)
    with pytest.raises(ArgumentError, match=r"expected f32\[\?,2\]"):
        session(np.ones((2, 3), np.float32))


GOOD = (0.5, 3, True, 15, 1.5, 1j)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (0, 7),
        (0, np.inf),
        (0, np.nan),
        (0, -0.0),
        (0, 2**24),
        (1, -(2**31)),
        (2, False),
        (3, 0),
        (4, 65504.0),
        (5, 2),
        (5, 0.5),
    ],
)
def test_python_scalars_that_fit(scalars: Any, number: int, value: Any) -> None:
    result = scalars.load()(*GOOD[:number], value, *GOOD[number + 1 :])[number]
    assert result.shape == ()
    np.testing.assert_array_equal(result, value)


@pytest.mark.parametrize(
    ("number", "value", "said"),
    [
        (0, True, "the Python scalar True"),
        (0, 1j, "the Python scalar 1j"),
        (0, 1e39, "1e+39, which f32 cannot hold"),
        (0, 2**24 + 1, "16777217, which f32 cannot hold"),
        pytest.param(0, 10**5000, "an integer of 16610 bits, which f32 cannot hold", id="huge"),
        (1, 1.0, "the Python scalar 1.0"),
        (1, 2**31, "2147483648, which s32 cannot hold"),
        (2, 1, "the Python scalar 1"),
        (3, 16, "16, which u4 cannot hold"),
        (3, -1, "-1, which u4 cannot hold"),
        (4, 1e5, "100000.0, which f16 cannot hold"),
        (0, "1", "<U1 array of shape ()"),
        (0, None, "object array of shape ()"),
        (0, [1.0], "float64 array of shape (1,)"),
    ],
)
def test_python_scalars_that_would_change_are_refused(scalars: Any, number: int, value: Any, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        scalars.load()(*GOOD[:number], value, *GOOD[number + 1 :])
    assert caught.value.message.endswith(f"got {said}")
    assert caught.value.message.startswith(f"argument 'arg{number}': expected ")


def test_wrong_element_types_and_sizes_are_named(layouts: Any) -> None:
    session = layouts.load()
    x = np.zeros((64, 64), np.float32)
    for wrong, said in [
        (x.astype(np.float64), "float64 array of shape (64, 64)"),
        (x.astype(np.int32), "int32 array of shape (64, 64)"),
        (x.astype(">f4"), ">f4 array of shape (64, 64)"),
        (x[:32], "float32 array of shape (32, 64)"),
        (x[0], "float32 array of shape (64,)"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            session(wrong, x)
        assert caught.value.message == f"argument 'w': expected f32[64,64]{{0,1}}, got {said}"
        assert ("x.astype('float32')" in caught.value.hint) == (wrong.dtype != x.dtype)
