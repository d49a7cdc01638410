"""The supervisor's handle of one job process: its socket, its pidfd, how it ended."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from headway.core.errors import InternalError
from headway.core.frames import FrameDecoder, encode_frame
from headway.execution.cgroup import Cgroup
from headway.execution.forkserver import NewProcess
from headway.execution.messages import Ended, Exited, FromJob, Start, encode

RECEIVE_BYTES = 256 * 1024
STATUS_LIMIT_S = 4.0
"""How long after its pidfd told of a death the forkserver may take to tell the exit status: it may
be at a sweep, or have no turn on a busy machine. Less than a kill waits to see a process dead."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended.

    Attributes:
        status: As `os.waitpid` gives it; None when the only one who could know died.
    """

    status: int | None
    peak_rss_bytes: int = 0
    cpu_s: float = 0.0

    @property
    def signal(self) -> int | None:
        if self.status is None or not os.WIFSIGNALED(self.status):
            return None
        return os.WTERMSIG(self.status)

    @property
    def exit_code(self) -> int | None:
        if self.status is None or not os.WIFEXITED(self.status):
            return None
        return os.WEXITSTATUS(self.status)


class JobProcessHandle:
    """One job process, from fork to burial.

    Attributes:
        ended: Resolved by the `Ended` of the attempt it runs; cancelled when the process hangs up
            first.
        exit: Resolved when the process is dead.
    """

    def __init__(self, process: NewProcess, cgroup: Cgroup | None) -> None:
        loop = asyncio.get_running_loop()
        self.pid = process.pid
        self.cgroup = cgroup
        self.attempts = 0
        self.rss_at_birth_bytes = 0
        self.adopted = False
        self.ended: asyncio.Future[Ended] = loop.create_future()
        self.exit: asyncio.Future[Exit] = loop.create_future()
        self._pidfd: int | None = process.pidfd
        self._control: socket.socket | None = process.control
        self._frames = FrameDecoder()
        self._decoder = msgspec.msgpack.Decoder(FromJob)
        self._on_message: Callable[[FromJob], None] = lambda _: None
        self._unsent = b""
        self._life = select.poll()
        self._life.register(process.pidfd, select.POLLIN)
        loop.add_reader(process.pidfd, self._on_death)
        loop.add_reader(process.control, self._on_readable)

    # --- running an attempt ------------------------------------------------------------------

    def begin(self, start: Start, log: int, on_message: Callable[[FromJob], None]) -> None:
        """Send an attempt and its log pipe; `on_message` gets what the job says."""
        self.attempts += 1
        self._on_message = on_message
        self.ended = asyncio.get_running_loop().create_future()
        frame = encode_frame(encode(start))
        try:
            if self._control is None:
                raise BrokenPipeError
            # The descriptor travels with the first bytes; a big request follows as there is room.
            sent = socket.send_fds(self._control, [frame], [log])
        except OSError:
            self._hang_up()
            return
        self._unsent = frame[sent:]
        if self._unsent:
            asyncio.get_running_loop().add_writer(self._control, self._on_writable)

    def send_signal(self, number: int) -> bool:
        """Signal this process and no other; False when it is dead (trap 5)."""
        if self._pidfd is None or self.is_dead():
            return False
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return False
        return True

    def is_dead(self) -> bool:
        """Whether it is dead at this moment, even if the event loop has not been told yet."""
        if self._pidfd is None or self.exit.done():
            return True
        return bool(self._life.poll(0))

    def _on_writable(self) -> None:
        assert self._control is not None
        try:
            sent = self._control.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._hang_up()
            return
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._control)

    def _on_readable(self) -> None:
        if self._control is None:
            return
        try:
            data = self._control.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        try:
            for payload in self._frames.feed(data):
                self._deliver(self._decoder.decode(payload))
        except (InternalError, msgspec.DecodeError):
            # A job that writes to our descriptor breaks its own attempt only.
            self.send_signal(signal.SIGKILL)
            self._hang_up()

    def _deliver(self, message: FromJob) -> None:
        if isinstance(message, Ended):
            if not self.ended.done():
                self.ended.set_result(message)
        else:
            self._on_message(message)

    def _drain(self) -> None:
        """Read what a dead process has left in its socket: its answer may be in it (trap 4)."""
        while self._control is not None:
            before = self._control
            try:
                # Non-blocking; stops at the end of the stream.
                data = before.recv(RECEIVE_BYTES, socket.MSG_PEEK)
            except OSError:
                break
            self._on_readable()
            if not data:
                break

    def _hang_up(self) -> None:
        if self._control is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._control)
            loop.remove_writer(self._control)
            self._control.close()
            self._control = None
        if not self.ended.done():
            self.ended.cancel()

    # --- its death -----------------------------------------------------------------------------

    def on_exited(self, message: Exited) -> None:
        """The forkserver has reaped it."""
        self._died(Exit(message.status, message.peak_rss_bytes, message.cpu_s))

    def _on_death(self) -> None:
        """The pidfd tells: dead. The exit status comes from whoever is its parent now."""
        loop = asyncio.get_running_loop()
        if self._pidfd is not None:
            loop.remove_reader(self._pidfd)
        if self.adopted:
            self._died(self._reap())
        elif not self.exit.done():
            loop.call_later(STATUS_LIMIT_S, lambda: self._died(self._reap()))

    def adopt(self) -> None:
        """The forkserver is gone: this process is its parent now, if it is a subreaper."""
        self.adopted = True
        if self._pidfd is not None and not self.exit.done() and not self._is_alive():
            self._died(self._reap())

    def _is_alive(self) -> bool:
        assert self._pidfd is not None
        try:
            signal.pidfd_send_signal(self._pidfd, 0)
            return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ProcessLookupError:
            return False
        except ChildProcessError:
            return True

    def _reap(self) -> Exit:
        if self._pidfd is None:
            return Exit(None)
        try:
            found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return Exit(None)
        if found is None:
            return Exit(None)
        exited = found.si_code == os.CLD_EXITED
        return Exit(found.si_status << 8 if exited else found.si_status & 0x7F)

    def _died(self, exit_: Exit) -> None:
        if self.exit.done():
            return
        self._drain()
        self.exit.set_result(exit_)
        self._hang_up()
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def dismiss(self) -> None:
        """Hang up: an idle process ends by itself."""
        self._hang_up()

    def close(self) -> None:
        """Let go of the process, dead or not."""
        self._died(Exit(None))
