"""The forkserver: a small process that has the operations loaded and forks job processes.

It has one thread and no event loop, so that forking is safe, and it stays small, because a fork
costs time for every page. It is started by exec, so nothing of the server's memory is in it.
Started as `python -I -c BOOT CONFIG`, see `headway.execution.forkserver`.
"""

from __future__ import annotations

import array
import contextlib
import faulthandler
import gc
import os
import selectors
import signal
import socket
import sys
import traceback
from typing import NoReturn

import msgspec

from headway.core.clock import monotonic_ns, ns_from_s
from headway.execution.cancel_gate import CancelGate
from headway.execution.channel import JobChannel
from headway.execution.job_process import JobProcess, set_title, use_default_signals
from headway.execution.linux import (
    read_processes,
    set_parent_death_signal,
    set_subreaper,
)
from headway.execution.messages import (
    Broken,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    FromForkserver,
    Ready,
    Sweep,
    Swept,
    ToForkserver,
    encode,
)
from headway.execution.surroundings import Surroundings
from headway.jobs.registry import Registry, load_operations

PARENT_DIED = signal.SIGRTMIN + 5
"""Sent by the kernel to a job process whose parent died; a number that no library uses."""
SWEEP_LIMIT_S = 5.0
MAX_MESSAGE_BYTES = 64 * 1024


class ForkserverConfig(msgspec.Struct, frozen=True):
    """What the supervisor tells the forkserver on its command line.

    Attributes:
        descriptor: The forkserver's end of the socket to the supervisor.
        supervisor_pid: The process that adopts jobs when the forkserver dies.
        cgroup: Directory of all job cgroups, killed when the supervisor dies.
    """

    descriptor: int
    supervisor_pid: int
    modules: tuple[str, ...]
    sys_path: tuple[str, ...]
    cgroup: str | None


def main(config_json: str) -> NoReturn:
    """Load the operations, then serve until the supervisor is gone."""
    config = msgspec.json.decode(config_json, type=ForkserverConfig)
    sys.path[:] = config.sys_path
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    link = socket.socket(fileno=config.descriptor)
    set_title("forkserver")
    set_subreaper(True)
    try:
        registry = load_operations(*config.modules)
        _warm_up(registry)
    except BaseException:  # noqa: BLE001 - an operation module may raise anything
        link.send(encode(Broken(traceback.format_exc()[-MAX_MESSAGE_BYTES // 2 :])))
        os._exit(1)
    gc.collect()
    # Pages of the loaded heap stay shared with every job process, and no collection walks it again.
    gc.freeze()
    Forkserver(link, registry, config).serve()


def _warm_up(registry: Registry) -> None:
    """Build what is built on first use, once instead of in every job process."""
    for operation in registry:
        _ = operation.request_model, operation.result_adapter, operation.takes_model
    import asyncio

    # Its first loop imports and caches a good deal.
    asyncio.run(asyncio.sleep(0))
    faulthandler.enable(file=2)


class Forkserver:
    """Forks, reaps and sweeps."""

    def __init__(self, link: socket.socket, registry: Registry, config: ForkserverConfig) -> None:
        self._link = link
        self._registry = registry
        self._config = config
        self._base = dict(os.environ)
        self._mains: set[int] = set()
        self._decoder = msgspec.msgpack.Decoder(ToForkserver)
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)

    def serve(self) -> NoReturn:
        """Work until the supervisor hangs up, then kill everything and end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(self._link, selectors.EVENT_READ)
        selector.register(self._wake_reader, selectors.EVENT_READ)
        with contextlib.suppress(OSError):
            self._send(Ready(threads=len(os.listdir("/proc/self/task"))))
            while self._turn(selector):
                pass
        self._kill_everything()
        os._exit(0)

    def _turn(self, selector: selectors.BaseSelector) -> bool:
        ready = {key.fileobj for key, _ in selector.select()}
        if self._wake_reader in ready:
            self._wake_reader.recv(4096)
            self._reap()
        if self._link not in ready:
            return True
        message, descriptors = self._receive()
        match message:
            case Fork():
                self._fork(message, descriptors, selector)
            case Sweep():
                killed, survivors = self._sweep()
                self._send(Swept(message.token, tuple(killed), tuple(survivors)))
            case None:
                return False
        return True

    def _receive(self) -> tuple[ToForkserver | None, list[int]]:
        received = array.array("i")
        data, ancillary, _, _ = self._link.recvmsg(
            MAX_MESSAGE_BYTES, socket.CMSG_SPACE(received.itemsize)
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received.frombytes(content)
        return (self._decoder.decode(data) if data else None), list(received)

    def _send(self, message: FromForkserver, descriptors: tuple[int, ...] = ()) -> None:
        socket.send_fds(self._link, [encode(message)], list(descriptors))

    # --- forking -----------------------------------------------------------------------------

    def _fork(
        self, message: Fork, descriptors: list[int], selector: selectors.BaseSelector
    ) -> None:
        (control,) = descriptors
        own_pid = os.getpid()
        # Signals wait until the child has handlers of its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, PARENT_DIED})
        try:
            pid = os.fork()
        except OSError as error:
            self._send(ForkFailed(message.token, f"fork: {error.strerror}"))
        else:
            if pid == 0:
                self._become_job_process(message, control, selector, own_pid)
            self._mains.add(pid)
            handle = os.pidfd_open(pid)
            self._send(Forked(message.token, pid), (handle,))
            os.close(handle)
        finally:
            os.close(control)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, PARENT_DIED})

    def _become_job_process(
        self,
        message: Fork,
        control: int,
        selector: selectors.BaseSelector,
        forkserver_pid: int,
    ) -> NoReturn:
        try:
            os.setsid()
            for group in message.groups:
                with open(group, "wb", buffering=0) as file:
                    file.write(b"0")
            set_subreaper(message.adopt)
            use_default_signals()
            gate = CancelGate()
            gate.install()
            signal.signal(PARENT_DIED, lambda *_: self._parent_died())
            set_parent_death_signal(PARENT_DIED)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, PARENT_DIED})
            if os.getppid() != forkserver_pid:
                # It died before the kernel was asked to tell of it.
                self._parent_died()
            self._close_own(selector)
            set_title("idle job process")
            channel = JobChannel(socket.socket(fileno=control), gate.shield)
            JobProcess(channel, gate, self._registry, Surroundings(self._base)).serve()
        except BaseException:  # noqa: BLE001 - a child must never return into the parent's loop
            traceback.print_exc()
        os._exit(71)

    def _close_own(self, selector: selectors.BaseSelector) -> None:
        selector.close()
        for end in (self._link, self._wake_reader, self._wake_writer):
            end.close()

    def _parent_died(self) -> None:
        """Go on under the supervisor if that lives; else take the whole tree along (trap 25b)."""
        if os.getppid() == self._config.supervisor_pid:
            return
        self._mains.clear()
        self._sweep()
        os._exit(72)

    # --- reaping and sweeping ----------------------------------------------------------------

    def _reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._mains:
                self._mains.discard(pid)
                cpu_s = used.ru_utime + used.ru_stime
                self._send(Exited(pid, status, used.ru_maxrss * 1024, cpu_s))

    def _sweep(self) -> tuple[list[int], list[int]]:
        """Kill all children that are no job process, generation by generation.

        The children of what dies become children of this process (it is their reaper), so the next
        round finds them. A child that has not been waited for keeps its pid, so none of these
        signals can hit another process (trap 5).
        """
        killed: list[int] = []
        deadline_ns = monotonic_ns() + ns_from_s(SWEEP_LIMIT_S)
        while strays := self._strays():
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            if monotonic_ns() > deadline_ns:
                return killed, strays
            for pid in strays:
                self._wait_for(pid, deadline_ns)
        return list(dict.fromkeys(killed)), []

    def _strays(self) -> list[int]:
        own = os.getpid()
        return [
            facts.pid
            for facts in read_processes().values()
            if facts.parent == own and facts.pid not in self._mains and facts.alive
        ]

    def _wait_for(self, pid: int, deadline_ns: int) -> None:
        """Reap a killed child; one that cannot die (uninterruptible I/O) is left after a while."""
        handle = os.pidfd_open(pid)
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            selector.select(max(0.0, (deadline_ns - monotonic_ns()) / 1e9))
        os.close(handle)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    def _kill_everything(self) -> None:
        """End every job tree: the supervisor is gone and nobody could record what they do."""
        self._mains.clear()
        self._sweep()
        self._reap()
        if self._config.cgroup is not None:
            # Last, because this process is in there too.
            with (
                contextlib.suppress(OSError),
                open(f"{self._config.cgroup}/cgroup.kill", "wb", buffering=0) as file,
            ):
                file.write(b"1")
