from __future__ import annotations

import random
from pathlib import Path

import pytest

from headway.load.inputs.row_file import RowReader, RowWriter


def test_rows_are_read_by_index_in_any_order(tmp_path: Path) -> None:
    rows = [f'"{"x" * (n % 97)}{n}"'.encode() for n in range(500)]
    with RowWriter(tmp_path, "inputs") as writer:
        for row in rows:
            writer.append(row)
        file = writer.finish()
    reader = RowReader(file)
    order = list(range(500))
    random.Random(1).shuffle(order)
    assert [reader[n] for n in order] == [rows[n] for n in order]
    reader.close()


def test_rows_can_be_read_in_another_order_than_written(tmp_path: Path) -> None:
    with RowWriter(tmp_path, "inputs") as writer:
        for row in (b'"a"', b'"bb"', b'"ccc"'):
            writer.append(row)
        file = writer.finish([2, 0, 1])
    reader = RowReader(file)
    assert [reader[n] for n in range(3)] == [b'"ccc"', b'"a"', b'"bb"']
    reader.close()


def test_positions_outside_are_refused_and_closing_twice_is_fine(tmp_path: Path) -> None:
    with RowWriter(tmp_path, "inputs") as writer:
        writer.append(b"1")
        reader = RowReader(writer.finish())
    for position in (-1, 1):
        with pytest.raises(IndexError):
            reader[position]
    reader.close()
    reader.close()
