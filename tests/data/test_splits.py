"""Splits: shares, classes, seeds, and files that name nodes."""

from __future__ import annotations

import numpy as np
import pytest

from learning import labelled
from sgcn import Graph, SgcnError
from sgcn.data.splits import random_split, split_from_files, stratified_split

NODES = 400

RANDOM, STRATIFIED = [7, 16, 27, 29, 32, 41], [7, 12, 16, 27, 29, 41]


def graph_with(y) -> Graph:
    return labelled(nodes=len(y), y=y)


@pytest.fixture(scope="module")
def skewed() -> Graph:
    """Classes of 200, 100, 50, 45, 4 and 1 nodes, in random order."""
    y = np.repeat(np.arange(6), [200, 100, 50, 45, 4, 1])
    return graph_with(np.random.default_rng(0).permutation(y))


def test_random_shares_and_seeds(skewed):
    split = random_split(skewed, 0.55, 0.3, seed=1)
    assert split.dtype == np.int8
    assert np.bincount(split).tolist() == [220, 120, 60]
    assert np.array_equal(split, random_split(skewed, 0.55, 0.3, seed=1))
    assert not np.array_equal(split, random_split(skewed, 0.55, 0.3, seed=2))


def test_a_split_is_the_same_on_every_machine():
    graph = graph_with(np.arange(60) % 3)
    assert np.flatnonzero(random_split(graph, 0.1, 0.1) == 0).tolist() == RANDOM
    assert np.flatnonzero(stratified_split(graph, 0.1, 0.1) == 0).tolist() == STRATIFIED


def test_shares_that_binary_fractions_miss(skewed):
    assert np.bincount(random_split(graph_with(np.zeros(100, int)), 0.29, 0.28)).tolist() == [
        29, 28, 43,
    ]  # fmt: skip
    assert np.bincount(random_split(skewed, 0.7, 0.3)).tolist() == [280, 120]


def test_stratified_keeps_the_share_of_every_class(skewed):
    split = stratified_split(skewed, 0.6, 0.2, seed=5)
    counts = [np.bincount(split[skewed.y == c], minlength=3).tolist() for c in range(6)]
    assert counts == [
        [120, 40, 40], [60, 20, 20], [30, 10, 10], [27, 9, 9], [2, 1, 1], [1, 0, 0],
    ]  # fmt: skip
    wanted = [len(set(random_split(skewed, seed=s)[skewed.y == 4])) for s in range(20)]
    assert min(wanted) < 3  # a random split loses the small class somewhere


def test_every_class_is_seen_in_training(skewed):
    split = stratified_split(skewed, 0.01, 0.1)
    assert set(skewed.y[split == 0]) == set(range(6))


def test_stratified_is_random_within_a_class(skewed):
    a, b = (stratified_split(skewed, seed=s) for s in (0, 1))
    assert not np.array_equal(a, b)
    assert np.bincount(a).tolist() == np.bincount(b).tolist()


def test_several_labels_go_by_the_rarest():
    y = np.zeros((NODES, 3), np.uint8)
    y[:300, 0] = 1  # frequent
    y[:40, 1] = 1
    y[30:40, 2] = 1  # rare, and always with the two others
    graph = labelled(nodes=NODES, y=y)
    split = stratified_split(graph, 0.5, 0.3)
    for nodes, wanted in (
        (slice(30, 40), [5, 3, 2]),
        (slice(0, 30), [15, 9, 6]),
        (slice(40, 300), [130, 78, 52]),
        (slice(300, 400), [50, 30, 20]),
    ):
        assert np.bincount(split[nodes]).tolist() == wanted


@pytest.mark.parametrize("draw", [random_split, stratified_split])
def test_nodes_without_a_label_get_no_part(draw):
    y = np.arange(60) % 4
    y[::3] = -1
    split = draw(graph_with(y))
    assert ((split == -1) == (y < 0)).all()


def test_without_labels(tmp_path):
    bare = labelled(nodes=50, y=None)
    assert np.bincount(random_split(bare)).tolist() == [30, 10, 10]
    with pytest.raises(SgcnError, match=r"has no labels .* split it at random"):
        stratified_split(bare)
    with pytest.raises(SgcnError, match="no labelled node"):
        random_split(graph_with(np.full(50, -1)))


@pytest.mark.parametrize("draw", [random_split, stratified_split])
@pytest.mark.parametrize("shares", [(0, 0.5), (0.9, 0.2), (0.5, -0.1), (float("nan"), 0.1)])
def test_bad_shares(skewed, draw, shares):
    with pytest.raises(SgcnError, match="expected shares with train > 0"):
        draw(skewed, *shares)


def test_with_split_shares_everything_else(skewed):
    made = skewed.with_split(random_split(skewed))
    for name in ("indptr", "indices", "row", "col", "x", "y"):
        assert getattr(made, name) is getattr(skewed, name)
    assert made.split is not skewed.split


# -- files ----------------------------------------------------------------------------------------


def files(folder, train="0\n1\n", val="2\n", test="3\n"):
    paths = []
    for name, content in (("train", train), ("val", val), ("test", test)):
        if isinstance(content, str):
            paths.append(folder / f"{name}.txt")
            paths[-1].write_text(content)
        else:
            paths.append(folder / f"{name}.npy")
            np.save(paths[-1], content)
    return paths


def test_files_of_both_kinds(tmp_path):
    graph = graph_with(np.zeros(8, int))
    paths = files(tmp_path, "5\r\n 0 \n\n", np.array([3, 1], np.uint16), "7")
    assert split_from_files(graph, paths).tolist() == [0, 1, -1, 1, -1, 0, -1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": ""}, "train.txt is empty, expected a node id in each line"),
        ({"val": np.zeros(0, np.int64)}, "val.npy holds no node id"),
        ({"train": "0\n\n1.5\n"}, "train.txt has '1.5' in line 3, expected a node id in each"),
        ({"train": "0 1\n"}, "train.txt has '0 1' in line 1"),
        ({"train": "-1\n"}, r"train.txt has node -1 in line 1, expected ids from 0"),
        ({"train": "9" * 30}, "train.txt has '9999"),
        ({"val": "7\n8\n"}, r"val.txt has node 8 in line 2, expected ids from 0 to 7"),
        ({"val": np.array([7, -2])}, r"val.npy has node -2 in entry 1, expected ids from 0 to 7"),
        ({"val": np.array([1.0])}, "val.npy holds float64 of shape"),
        ({"val": np.array([[1]])}, "val.npy holds int64 of shape"),
        ({"val": np.array([{}], object)}, "val.npy holds object of shape"),
        ({"test": "4\n4\n"}, r"test.txt has node 4 in line 2, expected every node once"),
        ({"test": "4\n\n1\n"}, r"test.txt has node 1 in line 3, expected no node of .*train.txt"),
        ({"test": "4\n6\n"}, r"test.txt has node 6 in line 2, expected nodes with a label"),
    ],
)
def test_files_that_are_refused(tmp_path, change, message):
    graph = graph_with(np.array([0, 0, 0, 0, 0, 0, -1, 0]))
    with pytest.raises(SgcnError, match=message):
        split_from_files(graph, files(tmp_path, **change))


def test_files_that_are_not_there(tmp_path):
    graph = graph_with(np.zeros(8, int))
    with pytest.raises(SgcnError, match=r"none\.txt does not exist, expected a node id"):
        split_from_files(graph, [*files(tmp_path)[:2], tmp_path / "none.txt"])
    with pytest.raises(SgcnError, match="2 files came, expected three"):
        split_from_files(graph, files(tmp_path)[:2])
