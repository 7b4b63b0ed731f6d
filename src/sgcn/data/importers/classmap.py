"""Labels of a JSON object from node to class, or to a 0/1 list: GraphSAGE's and GraphSAINT's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.importers.rows import check_labels
from sgcn.data.readers.fields import NotANumberError
from sgcn.data.readers.jsontext import json_text
from sgcn.errors import SgcnError

Nodes = Callable[[list[str]], npt.NDArray[np.int64]]


def class_map(path: Path, n: int, nodes_of: Nodes) -> npt.NDArray[Any]:
    """A class (int64) or a row of labels (uint8) for each of ``n`` nodes.

    ``nodes_of`` turns keys into nodes; a KeyError or NotANumberError has the first that is none.
    """
    what = f"an object with a class or a 0/1 list for each of {n} nodes ({path.name})"
    y: npt.NDArray[Any] = np.empty(0)
    seen = np.zeros(n, np.bool_)
    with json_text(path, what) as text:
        for entries in text.entries():
            nodes = _nodes(list(entries), path, n, nodes_of)
            values = _values(list(entries.values()), path, what)
            if y.size == 0:
                y = np.empty((n, *values.shape[1:]), np.int64 if values.ndim == 1 else np.uint8)
            if values.shape[1:] != y.shape[1:]:
                raise SgcnError(f"{path} mixes labels of several shapes, expected {what}")
            check_labels(values, nodes, str(path))
            y[nodes] = values
            seen[nodes] = True
        text.end()
    if not seen.all():
        raise SgcnError(
            f"{path} labels {int(seen.sum())} nodes and not node {int(seen.argmin())}, expected "
            f"labels of all {n}"
        )
    return y


def _nodes(keys: list[str], path: Path, n: int, nodes_of: Nodes) -> npt.NDArray[np.int64]:
    try:
        nodes = nodes_of(keys)
    except (KeyError, NotANumberError) as error:
        name = error.args[0][:40]
        raise SgcnError(f"{path} labels {name!r}, expected a node of the graph") from None
    bad = (nodes < 0) | (nodes >= n)
    if bad.any():
        raise SgcnError(f"{path} labels node {nodes[bad.argmax()]}, expected ids from 0 to {n - 1}")
    return nodes


def _values(given: list[Any], path: Path, what: str) -> npt.NDArray[Any]:
    try:
        values = np.array(given)
    except (ValueError, OverflowError):  # lists of several lengths
        values = np.empty(0, np.object_)
    rows = values.ndim == 1 or (values.ndim == 2 and values.shape[1] > 0)
    if given and not (rows and values.dtype.kind in "iuf"):
        raise SgcnError(f"{path} mixes what it should not, expected {what}")
    return values
