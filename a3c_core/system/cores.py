"""How many cores this process may use, and how long its turns on them are."""

import ctypes
import os
import platform
import struct

_SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}.get(platform.machine()) if platform.system() == "Linux" else None
_TURN_NS = 100_000_000


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def take_long_turns() -> None:
    """Ask for the core for longer at a time than usual, where the kernel lets a process choose (Linux 6.12 and later).

    A turn begins with memory that the others have driven from the caches. Whoever wakes up still goes first, as before.
    A process that was given another policy, such as `chrt --idle`, keeps that.
    """
    if _SET_SCHEDULING is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, _TURN_NS, 0, 0)
    ctypes.CDLL(None).syscall(_SET_SCHEDULING, 0, attributes, 0)  # a refusal leaves everything as it was
