"""Numbers in text: the kernels against their twins, and the reader on whole files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from sgcn import SgcnError
from sgcn.data.readers import tables
from sgcn.kernels import text

fields = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.floats(width=32).map(lambda x: f"{x:.6g}"),
    st.text("0123456789+-.eEinfaINF \t\"'#x", max_size=8),
    st.sampled_from(["", "nan", "-inf", "+Infinity", ".5", "5.", ".", "1e5", "1e", "1e+", "--1",
                     "9223372036854775807", "9223372036854775808", "-9223372036854775807",
                     "123456789012345678901234567890", "0" * 30 + "1", "1" + "0" * 400, "1e-400",
                     "4.9e-324", "1_0", "0x10"]),
)  # fmt: skip


def as_bytes(content: str) -> np.ndarray:
    return np.frombuffer(content.encode(), np.uint8)


def found(content: str, delimiter: int, comments: str, columns: int):
    """What the kernel finds, in the words of its twin."""
    data = as_bytes(content)
    starts, ends = np.zeros((2, len(data) + 1, columns), np.int32)
    lines = np.zeros(len(data) + 1, np.int32)
    rows, *rest = text.split_fields(data, delimiter, as_bytes(comments), starts, ends, lines)
    cells = [
        [data[a:b].tobytes() for a, b in zip(*row, strict=True)]
        for row in zip(starts[:rows], ends[:rows], strict=True)
    ]
    return list(zip(lines[:rows].tolist(), cells, strict=True)), *rest


def twin(content: str, delimiter: int, comments: str, columns: int):
    return twins.text.split_fields(as_bytes(content), delimiter, as_bytes(comments), columns)


@given(
    st.lists(st.lists(fields, min_size=1, max_size=3)), st.sampled_from([",", "\t", " ", ""]),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n \t\n"]), st.booleans(), st.integers(1, 3),
)  # fmt: skip
def test_split_fields(rows, delimiter, newline, ended, columns):
    content = newline.join((delimiter or "  ").join(row) for row in rows) + newline * ended
    sign = ord(delimiter) if delimiter else 0
    assert found(content, sign, "#%", columns) == twin(content, sign, "#%", columns)


def converted(kernel, cells: list[bytes], dtype):
    """The numbers before the first bad field, and its place."""
    ends = np.cumsum([len(cell) for cell in cells], dtype=np.int32)
    starts = (ends - [len(cell) for cell in cells]).astype(np.int32)
    out = np.zeros(len(cells), dtype)
    bad = kernel(np.frombuffer(b"".join(cells), np.uint8), starts, ends, out)
    return out[: bad if bad >= 0 else None], bad


@given(st.lists(fields.map(str.encode), max_size=3))
def test_whole_numbers(cells):
    numbers, bad = converted(text.whole_numbers, cells, np.int64)
    wanted, place = twins.text.whole_numbers(cells)
    assert bad == place
    assert numbers.tolist() == wanted


@given(st.lists(fields.map(str.encode), max_size=3))
def test_real_numbers(cells):
    numbers, bad = converted(text.real_numbers, cells, np.float64)
    wanted, place = twins.text.real_numbers(cells)
    assert bad == place
    np.testing.assert_allclose(numbers, wanted, rtol=2e-15, atol=1e-323)


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-22, 0))
def test_fifteen_digits_are_rounded_as_python_rounds_them(mantissa, power):
    cell = f"{mantissa}e{power}".encode()
    numbers, _ = converted(text.real_numbers, [cell], np.float64)
    assert numbers[0] == float(cell)


# -- the reader ---------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path):
    def read(content: str, width: int | None = 2, integer=True, **options):
        path = tmp_path / "table.csv"
        path.write_text(content)
        table = tables.Text(path, "a table", width=width, **options)
        parts = list(table.all_numbers(integer=integer))
        assert all(part.dtype == (np.int64 if integer else np.float64) for part in parts)
        return np.concatenate(parts).tolist() if parts else []

    return read


def test_reader_takes_what_tables_look_like(rows):
    assert rows("1,2\n3,4") == [[1, 2], [3, 4]]
    assert rows('\r\n 1 , "2"\r\n\n3,4\r\n') == [[1, 2], [3, 4]]
    assert rows("# a b\n1\t2\n#\n3 \t 4\n", delimiter="", comments="#") == [[1, 2], [3, 4]]
    assert rows("a,b\n1,2\n", None, header=True) == [[1, 2]]
    assert rows("\n1,2,3\n4,5,6", None) == [[1, 2, 3], [4, 5, 6]]
    assert rows("1.5,-2e3\n.25,4", integer=False) == [[1.5, -2000.0], [0.25, 4.0]]
    assert np.isnan(rows('1,\nnan,""\n', integer=False)).tolist() == [[False, True], [True] * 2]
    assert rows("#\n") == []
    with pytest.raises(SgcnError, match="is empty, expected a table"):
        rows("\n\n")


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_chunks_do_not_show(rows, monkeypatch, chunk):
    monkeypatch.setattr(tables, "_TEXT", chunk)
    content = "a,header\n" + "\n".join(f"{k},{k * k}" for k in range(100))
    assert rows(content, None, header=True) == [[k, k * k] for k in range(100)]
    with pytest.raises(SgcnError, match="'x' in line 102, expected a table: a whole number in co"):
        rows(content + "\nx,1", None, header=True)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("1,2\n3,x\n", {}, "'x' in line 2, expected a table: a whole number in field 2"),
        ("1,2\n3.5,1\n", {}, "'3.5' in line 2"),
        ("1,\n", {}, "'' in line 1"),
        ("1,2\n\n3,99999999999999999999\n", {}, "'99999999999999999999' in line 3"),
        ("1,2\n3,y\n", {"integer": False}, "'y' in line 2, expected a table: a real number"),
        ("1,2\n3\n", {}, "1 fields in line 2, expected 2 in every line of a table"),
        ("1,2\n3,4,5\n", {"width": None}, "3 fields in line 2, expected 2"),
        ("# a\n1 2 3\n", {"delimiter": "", "comments": "#"}, "3 fields in line 2, expected 2"),
    ],
)
def test_reader_names_the_line_of_a_bad_field(rows, content, options, words):
    with pytest.raises(SgcnError, match=re.escape(f"table.csv has {words}")):
        rows(content, **options)


def test_a_line_that_never_ends_is_refused(rows, monkeypatch):
    monkeypatch.setattr(tables, "_LINE", 1000)
    monkeypatch.setattr(tables, "_TEXT", 100)
    with pytest.raises(SgcnError, match="a line of more than 0 MiB, expected a table in lines"):
        rows("1" * 5000)
