"""How deep JSON may be nested: what every reader of it in this package can follow."""

from __future__ import annotations

from itertools import accumulate

MAX_LEVELS = 200
"""pydantic's parser of JSON gives up beyond it, and it reads inputs in the job's process as well as
answers in the SDK. What one of them cannot read must not be accepted by another."""

_MARKS = b'"[]{}'
_ALL_ELSE = bytes(set(range(256)) - set(_MARKS))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_nested_deeper(text: bytes, levels: int) -> bool:
    """Whether arrays and objects in JSON stand in one another more than `levels` deep.

    Texts may be large, so there is no Python step for each of their characters, and mostly none at
    all. For text that is not JSON there is any answer.
    """
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = unescaped.translate(None, _ALL_ELSE).replace(b'""', b"")
    outside_strings = b"".join(marks.split(b'"')[::2])
    return max(accumulate(map(_STEP.__getitem__, outside_strings)), default=0) > levels
