"""What the tests of importers share: bringing a folder in, and comparing or refusing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from writers import Format, Truth

from sgcn import Graph, SgcnError
from sgcn.data.importers import import_graph


def brought(format: str, source: Path, out: Path, **options: Any) -> Graph:
    """The imported graph, read again with its checksums."""
    graph = import_graph(format, source, out, **options)
    assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == []
    again = Graph.open(out, verify=True)
    assert repr(again) == repr(graph)
    return again


def assert_holds(graph: Graph, truth: Truth, x: Any = None) -> None:
    """Array by array what went into the files; ``x`` where it is not as it was there."""
    wanted = truth.graph
    np.testing.assert_array_equal(graph.indptr, wanted.indptr)
    np.testing.assert_array_equal(graph.indices, wanted.indices)
    np.testing.assert_array_equal(graph.y, truth.y)
    np.testing.assert_array_equal(graph.split, truth.split)
    assert graph.y.dtype == (np.int64 if truth.y.ndim == 1 else np.uint8)
    features = graph.x.toarray() if hasattr(graph.x, "toarray") else graph.x
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, truth.x if x is None else x, rtol=1e-5, atol=1e-6)


def refused(format: Format, folder: Path, out: Path, **options: Any) -> str:
    """The one sentence of a refusal that leaves nothing behind."""
    out.parent.mkdir(exist_ok=True)
    with pytest.raises(SgcnError) as error:
        import_graph(format.importer, folder / format.source, out, **format.given(folder) | options)
    message = str(error.value)
    assert "\n" not in message
    assert "expected" in message
    assert list(out.parent.iterdir()) == []
    return message
