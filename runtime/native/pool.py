"""Threads that help with the dispatches of a call: workgroups are taken by number, by whoever is free.

IREE's pool takes 60 to 150 µs to hand a dispatch over. Here the caller publishes it and begins itself; a helper that
comes late finds nothing left. A call that has the pool wakes the helpers when it begins, and they look for its next
dispatch, and for the next call's, without sleeping: waking a thread takes the system 50 µs, on virtual machines up to
some hundred, and a hand-over to one that is awake some hundred nanoseconds. A helper that finds nothing lets other
threads run between two looks, and sleeps after a while. There is one pool for a process. A call that finds it taken
does all of its work itself. Where a framework has threads that wait in the same way, these are the helpers
(``team.py``).

The caller takes workgroups from the first on and helpers from the last on, so that of dispatch after dispatch over the
same array each reads what it wrote itself, which is in its own cache.

Sources: Linux, ``futex(2)``; Drepper, "Futexes Are Tricky".
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from functools import cache
from typing import Any

import numpy as np

from hloforge.runtime.data.aligned import aligned_bytes

# Words of the pool's memory, by lines of the cache, because a hand-over takes as long as their ways between cores: what
# changes rarely; what helpers look at; what the caller says of a dispatch; what all change.
TAKEN, SLEEPERS, SYSCALL, CALLS, DONE, KERNEL, STATE, COUNT, OPEN, NEXT, LAST, INSIDE, WORDS = (
    *(0, 1, 2), *(8, 9), *(16, 17, 18), *(24, 25, 26, 27), 32
)  # fmt: skip
_MOST_HELPERS = 15
# Looks at a number before a thread lets others run, some 20 µs; and cycles until a helper sleeps, some 1.5 ms. (Threads
# of OpenMP wait for 5 to 200 ms without letting others run.)
_LOOKS, _CYCLES = 400, 4_000_000
# Numbers of system calls and operations of x86-64 Linux.
_YIELD, _FUTEX, _WAIT, _WAKE = 24, 202, 128, 129
_FLUSHING = 0x8040


def at(name: str, word: int, pool: str = "pool") -> str:
    """The address of a word of a pool."""
    return f"  %{name} = getelementptr i8, ptr %{pool}, i64 {8 * word}\n"


TEXT = f"""
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()

define internal void @wake(ptr %pool) noinline nounwind {{
entry:
{at("calls.at", CALLS)}{at("sleepers.at", SLEEPERS)}{at("system.at", SYSCALL)}
  %0 = atomicrmw add ptr %calls.at, i32 1 seq_cst
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %sleep = icmp ne i64 %sleepers, 0
  br i1 %sleep, label %call, label %done
call:
  %system = load ptr, ptr %system.at
  %1 = call i64 (i64, ...) %system(i64 {_FUTEX}, ptr %calls.at, i64 {_WAKE}, i64 64, ptr null, ptr null, i64 0)
  br label %done
done:
  ret void
}}

define internal void @share(ptr %pool, ptr %kernel, ptr %state, ptr %own, i64 %count) noinline nounwind {{
entry:
{at("kernel.at", KERNEL)}{at("state.at", STATE)}{at("count.at", COUNT)}{at("next.at", NEXT)}{at("open.at", OPEN)}
{at("last.at", LAST)}
{at("inside.at", INSIDE)}{at("system.at", SYSCALL)}
  %system = load ptr, ptr %system.at
  store ptr %kernel, ptr %kernel.at
  store ptr %state, ptr %state.at
  store i64 %count, ptr %count.at
  store atomic i64 %count, ptr %last.at seq_cst, align 8
  store atomic i64 0, ptr %next.at seq_cst, align 8
  %0 = atomicrmw xchg ptr %open.at, i64 1 seq_cst
  call void @wake(ptr %pool)
  br label %take
take:
  %number = phi i64 [ 0, %entry ], [ %number.more, %run ]
  %taken = atomicrmw add ptr %next.at, i64 1 seq_cst
  %more = icmp slt i64 %taken, %count
  br i1 %more, label %run, label %close
run:
  %number.more = add i64 %number, 1
  %short = trunc i64 %number to i32
  store i32 %short, ptr %own
  %3 = call i32 %kernel(ptr null, ptr %state, ptr %own)
  br label %take
close:
  %4 = atomicrmw xchg ptr %open.at, i64 0 seq_cst
  br label %wait
wait:
  %looks = phi i64 [ 0, %close ], [ %looks.more, %look ], [ 0, %yield ]
  %inside = load atomic i64, ptr %inside.at seq_cst, align 8
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %done, label %again
again:
  call void @llvm.x86.sse2.pause()
  %tired = icmp ugt i64 %looks, {_LOOKS}
  br i1 %tired, label %yield, label %look
look:
  %looks.more = add i64 %looks, 1
  br label %wait
yield:
  %5 = call i64 (i64, ...) %system(i64 {_YIELD})
  br label %wait
done:
  ret void
}}

define dso_local ptr @work(ptr %pool) nounwind {{
entry:
  %own = alloca [8 x i64], align 64
  %control = alloca i32, align 4
{at("kernel.at", KERNEL)}{at("state.at", STATE)}{at("count.at", COUNT)}{at("next.at", NEXT)}{at("open.at", OPEN)}
{at("calls.at", CALLS)}{at("inside.at", INSIDE)}{at("sleepers.at", SLEEPERS)}{at("system.at", SYSCALL)}
{at("last.at", LAST)}{at("done.at", DONE)}
  %system = load ptr, ptr %system.at
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 64, i1 false)
  call void @llvm.x86.sse.stmxcsr(ptr %control)
  %was = load i32, ptr %control
  %flushing = or i32 %was, {_FLUSHING}
  store i32 %flushing, ptr %control
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
  %first = load atomic i32, ptr %calls.at seq_cst, align 4
  br label %enter
idle:
  %seen = phi i32 [ %seen, %sleep ], [ %found, %leave ]
  %since = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %looks = phi i64 [ 0, %idle ], [ %looks.more, %wait ], [ %looks.more, %let ]
  %calls = load atomic i32, ptr %calls.at seq_cst, align 4
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %is.done = icmp ne i64 %done, 0
  br i1 %is.done, label %end, label %any
any:
  %new = icmp ne i32 %calls, %seen
  br i1 %new, label %enter, label %wait
wait:
  call void @llvm.x86.sse2.pause()
  %looks.more = add i64 %looks, 1
  %soon = icmp ult i64 %looks, {_LOOKS}
  br i1 %soon, label %look, label %patience
patience:
  %now = call i64 @llvm.readcyclecounter()
  %waited = sub i64 %now, %since
  %patient = icmp ult i64 %waited, {_CYCLES}
  br i1 %patient, label %let, label %sleep
let:
  %yielded = call i64 (i64, ...) %system(i64 {_YIELD})
  br label %look
sleep:
  %before = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  %expected = zext i32 %seen to i64
  %0 = call i64 (i64, ...) %system(i64 {_FUTEX}, ptr %calls.at, i64 {_WAIT}, i64 %expected, ptr null, ptr null, i64 0)
  %awake = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  br label %idle
enter:
  %found = phi i32 [ %first, %entry ], [ %calls, %any ]
  %entered = atomicrmw add ptr %inside.at, i64 1 seq_cst
  %is.open = load atomic i64, ptr %open.at seq_cst, align 8
  %goes = icmp ne i64 %is.open, 0
  br i1 %goes, label %begin, label %leave
begin:
  %kernel = load ptr, ptr %kernel.at
  %state = load ptr, ptr %state.at
  %count = load i64, ptr %count.at
  br label %take
take:
  %taken = atomicrmw add ptr %next.at, i64 1 seq_cst
  %more = icmp slt i64 %taken, %count
  br i1 %more, label %run, label %leave
run:
  %after = atomicrmw sub ptr %last.at, i64 1 seq_cst
  %number = sub i64 %after, 1
  %short = trunc i64 %number to i32
  store i32 %short, ptr %own
  %status = call i32 %kernel(ptr null, ptr %state, ptr %own)
  br label %take
leave:
  %left = atomicrmw sub ptr %inside.at, i64 1 seq_cst
  br label %idle
end:
  store i32 %was, ptr %control
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
  ret ptr null
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


class _Pool:
    """The helpers of this process.

    Attributes:
        memory: what they share with callers.
    """

    def __init__(self) -> None:
        self.memory = aligned_bytes(8 * WORDS).view(np.int64)
        self._helpers = 0
        self._lock = threading.Lock()
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _forget(self) -> None:
        self.memory[:] = 0
        self.memory[SYSCALL] = system_call()

    def _after_fork(self) -> None:
        # The helpers are the parent's; a call that had the pool goes on there.
        self._lock, self._helpers = threading.Lock(), 0
        self._forget()

    def at_least(self, helpers: int, code: int) -> int:
        """The address of the pool, which has so many helpers now or as many as the system lets it have."""
        with self._lock:
            while self._helpers < min(helpers, _MOST_HELPERS) and _begin(code, self.memory):
                self._helpers += 1
            address: int = self.memory.__array_interface__["data"][0]
            return address if self._helpers else 0


def system_call() -> int:
    """The address of the C library's ``syscall``."""
    found = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value
    assert found is not None
    return found


def _begin(code: int, memory: np.ndarray[Any, Any]) -> bool:
    """Begin a thread that ends with the process and gets no signals; whether the system has one."""
    handle = ctypes.c_ulong()
    create = ctypes.CDLL(None).pthread_create
    create.argtypes = [ctypes.c_void_p] * 4
    # A helper may look at its memory until the process has ended, after the interpreter has.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return not create(ctypes.addressof(handle), None, code, memory.__array_interface__["data"][0])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def pool() -> _Pool:
    return _Pool()


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
