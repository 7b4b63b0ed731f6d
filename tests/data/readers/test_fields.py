"""Fields of text and the numbers of names, against their twin and what Python says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from sgcn import SgcnError
from sgcn.data.readers.fields import Fields, Names

texts = st.lists(st.text(max_size=6) | st.sampled_from(["a", "aa", "ab", "é", "\0", "a\0"]))


@given(st.lists(texts, max_size=4))
def test_names_are_numbered_as_they_appear(blocks):
    names, known = Names(), []
    for block in blocks:
        words = Fields.of(block)
        places = words.starts[:, 0], words.ends[:, 0]
        wanted, known = twins.names.number_names(words.data, *places, known)
        got = names.number(words)[:, 0]
        assert got.dtype == wanted.dtype
        assert got.tolist() == wanted.tolist()
    assert names.texts("here") == [name.decode() for name in known]
    assert len(names) == len(known)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=50))
def test_whole_numbers_are_names_too(values):
    names, known = Names(), {}
    got = names.number_ints(np.array(values, np.int64))
    assert got.tolist() == [known.setdefault(value, len(known)) for value in values]
    assert names.ints().tolist() == list(known)


def test_tables_grow():
    names = Names()
    words = [f"{'x' * (k % 40)}{k}" for k in range(5000)]
    for start in range(0, 5000, 700):
        names.number(Fields.of(words[start : start + 700]))
    assert names.number(Fields.of(words[::-1]))[:, 0].tolist() == list(range(5000))[::-1]
    assert names.texts("here") == words


def test_names_that_are_not_text():
    names = Names()
    names.number(Fields(np.array([255, 254], np.uint8), np.array([[0]]), np.array([[2]])))
    with pytest.raises(SgcnError, match="here has names that are not UTF-8"):
        names.texts("here")


def test_columns_and_rows():
    fields = Fields.of(["a", "", "bb", "ccc"], 2)
    assert fields.columns([0, 1]) is fields
    right = fields.columns([1])
    found = [right.data[a:b].tobytes() for a, b in np.stack((right.starts, right.ends), 2)[:, 0]]
    assert found == [b"", b"ccc"]
    names = Names()
    assert names.number(fields).tolist() == [[0, 1], [2, 3]]
