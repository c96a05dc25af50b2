"""Threads of a framework's as helpers: those of the OpenMP that it computes with.

Threads of OpenMP wait for the next parallel region for 5 to 200 ms without letting others run, so that helpers of our
own would get the processors that they hold only when the system takes these away from them. Where the framework is to
use several threads, a call is a parallel region instead: its first thread, the caller, runs the program, and the others
help with its dispatches, as the helpers of ``pool.py`` do, until the call ends. So OpenMP's hand-over, some
microseconds while its threads are awake, is paid once a call. A framework of one thread has none that wait, and is
helped by ours.

Sources: GCC, ``libgomp.h``: ``GOMP_parallel``, which compilers call for ``#pragma omp parallel``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hloforge.runtime.data.aligned import aligned_bytes
from hloforge.runtime.native import pool

# Words of the team's memory beside those of a pool: whether there are threads, for how many calls they are left alone
# now and the next time, and when the program had run.
USABLE, PAUSE, NEXT_PAUSE, RAN = range(pool.SYSCALL + 1, pool.SYSCALL + 5)
# Cycles that a call may wait, some 60 µs, and for how many calls threads are left alone at least and at most.
_CYCLES, _SHORTEST, _LONGEST = 200_000, 16, 1024


@dataclass(frozen=True, eq=False)
class Framework:
    """C functions of a framework, by their addresses; 0 where it has none. Compared by identity, which costs nothing.

    Attributes:
        memory_of: where the elements are of one of its tensors.
        threads: how many threads it is to use.
        parallel: OpenMP's ``GOMP_parallel``.
        thread: OpenMP's ``omp_get_thread_num``.
    """

    memory_of: int = 0
    threads: int = 0
    parallel: int = 0
    thread: int = 0


def text(words: Any) -> str:
    """The functions that ``caller.py`` calls.

    Args:
        words: numbers of words of a call's context.
    """

    def at(name: str, word: int, memory: str = "team") -> str:
        return pool.at(name, word, memory)

    return f"""
define internal i32 @members(ptr %context) noinline nounwind {{
entry:
  %team = call ptr @word(ptr %context, i64 {words["TEAM"]})
  %none = icmp eq ptr %team, null
  br i1 %none, label %no, label %look
look:
  %usable = call ptr @word(ptr %team, i64 {USABLE})
  %unusable = icmp eq ptr %usable, null
  br i1 %unusable, label %no, label %rest
rest:
{at("pause.at", PAUSE)}
  %pause = load i64, ptr %pause.at
  %paused = icmp sgt i64 %pause, 0
  br i1 %paused, label %less, label %ask
less:
  %pause.less = sub i64 %pause, 1
  store i64 %pause.less, ptr %pause.at
  ret i32 0
ask:
  %threads.of = call ptr @word(ptr %context, i64 {words["THREADS_OF"]})
  %wanted = call i32 %threads.of()
  %most.p = call ptr @word(ptr %context, i64 {words["THREADS"]})
  %most.i = ptrtoint ptr %most.p to i64
  %most = trunc i64 %most.i to i32
  %fewer = icmp slt i32 %wanted, %most
  %found = select i1 %fewer, i32 %wanted, i32 %most
  ret i32 %found
no:
  ret i32 0
}}

define internal void @meet(ptr %context, ptr %team, i32 %members) noinline nounwind {{
{at("done.at", pool.DONE)}{at("ran.at", RAN)}{at("pause.at", PAUSE)}{at("next.at", NEXT_PAUSE)}
  store atomic i64 0, ptr %done.at seq_cst, align 8
  %parallel = call ptr @word(ptr %context, i64 {words["PARALLEL"]})
  call void %parallel(ptr @member, ptr %context, i32 %members, i32 0)
  %now = call i64 @llvm.readcyclecounter()
  %ran = load i64, ptr %ran.at
  %waited = sub i64 %now, %ran
  %late = icmp ugt i64 %waited, {_CYCLES}
  %next = load i64, ptr %next.at
  %short = icmp slt i64 %next, {_SHORTEST}
  %at.least = select i1 %short, i64 {_SHORTEST}, i64 %next
  %pause = select i1 %late, i64 %at.least, i64 0
  store i64 %pause, ptr %pause.at
  %twice = shl i64 %at.least, 1
  %long = icmp sgt i64 %twice, {_LONGEST}
  %at.most = select i1 %long, i64 {_LONGEST}, i64 %twice
  %half = lshr i64 %at.least, 1
  %other = select i1 %late, i64 %at.most, i64 %half
  store i64 %other, ptr %next.at
  ret void
}}

define internal void @member(ptr %context) noinline nounwind {{
entry:
  %pool = call ptr @word(ptr %context, i64 {words["TEAM"]})
{at("done.at", pool.DONE, "pool")}{at("ran.at", RAN, "pool")}
  %thread = call ptr @word(ptr %context, i64 {words["THREAD"]})
  %number = call i32 %thread()
  %first = icmp eq i32 %number, 0
  br i1 %first, label %run, label %help
run:
  call void @run(ptr %context, ptr %pool, i1 true)
  %now = call i64 @llvm.readcyclecounter()
  store i64 %now, ptr %ran.at
  store atomic i64 1, ptr %done.at seq_cst, align 8
  call void @wake(ptr %pool)
  ret void
help:
  %nothing = call ptr @work(ptr %pool)
  ret void
}}
"""


class _Team:
    """What the threads of a call share.

    Attributes:
        memory: as that of ``pool``.
    """

    def __init__(self) -> None:
        self.memory = aligned_bytes(8 * pool.WORDS).view(np.int64)
        self._forget()
        self.memory[USABLE] = 1
        if hasattr(os, "register_at_fork"):
            # OpenMP's threads are the parent's, and GCC's waits for them for ever.
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.memory[:] = 0
        self.memory[pool.SYSCALL] = pool.system_call()


@cache
def team() -> _Team:
    return _Team()
