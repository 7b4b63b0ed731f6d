"""Splits as others keep them: lists of ids, masks, or a part for each node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.checks import check_ids, check_rows
from sgcn.data.readers.arrays import Npz, npy
from sgcn.data.readers.files import read_json
from sgcn.errors import SgcnError

PARTS = ("train", "validation", "test")
#: The parts by their names in files and words.
PART: dict[Any, int] = {
    "train": 0, "training": 0, "tr": 0, "val": 1, "valid": 1, "validation": 1, "va": 1,
    "test": 2, "testing": 2, "te": 2,
}  # fmt: skip


def split_of(nodes: int, parts: Iterable[tuple[Any, str]]) -> npt.NDArray[np.int8]:
    """The split with these ids of train, validation and test, each with the name of its source."""
    split = np.full(nodes, -1, np.int8)
    for part, (chosen, where) in enumerate(parts):
        chosen = np.asarray(chosen)
        if chosen.size == 0:
            raise SgcnError(f"{where} names no node, expected at least one for {PARTS[part]}")
        check_ids(chosen, nodes, where)
        taken = split[chosen] != -1
        if taken.any():
            node = chosen[taken.argmax()]
            raise SgcnError(
                f"{where} names node {node}, which is in {PARTS[split[node]]} already, expected "
                "parts that do not overlap"
            )
        split[chosen] = part
    return split


def split_of_parts(n: int, given: Iterable[tuple[str, Any, str]]) -> npt.NDArray[np.int8] | None:
    """The split of masks or lists of ids, each with the word for its part and its source.

    All three parts or none of them. A vector of n booleans, or of n zeros and ones, is a mask.
    """
    found: dict[int, tuple[Any, str]] = {}
    for word, values, where in given:
        found.setdefault(PART[word], (_ids(values, n, where), where))
    if not found:
        return None
    missing = [name for part, name in enumerate(PARTS) if part not in found]
    if missing:
        raise SgcnError(
            f"{found[min(found)][1]} is there and nothing names the nodes of "
            f"{' and '.join(missing)}, expected all three parts or none"
        )
    return split_of(n, [found[part] for part in range(len(PARTS))])


def _ids(values: Any, n: int, where: str) -> Any:
    values = np.asarray(values)
    mask = values.dtype.kind == "b" or (
        values.shape == (n,) and values.dtype.kind in "iuf" and bool(np.isin(values, (0, 1)).all())
    )
    if not mask:
        return values
    if values.shape != (n,):
        raise SgcnError(f"{where} has shape {values.shape}, expected {n} values, one for each node")
    return np.flatnonzero(values)


def part_of(word: Any, where: str) -> int:
    """The part that a word or number means: train, valid, test; 0, 1, 2; none or -1 for none."""
    key = word.strip().lower() if isinstance(word, str) else word
    if key in PART:
        return PART[key]
    if key in ("none", "", None):
        return -1
    number = str(key)
    if isinstance(key, bool) or number not in ("-1", "0", "1", "2"):
        raise SgcnError(
            f"{where} has the part {word!r}, expected train, valid or test; or 0, 1 or 2; or none"
        )
    return int(number)


def split_of_numbers(n: int, parts: Any, where: str) -> npt.NDArray[np.int8]:
    """The split of one number a node: 0, 1, 2, and -1 for none."""
    check_rows(len(parts), n, where)
    bad = (parts < -1) | (parts > 2)
    if bad.any():
        part_of(int(parts[np.argmax(bad)]), where)
    chosen = (np.flatnonzero(parts == part) for part in range(len(PARTS)))
    return split_of(n, zip(chosen, (f"{part} in {where}" for part in PARTS), strict=True))


def split_file(path: Path, n: int, limit: int) -> npt.NDArray[np.int8]:
    """The split of a file: one number a node (.npy), or train, val and test (.npz, .json)."""
    if path.suffix == ".json":
        lists = read_json(path, "an object with the lists train, val and test", dict)
        arrays = {key: np.array(ids) for key, ids in lists.items() if isinstance(ids, list)}
    elif path.suffix == ".npz":
        with Npz(path, "the arrays train, val and test", limit) as file:
            arrays = {key: file.all(key, "biu") for key in PART if key in file}
    else:
        with npy(path, f"0 (train), 1 (validation), 2 (test) or -1 for {n} nodes", "iu", 1) as row:
            return split_of_numbers(n, row.all(), str(path))
    given = [(word, arrays[word], f"{word} in {path}") for word in PART if word in arrays]
    split = split_of_parts(n, given)
    if split is None:
        raise SgcnError(f"{path} has none of train, val and test, expected all three")
    return split
