"""Taking the values of secrets out of what a job says.

Masked are: a value as it is; each of its lines, where it has several; and the value as JSON, a URL
and base64 (of the whole value) write it. What a job encodes otherwise, cuts into pieces or writes
from two processes in turn is not recognised: masking guards against accidents, not against an
operation that wants to tell.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from headway.core.failure import ErrorInfo

MASK = "***"
MIN_SECRET = 8
"""Anything shorter would be found in ordinary words and numbers, and hide them."""


class Masker:
    """Replaces known values.

    Args:
        values: Each of MIN_SECRET characters or more; lines shorter than that stay.
    """

    def __init__(self, values: Iterable[str]) -> None:
        patterns = {pattern for value in values for pattern in _patterns(value)}
        self.patterns = tuple(sorted(patterns))

    def data(self, data: bytes) -> bytes:
        """Bytes without the values."""
        found = self.intervals(data)
        return _replaced(data, found) if found else data

    def text(self, text: str) -> str:
        """A text without the values."""
        # The way to bytes and back costs more than it hides in nearly every text.
        data = text.encode("utf-8", "surrogatepass")
        found = self.intervals(data)
        return _replaced(data, found).decode("utf-8", "surrogatepass") if found else text

    def error(self, error: ErrorInfo) -> ErrorInfo:
        """An error, its traceback and its causes without the values."""
        return ErrorInfo(
            type=error.type,
            message=self.text(error.message),
            traceback=None if error.traceback is None else self.text(error.traceback),
            cause=None if error.cause is None else self.error(error.cause),
        )

    def json(self, text: bytes) -> bytes:
        """A JSON document without the values; it stays a JSON document."""
        if not self.intervals(text):
            return text
        return msgspec.json.encode(self._value(msgspec.json.decode(text)))

    def intervals(self, data: bytes) -> list[tuple[int, int]]:
        """Where values stand, in order, those that overlap or touch as one."""
        found = sorted(_occurrences(data, self.patterns))
        merged: list[tuple[int, int]] = []
        for begin, end in found:
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.intervals(json.dumps(value).encode()) else value
        return value

    def __repr__(self) -> str:
        return f"Masker({len(self.patterns)} patterns)"


class StreamMasker:
    """Masks a stream that comes in pieces, also where a value is cut between two of them.

    Only as much is held back as could be the beginning of a value.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = b""
        self._masked = 0  # so many bytes of what is held belong to a value that was replaced
        self._touching = False  # the last that was passed on is a mask

    def feed(self, data: bytes) -> bytes:
        """What can be passed on now."""
        data = self._held + data
        return self._pass_on(data, len(data) - self._could_begin(data))

    def flush(self) -> bytes:
        """The rest, when no more comes."""
        return self._pass_on(self._held, len(self._held))

    def _pass_on(self, data: bytes, stop: int) -> bytes:
        out: list[bytes] = []
        at = self._masked
        for begin, end in self._masker.intervals(data):
            if begin >= stop:
                break
            if end <= at:
                continue
            if begin > at:
                out.append(data[at:begin])
                self._touching = False
            if not self._touching:
                out.append(MASK.encode())
            self._touching, at = True, end
        if at < stop:
            out.append(data[at:stop])
            self._touching, at = False, stop
        self._held, self._masked = data[stop:], at - stop
        return b"".join(out)

    def _could_begin(self, data: bytes) -> int:
        """Length of the longest end of `data` that is the beginning of a value, not all of it."""
        longest = 0
        for pattern in self._masker.patterns:
            for length in range(min(len(pattern) - 1, len(data)), longest, -1):
                if data.endswith(pattern[:length]):
                    longest = length
                    break
        return longest


def _patterns(value: str) -> Iterator[bytes]:
    for text in (value, *value.splitlines()):
        text = text.strip()
        if len(text) < MIN_SECRET:
            continue
        raw = text.encode("utf-8", "surrogatepass")
        yield raw
        yield json.dumps(text)[1:-1].encode()
        yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
        yield repr(text)[1:-1].encode("utf-8", "surrogatepass")
        yield repr(raw)[2:-1].encode()
        yield quote(raw).encode()
        yield quote(raw, safe="").encode()
        yield quote_plus(raw).encode()
        yield base64.b64encode(raw).rstrip(b"=")
        yield base64.urlsafe_b64encode(raw).rstrip(b"=")


def _occurrences(data: bytes, patterns: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    for pattern in patterns:
        at = data.find(pattern)
        while at >= 0:
            yield at, at + len(pattern)
            at = data.find(pattern, at + 1)


def _replaced(data: bytes, intervals: list[tuple[int, int]]) -> bytes:
    out, at = [], 0
    for begin, end in intervals:
        out += [data[at:begin], MASK.encode()]
        at = end
    return b"".join([*out, data[at:]])
