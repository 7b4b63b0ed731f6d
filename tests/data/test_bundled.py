"""The graphs in the box: they open, are what their headers say, and make sense."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

from sgcn import SgcnError, cli
from sgcn.data import load
from sgcn.data.bundled import BUNDLED, FILES, bundled, header
from sgcn.data.source import is_file, open_as_is, open_data, read_npz
from sgcn.kernels import csr
from tools.builders.built import counts_of, digest, sizes_of

MOST_BYTES = 5_000_000


@pytest.fixture(scope="module", params=BUNDLED)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def graph(name):
    return bundled(name)


@pytest.fixture(scope="module")
def arrays(name):
    with np.load(FILES / BUNDLED[name].file, allow_pickle=False) as file:
        return {key: file[key] for key in file.files if key != "header"}


def test_the_files_are_small_and_all_shipped():
    files = [path for path in FILES.iterdir() if path.is_file()]
    assert {path.name for path in files} >= {facts.file for facts in BUNDLED.values()}
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    table = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    globs = table["tool"]["setuptools"]["package-data"]["sgcn"]
    for path in files:
        inside = path.relative_to(FILES.parents[1]).as_posix()
        assert any(fnmatch(inside, glob) for glob in globs), inside


def test_counts_are_those_of_the_header(name, graph, arrays):
    facts, said = BUNDLED[name], header(name)
    target = facts.target
    counts = said[f"counts{target}"]
    assert counts == sizes_of(arrays) | counts_of(arrays, target)
    assert said["sha256"] == digest(arrays)
    assert (counts["nodes"], counts["edges"]) == (facts.nodes, facts.edges)
    assert (counts["features"], counts["classes"]) == (facts.features, facts.classes)
    assert (len(graph), graph.edges) == (facts.nodes, 2 * facts.edges)
    assert graph.x.shape == (facts.nodes, facts.features)
    assert len(said["words"]) == len(set(said["words"])) == facts.features
    assert len(said[target.removeprefix("_") or "classes"]) == facts.classes
    assert (graph.y.ndim == 2) == facts.multi_label
    for part in ("origin", "release", "licence", "built", "sources"):
        assert said[part], part


def test_the_graph_is_undirected_and_simple(graph):
    assert csr.rows_are_sorted(graph.indptr, graph.indices)  # strictly: nothing twice
    assert csr.is_symmetric(graph.indptr, graph.indices)
    assert csr.count_self_loops(graph.indptr, graph.indices) == 0


def test_features_are_ones(graph):
    assert graph.x.dtype == np.float32
    assert (graph.x.data == 1).all()
    assert graph.x.has_canonical_format
    assert graph.x.sum(axis=0).min() >= 20  # no word is rare


def test_every_class_is_trained_on_and_tested(graph):
    for part in (0, 1, 2):
        y = graph.y[graph.split == part]
        present = y.any(axis=0) if y.ndim == 2 else np.bincount(y, minlength=graph.y.max() + 1) > 0
        assert present.all()
    labelled = graph.y.any(axis=1) if graph.y.ndim == 2 else graph.y >= 0
    np.testing.assert_array_equal(labelled, graph.split >= 0)


def test_neighbours_are_alike(graph):
    """An edge joins equal labels far more often than two nodes at random do."""
    y = graph.y
    if y.ndim == 1:
        y = np.eye(y.max() + 1)[y] * (y >= 0)[:, None]
    y = y / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1)
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    on_edges = np.einsum("ij,ij->i", y[rows[::7]], y[graph.indices[::7]]).mean()
    weights = graph.degrees / graph.edges
    at_random = np.square(weights @ y).sum()
    assert on_edges > 1.5 * at_random


def test_a_name_is_enough(name, graph):
    for other in (open_data(name), load(name)):
        np.testing.assert_array_equal(other.indices, graph.indices)
        np.testing.assert_array_equal(other.y, graph.y)
    assert not is_file(name)


def test_targets_of_one_file_share_everything_else():
    sections, tags = bundled("debian"), bundled("debian-tags")
    np.testing.assert_array_equal(sections.indices, tags.indices)
    assert (sections.x != tags.x).nnz == 0
    assert sections.y.shape != tags.y.shape


def test_options_are_those_of_p():
    graph = open_data("wordnet", normalization="row", self_loops=False)
    assert (graph.normalization, graph.self_loops) == ("row", False)


def test_the_licence_of_wordnet_goes_with_it():
    text = (FILES / "LICENSE.wordnet").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in text
    assert header("wordnet")["notice"].split() == text.split()


def test_unknown_names_get_the_nearest():
    with pytest.raises(SgcnError, match=r"bundled graph is 'debain'.*did you mean 'debian'"):
        bundled("debain")
    for opener in (open_data, load):
        with pytest.raises(SgcnError, match=r"expected .*debian.*did you mean 'wordnet'"):
            opener("wordnett")


def test_data_list_has_them(capsys):
    assert cli.main(["data", "list"]) == 0
    said = capsys.readouterr().out
    for name, facts in BUNDLED.items():
        line = rf"^{name} +{facts.nodes:,} +{facts.edges:,} +{facts.features} +{facts.classes} "
        assert re.search(line, said, re.M)
        assert facts.about in said


def test_sparse_features_without_values_are_ones(tmp_path):
    parts = {"indptr": [0, 1, 2], "indices": [1, 0], "x_indptr": [0, 2, 3], "x_indices": [0, 2, 1]}
    np.savez(tmp_path / "a.npz", x_shape=[2, 3], **parts)
    assert read_npz(tmp_path / "a.npz").x.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    np.savez(tmp_path / "b.npz", x_shape=[2, 3], x_data=[2.0, 3.0, 4.0], **parts)
    assert read_npz(tmp_path / "b.npz").x.toarray().tolist() == [[2, 0, 3], [0, 4, 0]]
    del parts["x_indices"]
    np.savez(tmp_path / "c.npz", x_shape=[2, 3], **parts)
    with pytest.raises(SgcnError, match="sparse features that do not fit"):
        read_npz(tmp_path / "c.npz")


def test_the_docs_have_the_counts(name):
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    counts = header(name)[f"counts{BUNDLED[name].target}"]
    parts = " / ".join(f"{counts[part]:,}" for part in ("train", "validation", "test"))
    row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
    assert f"| {counts['nodes']:,} | {counts['edges']:,} | {counts['features']} |" in row
    assert f"| {counts['classes']}" in row
    assert row.endswith(f"| {parts} |")


def test_training_sees_unit_rows_of_words_unless_told(name):
    raw = open_as_is(name).x
    lengths = np.sqrt(open_data(name).x.power(2).sum(1))
    np.testing.assert_allclose(lengths[np.diff(raw.indptr) > 0], 1.0, rtol=1e-5)
    assert (open_data(name, features="raw").x != raw).nnz == 0
