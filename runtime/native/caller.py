"""Machine code that calls a program from Python: it looks at arrays, binds them, and runs the kernels.

A call by IREE's runtime takes some 5 µs beside Python's own work, a small kernel less than one. So programs of our own
code generator have a function of Python whose code is written here: CPython's calling convention for built-in functions
(``METH_FASTCALL``), and numpy's layout of arrays, which ``is_available`` compares with arrays at hand. The function is
given all arrays of a call, results included, and says whether they were what the program takes; if not, nothing ran.
A framework's tensors may stand in for arrays: a C function of the framework's tells where their elements are, and the
caller vouches for their sizes, because only the framework knows how to look at them.
A kernel whose function of the host has failed is the last one that runs; the session knows what was raised.

Sources: CPython, ``Include/methodobject.h``; numpy, ``ndarraytypes.h`` (``PyArrayObject_fields``); IREE,
``executable_library.h`` (``iree_hal_executable_dispatch_state_v0_t``), ``fpu_state.c``.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hloforge.pipelines.codegen.kernel_program import CONSTANTS_AT, CONSTANTS_COUNT_AT, HANDED
from hloforge.runtime.compile.direct.host import DirectError, is_available as runs_code
from hloforge.runtime.compile.direct.objects import text_object
from hloforge.runtime.compile.direct.relocatable import read
from hloforge.runtime.native import foreign, pool, team
from hloforge.runtime.native.library import Code, MappingError

# Of an array: data, number of dimensions, sizes, element type, flags.
_DATA, _RANK, _SIZES, _TYPE, _FLAGS = 16, 24, 32, 56, 64
# In the order of memory, and aligned as its elements ask.
_PLAIN = 0x101
# Words of a call's context, and of what it says of an array, of a place for an address, and of a dispatch.
(
    ARRAY_TYPE, ARRAYS, FORMS, ADDRESSES, PATCHES, PLACES, PARTS, DISPATCHES, STATE, SAVE, RESTORE, ANSWER, POOL, TIMES,
    CLOCK, MEMORY_OF, TEAM, THREADS, THREADS_OF, PARALLEL, THREAD, SHARE, SHARES_POOL, LOCK, YIELD, WORDS,
) = range(26)  # fmt: skip
FORM_WORDS, PLACE_WORDS, DISPATCH_WORDS = 4, 3, 3
# Bytes of IREE's state of a dispatch, and where in it the pointers to arrays and the number of workgroups are. The
# state of a workgroup follows.
STATE_BYTES, _POINTERS, _COUNT = 64, 32, 12
# What kernels are told of other threads (``kernel_program.py``): two words of the context, where a call has some.
SHARE_AT = CONSTANTS_AT
# Seconds and nanoseconds (``struct timespec``), and the clock that ``time.time_ns`` reads.
TIME_WORDS, _REALTIME = 2, 0
# Subnormal numbers are zero, as for IREE's runtime and XLA.
_FLUSHING = 0x8040

_TEXT = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define ptr @call(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %at = getelementptr i8, ptr %self, i64 {_DATA}
  %context = load ptr, ptr %at
  %answer = call ptr @word(ptr %context, i64 {ANSWER})
  %arrays.p = call ptr @word(ptr %context, i64 {ARRAYS})
  %arrays = ptrtoint ptr %arrays.p to i64
  %kind = call ptr @word(ptr %context, i64 {ARRAY_TYPE})
  %forms = call ptr @word(ptr %context, i64 {FORMS})
  %addresses = call ptr @word(ptr %context, i64 {ADDRESSES})
  %memory.of = call ptr @word(ptr %context, i64 {MEMORY_OF})
  %fits = icmp eq i64 %count, %arrays
  br i1 %fits, label %next, label %no
next:
  %i = phi i64 [ 0, %entry ], [ %i.more, %taken ]
  %all = icmp eq i64 %i, %arrays
  br i1 %all, label %start, label %look
look:
  %object = call ptr @word(ptr %given, i64 %i)
  %own.kind = call ptr @word(ptr %object, i64 1)
  %place = mul i64 %i, {8 * FORM_WORDS}
  %form = getelementptr i8, ptr %forms, i64 %place
  %is.array = icmp eq ptr %own.kind, %kind
  br i1 %is.array, label %array, label %else
else:
  %no.others = icmp eq ptr %memory.of, null
  br i1 %no.others, label %no, label %tensor
tensor:
  %elements = call ptr %memory.of(ptr %object)
  %elements.i = ptrtoint ptr %elements to i64
  %low.p = call ptr @word(ptr %form, i64 3)
  %low = ptrtoint ptr %low.p to i64
  %beside = and i64 %elements.i, %low
  %aligned = icmp eq i64 %beside, 0
  br i1 %aligned, label %taken, label %no
array:
  %type = call ptr @word(ptr %form, i64 0)
  %own.type = call ptr @word(ptr %object, i64 {_TYPE // 8})
  %same.type = icmp eq ptr %own.type, %type
  %rank.p = call ptr @word(ptr %form, i64 1)
  %rank = ptrtoint ptr %rank.p to i64
  %own.rank.at = getelementptr i8, ptr %object, i64 {_RANK}
  %own.rank.32 = load i32, ptr %own.rank.at
  %own.rank = zext i32 %own.rank.32 to i64
  %same.rank = icmp eq i64 %own.rank, %rank
  %flags.at = getelementptr i8, ptr %object, i64 {_FLAGS}
  %flags = load i32, ptr %flags.at
  %set = and i32 %flags, {_PLAIN}
  %plain = icmp eq i32 %set, {_PLAIN}
  %both = and i1 %same.type, %same.rank
  %three = and i1 %both, %plain
  br i1 %three, label %sizes, label %no
sizes:
  %wanted = call ptr @word(ptr %form, i64 2)
  %own = call ptr @word(ptr %object, i64 {_SIZES // 8})
  br label %size
size:
  %d = phi i64 [ 0, %sizes ], [ %d.more, %same ]
  %done = icmp eq i64 %d, %rank
  br i1 %done, label %shown, label %compare
compare:
  %one = call ptr @word(ptr %wanted, i64 %d)
  %other = call ptr @word(ptr %own, i64 %d)
  %equal = icmp eq ptr %one, %other
  %d.more = add i64 %d, 1
  br i1 %equal, label %same, label %no
same:
  br label %size
shown:
  %own.data = call ptr @word(ptr %object, i64 {_DATA // 8})
  br label %taken
taken:
  %data = phi ptr [ %own.data, %shown ], [ %elements, %tensor ]
  %address.at = getelementptr ptr, ptr %addresses, i64 %i
  store ptr %data, ptr %address.at
  %i.more = add i64 %i, 1
  br label %next
start:
  %save = call ptr @word(ptr %context, i64 {SAVE})
  %thread = call ptr %save()
  call void @execute(ptr %context)
  %restore = call ptr @word(ptr %context, i64 {RESTORE})
  call void %restore(ptr %thread)
  %yes = call ptr %answer(i64 1)
  ret ptr %yes
no:
  %refused = call ptr %answer(i64 0)
  ret ptr %refused
}}

define internal void @execute(ptr %context) noinline nounwind {{
entry:
  %before = alloca i32, align 4
  %during = alloca i32, align 4
  %addresses = call ptr @word(ptr %context, i64 {ADDRESSES})
  %patches.p = call ptr @word(ptr %context, i64 {PATCHES})
  %patches = ptrtoint ptr %patches.p to i64
  %places = call ptr @word(ptr %context, i64 {PLACES})
  br label %patch
patch:
  %p = phi i64 [ 0, %entry ], [ %p.more, %write ]
  %bound = icmp eq i64 %p, %patches
  br i1 %bound, label %start, label %write
write:
  %patch.at = mul i64 %p, {8 * PLACE_WORDS}
  %patch.p = getelementptr i8, ptr %places, i64 %patch.at
  %target = call ptr @word(ptr %patch.p, i64 0)
  %number.p = call ptr @word(ptr %patch.p, i64 1)
  %number = ptrtoint ptr %number.p to i64
  %offset.p = call ptr @word(ptr %patch.p, i64 2)
  %offset = ptrtoint ptr %offset.p to i64
  %base = call ptr @word(ptr %addresses, i64 %number)
  %bytes = getelementptr i8, ptr %base, i64 %offset
  store ptr %bytes, ptr %target
  %p.more = add i64 %p, 1
  br label %patch
start:
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  %was = load i32, ptr %before
  %flushing = or i32 %was, {_FLUSHING}
  store i32 %flushing, ptr %during
  call void @llvm.x86.sse.ldmxcsr(ptr %during)
  %pool = call ptr @word(ptr %context, i64 {POOL})
  %no.pool = icmp eq ptr %pool, null
  br i1 %no.pool, label %alone, label %framework
framework:
  %members = call i32 @members(ptr %context)
  %have.team = icmp sgt i32 %members, 1
  br i1 %have.team, label %ask.team, label %ask
ask.team:
  %team = call ptr @word(ptr %context, i64 {TEAM})
  %team.pair = cmpxchg ptr %team, i64 0, i64 1 seq_cst seq_cst
  %team.got = extractvalue {{ i64, i1 }} %team.pair, 1
  br i1 %team.got, label %call.team, label %alone
call.team:
  call void @meet(ptr %context, ptr %team, i32 %members)
  store atomic i64 0, ptr %team seq_cst, align 8
  br label %leave
ask:
  %pair = cmpxchg ptr %pool, i64 0, i64 1 seq_cst seq_cst
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %call.helpers, label %alone
call.helpers:
  call void @wake(ptr %pool)
  call void @run(ptr %context, ptr %pool, i1 true)
  store atomic i64 0, ptr %pool seq_cst, align 8
  br label %leave
alone:
  call void @run(ptr %context, ptr null, i1 false)
  br label %leave
leave:
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  ret void
}}

define internal void @run(ptr %context, ptr %pool, i1 %helped) noinline nounwind {{
entry:
  %state = call ptr @word(ptr %context, i64 {STATE})
  %workgroup = getelementptr i8, ptr %state, i64 {STATE_BYTES}
  %pointers = getelementptr i8, ptr %state, i64 {_POINTERS}
  %count.at = getelementptr i8, ptr %state, i64 {_COUNT}
  %parts.p = call ptr @word(ptr %context, i64 {PARTS})
  %parts = ptrtoint ptr %parts.p to i64
  %dispatches = call ptr @word(ptr %context, i64 {DISPATCHES})
  %handed.at = getelementptr i8, ptr %state, i64 {CONSTANTS_COUNT_AT}
  %handed = select i1 %helped, i16 {HANDED}, i16 0
  store i16 %handed, ptr %handed.at
  %share.at = getelementptr i8, ptr %context, i64 {8 * SHARE}
  store ptr @share, ptr %share.at
  %shares.pool.at = getelementptr i8, ptr %context, i64 {8 * SHARES_POOL}
  store ptr %pool, ptr %shares.pool.at
  %times = call ptr @word(ptr %context, i64 {TIMES})
  call void @tell(ptr %context, ptr %times, i64 0)
  br label %part
part:
  %n = phi i64 [ 0, %entry ], [ %n.more, %ran ]
  %ended = icmp eq i64 %n, %parts
  br i1 %ended, label %end, label %begin
begin:
  %part.at = mul i64 %n, {8 * DISPATCH_WORDS}
  %part.p = getelementptr i8, ptr %dispatches, i64 %part.at
  %kernel = call ptr @word(ptr %part.p, i64 0)
  %table = call ptr @word(ptr %part.p, i64 1)
  %groups.p = call ptr @word(ptr %part.p, i64 2)
  %groups = ptrtoint ptr %groups.p to i64
  %groups.32 = trunc i64 %groups to i32
  store ptr %table, ptr %pointers
  store i32 %groups.32, ptr %count.at
  %several = icmp sgt i64 %groups, 1
  %shared = and i1 %several, %helped
  br i1 %shared, label %share, label %group
share:
  call void @share(ptr %pool, ptr %kernel, ptr %state, ptr %workgroup, i64 %groups)
  br label %ran
group:
  %g = phi i64 [ 0, %begin ], [ %g.more, %goes.on ]
  %g.32 = trunc i64 %g to i32
  store i32 %g.32, ptr %workgroup
  %status = call i32 %kernel(ptr null, ptr %state, ptr %workgroup)
  %g.more = add i64 %g, 1
  %again = icmp slt i64 %g.more, %groups
  %went = icmp eq i32 %status, 0
  br i1 %went, label %goes.on, label %end
goes.on:
  br i1 %again, label %group, label %ran
ran:
  %n.more = add i64 %n, 1
  call void @tell(ptr %context, ptr %times, i64 %n.more)
  br label %part
end:
  ret void
}}

define internal void @tell(ptr %context, ptr %times, i64 %number) alwaysinline nounwind {{
  %none = icmp eq ptr %times, null
  br i1 %none, label %told, label %ask
ask:
  %clock = call ptr @word(ptr %context, i64 {CLOCK})
  %distance = mul i64 %number, {8 * TIME_WORDS}
  %at = getelementptr i8, ptr %times, i64 %distance
  %status = call i32 %clock(i32 {_REALTIME}, ptr %at)
  br label %told
told:
  ret void
}}

define internal ptr @word(ptr %table, i64 %number) alwaysinline nounwind {{
  %at = getelementptr ptr, ptr %table, i64 %number
  %found = load ptr, ptr %at
  ret ptr %found
}}
{pool.TEXT}
{team.text(globals())}
{foreign.text(globals())}
"""


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


# METH_FASTCALL.
_FAST = 0x80


@cache
def is_available() -> bool:
    """Whether this interpreter and numpy are as the code takes them, and the machine runs code of our own."""
    usual = sys.implementation.name == "cpython" and object.__basicsize__ == 16
    if not usual or sysconfig.get_config_var("Py_GIL_DISABLED") or sysconfig.get_config_var("Py_DEBUG"):
        return False
    return runs_code() and _knows_arrays() and _has_code()


def function(context: np.ndarray[Any, Any], threads: int, framework: team.Framework | None = None) -> Any:
    """A function of arrays, which says whether they were what the context asks for and the program ran.

    Args:
        context: ``WORDS`` words, which live as long as the function. Where ``TIMES`` is an address, ``TIME_WORDS`` for
            the beginning and for the end of each dispatch are written there.
        threads: that share dispatches of several workgroups, the caller's among them.
        framework: whose tensors may stand in for arrays, and whose threads help.
    """
    method = _method()
    _helped(context, threads)
    if framework is not None:
        context[MEMORY_OF] = framework.memory_of
        if context[POOL] and framework.threads and framework.parallel and framework.thread:
            context[TEAM] = team.team().memory.__array_interface__["data"][0]
            context[THREADS], context[THREADS_OF] = threads, framework.threads
            context[PARALLEL], context[THREAD] = framework.parallel, framework.thread
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    context[SAVE] = _address(ctypes.pythonapi.PyEval_SaveThread)
    context[RESTORE] = _address(ctypes.pythonapi.PyEval_RestoreThread)
    context[ANSWER] = _address(ctypes.pythonapi.PyBool_FromLong)
    if context[TIMES]:
        context[CLOCK] = _address(ctypes.CDLL(None).clock_gettime)
    context[ARRAY_TYPE] = id(np.ndarray)
    return make(ctypes.addressof(method), context, None)


def handled(context: np.ndarray[Any, Any], threads: int) -> int:
    """What XLA's custom calls name a program by, whose one frame calls take in turn.

    Args:
        context, threads: as of ``function``.
    """
    _helped(context, threads)
    context[LOCK], context[YIELD] = 0, _address(ctypes.CDLL(None).sched_yield)
    address: int = context.__array_interface__["data"][0]
    return address


def handler() -> int:
    """The address of the function that XLA calls."""
    return _code().handle


def _helped(context: np.ndarray[Any, Any], threads: int) -> None:
    if threads > 1:
        context[POOL] = pool.pool().at_least(threads - 1, _code().work)


def _address(name: Any) -> int:
    found = ctypes.cast(name, ctypes.c_void_p).value
    assert found is not None
    return found


# What code in use points to. Threads that ask at once may each make one, of which ``cache`` keeps the last.
_KEPT: list[_Method | _Entries] = []


@cache
def _method() -> _Method:
    _KEPT.append(method := _Method(b"run", _code().call, _FAST, None))
    return method


@dataclass(frozen=True)
class _Entries:
    """Addresses of functions in memory, which lives as long as the process."""

    memory: Code
    call: int
    work: int
    handle: int


@cache
def _code() -> _Entries:
    """The machine code. Raises DirectError or MappingError."""
    unit = read(text_object(_TEXT))
    (section,) = (one for one in unit.sections if one.is_code and one.size)
    if section.relocations:
        raise DirectError("code that refers to other sections")
    memory = Code(section.size)
    memory.memory[: section.size] = section.data
    memory.protect(0, section.size, mmap.PROT_READ | mmap.PROT_EXEC)
    call, work, handle = (memory.start + unit.defined[name].value for name in ("call", "work", "handle"))
    # Helpers run it until the process has ended, after the interpreter has.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    _KEPT.append(entries := _Entries(memory, call, work, handle))
    return entries


def _has_code() -> bool:
    try:
        _code()
    except (DirectError, MappingError, ValueError):
        return False
    return True


def _knows_arrays() -> bool:
    """Whether numpy's arrays lie in memory as the code reads them."""
    array = np.zeros((2, 3), np.float32)
    address = id(array)

    def word(place: int) -> int:
        return ctypes.c_size_t.from_address(address + place).value

    sizes = word(_SIZES)
    return (
        word(8) == id(np.ndarray)
        and word(_DATA) == array.__array_interface__["data"][0]
        and ctypes.c_int.from_address(address + _RANK).value == 2
        and [ctypes.c_ssize_t.from_address(sizes + 8 * d).value for d in range(2)] == [2, 3]
        and word(_TYPE) == id(array.dtype)
        and ctypes.c_int.from_address(address + _FLAGS).value == array.flags.num
    )
