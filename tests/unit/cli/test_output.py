"""What the commands print of what others wrote."""

from __future__ import annotations

import json

import pytest

from headway.cli.output import print_json, printable, printable_lines

HOSTILE = "a\x1b[2J\x9b31m\u202eb\x07"
"""Clears the screen, changes colours in one byte, turns the direction of writing, rings."""


@pytest.mark.parametrize("value", [HOSTILE, {"name": HOSTILE, HOSTILE: ["ß", "日本"]}, [HOSTILE]])
def test_json_for_a_terminal_holds_nothing_that_drives_it_and_says_the_same(value, capsys):
    print_json(value)
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed) == value


def test_json_of_ordinary_text_is_printed_as_it_is(capsys):
    print_json({"größe": "日本"})
    assert capsys.readouterr().out == '{\n  "größe": "日本"\n}\n'


def test_text_of_several_lines_keeps_them_and_nothing_that_drives_a_terminal():
    assert printable_lines("one\n\ttwo\x1b[2J") == "one\n\ttwo\N{REPLACEMENT CHARACTER}[2J"
    assert "\n" not in printable("one\ntwo")
