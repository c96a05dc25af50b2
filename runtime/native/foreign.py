"""Calls of a program by XLA's runtime: a handler of custom calls (XLA's foreign function interface) as machine code.

JAX calls its own executables from C++, in a few microseconds with all arguments and results. So a program of our code
generator can be one operation of an executable of XLA's: the handler finds the program in an attribute of the call,
binds the buffers that XLA hands over, and runs the kernels. Python is not asked.

Source: XLA, ``xla/ffi/api/c_api.h`` (``XLA_FFI_CallFrame``, version 0.1 and later, whose first fields stay).
"""

from __future__ import annotations

from collections.abc import Mapping

# The version of the interface that is told, and the extension by which XLA asks for it.
_MAJOR, _MINOR, _METADATA = 0, 1, 1
# Words of a call's frame: an extension; arguments and results, each a count and a table of buffers; attributes, in the
# order of their names. Words of a buffer, of an attribute, and of an extension.
_EXTENSION, _ARGUMENTS, _ARGUMENT, _RESULTS, _RESULT, _ATTRIBUTE = 1, 7, 9, 12, 14, 20
_DATA, _VALUE, _ASKED = 3, 1, 3
# Of what is told, in bytes: the version, and the handler's traits.
_MAJOR_AT, _MINOR_AT, _TRAITS_AT = 24, 28, 32
# The attributes of a call: a word of the process alone, so that no other one finds the executable in a cache; and the
# address of the program's context. By name the second one is last.
PROCESS, PROGRAM = "process", "program"
_PROGRAM_NUMBER = 1


def text(words: Mapping[str, int]) -> str:
    """The handler, as part of the caller's text.

    Args:
        words: numbers of words of a call's context.
    """
    return f"""
define ptr @handle(ptr %frame) nounwind {{
entry:
  %extension = call ptr @word(ptr %frame, i64 {_EXTENSION})
  %no.extension = icmp eq ptr %extension, null
  br i1 %no.extension, label %find, label %which
which:
  %kind.at = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind.at
  %asked = icmp eq i32 %kind, {_METADATA}
  br i1 %asked, label %tell, label %find
tell:
  %told = call ptr @word(ptr %extension, i64 {_ASKED})
  %major.at = getelementptr i8, ptr %told, i64 {_MAJOR_AT}
  store i32 {_MAJOR}, ptr %major.at
  %minor.at = getelementptr i8, ptr %told, i64 {_MINOR_AT}
  store i32 {_MINOR}, ptr %minor.at
  %traits.at = getelementptr i8, ptr %told, i64 {_TRAITS_AT}
  store i32 0, ptr %traits.at
  ret ptr null
find:
  %attributes = call ptr @word(ptr %frame, i64 {_ATTRIBUTE})
  %attribute = call ptr @word(ptr %attributes, i64 {_PROGRAM_NUMBER})
  %value = call ptr @word(ptr %attribute, i64 {_VALUE})
  %context = call ptr @word(ptr %value, i64 0)
  %lock = getelementptr i8, ptr %context, i64 {8 * words["LOCK"]}
  br label %take
take:
  %pair = cmpxchg ptr %lock, i64 0, i64 1 seq_cst seq_cst
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %bind, label %wait
wait:
  %yield = call ptr @word(ptr %context, i64 {words["YIELD"]})
  %0 = call i32 %yield()
  br label %take
bind:
  %addresses = call ptr @word(ptr %context, i64 {words["ADDRESSES"]})
  %arguments.p = call ptr @word(ptr %frame, i64 {_ARGUMENTS})
  %arguments = ptrtoint ptr %arguments.p to i64
  %argument = call ptr @word(ptr %frame, i64 {_ARGUMENT})
  call void @buffers(ptr %argument, i64 %arguments, ptr %addresses)
  %results.p = call ptr @word(ptr %frame, i64 {_RESULTS})
  %results = ptrtoint ptr %results.p to i64
  %result = call ptr @word(ptr %frame, i64 {_RESULT})
  %rest = getelementptr ptr, ptr %addresses, i64 %arguments
  call void @buffers(ptr %result, i64 %results, ptr %rest)
  call void @execute(ptr %context)
  store atomic i64 0, ptr %lock seq_cst, align 8
  ret ptr null
}}

define internal void @buffers(ptr %table, i64 %count, ptr %addresses) noinline nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %more, %buffer ]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %done, label %buffer
buffer:
  %one = call ptr @word(ptr %table, i64 %i)
  %data = call ptr @word(ptr %one, i64 {_DATA})
  %at = getelementptr ptr, ptr %addresses, i64 %i
  store ptr %data, ptr %at
  %more = add i64 %i, 1
  br label %next
done:
  ret void
}}
"""
