"""Splits a file that is one JSON array into its elements, holding a piece of it at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20
MAX_ELEMENT_CHARACTERS = 64 << 20
"""A longer element is refused: reading on would take the whole file into memory."""
_AFTER_ELEMENT = frozenset(",] \t\n\r")
_WHITESPACE = re.compile(r"[ \t\n\r]*")


class ArrayError(ValueError):
    """The file is not one whole JSON array; the text says where it stops to be."""


class ArrayElements:
    """The elements of a JSON array, as the bytes that the file has for them."""

    def __init__(self, file: BinaryIO) -> None:
        # Bytes that are not UTF-8 pass through, so that they spoil their own element only.
        self._file = file
        self._to_text = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        # Only where an element ends is of interest: numbers stay text, however long they are.
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)
        self._text = ""
        self._position = 0
        self._lines_dropped = 0

    def __iter__(self) -> Iterator[bytes]:
        """Read the elements in turn.

        Raises:
            ArrayError: what follows is not part of a JSON array.
        """
        self._expect("[")
        if self._peek() == "]":
            self._position += 1
        else:
            yield self._element()
            while self._expect(",]") == ",":
                yield self._element()
        if self._peek():
            raise self._error("something follows the end of the array")

    def _expect(self, characters: str) -> str:
        found = self._peek()
        if not found or found not in characters:
            raise self._error(f"expected {' or '.join(characters)}, found {found or 'the end'}")
        self._position += 1
        return found

    def _peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            match = _WHITESPACE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_more():
                return ""

    def _element(self) -> bytes:
        self._peek()
        while True:
            try:
                _, end = self._decoder.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                # Not whole yet, or not JSON: only the end of the file tells them apart.
                if isinstance(error, RecursionError) or not self._read_more():
                    raise self._error("an element is not JSON, or not whole") from error
                continue
            if self._may_go_on(end) and self._read_more():
                continue
            start, self._position = self._position, end
            return self._text[start:end].encode("utf-8", "surrogateescape")

    def _may_go_on(self, end: int) -> bool:
        # Of a number cut by the end of what was read ("1", "1.", "1.5e-"), a beginning is a whole
        # number too; anything else shows its own end.
        is_number = self._text[self._position] in "-0123456789"
        return is_number and self._text[end : end + 1] not in _AFTER_ELEMENT

    def _read_more(self) -> bool:
        kept = len(self._text) - self._position
        if kept > MAX_ELEMENT_CHARACTERS:
            raise self._error(f"an element is longer than {MAX_ELEMENT_CHARACTERS >> 20} MiB")
        # At least doubled each time: an element of n characters is scanned over 2 n in total.
        more = ""
        while not more and (read := self._file.read(max(_CHUNK_BYTES, kept))):
            more = self._to_text.decode(read)
        if more:
            self._lines_dropped += self._text.count("\n", 0, self._position)
            self._text = self._text[self._position :] + more
            self._position = 0
        return bool(more)

    def _error(self, what: str) -> ArrayError:
        line = 1 + self._lines_dropped + self._text.count("\n", 0, self._position)
        return ArrayError(f"line {line}: {what}")
