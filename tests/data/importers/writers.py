"""Small graphs in the layouts that others publish, written by hand: what importers are tested on.

A new format is a function here and a line in `FORMATS`; the bad-file and fuzz tests then cover it.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sgcn import Graph


@dataclass
class Truth:
    """What goes into the files."""

    src: Any
    dst: Any
    x: Any
    y: Any
    split: Any

    def __len__(self) -> int:
        return len(self.split)

    @property
    def graph(self) -> Graph:
        return Graph.from_edges(self.src, self.dst, nodes=len(self))

    def ids(self, part: int) -> list[int]:
        return np.flatnonzero(self.split == part).tolist()

    def standardised(self) -> Any:
        rows = self.x[self.split == 0].astype(np.float64)
        deviation = rows.std(0)
        return (self.x - rows.mean(0)) / np.where(deviation > 1e-12, deviation, 1.0)


def make_truth(n: int = 40, width: int = 5, *, sets: bool = False, seed: int = 0) -> Truth:
    """Random edges without loops and duplicates, float64 features, three parts."""
    rng = np.random.default_rng(seed)
    src, dst = np.triu_indices(n, 1)
    chosen = np.sort(rng.choice(len(src), min(3 * n, len(src)), replace=False))
    x = rng.normal(3.0, 2.0, (n, width))
    x[:, 0] = 0.1  # constant: only centred
    y = rng.integers(0, 2, (n, 3)) if sets else rng.integers(0, 4, n)
    split = np.repeat([0, 1, 2], [n // 2, n // 4, n - n // 2 - n // 4])[rng.permutation(n)]
    return Truth(src[chosen], dst[chosen], x, y, split.astype(np.int8))


# -- files --------------------------------------------------------------------------------------


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def write_gz(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 1, mtime=0))


def csv(rows: Any) -> str:
    """Numbers as pandas writes them: nan is nothing, but a line of nothing has quotes."""
    lines = (
        ",".join("" if value != value else repr(value) for value in row)
        for row in np.asarray(rows).tolist()
    )
    return "".join((line or '""') + "\n" for line in lines)


# -- GraphSAINT ---------------------------------------------------------------------------------


def write_graphsaint(folder: Path, truth: Truth) -> None:
    n = len(truth)
    ones = np.ones(2 * len(truth.src), np.bool_)
    ends = np.r_[truth.src, truth.dst], np.r_[truth.dst, truth.src]
    sp.save_npz(folder / "adj_full.npz", sp.csr_matrix((ones, ends), shape=(n, n)))
    np.save(folder / "feats.npy", truth.x)
    labels = {str(k): label for k, label in enumerate(truth.y.tolist())}
    write_json(folder / "class_map.json", labels)
    roles = {key: truth.ids(k) for k, key in enumerate(("tr", "va", "te"))}
    write_json(folder / "role.json", roles)


# -- GraphSAGE ----------------------------------------------------------------------------------


def node_link(truth: Truth, names: list[Any], *, by: str = "index") -> dict[str, Any]:
    """The graph as networkx writes it, nodes in reverse; link ends are places or ids."""
    order = list(range(len(truth)))[::-1]
    place = {node: k for k, node in enumerate(order)}
    end: Callable[[int], Any] = place.__getitem__ if by == "index" else names.__getitem__
    return {
        "directed": False,
        "graph": {"name": "disjoint_union( ,  )", "note": 'a "quoted" } ] { [ \\ text'},
        "nodes": [
            {"test": bool(truth.split[k] == 2), "feature": [1, {"a": [2]}], "id": names[k],
             "val": bool(truth.split[k] == 1)}
            for k in order
        ],
        "links": [
            {"train_removed": False, "target": end(j), "source": end(i)}
            for i, j in zip(truth.src.tolist(), truth.dst.tolist(), strict=True)
        ],
        "multigraph": False,
    }  # fmt: skip


def write_graphsage(folder: Path, truth: Truth) -> None:
    names = [f"c{k}" for k in range(len(truth))]
    write_graphsage_as(folder, truth, names, node_link(truth, names))


def write_graphsage_as(folder: Path, truth: Truth, names: list[Any], graph: Any) -> None:
    write_json(folder / "toy-G.json", graph)
    write_json(folder / "toy-id_map.json", {str(name): k for k, name in enumerate(names)})
    labels = {str(name): truth.y[k].tolist() for k, name in enumerate(names)}
    write_json(folder / "toy-class_map.json", labels)
    np.save(folder / "toy-feats.npy", truth.x)


# -- Planetoid ----------------------------------------------------------------------------------


def python2(value: Any) -> bytes:
    """The body of the pickle that Python 2 wrote with protocol 2."""
    if value is None or isinstance(value, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, str | bytes):
        data = value.encode("latin-1") if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(data)) + data
    if isinstance(value, tuple):
        return b"(" + b"".join(map(python2, value)) + b"t"
    if isinstance(value, list):
        return b"]" + batches(list(map(python2, value)), b"e")
    if isinstance(value, dict):
        entries = [python2(key) + python2(item) for key, item in value.items()]
        return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R" + batches(entries, b"u")
    if isinstance(value, np.dtype):
        made = b"cnumpy\ndtype\n" + python2((value.str[1:], 0, 1)) + b"R"
        return made + python2((3, "<", None, None, None, -1, -1, 0)) + b"b"
    if isinstance(value, np.ndarray):
        made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        return made + b"(K\x01" + b"".join(
            map(python2, (value.shape, value.dtype, False, value.tobytes()))
        ) + b"tb"  # fmt: skip
    state = {"_shape": tuple(map(int, value.shape)), "maxprint": 50, "indices": value.indices,
             "indptr": value.indptr, "data": value.data}  # fmt: skip
    entries = b"".join(python2(key) + python2(item) for key, item in state.items())
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + entries + b"ub"


def batches(items: list[bytes], end: bytes) -> bytes:
    """A thousand items at a time, as pickle adds them to a list or a dict."""
    parts = (items[start : start + 1000] for start in range(0, len(items), 1000))
    return b"".join(b"(" + b"".join(part) + end for part in parts)


def write_python2(path: Path, value: Any) -> None:
    path.write_bytes(b"\x80\x02" + python2(value) + b".")


def planetoid_truth(n: int = 40) -> Truth:
    """Training nodes first, then validation, test nodes last; node n - 3 is nowhere."""
    truth = make_truth(n)
    truth.x = np.where(np.random.default_rng(1).random(truth.x.shape) < 0.5, truth.x, 0.0)
    truth.split = np.array([0] * 8 + [1] * 10 + [-1] * (n - 30) + [2] * 12, np.int8)
    lost = n - 3
    truth.split[lost], truth.y[lost], truth.x[lost] = -1, -1, 0.0
    return truth


def write_planetoid(folder: Path, _: Truth) -> None:
    write_planetoid_as(folder, planetoid_truth())


def write_planetoid_as(folder: Path, truth: Truth) -> list[int]:
    """The files, and the test index in their order."""
    rows = sp.csr_matrix(truth.x.astype(np.float32))
    hot = np.eye(4, dtype=np.int32)[truth.y]
    test = np.random.default_rng(2).permutation(truth.ids(2)).tolist()
    train, first = truth.ids(0), min(test)
    neighbours: dict[int, list[int]] = {k: [] for k in range(len(truth))}
    for i, j in zip(truth.src.tolist(), truth.dst.tolist(), strict=True):
        neighbours[i].append(j)
        neighbours[j].append(i)
    for part, value in {
        "x": rows[train], "allx": rows[:first], "tx": rows[test],
        "y": hot[train], "ally": hot[:first], "ty": hot[test], "graph": neighbours,
    }.items():  # fmt: skip
        write_python2(folder / f"ind.toy.{part}", value)
    (folder / "ind.toy.test.index").write_text("".join(f"{k}\n" for k in test))
    return test


# -- OGB ----------------------------------------------------------------------------------------


def write_ogb(folder: Path, truth: Truth) -> None:
    raw = folder / "raw"
    write_gz(raw / "edge.csv.gz", csv(np.stack((truth.src, truth.dst), 1)))
    write_gz(raw / "num-node-list.csv.gz", f"{len(truth)}\n")
    write_gz(raw / "num-edge-list.csv.gz", f"{len(truth.src)}\n")
    write_gz(raw / "node-feat.csv.gz", csv(truth.x))
    write_gz(raw / "node-label.csv.gz", csv(truth.y.reshape(len(truth), -1)))
    write_ogb_split(folder, truth)


def write_ogb_split(folder: Path, truth: Truth) -> None:
    for k, part in enumerate(("train", "valid", "test")):
        write_gz(folder / "split" / "time" / f"{part}.csv.gz", csv(np.array([truth.ids(k)]).T))


def write_ogb_binary(folder: Path, truth: Truth) -> None:
    (folder / "raw").mkdir()
    np.savez_compressed(
        folder / "raw" / "data.npz", edge_index=np.stack((truth.src, truth.dst)),
        num_nodes_list=np.array([len(truth)]), num_edges_list=np.array([len(truth.src)]),
        node_feat=truth.x.astype(np.float32),
    )  # fmt: skip
    labels = truth.y.reshape(len(truth), -1).astype(np.float32)
    np.savez_compressed(folder / "raw" / "node-label.npz", node_label=labels)
    write_ogb_split(folder, truth)


# -- PyTorch Geometric, DGL, NetworkX, SciPy, edge lists ------------------------------------------


def write_pyg(folder: Path, truth: Truth) -> None:
    import torch

    arrays = {"edge_index": np.stack((truth.src, truth.dst)), "x": truth.x, "y": truth.y}
    arrays |= {f"{part}_mask": truth.split == k for k, part in enumerate(("train", "val", "test"))}
    torch.save({key: torch.from_numpy(array) for key, array in arrays.items()}, folder / "data.pt")


def write_dgl(folder: Path, truth: Truth) -> None:
    graph = truth.graph
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "feat": truth.x, "label": truth.y}
    arrays |= {f"{part}_mask": truth.split == k for k, part in enumerate(("train", "val", "test"))}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def write_dgl_reddit(folder: Path, truth: Truth) -> None:
    ends = (truth.src, truth.dst)
    ones = np.ones(len(truth.src))
    matrix = sp.coo_matrix((ones, ends), shape=(len(truth), len(truth)))
    sp.save_npz(folder / "reddit_graph.npz", matrix)
    np.savez(
        folder / "reddit_data.npz", feature=truth.x, label=truth.y, node_types=truth.split + 1,
        node_ids=np.arange(len(truth)),
    )  # fmt: skip


def write_networkx(folder: Path, truth: Truth) -> None:
    rows = zip(truth.x.tolist(), truth.y.tolist(), truth.split.tolist(), strict=True)
    edges = zip(truth.src.tolist(), truth.dst.tolist(), strict=True)
    value = {
        "directed": False, "multigraph": False, "graph": {},
        "nodes": [{"id": k, "x": x, "y": y, "split": part} for k, (x, y, part) in enumerate(rows)],
        "edges": [{"source": i, "target": j} for i, j in edges],
    }  # fmt: skip
    write_json(folder / "graph.json", value)


def write_scipy(folder: Path, truth: Truth) -> None:
    sp.save_npz(folder / "matrix.npz", truth.graph.adjacency())


def write_edges(folder: Path, truth: Truth) -> None:
    (folder / "edges.csv").write_text("source,target\n" + csv(np.stack((truth.src, truth.dst), 1)))


def write_node_table(folder: Path, truth: Truth) -> None:
    """Nodes with names, a column of words, and labels and parts in words."""
    words = np.array(["law", "art", "tea", "b, c"])[truth.y]
    parts = np.array(["train", "val", "test"])[truth.split]
    lines = ["id,label,split,kind," + ",".join(f"x{k}" for k in range(truth.x.shape[1]))]
    for k, (word, part, x) in enumerate(zip(words, parts, truth.x.tolist(), strict=True)):
        row = [repr(value) for value in x] if k % 5 else [*map(repr, x[1:]), "NA"]
        lines.append(",".join([f"n{k}", f'"{word}"', part, "xyz"[k % 3], *row]))
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = (f"n{i},n{j}\n" for i, j in zip(truth.src, truth.dst, strict=True))
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges))


# -- all of them --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A layout: what writes it, and the files that it cannot do without."""

    importer: str
    write: Callable[[Path, Truth], Any]
    files: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    #: The file to import, where the source is no folder.
    source: str = ""
    #: Options that are files of the folder.
    beside: dict[str, str] = field(default_factory=dict)

    def given(self, folder: Path) -> dict[str, Any]:
        """The options, with the files in ``folder``."""
        return self.options | {key: str(folder / name) for key, name in self.beside.items()}


_SPLIT = tuple(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test"))

FORMATS: dict[str, Format] = {
    "graphsaint": Format(
        "graphsaint", write_graphsaint, ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
    ),
    "graphsage": Format(
        "graphsage", write_graphsage,
        ("toy-G.json", "toy-id_map.json", "toy-class_map.json", "toy-feats.npy"),
        {"prefix": "toy"},
    ),
    "planetoid": Format(
        "planetoid", write_planetoid,
        tuple(f"ind.toy.{part}" for part in
              ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")),
        {"dataset": "toy", "validation": 10},
    ),
    "ogb": Format(
        "ogb", write_ogb,
        ("raw/edge.csv.gz", "raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz",
         "raw/node-feat.csv.gz", "raw/node-label.csv.gz", *_SPLIT),
    ),
    "ogb-binary": Format("ogb", write_ogb_binary, ("raw/data.npz", "raw/node-label.npz", *_SPLIT)),
    "pyg": Format("pyg", write_pyg, ("data.pt",), source="data.pt"),
    "dgl": Format("dgl", write_dgl, ("indptr.npy", "indices.npy", "feat.npy", "label.npy")),
    "dgl-reddit": Format("dgl", write_dgl_reddit, ("reddit_graph.npz", "reddit_data.npz")),
    "networkx": Format("networkx", write_networkx, ("graph.json",), source="graph.json"),
    "scipy": Format("scipy", write_scipy, ("matrix.npz",), source="matrix.npz"),
    "edgelist": Format("edgelist", write_edges, ("edges.csv",), source="edges.csv"),
    "table": Format(
        "table", write_node_table, ("nodes.csv", "edges.csv"), source="nodes.csv",
        beside={"edges": "edges.csv"},
    ),
}  # fmt: skip
