"""What a terminal shows of a benchmark that runs on a server: the same live view as of a local one.

The job's log carries the lines, its progress the numbers; before it runs there is the reason why it
waits.
"""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headway.cli.live import PLAIN_LINE_EVERY_S, panel, progress_line
from headway.cli.output import printable
from headway.load import LiveSnapshot

_REFRESH_PER_S = 8


class Screen(Protocol):
    """Where a watched benchmark is shown."""

    def line(self, text: str) -> None:
        """A line that stays: of the job's log, or of ours."""

    def status(self, text: str) -> None:
        """What the job is doing when there are no numbers: why it waits, or how it starts."""

    def numbers(self, snapshot: LiveSnapshot) -> None:
        """The stage that runs."""

    def close(self) -> None:
        """Leave only the lines; safe to call twice."""


class TerminalScreen:
    """Status and numbers are redrawn in place, below the lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=_REFRESH_PER_S, transient=True)
        self._live.start()

    def line(self, text: str) -> None:
        self._console.print(Text(printable(text)), soft_wrap=True)

    def status(self, text: str) -> None:
        self._live.update(Text(printable(text), "dim"))

    def numbers(self, snapshot: LiveSnapshot) -> None:
        self._live.update(panel(snapshot))

    def close(self) -> None:
        self._live.update("")
        self._live.stop()


class PlainScreen:
    """Lines only, for logs and pipes; a status when it is news, numbers every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = ""
        self._stage = -1
        self._next_line_s = PLAIN_LINE_EVERY_S

    def line(self, text: str) -> None:
        self._console.print(Text(printable(text)), soft_wrap=True)

    def status(self, text: str) -> None:
        if text != self._status:
            self._status = text
            self.line(text)

    def numbers(self, snapshot: LiveSnapshot) -> None:
        if snapshot.stage != self._stage:
            self._stage, self._next_line_s = snapshot.stage, PLAIN_LINE_EVERY_S
        if snapshot.elapsed_s >= self._next_line_s:
            self._next_line_s = snapshot.elapsed_s + PLAIN_LINE_EVERY_S
            self.line(progress_line(snapshot))

    def close(self) -> None:
        """Nothing is drawn in place."""


class NoScreen:
    """For `--quiet`."""

    def line(self, text: str) -> None: ...

    def status(self, text: str) -> None: ...

    def numbers(self, snapshot: LiveSnapshot) -> None: ...

    def close(self) -> None: ...


def screen_on(console: Console, quiet: bool) -> Screen:
    """The screen that suits this output."""
    if quiet:
        return NoScreen()
    return TerminalScreen(console) if console.is_terminal else PlainScreen(console)
