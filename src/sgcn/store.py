"""Saved graphs: a directory of arrays, one ``.npy`` file each, with ``header.json``.

Arrays are checked and summed while they are written. Opening maps the files copy-on-write: no byte
is read before it is used, and no kernel is compiled a second time for read-only memory.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from sgcn.chunks import chunks, progress
from sgcn.errors import SgcnError
from sgcn.files import appearing, replacing

FORMAT = "sgcn-graph"
VERSION = 1
HEADER = "header.json"
#: What nodes, classes and features were called, in their order.
IDS, CLASSES, FEATURES = "ids.json", "classes.json", "features.json"
ORIGIN = "origin.json"  # what the graph was built from

_DTYPES = {"indptr": "int64", "indices": "int32", "values": "float32", "row": "float32",
           "col": "float32", "split": "int8"}  # fmt: skip
_REQUIRED = ("indptr", "indices", "row", "col")
_SPARSE = ("x_indptr", "x_indices", "x_data")


def is_graph(path: Path) -> bool:
    """Whether ``path`` is a directory that holds a saved graph."""
    return (path / HEADER).is_file()


class Writer:
    """The arrays and the header of a directory in the making; see `new`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: dict[str, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def new(cls, path: Path, *, overwrite: bool = False) -> Iterator[Self]:
        """Write arrays and fill in the header; at the end the directory ``path`` appears.

        Whatever goes wrong before, nothing is left behind. Only a graph is ever overwritten.
        """
        if os.path.exists(path) and not (overwrite and is_graph(path)):
            raise SgcnError(
                f"{path} exists already, expected a new directory: choose another name, or "
                "replace an older graph with --force (overwrite=True)"
            )
        with appearing(path, overwrite=overwrite) as folder:
            folder.mkdir()
            writer = cls(folder)
            yield writer
            header = {"format": FORMAT, "version": VERSION, **writer.header}
            header["arrays"] = writer.arrays
            (folder / HEADER).write_text(json.dumps(header, indent=1) + "\n")

    def write(self, name: str, array: Any) -> None:
        """An array that is in memory; None is for what the graph does not have."""
        if array is None:
            return
        array = np.ascontiguousarray(array)
        parts = (array[part] for part in chunks(len(array), math.prod(array.shape[1:])))
        self.stream(name, array.shape, array.dtype, parts)

    def stream(self, name: str, shape: tuple[int, ...], dtype: Any, parts: Iterable[Any]) -> None:
        """An array whose rows arrive in parts; together they must have ``shape``."""
        dtype = np.dtype(dtype)
        crc, rows = 0, 0
        size = math.prod(shape) * dtype.itemsize
        with (
            (self.folder / f"{name}.npy").open("wb") as file,
            progress(f"writing {name}", "B", size) as step,
        ):
            np.lib.format.write_array_header_1_0(
                file,
                {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
                 "shape": shape},
            )  # fmt: skip
            for part in parts:
                part = np.ascontiguousarray(part, dtype)
                if part.size:
                    data = part.reshape(-1).view(np.uint8).data
                    crc = zlib.crc32(data, crc)
                    file.write(data)
                    step(len(data))
                rows += len(part)
        if rows != shape[0]:
            raise SgcnError(f"{name} has {rows} rows, expected {shape[0]}, one for each node")
        self.arrays[name] = {"dtype": str(dtype), "shape": list(shape), "crc32": crc}

    def stream_sparse(
        self, shape: tuple[int, ...], indptr: Any, columns: Iterable[Any], values: Iterable[Any]
    ) -> None:
        """Features as a CSR matrix of float32, whose columns and values arrive in parts."""
        stored = int(indptr[-1])
        kind = np.int32 if max(shape[1], stored) < 2**31 else np.int64  # scipy wants one for both
        self.write("x_indptr", indptr.astype(kind, copy=False))
        self.stream("x_indices", (stored,), kind, columns)
        self.stream("x_data", (stored,), np.float32, values)
        self.header["x_shape"] = list(shape)

    def call(self, name: str, names: list[Any]) -> None:
        """What the files of others call nodes (`IDS`), `CLASSES` or `FEATURES`."""
        (self.folder / name).write_text(f"{json.dumps(names, ensure_ascii=False)}\n", "utf-8")

    def carry(self, source: Path | None) -> None:
        """Names and origin from beside the graph at ``source``, as far as it has any."""
        for name in (IDS, CLASSES, FEATURES, ORIGIN):
            if source is not None and (source / name).is_file():
                shutil.copyfile(source / name, self.folder / name)


# -- reading ------------------------------------------------------------------------------------


def open_arrays(path: Path, *, verify: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header of a saved graph and its arrays, mapped; ``verify`` compares the checksums."""
    header = _header(path)
    arrays = {name: _map(path, name, entry) for name, entry in header["arrays"].items()}
    if verify:
        for name, array in arrays.items():
            crc = zlib.crc32(memoryview(array).cast("B") if array.size else b"")
            if crc != header["arrays"][name]["crc32"]:
                raise SgcnError(
                    f"{path / name}.npy does not have the checksum of its header, expected the "
                    "bytes that were saved: make the graph again"
                )
    n = header["nodes"]
    indptr, indices = arrays["indptr"], arrays["indices"]
    fits = (
        indptr.shape == (n + 1,)
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and arrays["row"].shape == arrays["col"].shape == (n,)
        and ("values" not in arrays or arrays["values"].shape == indices.shape)
    )
    if not fits:
        raise SgcnError(f"{path} holds arrays that do not fit each other, expected a saved graph")
    return header, arrays


def _header(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise SgcnError(f"{path} is not a directory, expected one that Graph.save wrote")
    try:
        header = json.loads((path / HEADER).read_text())
        known = header["format"] == FORMAT
        known = known and isinstance(header["nodes"], int) and header["nodes"] >= 1
        for entry in header["arrays"].values():
            _ = entry["dtype"], tuple(entry["shape"]), entry["crc32"]
        needed = _REQUIRED + _SPARSE if "x_shape" in header else _REQUIRED
        _ = [header["arrays"][name] for name in needed]
        _ = [header[name] for name in ("version", "directed", "normalization", "self_loops")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known, header = False, {}
    if not known:
        raise SgcnError(
            f"{path} has no {HEADER} of the format {FORMAT}, expected a directory that Graph.save "
            "wrote"
        )
    if header["version"] != VERSION:
        raise SgcnError(
            f"{path} has format version {header['version']}, expected {VERSION}: use the sgcn that "
            "wrote it"
        )
    return dict(header)


def _map(path: Path, name: str, entry: Any) -> Any:
    file, shape = path / f"{name}.npy", tuple(entry["shape"])
    wanted = _DTYPES.get(name, entry["dtype"])
    # A file of no bytes cannot be mapped; mode "c" keeps kernels at one compiled signature.
    mode: Literal["c"] | None = None if 0 in shape else "c"
    try:
        array = np.asarray(np.load(file, mmap_mode=mode, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise SgcnError(
            f"{file} cannot be read, expected {entry['dtype']} of shape {shape}: the graph is "
            f"truncated, make it again ({error})"
        ) from None
    if str(array.dtype) != wanted or array.shape != shape:
        raise SgcnError(
            f"{file} holds {array.dtype} of shape {array.shape}, expected {wanted} of shape {shape}"
        )
    return array


# -- what is derived from a graph, kept with it -------------------------------------------------


def keep_beside(path: Path | None, name: str, array: Any) -> None:
    """Store a derived array (a partition) in the directory of a graph, if that is writable."""
    if path is not None and os.access(path, os.W_OK):
        with replacing(path / f"{name}.npy") as temporary:
            np.save(temporary, array, allow_pickle=False)


def kept_beside(path: Path | None, name: str) -> Any:
    """What `keep_beside` stored, or None where it cannot be read."""
    try:
        return None if path is None else np.load(path / f"{name}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
