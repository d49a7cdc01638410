"""How every `headway` command ends, as a number that scripts can rely on."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes; documented in docs/user-guide.md, which a test compares with this list."""

    OK = 0
    """Done; for a load test: every stage is VALID, or a search has found its rate."""
    ERROR = 1
    """Something unexpected went wrong; the text says what."""
    USAGE = 2
    """The command line, a file or a field is wrong; nothing was started."""
    TARGET_UNREACHABLE = 3
    """The target does not answer, refuses, or speaks another protocol."""
    ALL_REQUESTS_FAILED = 4
    """The load was sent and not one request completed."""
    INVALID_MEASUREMENT = 5
    """The run ended, but the verdict of at least one stage is not VALID, or a search was not
    settled."""
    OBJECTIVE_MISSED = 6
    """A gate's objective is not met, or a search found no rate that meets it."""
    REGRESSION = 7
    """A gate's run is worse than its baseline by more than it may be."""
    CANNOT_TELL = 8
    """A strict gate cannot tell whether there is a regression."""
    NOT_COMPARABLE = 9
    """Two runs differ in more than the target, and that was not allowed."""
    JOB_FAILED = 10
    JOB_CANCELLED = 11
    NOT_FOUND = 12
    SERVER_UNREACHABLE = 13
    TIMED_OUT_WAITING = 14
    NOT_ACCOUNTED_FOR = 15
    """`headway chaos` found something lost, stuck, doubled or left behind."""
    NOT_ALLOWED = 16
    """The server knows no access token of yours, or your role is not enough."""
    INTERRUPTED = 130
    """Ctrl-C; what had been measured until then is in the run directory."""
