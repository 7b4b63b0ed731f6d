"""One small graph for the tests of importers, what must come out, and how a refusal looks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sgcn import Graph, SgcnError
from sgcn.data.importers import import_graph

N = 8
SRC = np.array([0, 0, 1, 2, 3, 4, 5, 6, 1, 0])  # with a duplicate and, below, a loop; 7 is alone
DST = np.array([1, 2, 2, 3, 4, 5, 6, 6, 2, 5])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.5, 3.0, 1.0, 2.5, 4.0, 0.25, 1.0])
X = np.arange(24, dtype=np.float32).reshape(N, 3) / 4
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
SETS = (np.arange(N)[:, None] >> np.arange(3)) & 1  # several labels a node
SPLIT = np.array([0, 0, 0, 1, 1, 2, 2, -1], np.int8)
MASKS = {"train_mask": SPLIT == 0, "val_mask": SPLIT == 1, "test_mask": SPLIT == 2}
HTML = b"<!DOCTYPE html><html><body>Quota exceeded</body></html>"


def expected(**options: Any) -> Graph:
    weights = WEIGHTS if options.pop("weighted", False) else None
    return Graph.from_edges(SRC, DST, weights, nodes=N, **options)


def same_edges(got: Graph, wanted: Graph) -> None:
    assert repr(got) == repr(wanted)
    for name in ("indptr", "indices", "values", "row", "col"):
        a, b = getattr(got, name), getattr(wanted, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def same_rows(got: Graph, *, x: Any = X, y: Any = Y, split: Any = SPLIT) -> None:
    for name, wanted in (("x", x), ("y", y), ("split", split)):
        have = getattr(got, name)
        assert (have is None) == (wanted is None), name
        if wanted is not None:
            np.testing.assert_array_equal(have, wanted)
    if x is not None:
        assert got.x.dtype == np.float32


def imported(format: str, source: Path, out: Path, **options: Any) -> Graph:
    import_graph(format, source, out, **options)
    return Graph.open(out, verify=True)


def refused(format: str, source: Path, folder: Path, *words: str, **options: Any) -> None:
    """The import is refused in one sentence that has the words, and leaves nothing behind."""
    out = folder / "made"
    out.mkdir()
    with pytest.raises(SgcnError) as error:
        import_graph(format, source, out / "graph", **options)
    sentence = str(error.value)
    for word in words:
        assert word in sentence, sentence
    assert "expected" in sentence, sentence
    assert "\n" not in sentence
    assert os.listdir(out) == []


def bomb(path: Path, member: str, size: int = 4 << 20) -> None:
    """A zip file whose one member unpacks to far more than it has."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, b"\0" * size)
