"""Undoing a reply's Content-Encoding, read by read and within the body's bound."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

# Added to the window's size: zlib finds out by itself whether it is gzip or zlib.
_AUTO_HEADER = 32


class Decompressor(Protocol):
    """Turns compressed bytes into plain ones, as far as they go."""

    def decompress(self, data: bytes) -> bytes:
        """Raises ValueError with a sentence when the data cannot be decompressed."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the compressed data may end here."""
        ...


class Inflater:
    """gzip and deflate."""

    def __init__(self, max_bytes: int) -> None:
        self._inflate = _new_inflate()
        self._is_begun = False
        self._max_bytes = max_bytes

    def decompress(self, data: bytes) -> bytes:
        plain = b""
        while data:
            if self._inflate.eof:
                # RFC 1952 section 2.2: a gzip stream may be several, one after another.
                self._inflate = _new_inflate()
            self._is_begun = True
            # A bound for each read: a small reply must not be able to fill the memory.
            left = self._max_bytes - len(plain) + 1
            try:
                plain += self._inflate.decompress(data, left)
            except zlib.error as error:
                raise ValueError(f"the reply's compressed body is broken ({error})") from error
            if len(plain) > self._max_bytes or self._inflate.unconsumed_tail:
                raise ValueError(f"the reply's body is over {self._max_bytes} bytes decompressed")
            data = self._inflate.unused_data
        return plain

    @property
    def is_whole(self) -> bool:
        return self._inflate.eof or not self._is_begun


class Unknown:
    """A coding that we did not ask for and cannot undo."""

    is_whole = True

    def __init__(self, coding: str) -> None:
        self._coding = coding

    def decompress(self, data: bytes) -> bytes:
        raise ValueError(f"the reply has Content-Encoding {self._coding}, which was not asked for")


def make_decompressor(headers: Mapping[bytes, bytes], max_bytes: int) -> Decompressor | None:
    """What undoes the reply's coding; None for a plain one."""
    for name, value in headers.items():
        if len(name) == 16 and name.lower() == b"content-encoding":
            coding = value.decode("latin-1").strip().lower()
            if coding in ("gzip", "x-gzip", "deflate"):
                return Inflater(max_bytes)
            return None if coding in ("identity", "") else Unknown(coding)
    return None


def _new_inflate() -> zlib._Decompress:
    return zlib.decompressobj(_AUTO_HEADER + zlib.MAX_WBITS)
