"""The error tree. Branches say who acts; docstrings say what to do."""

from __future__ import annotations


class HeadwayError(Exception):
    """Root of every error that Headway raises on purpose. Its text is one clear sentence."""


class ConfigError(HeadwayError):
    """The caller asked for something impossible or misspelt: correct the option, file or field."""


class InputError(ConfigError):
    """The data given to a run cannot be used: correct the file; the text names the line."""


class TargetError(HeadwayError):
    """The target cannot be measured: it does not answer, refuses, or speaks another protocol."""


class RequestError(HeadwayError):
    """A client's request to a Headway server was refused: correct it and send it again."""


class StoreUnavailable(HeadwayError):
    """The store did not answer in time: the same call may succeed later."""


class DiskError(HeadwayError):
    """A file could not be written: free space or mend its permissions. What it held stays whole."""


class LeaseLost(HeadwayError):
    """This attempt is no longer the current one: stop, and write nothing more."""


class WorkerLost(HeadwayError):
    """A worker process of this run died or went silent; the text says how."""


class InternalError(HeadwayError):
    """A bug of ours: please report it with the text."""
