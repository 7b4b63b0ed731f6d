"""Features, labels and splits as others keep them, brought into the form that a graph has."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft, chunks
from sgcn.data.files import Npz, checked, npy, read_json, unreadable
from sgcn.data.importers.base import PARTS, finite, split_of
from sgcn.errors import SgcnError

#: Other names of the three parts, as files and words have them.
NAMES = {
    "train": ("train", "training", "tr"),
    "validation": ("val", "valid", "validation", "va"),
    "test": ("test", "testing", "te"),
}
_PART: dict[Any, int] = {
    word: part for part, words in enumerate(NAMES.values()) for word in words
}


# -- edges --------------------------------------------------------------------------------------


def check_ids(ids: Any, n: int | None, place: str, thing: str, before: int = 0) -> None:
    """Whole numbers below ``n``; the first that is none is named, as the ``thing`` that it is."""
    limit = np.iinfo(np.int32).max if n is None else n
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise SgcnError(f"{place} holds {ids.dtype} as node ids, expected whole numbers")
    if ids.size and (ids.min() < 0 or ids.max() >= limit):
        first = int(np.argmax((ids < 0) | (ids >= limit)))
        raise SgcnError(
            f"{place} names node {ids[first]} in {thing} {before + first}, expected ids from 0 to "
            f"{limit - 1}"
        )


def checked_edges(
    parts: Iterable[tuple[Any, Any]], n: int | None, place: str
) -> Iterator[tuple[Any, Any]]:
    """Edges as they pass; the first that does not join two of ``n`` nodes is named."""
    before = 0
    for src, dst in parts:
        check_ids(src, n, place, "edge", before)
        check_ids(dst, n, place, "edge", before)
        before += len(src)
        yield src, dst


@contextmanager
def about(path: Path) -> Iterator[None]:
    """What is wrong with a graph held in memory is said with the file that it is from."""
    try:
        yield
    except SgcnError as error:
        raise SgcnError(f"{path}: {error}") from None


# -- features -----------------------------------------------------------------------------------


def single(parts: Iterable[Any], place: str) -> Iterator[npt.NDArray[np.float32]]:
    """Features as float32; a value that is not finite, or is too large for it, is named."""

    def cast() -> Iterator[Any]:
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
            for part in parts:
                yield part.astype(np.float32, copy=False)

    return finite(cast(), place)


def write_features(draft: Draft, values: Any, n: int, place: str) -> None:
    """Features of an array: a row a node, numbers."""
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise SgcnError(
            f"{place} holds {values.dtype} of shape {tuple(values.shape)}, expected features: "
            "2 dimensions of numbers"
        )
    check_rows(len(values), n, place)
    parts = (values[part] for part in chunks(n, values.shape[1]))
    draft.stream("x", tuple(values.shape), np.float32, single(parts, place))


def write_features_file(draft: Draft, path: Path, n: int, limit: int) -> None:
    """Features of an ``.npy`` (dense) or of an ``.npz`` that scipy saved (CSR)."""
    if path.suffix == ".npz":
        with Npz(path, "sparse features that scipy.sparse.save_npz wrote (CSR)", limit) as file:
            _write_sparse(draft, file, n)
        return
    with npy(path, f"features with {n} rows", "biuf") as array:
        check_rows(array.shape[0], n, str(path))
        draft.stream("x", array.shape, np.float32, single(array.parts(), str(path)))


def _write_sparse(draft: Draft, file: Npz, n: int) -> None:
    shape = file.all("shape")
    if len(shape) != 2:
        raise SgcnError(f"{file.path} has shape {tuple(shape.tolist())}, expected 2 dimensions")
    check_rows(int(shape[0]), n, str(file.path))
    indptr, indices = file.all("indptr", dtype=np.int64), file.all("indices")
    data = file.all("data", "biuf")
    fits = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    if not fits or (np.diff(indptr) < 0).any():
        raise SgcnError(
            f"{file.path} has row pointers that do not fit, expected {n + 1} that rise from 0 to "
            f"{len(data)}: save features as CSR"
        )
    width = int(shape[1])
    if len(indices) and (indices.min() < 0 or indices.max() >= width):
        raise SgcnError(f"{file.path} has columns outside of 0 to {width - 1}, expected features")
    values = np.concatenate([*single((data,), f"{file.path}, counted by entries,")])
    narrow = np.int32 if max(width, len(indices)) < 2**31 else np.int64
    draft.write("x_indptr", indptr.astype(narrow))  # scipy wants one type for both
    draft.write("x_indices", indices.astype(narrow))
    draft.write("x_data", values)
    draft.header["x_shape"] = [n, width]


def counted(parts: Iterable[Any], n: int, place: str) -> Iterator[Any]:
    """Rows as they pass; there must be ``n``."""
    seen = 0
    for part in parts:
        seen += len(part)
        if seen <= n:
            yield part
    check_rows(seen, n, place)


def check_rows(rows: int, n: int, place: str) -> None:
    """One row for each node."""
    if rows != n:
        raise SgcnError(f"{place} has {rows} rows, expected {n}, one for each node")


# -- labels -------------------------------------------------------------------------------------


def labels_of(values: Any, n: int, place: str) -> npt.NDArray[Any]:
    """One class a node (-1, or NaN, for none), or a 0/1 row a node for sets of labels."""
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
        raise SgcnError(
            f"{place} holds {values.dtype} of shape {values.shape}, expected a class or a 0/1 row "
            "for each node"
        )
    check_rows(len(values), n, place)
    sets = values.ndim == 2
    if sets:
        bad = (values != 0) & (values != 1)
    else:
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), -1, values)
        bad = (values < -1) | (values >= 2**31) | (values != np.floor(values))
    if bad.any():
        node = int(np.argwhere(bad)[0, 0])
        raise SgcnError(
            f"{place} gives node {node} the label {values[bad][0]}, expected "
            f"{'0 or 1' if sets else 'a class from 0 on, or -1 for none'}"
        )
    y: npt.NDArray[Any] = values.astype(np.uint8 if sets else np.int64)
    return y


def labels_file(path: Path, n: int) -> npt.NDArray[Any]:
    """Labels of an ``.npy``: a vector of classes, or 0/1 rows."""
    what = f"labels of {n} nodes"
    with npy(path, what, "biuf", 2 if len(npy_shape(path, what)) == 2 else 1) as array:
        return labels_of(array.all(), n, str(path))


def npy_shape(path: Path, what: str) -> tuple[int, ...]:
    """The shape that an ``.npy`` file has, if it is whole."""
    with unreadable(checked(path, what), what), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers of Python 2, which are read all the same
        shape: tuple[int, ...] = np.load(path, mmap_mode="r", allow_pickle=False).shape
    return shape


# -- split --------------------------------------------------------------------------------------


def split_of_parts(
    n: int, given: Callable[[str], Any], place: Callable[[str], str]
) -> npt.NDArray[np.int8] | None:
    """The split of masks or lists of ids; ``given`` has them by name, or None.

    All three parts or none of them. A vector of n booleans, or of n zeros and ones, is a mask.
    """
    found: list[Any] = []
    places: list[str] = []
    for part, words in NAMES.items():
        word = next((word for word in words if given(word) is not None), None)
        if word is None:
            found.append(None)
            places.append(part)
            continue
        found.append(_ids(given(word), n, place(word)))
        places.append(place(word))
    missing = [part for part, ids in zip(PARTS, found, strict=True) if ids is None]
    if len(missing) == len(PARTS):
        return None
    if missing:
        there = next(where for where, ids in zip(places, found, strict=True) if ids is not None)
        raise SgcnError(
            f"{there} is there and nothing names the nodes of {' and '.join(missing)}, expected "
            "all three parts or none"
        )
    return split_of(n, found, places)


def _ids(values: Any, n: int, place: str) -> Any:
    values = np.asarray(values)
    mask = values.dtype.kind == "b" or (
        values.shape == (n,) and values.dtype.kind in "iuf" and bool(np.isin(values, (0, 1)).all())
    )
    if not mask:
        return values
    if values.shape != (n,):
        raise SgcnError(f"{place} has shape {values.shape}, expected {n} values, one for each node")
    return np.flatnonzero(values)


def part_of(word: Any, place: str) -> int:
    """The part that a word or number means: train, valid, test; 0, 1, 2; none or -1 for none."""
    key = word.strip().lower() if isinstance(word, str) else word
    if key in _PART:
        return _PART[key]
    if key in ("none", "", None):
        return -1
    number = str(key)
    if isinstance(key, bool) or number not in ("-1", "0", "1", "2"):
        raise SgcnError(
            f"{place} has the part {word!r}, expected train, valid or test; or 0, 1 or 2; or none"
        )
    return int(number)


def split_of_numbers(n: int, parts: Any, place: str) -> npt.NDArray[np.int8]:
    """The split of one number a node: 0, 1, 2, and -1 for none."""
    check_rows(len(parts), n, place)
    bad = (parts < -1) | (parts > 2)
    if bad.any():
        part_of(int(parts[np.argmax(bad)]), place)
    return split_of(
        n,
        [np.flatnonzero(parts == part) for part in range(len(PARTS))],
        [f"{part} in {place}" for part in PARTS],
    )


def split_file(path: Path, n: int, limit: int) -> npt.NDArray[np.int8]:
    """The split of a file: one number a node (.npy), or train, val and test (.npz, .json)."""
    if path.suffix == ".json":
        lists = read_json(path, "an object with the lists train, val and test", dict)
        arrays = {key: np.array(ids) for key, ids in lists.items() if isinstance(ids, list)}
        split = split_of_parts(n, arrays.get, lambda word: f"{word} in {path}")
    elif path.suffix == ".npz":
        with Npz(path, "the arrays train, val and test", limit) as file:
            keys = [word for words in NAMES.values() for word in words if word in file]
            arrays = {key: file.all(key, "biu") for key in keys}
        split = split_of_parts(n, arrays.get, lambda word: f"{word} in {path}")
    else:
        with npy(path, f"0 (train), 1 (validation), 2 (test) or -1 for {n} nodes", "iu", 1) as row:
            return split_of_numbers(n, row.all(), str(path))
    if split is None:
        raise SgcnError(f"{path} has none of train, val and test, expected all three")
    return split
