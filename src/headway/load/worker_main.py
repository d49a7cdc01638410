"""The entry point of a worker process: `python -m headway.load.worker_main FD`.

FD is the worker's end of a socket pair. Started as a program of its own, not forked, so that
nothing of the parent (threads, locks, an event loop) comes along.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

from headway.core.clock import SystemClock

_ORPHAN_DEADLINE_S = 5.0
EXIT_ORPHANED = 70


def main() -> None:
    """Serve the parent at the other end of the descriptor until it is gone."""
    # Ctrl-C is the parent's to interpret; terminals send it to the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    sock = socket.socket(fileno=descriptor)
    _set_title()
    # A duplicate, because polling a descriptor that the channel has closed would wait for ever.
    watched = os.dup(descriptor)
    threading.Thread(target=_die_with_parent, args=(watched,), daemon=True).start()
    runner = asyncio.Runner(loop_factory=_loop_factory())
    try:
        runner.run(_serve(sock))
    except BaseException:  # noqa: BLE001  shown, and then the process must end at once
        traceback.print_exc()
        os._exit(1)
    # The records are out. Closing the loop would wait for tasks and threads of a backend that may
    # be deaf or busy, and once kept an orphan alive for good.
    os._exit(0)


async def _serve(sock: socket.socket) -> None:
    from headway.load.worker import Worker

    await Worker(sock, SystemClock()).run()


def _die_with_parent(descriptor: int) -> None:
    """End the process even when its event loop is stuck and cannot see the closed socket."""
    poll = select.poll()
    poll.register(descriptor, 0)  # Only the hang-up, which is always reported.
    poll.poll()
    time.sleep(_ORPHAN_DEADLINE_S)
    os._exit(EXIT_ORPHANED)


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


def _set_title() -> None:
    import setproctitle

    setproctitle.setproctitle("headway load worker")


if __name__ == "__main__":
    main()
