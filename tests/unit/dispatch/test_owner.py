from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from headway.dispatch.owner import is_dead, owner_of_this_process

OWNER = owner_of_this_process("worker")


def test_this_process_lives_under_every_name_it_takes() -> None:
    assert not is_dead(str(OWNER))
    assert str(owner_of_this_process("worker")) != str(OWNER)


def test_a_child_lives_until_it_is_killed_even_before_it_is_reaped() -> None:
    code = (
        "from headway.dispatch.owner import owner_of_this_process as o;"
        "print(o('worker'), flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    owner = child.stdout.readline().strip()
    assert not is_dead(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(owner)
    child.communicate()
    assert is_dead(owner)


@pytest.mark.parametrize(
    "dead",
    [
        replace(OWNER, start="1"),  # the pid was given to another process (trap 5)
        replace(OWNER, boot="another"),  # the host was booted since
        replace(OWNER, pid=2**22 + 1),
    ],
    ids=["reused pid", "other boot", "no such pid"],
)
def test_what_cannot_be_alive(dead: object) -> None:
    assert is_dead(str(dead))


@pytest.mark.parametrize(
    "unknown",
    [str(replace(OWNER, namespace="7")), "w1", "", "a:b:c:d:e:f"],
    ids=["other namespace", "word", "nothing", "no pid"],
)
def test_what_cannot_be_known_is_left_to_leases(unknown: str) -> None:
    assert not is_dead(unknown)


def test_roles_are_known() -> None:
    with pytest.raises(ValueError, match="role"):
        owner_of_this_process("cook")
