"""What a reader refuses is shown at its place: line, column, a caret, and the way out where there is one."""

from __future__ import annotations

import re

import pytest

import hloforge
from hloforge.dialect.errors import ImporterError
from hloforge.dialect.operations import operations

WORK = "add { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }\n"
HEADER = "HloModule m\n" + WORK + "ENTRY e {\n  p = f32[4] parameter(0)\n"


def refused(text: str) -> ImporterError:
    with pytest.raises(ImporterError) as caught:
        hloforge.read(text)
    return caught.value


def under_caret(error: ImporterError) -> str:
    """The text from the caret on, in the report as a user sees it."""
    lines = str(error).splitlines()
    number = next(number for number, line in enumerate(lines) if line.strip() == "^")
    return lines[number - 1][lines[number].index("^") :]


@pytest.mark.parametrize(
    ("line", "token"),
    [
        ("  ROOT s = f32[4] frobnicate(p)", "frobnicate(p)"),
        ("\tROOT s = f32[4] add(p, zz)", "zz)"),
        ("  ROOT s = f32[4] add(p, p), foo=1", "foo=1"),
        ("  t = token[] after-all()\n  ROOT s = (f32[4], u32[], token[]) send-start(p, t), channel_id=1", "send-start"),
        (f'  ROOT s = f32[4] add(p, p), metadata={{op_name="{"x" * 400}"}}, foo=1', "foo=1"),
        ("  ROOT s = f32[4] call-update(p)", "s = f32[4] call-update(p)"),
    ],
)
def test_the_caret_is_under_what_the_location_names(line: str, token: str) -> None:
    error = refused(f"{HEADER}{line}\n}}\n")
    assert error.location is not None
    source = f"{HEADER}{line}".splitlines()[error.location.line - 1]
    assert source[error.location.column - 1 :].startswith(token)
    assert under_caret(error).startswith(token)
    assert max(map(len, error.op.splitlines())) <= 160


@pytest.mark.parametrize(
    ("line", "token"),
    [
        ("  r = (u64[2], u32[4]) rng-bit-generator(), algorithm=rng_three_fry\n  ROOT s = f32[4] negate(p)", "r ="),
        ("  a = f32[4] abs(p)\n  ROOT s = f32[3] reshape(a)\n", "s ="),
        ("  a = ((f32[4]), (), u32[]) add-start(p)\n  ROOT s = f32[4] add-done(a)", "a ="),
    ],
)
def test_an_instruction_that_ends_the_parser_is_named(line: str, token: str) -> None:
    error = refused(f"{HEADER}{line}\n}}\n")
    assert "XLA's reader" in error.message and under_caret(error).startswith(token)


def test_an_instruction_inside_of_another_one_and_a_root_that_nobody_awaits_have_lines() -> None:
    error = refused(f"""{HEADER}  ROOT r = s32[4] call(p), to_apply={{
    p = f32[4] parameter(0)
    ROOT m = s32[4] multiply(p, p)
  }}
}}
""")
    assert str(error.location).startswith("<string>:7:8")
    error = refused("""HloModule m
inner { p = f32[4] parameter(0) ROOT a = f32[4] abs(p) }
ENTRY e {
  p = f32[4] parameter(0)
  ROOT s = ((f32[4]), f32[4]) call-start(p), to_apply=inner
}""")
    assert error.location is not None and error.location.line == 3


def test_a_transfer_that_a_loop_carries_is_refused_where_it_is_awaited() -> None:
    shape = "(f32[4], u32[], token[])"
    error = refused(f"""HloModule m
ENTRY e {{
  t = ({shape}) parameter(0)
  s = {shape} get-tuple-element(t), index=0
  ROOT d = token[] send-done(s), channel_id=1
}}""")
    assert str(error.location) == "<string>:5:8" and "awaits a send" in error.message and "pipelined" in error.hint


def test_mlir_has_a_caret_too() -> None:
    error = refused("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.addd %x\n}")
    assert str(error.location) == "<string>:2:8" and under_caret(error) == "stablehlo.addd %x"


@pytest.mark.parametrize("opcode", ["send-start", "recv-start", "shuffle", "collective-reduce"])
def test_an_opcode_of_another_version_says_what_to_take_instead(opcode: str) -> None:
    error = refused(f"{HEADER}  ROOT s = f32[4] {opcode}(p)\n}}")
    assert opcode in error.message and "before XLA's passes" in error.hint


@pytest.mark.parametrize(
    ("text", "is_in_doubt"),
    [
        ("HloModule m\nENTRY e { ROOT p = f32[4] frobnicate() }", False),
        ("module {\n  frobnicate\n}", False),
        ("%p = f32[4] parameter(0)\n%q = f32[4] frobnicate(p)", True),
    ],
)
def test_another_form_is_named_only_where_the_form_is_in_doubt(text: str, is_in_doubt: bool) -> None:
    assert ("format=" in str(refused(text))) == is_in_doubt


def test_what_the_parser_wraps_is_where_its_start_is() -> None:
    line = (
        "  s = ((f32[4]), f32[2], s32[]) reduce-scatter-start(p), to_apply=add, dimensions={0}, replica_groups={}, "
        "channel_id=1, use_global_device_ids=true\n  ROOT r = f32[2] reduce-scatter-done(s)\n}"
    )
    error = refused(HEADER + line)
    assert "replica groups cannot be empty" in error.message and str(error.location) == "<string>:7:3"


CALL = HEADER + '  ROOT r = f32[4] custom-call(p), custom_call_target="f", api_version=%s, backend_config=%s\n}'


@pytest.mark.parametrize(
    "configuration", ['"text"', '{"a": 1}', '"3"', '"{a = }"', '{"custom_call_backend_config": {"attributes": "[1]"}}']
)
def test_attributes_that_are_no_dictionary_are_refused_at_their_line(configuration: str) -> None:
    error = refused(CALL % ("API_VERSION_TYPED_FFI", configuration))
    assert str(error.location) == "<string>:7:8" and "@f: its backend_config is no dictionary of MLIR" in error.message
    hloforge.read(CALL % ("API_VERSION_STATUS_RETURNING", configuration))


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ('"{eps = 1.0 : f32, n = 2 : i64}"', "{eps = 1.000000e+00 : f32, n = 2 : i64}"),
        ('{"custom_call_backend_config": {"attributes": "{n = 2 : i64}"}, "operation_queue_id": "0"}', "{n = 2 : i64}"),
        ('{"operation_queue_id": "0", "wait_on_operation_queues": []}', "{}"),
    ],
)
def test_attributes_are_read_as_xla_writes_them_for_cpus_and_gpus(configuration: str, expected: str) -> None:
    program = hloforge.read(CALL % ("API_VERSION_TYPED_FFI", configuration))
    (call,) = operations(program.module, {"stablehlo.custom_call"})
    assert str(call.attributes["backend_config"]) == expected


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("ROOT c = f32[2,3] copy-done(t)", "*-start requires *-done as input"),
        (
            'ROOT c = f32[2,3] call(p), to_apply=same, is_composite=true, frontend_attributes={composite.name="a.b"}',
            "A composite call op must have frontend attributes",
        ),
    ],
)
def test_what_the_converter_refuses_without_a_name_has_a_line(instruction: str, message: str) -> None:
    text = f"""HloModule m
same {{ a = f32[2,3] parameter(0)
  ROOT b = f32[2,3] negate(a) }}
ENTRY e {{
  p = f32[2,3] parameter(0)
  n = u32[] parameter(1)
  q = f32[2,3] add(p, p)
  t = (f32[2,3], f32[2,3], u32[]) tuple(p, q, n)
  {instruction}
}}"""
    with pytest.raises(ImporterError, match=re.escape(message)) as caught:
        hloforge.read(text.encode())
    assert caught.value.location is not None
    assert caught.value.location.line == 9


@pytest.mark.parametrize("last", ["", "  c = f32[4,4] negate(r)\n"])
def test_an_instruction_at_which_the_parser_fails_without_a_place_is_found(last: str) -> None:
    """An all-gather of no dimension, which XLA's parser asks for its first one."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[8,4] parameter(0)
  n = f32[8,4] negate(x)
  r = f32[32,4] all-gather(n), replica_groups={{}}, dimensions={{}}
{last}}}
"""
    with pytest.raises(ImporterError, match="XLA's parser gave up") as caught:
        hloforge.read(text.encode())
    assert str(caught.value.location) == "<bytes>:5:3"
    assert "all-gather" in caught.value.op


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("r = f32[16] all-gather(x), dimensions={0}, replica_groups=[2,2]<=[16]", "new_num_elements == num_elements()"),
        (
            "r = (f32[8], f32[8]) collective-permute(t, t, i, j), source_target_pairs={{0,1}}, slice_sizes={{1},{1}}",
            "Expected a tuple shape",
        ),
    ],
)
@pytest.mark.parametrize("last", ["", "  c = f32[8] negate(x)\n"])
def test_an_instruction_at_which_the_converter_ends_the_process_is_found(
    instruction: str, message: str, last: str
) -> None:
    """Groups of more devices than their list has; begins of parts that are nested in different ways."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[8] parameter(0)
  t = (f32[8], f32[8]) tuple(x, x)
  n = s32[] constant(0)
  i = (s32[]) tuple(n)
  j = ((s32[]), (s32[])) tuple(i, i)
  {instruction}
{last}}}
"""
    with pytest.raises(ImporterError, match=re.escape(message)) as caught:
        hloforge.read(text.encode())
    assert str(caught.value.location) == "<bytes>:8:3"
    assert instruction in caught.value.op
