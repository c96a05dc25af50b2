"""Threads that help with the dispatches of a call: workgroups are taken by number, by whoever is free.

IREE's pool takes 60 to 150 µs to hand a dispatch over. Here the caller publishes it, wakes the helpers and begins
itself; a helper that comes late finds nothing left. So a hand-over costs the caller some microseconds, and nobody waits
for threads that the system has not woken. There is one pool for a process. A call that finds it taken does all of its
work itself.

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

# Words of the pool's memory. Those that several threads write have a cache line of their own.
TAKEN, CALLS, OPEN, NEXT, INSIDE, KERNEL, STATE, COUNT, SLEEPERS, SYSCALL, WORDS = (8 * n for n in range(11))
_MOST_HELPERS = 15
# Looks at a number before a thread sleeps, or lets others run: some 20 µs.
_LOOKS = 400
# Numbers of system calls and operations of x86-64 Linux.
_YIELD, _FUTEX, _WAIT, _WAKE = 24, 202, 128, 129
_FLUSHING = 0x8040


def _at(name: str, word: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %pool, i64 {8 * word}\n"


TEXT = f"""
declare void @llvm.x86.sse2.pause()

define internal void @share(ptr %pool, ptr %kernel, ptr %state, ptr %own, i64 %count) noinline nounwind {{
entry:
{_at("kernel.at", KERNEL)}{_at("state.at", STATE)}{_at("count.at", COUNT)}{_at("next.at", NEXT)}{_at("open.at", OPEN)}
{_at("calls.at", CALLS)}{_at("inside.at", INSIDE)}{_at("sleepers.at", SLEEPERS)}{_at("system.at", SYSCALL)}
  %system = load ptr, ptr %system.at
  store ptr %kernel, ptr %kernel.at
  store ptr %state, ptr %state.at
  store i64 %count, ptr %count.at
  store atomic i64 0, ptr %next.at seq_cst, align 8
  %0 = atomicrmw xchg ptr %open.at, i64 1 seq_cst
  %1 = atomicrmw add ptr %calls.at, i32 1 seq_cst
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %sleep = icmp ne i64 %sleepers, 0
  br i1 %sleep, label %wake, label %take
wake:
  %2 = call i64 (i64, ...) %system(i64 {_FUTEX}, ptr %calls.at, i64 {_WAKE}, i64 64, ptr null, ptr null, i64 0)
  br label %take
take:
  %number = atomicrmw add ptr %next.at, i64 1 seq_cst
  %more = icmp slt i64 %number, %count
  br i1 %more, label %run, label %close
run:
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

define ptr @work(ptr %pool) nounwind {{
entry:
  %own = alloca [8 x i64], align 64
  %control = alloca i32, align 4
{_at("kernel.at", KERNEL)}{_at("state.at", STATE)}{_at("count.at", COUNT)}{_at("next.at", NEXT)}{_at("open.at", OPEN)}
{_at("calls.at", CALLS)}{_at("inside.at", INSIDE)}{_at("sleepers.at", SLEEPERS)}{_at("system.at", SYSCALL)}
  %system = load ptr, ptr %system.at
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 64, i1 false)
  call void @llvm.x86.sse.stmxcsr(ptr %control)
  %was = load i32, ptr %control
  %flushing = or i32 %was, {_FLUSHING}
  store i32 %flushing, ptr %control
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %calls, %leave ]
  br label %look
look:
  %looks = phi i64 [ 0, %idle ], [ %looks.more, %same ], [ 0, %slept ]
  %calls = load atomic i32, ptr %calls.at seq_cst, align 4
  %new = icmp ne i32 %calls, %seen
  br i1 %new, label %enter, label %same.or.sleep
same.or.sleep:
  call void @llvm.x86.sse2.pause()
  %tired = icmp ugt i64 %looks, {_LOOKS}
  br i1 %tired, label %sleep, label %same
same:
  %looks.more = add i64 %looks, 1
  br label %look
sleep:
  %0 = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  %expected = zext i32 %seen to i64
  %1 = call i64 (i64, ...) %system(i64 {_FUTEX}, ptr %calls.at, i64 {_WAIT}, i64 %expected, ptr null, ptr null, i64 0)
  %2 = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  br label %slept
slept:
  br label %look
enter:
  %3 = atomicrmw add ptr %inside.at, i64 1 seq_cst
  %is.open = load atomic i64, ptr %open.at seq_cst, align 8
  %goes = icmp ne i64 %is.open, 0
  br i1 %goes, label %begin, label %leave
begin:
  %kernel = load ptr, ptr %kernel.at
  %state = load ptr, ptr %state.at
  %count = load i64, ptr %count.at
  br label %take
take:
  %number = atomicrmw add ptr %next.at, i64 1 seq_cst
  %more = icmp slt i64 %number, %count
  br i1 %more, label %run, label %leave
run:
  %short = trunc i64 %number to i32
  store i32 %short, ptr %own
  %4 = call i32 %kernel(ptr null, ptr %state, ptr %own)
  br label %take
leave:
  %5 = atomicrmw sub ptr %inside.at, i64 1 seq_cst
  br label %idle
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


class _Pool:
    """The helpers of this process.

    Attributes:
        memory: what they share with callers.
    """

    def __init__(self) -> None:
        self.memory = np.zeros(WORDS + 8, np.int64)
        self._helpers = 0
        self._lock = threading.Lock()
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _forget(self) -> None:
        self.memory[:] = 0
        found = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value
        assert found is not None
        self.memory[SYSCALL] = found

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


def _begin(code: int, memory: np.ndarray[Any, Any]) -> bool:
    """Begin a thread that ends with the process and gets no signals; whether the system has one."""
    handle = ctypes.c_ulong()
    create = ctypes.CDLL(None).pthread_create
    create.argtypes = [ctypes.c_void_p] * 4
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
