"""Where a run's graph comes from: a name, a saved directory, or an ``.npz`` file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sgcn.data.bundled import BUNDLED, bundled, header
from sgcn.data.readers.files import read_json, unreadable
from sgcn.data.scaling import Scaling
from sgcn.data.synthetic import NAMED, PREFIX, parse_synthetic, synthetic
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import nearest
from sgcn.store import CLASSES, FEATURES, IDS, is_graph

#: Which importer reads files of this kind, which cannot be trained on.
_IMPORTED = {
    ".pt": "pyg", ".json": "networkx",
    **dict.fromkeys((".csv", ".tsv", ".txt", ".gz", ".parquet"), "edgelist"),
}  # fmt: skip


def is_file(name: str) -> bool:
    """Whether ``name`` is a path, and not one of the names that stand for a graph."""
    return name not in BUNDLED and not is_synthetic(name)


def is_synthetic(name: str) -> bool:
    """Whether ``name`` says how to make a graph: a name of one, or ``synthetic:`` and options."""
    return name in NAMED or name.startswith(PREFIX)


def check_data(name: str) -> None:
    """Refuse a ``name`` that cannot be a graph's; nothing is read yet."""
    path, names = Path(name), [*BUNDLED, *NAMED]
    if is_synthetic(name):
        parse_synthetic(name)
    elif name in BUNDLED or is_graph(path):
        return
    elif path.suffix == ".npz":
        if not path.is_file():
            raise SgcnError(f"{path} does not exist, expected an .npz file")
    elif path.suffix in _IMPORTED:
        raise SgcnError(
            f"data is {name!r}, expected a graph directory: make one of this file with `sgcn data "
            f"import {_IMPORTED[path.suffix]} {name} --out {path.name.partition('.')[0]}`"
        )
    elif path.exists():
        raise SgcnError(
            f"data is {name!r}, which holds no graph that Graph.save wrote, expected one, or an "
            ".npz file: `sgcn data import --formats` lists what can be made one"
        )
    else:
        raise SgcnError(
            f"data is {name!r}, expected one of {', '.join(names)}, synthetic:OPTIONS, a graph "
            f"directory or an .npz file{nearest(name, names)}"
        )


@dataclass(frozen=True)
class Names:
    """What nodes, classes and columns of features are called; None where they are numbers."""

    ids: list[Any] | None = None
    classes: list[str] | None = None
    features: list[Any] | None = None


def names_of(name: str | Path) -> Names:
    """What whoever made the graph called ``name`` wrote down beside it."""
    if name in BUNDLED:
        kept = header(str(name))
        sets = BUNDLED[str(name)].multi_label
        return Names(classes=kept["tags" if sets else "classes"], features=kept["words"])
    found = (Path(name) / file for file in (IDS, CLASSES, FEATURES))
    return Names(*(read_json(file, "names", list) if file.is_file() else None for file in found))


def open_data(name: str, *, features: str = "auto", **options: Any) -> Graph:
    """The graph called ``name``, its features scaled for training; ``options`` are those of P.

    An option that is None or not there leaves what a saved graph has, or else the default.
    """
    graph = _open(name, {key: value for key, value in options.items() if value is not None})
    return Scaling.of(graph, features).apply(graph)


def open_as_is(name: str, *, verify: bool = False) -> Graph:
    """The graph called ``name``, with the P and the features that it was saved with.

    With ``verify`` the checksums of a saved one are compared.
    """
    path = Path(name)
    if is_file(name) and is_graph(path):
        return Graph.open(path, verify=verify)
    return _open(name, {})


def _open(name: str, options: dict[str, Any]) -> Graph:
    check_data(name)
    path = Path(name)
    if name in BUNDLED:
        return bundled(name, **options)
    if is_synthetic(name):
        return synthetic(*parse_synthetic(name)).with_propagation(**options)
    if path.suffix == ".npz":
        return read_npz(path, **options)
    graph = Graph.open(path)
    saved = {"normalization": graph.normalization, "self_loops": graph.self_loops}
    return graph if saved | options == saved else graph.with_propagation(**saved | options)


def read_npz(path: Path, target: str = "", **options: Any) -> Graph:
    """A graph from indptr, indices, y, split and x (or x_indptr, x_indices, x_data, x_shape).

    Sparse features without x_data are ones. ``target`` names other labels of the file: y and split
    with it at the end. No pickles: arrays of objects are refused.
    """
    with (
        unreadable(path, "an .npz of plain arrays"),
        path.open("rb") as stream,  # numpy leaves it open where it is no zip file
        np.load(stream, allow_pickle=False) as file,
    ):
        arrays = {key: file[key] for key in file.files}
    return graph_of(arrays, path, target, **options)


def graph_of(arrays: dict[str, Any], path: Path, target: str = "", **options: Any) -> Graph:
    """The graph in ``arrays``, see `read_npz`; ``path`` is for messages."""
    for key in ("indptr", "indices"):
        if key not in arrays:
            raise SgcnError(
                f"{path} has no array {key!r}, expected indptr and indices among "
                f"{', '.join(sorted(arrays)) or 'its arrays'}"
            )
    x = arrays.get("x")
    if "x_indptr" in arrays:
        try:
            columns = arrays["x_indices"]
            ones = arrays["x_data"] if "x_data" in arrays else np.ones(len(columns), np.float32)
            parts = (ones, columns, arrays["x_indptr"])
            x = sp.csr_array(parts, shape=tuple(arrays["x_shape"]))
            x.check_format()
        except (KeyError, ValueError, TypeError) as error:
            raise SgcnError(f"{path} holds sparse features that do not fit ({error})") from None
    return Graph.from_csr(
        arrays["indptr"], arrays["indices"], x=x,
        y=arrays.get(f"y{target}"), split=arrays.get(f"split{target}"), **options,
    )  # fmt: skip
