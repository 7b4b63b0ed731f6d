"""What a builder makes: arrays, a header that says where they are from, and the file of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sgcn.files import appearing
from sgcn.graph import Array, Graph
from sgcn.kernels.random import permutation
from sgcn.rng import Key, Stream
from sgcn.store import ORIGIN
from tools.builders import npz

T = TypeVar("T")


@dataclass(frozen=True)
class Built:
    """Arrays in the order of the file, and the header; see docs/data.md for both."""

    arrays: dict[str, Array]
    header: dict[str, Any]

    def write(self, out: Path) -> None:
        """An ``.npz`` file, or else a directory as `Graph.save` writes it, with the header beside.

        It appears whole or not at all.
        """
        with appearing(out) as place:
            self._write_file(place) if out.suffix == ".npz" else self._write_directory(place)

    def _write_file(self, path: Path) -> None:
        text = json.dumps(self.header, ensure_ascii=False, separators=(",", ":"))
        header = np.frombuffer(text.encode(), np.uint8)
        path.write_bytes(npz.pack(self.arrays | {"header": header}))

    def _write_directory(self, path: Path) -> None:
        from sgcn.data.source import graph_of

        graph_of(self.arrays, path).save(path)
        text = json.dumps(self.header, ensure_ascii=False, indent=1)
        (path / ORIGIN).write_text(text + "\n", encoding="utf-8")


def topology(nodes: int, ends: Sequence[tuple[int, int]]) -> dict[str, Array]:
    """CSR arrays of the undirected simple graph with an edge between each pair of ``ends``."""
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    graph = Graph.from_edges(pairs[:, 0], pairs[:, 1], nodes=nodes)
    return {"indptr": graph.indptr, "indices": graph.indices}


def split_of(labelled: npt.NDArray[np.bool_], layer: int = 0) -> npt.NDArray[np.int8]:
    """Half of the labelled nodes for training, a quarter for validation, the rest for testing.

    The others get -1. ``layer`` tells apart the splits of one graph's targets.
    """
    ids = np.flatnonzero(labelled)
    order = ids[permutation(len(ids), Key(0).stream(Stream.BUILT_SPLIT, layer))]
    train, val = len(ids) // 2, len(ids) // 4
    split = np.full(len(labelled), -1, np.int8)
    split[order[:train]] = 0
    split[order[train : train + val]] = 1
    split[order[train + val :]] = 2
    return split


def frequent(
    counts: Mapping[str, int], least: int, most: float = float("inf"), keep: int | None = None
) -> list[str]:
    """The names that occur from ``least`` to ``most`` times, at most ``keep``, in ABC order.

    The most frequent ones are kept; of equally frequent ones, the first in ABC order.
    """
    fitting = [name for name, count in counts.items() if least <= count <= most]
    return sorted(sorted(fitting, key=lambda name: (-counts[name], name))[:keep])


def counts_of(arrays: Mapping[str, Array], target: str = "") -> dict[str, int]:
    """The figures of the header for the target ``y`` + ``target``."""
    y, split = arrays[f"y{target}"], arrays[f"split{target}"]
    return {
        "classes": y.shape[1] if y.ndim == 2 else int(y.max()) + 1,
        "labelled": int(np.count_nonzero(split >= 0)),
        "train": int(np.count_nonzero(split == 0)),
        "validation": int(np.count_nonzero(split == 1)),
        "test": int(np.count_nonzero(split == 2)),
    }


def sizes_of(arrays: Mapping[str, Array]) -> dict[str, int]:
    """The figures of the header that are the same for all targets."""
    return {
        "nodes": len(arrays["indptr"]) - 1,
        "edges": len(arrays["indices"]) // 2,
        "features": int(arrays["x_shape"][1]),
        "feature_entries": len(arrays["x_indices"]),
    }


def digest(arrays: Mapping[str, Array]) -> str:
    """SHA-256 of names, types, shapes and values: the same whatever compressed the file."""
    total = hashlib.sha256()
    for name, array in arrays.items():
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def progress(items: Iterable[T], what: str) -> Iterator[T]:
    """``items``, with a bar where a terminal is watching."""
    from tqdm import tqdm

    yield from tqdm(items, desc=what, leave=False, disable=None)
