"""The supervisor's side of the forkserver: start it, ask it for processes, replace it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from headway.core.errors import ConfigError
from headway.execution.forkserver_main import MAX_MESSAGE_BYTES, ForkserverConfig
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

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['sys_path'];"
    "from headway.execution.forkserver_main import main; main(sys.argv[1])"
)
"""Isolated mode ignores PYTHON* variables and the working directory; the path comes by argument."""

ANSWER_LIMIT_S = 30.0
"""A forkserver that does not answer for so long is stopped or stuck, and is replaced."""


class ForkserverLost(Exception):
    """The forkserver died or stopped answering; what was asked for did not happen."""


class ForkRefused(Exception):
    """The host gave no process (limit of processes, memory)."""


@dataclass(frozen=True, slots=True)
class NewProcess:
    """A forked job process and what belongs to it."""

    pid: int
    pidfd: int
    control: socket.socket


@dataclass(frozen=True, slots=True)
class ForkserverSetup:
    """How the forkserver is started.

    Attributes:
        environment: Its whole environment, and the base of every job's.
        cgroup: Directory of the job cgroups.
    """

    modules: tuple[str, ...]
    environment: dict[str, str]
    cgroup: str | None
    start_timeout_s: float


class Forkserver:
    """One forkserver process. When it dies, this object is done; make another.

    Args:
        setup: How to start it.
        on_exit: Called with each job process's exit.
        on_lost: Called once when the forkserver has died after it was ready.
    """

    def __init__(
        self,
        setup: ForkserverSetup,
        on_exit: Callable[[Exited], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._setup = setup
        self._on_exit = on_exit
        self._on_lost = on_lost
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: asyncio.Future[Ready] | None = None
        self._forks: dict[int, asyncio.Future[NewProcess]] = {}
        self._controls: dict[int, socket.socket] = {}
        self._sweeps: dict[int, asyncio.Future[Swept]] = {}
        self._token = 0
        self._decoder = msgspec.msgpack.Decoder(FromForkserver)
        self._was_ready = False
        self.threads = 1

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether it can be asked for processes."""
        return self._link is not None

    async def open(self) -> None:
        """Start it and wait until the operations are loaded.

        Raises:
            ConfigError: the operations cannot be loaded, or not in time.
        """
        loop = asyncio.get_running_loop()
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.setblocking(False)
        self._ready = loop.create_future()
        with theirs:
            self._process = self._exec(theirs)
        loop.add_reader(self._link, self._on_readable)
        try:
            await self._wait_ready(self._ready)
        except BaseException:
            await self.close()
            raise

    async def _wait_ready(self, ready: asyncio.Future[Ready]) -> None:
        try:
            async with asyncio.timeout(self._setup.start_timeout_s):
                self.threads = (await ready).threads
                self._was_ready = True
        except TimeoutError:
            raise ConfigError(
                "loading the operations took longer than "
                f"{self._setup.start_timeout_s:g} s; make the modules lighter, or raise the limit"
            ) from None
        except ForkserverLost as lost:
            raise ConfigError(
                f"the forkserver ended while it loaded the operations: {lost}"
            ) from None

    def _exec(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        config = ForkserverConfig(
            descriptor=theirs.fileno(),
            supervisor_pid=os.getpid(),
            modules=self._setup.modules,
            sys_path=tuple(os.path.abspath(path) for path in sys.path),
            cgroup=self._setup.cgroup,
        )
        return subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, msgspec.json.encode(config).decode()],
            env=self._setup.environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    async def fork(self, groups: tuple[str, ...], adopt: bool) -> NewProcess:
        """A new job process that waits for its first attempt.

        Raises:
            ForkRefused: the host gave none.
            ForkserverLost: ask the next forkserver.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        token = self._next_token()
        answer: asyncio.Future[NewProcess] = asyncio.get_running_loop().create_future()
        self._forks[token], self._controls[token] = answer, ours
        try:
            with theirs:
                await self._send(Fork(token, groups, adopt), (theirs.fileno(),))
            async with asyncio.timeout(ANSWER_LIMIT_S):
                return await answer
        except TimeoutError:
            _discard(answer)
            self._lost("it did not answer")
            raise ForkserverLost("it did not answer") from None
        except BaseException:
            _discard(answer)
            raise
        finally:
            self._forks.pop(token, None)
            if self._controls.pop(token, None) is not None:
                ours.close()

    async def sweep(self) -> Swept:
        """Kill orphans that fell to the forkserver.

        Raises:
            ForkserverLost: it died meanwhile; the orphans fell to the supervisor.
        """
        token = self._next_token()
        answer: asyncio.Future[Swept] = asyncio.get_running_loop().create_future()
        self._sweeps[token] = answer
        try:
            await self._send(Sweep(token), ())
            async with asyncio.timeout(ANSWER_LIMIT_S):
                return await answer
        except TimeoutError:
            self._lost("it did not answer")
            raise ForkserverLost("it did not answer") from None
        finally:
            self._sweeps.pop(token, None)

    def kill(self) -> None:
        """SIGKILL. `on_lost` follows."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    async def close(self) -> None:
        """Hang up: the forkserver kills what it still has, and ends."""
        self._hang_up(ForkserverLost("closing"))
        process = self._process
        if process is None:
            return
        if not self._was_ready:
            # It is still importing and would not notice.
            process.kill()
        try:
            await asyncio.to_thread(process.wait, ANSWER_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    async def _send(self, message: ToForkserver, descriptors: tuple[int, ...]) -> None:
        payload = encode(message)
        deadline = asyncio.get_running_loop().time() + ANSWER_LIMIT_S
        while True:
            if self._link is None:
                raise ForkserverLost("it has ended")
            try:
                socket.send_fds(self._link, [payload], list(descriptors))
            except BlockingIOError:
                # Its queue is full: it forks as fast as it can. Rare, so a short sleep will do.
                if asyncio.get_running_loop().time() > deadline:
                    self._lost("it does not take messages")
                    raise ForkserverLost("it does not take messages") from None
                await asyncio.sleep(0.002)
            except OSError as error:
                # Before the loop has seen the end of the link: who asks again must find the next
                # forkserver, not this dead one.
                self._lost(str(error))
                raise ForkserverLost(str(error)) from None
            else:
                return

    def _next_token(self) -> int:
        self._token += 1
        return self._token

    def _on_readable(self) -> None:
        # A bounded number at a time, so that a storm of exits does not starve the event loop.
        for _ in range(64):
            if self._link is None:
                return
            try:
                data, descriptors, _, _ = socket.recv_fds(self._link, MAX_MESSAGE_BYTES, 1)
            except BlockingIOError:
                return
            except OSError as error:
                self._lost(str(error))
                return
            if not data:
                self._lost(self._describe_end())
                return
            message = self._decoder.decode(data)
            self._on_message(message, descriptors)
            if isinstance(message, Forked):
                # Whoever asked has its turn first. Its process may be dead already, and an exit
                # that is told before anybody knows the process would be lost.
                return

    def _on_message(self, message: FromForkserver, descriptors: list[int]) -> None:
        match message:
            case Ready():
                _resolve(self._ready, message)
            case Broken(text):
                _refuse(self._ready, ConfigError(f"the operations cannot be loaded:\n{text}"))
            case Forked(token, pid):
                self._on_forked(token, pid, descriptors[0])
            case ForkFailed(token, text):
                _refuse(self._forks.get(token), ForkRefused(text))
            case Exited():
                self._on_exit(message)
            case Swept(token):
                _resolve(self._sweeps.get(token), message)

    def _on_forked(self, token: int, pid: int, pidfd: int) -> None:
        waiting = self._forks.get(token)
        if waiting is None or waiting.done():
            # Nobody waits any more; closing the socket ends the process.
            os.close(pidfd)
            return
        waiting.set_result(NewProcess(pid, pidfd, self._controls.pop(token)))

    def _describe_end(self) -> str:
        if self._process is None:
            return "it ended"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.1)
        code = self._process.returncode
        if code is None:
            return "it hung up"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _lost(self, how: str) -> None:
        self._hang_up(ForkserverLost(how))
        self.kill()
        if self._was_ready:
            self._on_lost()

    def _hang_up(self, error: ForkserverLost) -> None:
        if self._link is not None:
            asyncio.get_running_loop().remove_reader(self._link)
            self._link.close()
            self._link = None
        _refuse(self._ready, error)
        waits: list[asyncio.Future[Any]] = [*self._forks.values(), *self._sweeps.values()]
        for waiting in waits:
            _refuse(waiting, error)


def _resolve(future: asyncio.Future[Any] | None, value: object) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _refuse(future: asyncio.Future[Any] | None, error: Exception) -> None:
    if future is not None and not future.done():
        future.set_exception(error)


def _discard(answer: asyncio.Future[NewProcess]) -> None:
    """Let go of a process that came just as whoever asked for it was cancelled.

    Without its control connection it ends by itself.
    """
    if answer.done() and not answer.cancelled() and answer.exception() is None:
        process = answer.result()
        process.control.close()
        os.close(process.pidfd)
