"""Workers ask for longer turns on a core, where the kernel lets them, and for nothing else."""

import os
import subprocess
import sys

import pytest

SAYS = """
import ctypes, os, struct
from a3c_core.system import cores

def seen():
    attributes = ctypes.create_string_buffer(56)
    ctypes.CDLL(None).syscall({get}, 0, attributes, 56, 0)
    return struct.unpack("=IIQiIQQQ", attributes.raw[:48])

os.nice(10)
os.sched_setscheduler(0, {policy}, os.sched_param(0))
before = seen()
cores.take_long_turns()
after = seen()
print(before[1:5] == after[1:5], after[5] in (before[5], cores._TURN_NS), os.getpriority(os.PRIO_PROCESS, 0))
"""


@pytest.mark.parametrize("policy", [os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE])
def test_longer_turns_change_neither_policy_nor_niceness(policy):
    get = {"x86_64": 315, "aarch64": 275}[os.uname().machine]
    code = SAYS.format(get=get, policy=policy)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split()[:2] == ["True", "True"]
    assert int(said.stdout.split()[2]) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


def test_where_the_kernel_is_another_nothing_is_asked(monkeypatch):
    from a3c_core.system import cores

    monkeypatch.setattr(cores, "_SET_SCHEDULING", None)
    monkeypatch.setattr(cores.ctypes, "CDLL", None)
    cores.take_long_turns()
