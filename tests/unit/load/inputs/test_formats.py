"""L10, L8: file formats; a bad line never hides the good ones, and arbitrary bytes never crash."""

from __future__ import annotations

import contextlib
import csv
import random
import sys
from pathlib import Path

import pyarrow
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from headway.core.errors import ConfigError, InputError
from headway.load.inputs import rows as rows_module
from headway.load.inputs.formats import FileFormat, detect_format, read_rows
from headway.load.inputs.rows import Row, Unusable


def read(path: Path, content: bytes, file_format: FileFormat) -> list[Row | Unusable]:
    path.write_bytes(content)
    return list(read_rows(path, file_format))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_json_lines_are_objects_texts_or_lists_of_messages(file: Path) -> None:
    content = b'{"prompt": "a"}\n\n"b"\r\n[{"role": "user", "content": "c"}]\n'
    assert read(file, content, "jsonl") == [
        Row(1, {"prompt": "a"}),
        Row(3, {"prompt": "b"}),
        Row(4, {"messages": [{"role": "user", "content": "c"}]}),
    ]


def test_unusable_json_lines_are_named_by_their_number(file: Path) -> None:
    content = b'{"prompt": "a"}\n{"prompt": \n3\n\xff\n{"prompt": "b"}'
    found = read(file, content, "jsonl")
    assert [row.place for row in found if isinstance(row, Unusable)] == [2, 3, 4]
    assert [row.place for row in found if isinstance(row, Row)] == [1, 5]


def test_a_byte_order_mark_is_no_content(file: Path) -> None:
    assert read(file, b'\xef\xbb\xbf{"a": 1}', "jsonl") == [Row(1, {"a": 1})]
    assert read(file, b"\xef\xbb\xbf[1]", "jsonl")[0].place == 1
    assert read(file, b"\xef\xbb\xbfhello", "text") == [Row(1, {"prompt": "hello"})]
    assert read(file, b"\xef\xbb\xbfa,b\n1,2", "csv") == [Row(2, {"a": "1", "b": "2"})]


def test_a_json_array_is_read_element_by_element(file: Path) -> None:
    content = b'[\n  {"a": 1},\n  7,\n  {"a": 2}\n]\n'
    found = read(file, content, "jsonl")
    assert [row for row in found if isinstance(row, Row)] == [Row(1, {"a": 1}), Row(3, {"a": 2})]
    assert found[1] == Unusable(2, "neither an object, a text nor a list of messages")


def test_a_json_array_on_one_line_is_one_too(file: Path) -> None:
    assert read(file, b'[{"a": 1}, {"a": 2}]', "jsonl") == [Row(1, {"a": 1}), Row(2, {"a": 2})]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'[\n{"a": 1},\n{"a": 2]\n', "line 3: an element is not JSON"),
        (b'[\n{"a": 1},\n{"a": 2}\n', "line 4: expected , or ], found the end"),
        (b'[\n{"a": 1}\n{"a": 2}]', "line 3: expected , or ], found {"),
        (b'[{"a": 1}]\n[', "line 2: something follows"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_broken_json_array_is_refused_with_its_line(
    file: Path, content: bytes, reason: str
) -> None:
    with pytest.raises(InputError, match="begins as a JSON array") as refused:
        read(file, content, "jsonl")
    assert reason in str(refused.value)


def test_csv_cells_may_hold_line_breaks_and_lines_keep_their_numbers(file: Path) -> None:
    content = b'a, b\n"x\ny",1\n\nz\nw,2\n\xff,3\n'
    assert read(file, content, "csv") == [
        Row(2, {"a": "x\ny", "b": "1"}),
        Unusable(5, "1 cells where the header has 2"),
        Row(6, {"a": "w", "b": "2"}),
        Unusable(7, "not UTF-8"),
    ]


@pytest.mark.parametrize("delimiter", [b",", b";", b"\t"])
def test_csv_delimiters_are_told_by_the_header(file: Path, delimiter: bytes) -> None:
    content = b"a" + delimiter + b"b\n1" + delimiter + b"2\n"
    assert read(file, content, "csv") == [Row(2, {"a": "1", "b": "2"})]


def test_csv_cells_may_be_longer_than_the_modules_default(file: Path) -> None:
    """A long prompt exceeds the 128 KiB at which Python's csv module gives up."""
    limit = csv.field_size_limit()
    long = b"x" * 300_000
    assert read(file, b"a,b\n" + long + b",1\n", "csv") == [Row(2, {"a": long.decode(), "b": "1"})]
    assert csv.field_size_limit() == limit


def test_text_is_one_prompt_a_line(file: Path) -> None:
    assert read(file, "é b\n\n\tc \n\xff".encode("latin-1"), "text") == [
        Unusable(1, "not UTF-8"),
        Row(3, {"prompt": "\tc "}),
        Unusable(4, "not UTF-8"),
    ]


@pytest.mark.parametrize("file_format", ["jsonl", "text"])
def test_a_line_without_end_is_refused_without_being_read(
    file: Path, file_format: FileFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "MAX_LINE_BYTES", 1_000)
    found = read(file, b'"' + b"x" * 5_000 + b'"\n"ok"\n', file_format)
    assert [row.place for row in found] == [1, 2]
    assert isinstance(found[0], Unusable)
    assert isinstance(found[1], Row)


@pytest.mark.parametrize("file_format", ["jsonl", "text"])
def test_a_file_of_one_line_without_an_end_is_refused_without_being_read(
    file: Path, file_format: FileFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "MAX_LINE_BYTES", 1_000)
    (found,) = read(file, b"x" * 5_500, file_format)
    assert isinstance(found, Unusable)
    assert found.place == 1


def test_parquet_rows_keep_their_types(file: Path) -> None:
    table = pyarrow.table(
        {"prompt": ["a", None], "n": [1, 2], "messages": [[{"role": "user", "content": "x"}], []]}
    )
    parquet.write_table(table, file)
    assert list(read_rows(file, "parquet")) == [
        Row(1, {"prompt": "a", "n": 1, "messages": [{"role": "user", "content": "x"}]}),
        Row(2, {"n": 2, "messages": []}),
    ]


def test_a_parquet_cell_that_is_not_utf8_spoils_its_own_row_only(file: Path) -> None:
    parquet.write_table(pyarrow.table({"prompt": ["first", "spoilt", "third"]}), file)
    content = file.read_bytes().replace(b"spoilt", b"sp\xffilt")
    assert read(file, content, "parquet") == [
        Row(1, {"prompt": "first"}),
        Unusable(2, "not UTF-8"),
        Row(3, {"prompt": "third"}),
    ]


def test_damaged_parquet_files_are_read_or_refused(file: Path) -> None:
    parquet.write_table(pyarrow.table({"prompt": ["a b c"] * 5, "n": [1, 2, 3, 4, 5]}), file)
    whole = file.read_bytes()
    rng = random.Random(4)
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(InputError):
            assert all(row.place for row in read(file, bytes(damaged), "parquet"))


def test_parquet_without_the_extra_says_what_to_install(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"headway\[parquet\]"):
        list(read_rows(file, "parquet"))


def test_a_file_that_is_no_parquet_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(file, b"PAR1 and nothing else", "parquet")


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "text", "parquet"])
def test_a_missing_file_and_a_directory_are_refused(
    tmp_path: Path, file_format: FileFormat
) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            list(read_rows(path, file_format))


@pytest.mark.parametrize(
    ("name", "content", "file_format"),
    [
        ("a.jsonl", b"", "jsonl"),
        ("a.JSON", b"", "jsonl"),
        ("a.tsv", b"", "csv"),
        ("a.txt", b"{", "text"),
        ("a.parquet", b"", "parquet"),
        ("a.data", b"PAR1....", "parquet"),
        ("a", b"\xef\xbb\xbf \n{", "jsonl"),
    ],
)
def test_formats_are_told_by_name_else_by_content(
    tmp_path: Path, name: str, content: bytes, file_format: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert detect_format(path) == file_format


def test_a_format_that_cannot_be_told_is_asked_for(file: Path) -> None:
    file.write_bytes(b"hello")
    with pytest.raises(InputError, match="give one of jsonl, csv, text, parquet"):
        detect_format(file)


PIECES = [b'{"prompt":', b"[", b"]", b"}", b'"', b",", b"\n", b"\x00", b"a", b"\xff"]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.binary(max_size=200) | st.lists(st.sampled_from(PIECES)).map(b"".join),
    file_format=st.sampled_from(["jsonl", "csv", "text", "parquet"]),
)
@example(content=b"[" * 100_000, file_format="jsonl")
@example(content=b'"\\ud800"', file_format="jsonl")
@example(content=b'a"\n"', file_format="csv")
def test_arbitrary_bytes_never_crash(file: Path, content: bytes, file_format: FileFormat) -> None:
    try:
        found = read(file, content, file_format)
    except InputError:
        return
    assert all(row.place >= 1 for row in found)
