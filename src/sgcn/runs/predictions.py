"""What a trained model says of nodes: of its own graph or of another, as a tensor or a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from sgcn.chunks import chunks
from sgcn.compute import exact
from sgcn.data.source import names_of, open_data
from sgcn.errors import SgcnError, no_graph
from sgcn.files import check_target, replacing
from sgcn.graph import Graph
from sgcn.labels import CLASSES, NUMBERS, SETS, kind_of
from sgcn.nn import Model
from sgcn.rows import store_of
from sgcn.runs.config import Config
from sgcn.runs.directory import open_run, scaling_of
from sgcn.training.checks import check_features

ENDINGS = (".npy", ".csv", ".parquet")


def load_run(path: str | Path, data: str | Path | None = None) -> tuple[Model, Graph, Config]:
    """The trained model of a run, the graph that it was trained on, and its options.

    With ``data`` the graph is this other one, its features scaled as the run scaled its own.
    """
    config, graph, model = open_run(path)
    if data is not None:
        graph = open_other(str(data), Path(path), config, graph)
    return model, graph, config


def predict(model: Model, graph: Graph) -> Tensor:
    """The outputs for every node, one for each class or label; no sampling, no dropout."""
    if not isinstance(graph, Graph):
        raise no_graph(graph)
    check_features(graph)
    try:
        return exact.predict(model, graph, store_of(graph.x))
    except (RuntimeError, ValueError) as error:
        if isinstance(error, SgcnError):
            raise
        raise SgcnError(
            f"the model does not run on a graph with {graph.x.shape[1]} features "
            f"({str(error).partition(chr(10))[0]}), expected as many as it was trained with"
        ) from error


# -- another graph ------------------------------------------------------------------------------


def open_other(data: str, run: Path, config: Config, trained: Graph) -> Graph:
    """Another graph for the model of ``run`` on ``trained``, made ready in the same way.

    Its features and labels must mean what they meant there; labels and split may be missing.
    """
    graph = open_data(
        data, features="raw", normalization=trained.normalization, self_loops=trained.self_loops
    )
    check_features(graph, data)
    origin = f"as in {config.data}, which the run was trained on"
    found, wanted = graph.x.shape[1], trained.x.shape[1]
    if found != wanted:
        raise SgcnError(f"{data} has {found} features, expected {wanted}, {origin}")
    graph = scaling_of(graph, config.training.graph.features, run).apply(graph)
    if graph.y is not None:
        y, known = np.asarray(graph.y), np.asarray(trained.y)
        fits = y.shape[1:] == known.shape[1:] and kind_of(y) == kind_of(known)
        if fits and y.ndim == 1 and y.dtype.kind in "iu":
            fits = y.max() <= known.max()
        if not fits:
            raise SgcnError(f"{data} has {_labels(y)}, expected {_labels(known)}, {origin}")
    names, kept = names_of(data), names_of(config.data)
    for what in ("features",) if graph.y is None else ("features", "classes"):
        new, old = (_titles(getattr(one, what)) for one in (names, kept))
        if new and old and new != old:
            odd = next((name for name in new if name not in old), "in another order")
            raise SgcnError(
                f"{data} has other {what} ({odd[:60]}), expected them {origin}: import it with "
                "like=DIR, where DIR is that graph"
            )
    return graph


def _labels(y: Any) -> str:
    if kind_of(y) == NUMBERS:
        return f"{1 if y.ndim == 1 else y.shape[1]} numbers a node"
    return f"sets of {y.shape[1]} labels" if y.ndim == 2 else f"{int(y.max()) + 1} classes"


def _titles(names: list[Any] | None) -> list[str]:
    """Names; those of columns of a table with what is in them."""
    return [
        f"{one['name']}: {one.get('values', 'numbers')}" if isinstance(one, dict) else str(one)
        for one in names or ()
    ]


# -- tables -------------------------------------------------------------------------------------


def check_out(path: Path) -> None:
    """Make sure that predictions can be written to ``path``, before any work is done."""
    check_target("--out", path, ENDINGS)
    if path.suffix == ".parquet":
        _parquet(path)


def _parquet(path: Path) -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise SgcnError(
            f"{path} is to be Parquet, expected pyarrow to write it: `pip install pyarrow`, or "
            "take a name ending in .csv"
        ) from None


def write_table(
    path: Path,
    probabilities: Tensor,
    ids: list[Any] | None = None,
    classes: list[str] | None = None,
    *,
    kind: str = CLASSES,
) -> None:
    """A row a node: its id, its class (or its labels with ; between), and all probabilities.

    Of a model for numbers those stand in place of both. Without ``ids`` and ``classes`` they are
    numbers from 0.
    """
    columns = _columns(probabilities.numpy(), ids, classes, kind)
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            table = import_module("pyarrow").table(columns)
            _parquet(path).write_table(table, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(columns)
            out.writerows(_lines(list(columns.values())))


def _columns(p: Any, ids: Any, classes: Any, kind: str) -> dict[str, Any]:
    nodes, width = p.shape
    numbered, classes = classes is None, range(width) if classes is None else classes
    for what, names, wanted in (("ids", ids, nodes), ("names of classes", classes, width)):
        if names is not None and len(names) < wanted:
            raise SgcnError(f"the graph has {len(names)} {what}, expected {wanted}")
    titles = [str(name) for name in classes][:width]
    if ids is None or all(type(one) is int for one in ids):
        ids = np.arange(nodes) if ids is None else np.array(ids)
    else:
        ids = [str(one) for one in ids]
    if kind == NUMBERS:
        return {"id": ids} | {f"value_{k}": p[:, k] for k in range(width)}
    if kind == SETS:
        chosen = [";".join(titles[k] for k in np.flatnonzero(row)) for row in p > 0.5]
    else:
        best = p.argmax(1)
        chosen = best if numbered else [titles[k] for k in best]
    found = {"id": ids, "labels" if kind == SETS else "class": chosen}
    return found | {f"p_{title}": p[:, k] for k, title in enumerate(titles)}


def _lines(columns: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of fields, probabilities with six digits."""
    for part in chunks(len(columns[0]), len(columns)):
        yield from zip(*(_shown(column[part]) for column in columns), strict=True)


def _shown(values: Any) -> Any:
    if getattr(values, "dtype", None) == np.float32:
        return [f"{value:.6g}" for value in values.tolist()]
    return values
