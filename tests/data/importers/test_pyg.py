"""PyTorch Geometric's files: what comes in, and what a malicious one may not do."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import small_graph as small
import torch
from small_graph import imported, refused, same_edges, same_rows

from sgcn import Graph


def tensors(**changes):
    made = {
        "edge_index": torch.from_numpy(np.stack((small.SRC, small.DST))),
        "x": torch.from_numpy(small.X),
        "y": torch.from_numpy(small.Y),
        **{key: torch.from_numpy(mask) for key, mask in small.MASKS.items()},
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


def save(path, **changes):
    torch.save(tensors(**changes), path)
    return path


@pytest.fixture
def pyg():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's import
        return pytest.importorskip("torch_geometric.data")


def test_a_dict(tmp_path):
    graph = imported("pyg", save(tmp_path / "a.pt"), tmp_path / "g")
    same_edges(graph, small.expected())
    same_rows(graph)


@pytest.mark.parametrize("kind", ["data", "dataset", "old dataset"])
def test_saved_objects(tmp_path, pyg, kind):
    data = pyg.Data.from_dict(tensors())
    path = tmp_path / "data.pt"
    if kind == "data":
        torch.save(data, path)
    elif kind == "dataset":
        pyg.InMemoryDataset.save([data], path)
    else:
        torch.save((data, None), path)
    graph = imported("pyg", path, tmp_path / "g")
    same_edges(graph, small.expected())
    same_rows(graph)
    np.testing.assert_array_equal(graph.indices, Graph.from_pyg(data).indices)


def test_a_dataset_of_several_graphs(tmp_path, pyg):
    data = pyg.Data.from_dict(tensors())
    pyg.InMemoryDataset.save([data, data], tmp_path / "data.pt")
    refused("pyg", tmp_path / "data.pt", tmp_path, "data.pt holds several graphs")


def test_without_pyg_a_saved_object_is_explained(tmp_path, pyg):
    torch.save(pyg.Data.from_dict(tensors()), tmp_path / "data.pt")
    code = (
        "import sys; sys.modules['torch_geometric'] = None\n"
        "from sgcn.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = ["data", "import", "pyg", tmp_path / "data.pt", "--out", tmp_path / "g"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "pip install torch_geometric" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "g").exists()


def test_weights_and_directions(tmp_path):
    path = save(tmp_path / "a.pt", edge_weight=torch.from_numpy(small.WEIGHTS))
    same_edges(imported("pyg", path, tmp_path / "g"), small.expected())
    options = {"weighted": True, "directed": True}
    same_edges(imported("pyg", path, tmp_path / "h", **options), small.expected(**options))
    refused("pyg", save(tmp_path / "b.pt"), tmp_path, "no edge_weight", weighted=True)
    (tmp_path / "made").rmdir()
    path = save(tmp_path / "c.pt", edge_weight=torch.ones(3))
    refused("pyg", path, tmp_path, "c.pt", "edge_weight", "has shape (3,)", weighted=True)


def test_shapes_of_labels_and_masks(tmp_path):
    column = save(tmp_path / "a.pt", y=torch.from_numpy(small.Y)[:, None])
    same_rows(imported("pyg", column, tmp_path / "a"))
    sets = save(tmp_path / "b.pt", y=torch.from_numpy(small.SETS).float())
    graph = imported("pyg", sets, tmp_path / "b")
    assert graph.y.dtype == np.uint8
    same_rows(graph, y=small.SETS)
    both = {
        key: torch.from_numpy(np.stack((np.roll(mask, 1), mask), 1))
        for key, mask in small.MASKS.items()
    }
    masks = save(tmp_path / "c.pt", **both)
    same_rows(imported("pyg", masks, tmp_path / "c"), split=np.roll(small.SPLIT, 1))
    same_rows(imported("pyg", masks, tmp_path / "d", split=1))
    refused("pyg", masks, tmp_path, "train_mask", "2 columns", split=2)


def test_a_bare_graph(tmp_path):
    none = dict.fromkeys(("x", "y", *small.MASKS))
    graph = imported("pyg", save(tmp_path / "a.pt", **none, num_nodes=small.N), tmp_path / "a")
    same_edges(graph, small.expected())
    same_rows(graph, x=None, y=None, split=None)
    assert len(imported("pyg", save(tmp_path / "b.pt", **none), tmp_path / "b")) == 7


class Evil:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("way", ["zip", "old", "pickle"])
def test_a_malicious_file_is_not_run(tmp_path, way):
    path, proof = tmp_path / "a.pt", tmp_path / "proof"
    content = {"x": Evil(proof)}
    if way == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=way == "zip")
    refused("pyg", path, tmp_path, "a.pt cannot be read", "nothing but tensors")
    assert not proof.exists()
    if way == "pickle":
        pickle.loads(path.read_bytes())
    else:
        torch.load(path, weights_only=False)
    assert proof.exists()  # it would have run


BAD = {
    "no edges": ({"edge_index": None}, ("no edge_index",)),
    "flat edges": ({"edge_index": torch.zeros(4, dtype=torch.int64)}, ("shape (4,)", "(2, E)")),
    "real edges": ({"edge_index": torch.zeros(2, 3)}, ("float32", "whole")),
    "unknown node": ({"edge_index": torch.tensor([[0], [small.N]])}, ("has node 8 in edge 0",)),
    "negative node": ({"edge_index": torch.tensor([[0, 0], [1, -1]])}, ("node -1 in edge 1",)),
    "nan": ({"x": torch.full((small.N, 2), torch.nan)}, ("x in", "not finite in row 0")),
    "too large": ({"x": torch.full((small.N, 2), 1e300, dtype=torch.float64)}, ("not finite",)),
    "flat features": ({"x": torch.zeros(small.N)}, ("x in", "2 dimensions")),
    "few labels": ({"y": torch.zeros(3, dtype=torch.int64)}, ("y in", "3 rows", "expected 8")),
    "bad class": ({"y": torch.full((small.N,), -5)}, ("label -5 for node 0",)),
    "bad set": ({"y": torch.full((small.N, 2), 2)}, ("label 2 for node 0", "0 or 1")),
    "half class": ({"y": torch.full((small.N,), 0.5)}, ("label 0.5 for node 0",)),
    "overlap": (
        {"val_mask": torch.from_numpy(small.MASKS["train_mask"])}, ("val_mask", "in train already"),
    ),
    "empty part": ({"test_mask": torch.zeros(small.N, dtype=torch.bool)}, ("test_mask", "no node")),
    "missing part": ({"test_mask": None}, ("train_mask", "the nodes of test")),
    "short mask": ({"test_mask": torch.ones(3, dtype=torch.bool)}, ("test_mask", "shape (3,)")),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tensors(tmp_path, case):
    changes, words = BAD[case]
    refused("pyg", save(tmp_path / "a.pt", **changes), tmp_path, "a.pt", *words)


def strange(kind):
    """Tensors that torch saves and numpy cannot hold."""
    x = torch.from_numpy(small.X).float()
    return STRANGE[kind](x)


STRANGE = {
    "sparse_csr": lambda x: x.to_sparse_csr(),
    "sparse_coo": lambda x: x.to_sparse(),
    "bfloat16": lambda x: x.bfloat16(),
    "qint8": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "meta": lambda x: x.to("meta"),
    "complex64": lambda x: x.to(torch.complex64).conj(),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, on what it calls beta
@pytest.mark.parametrize("kind", STRANGE)
def test_tensors_that_numpy_cannot_hold(tmp_path, kind):
    """Where one is used it is refused in a sentence; elsewhere it does not matter."""
    bad = save(tmp_path / "a.pt", x=strange(kind))
    refused("pyg", bad, tmp_path, "x in", "a.pt is", kind, "save x.to_dense() or x.float()")
    unused = dict.fromkeys(("adj", "edge_attr", "edge_weight"), strange(kind))
    fine = save(tmp_path / "b.pt", **unused)
    same_rows(imported("pyg", fine, tmp_path / "g"))


@pytest.mark.parametrize("count", [10**15, 2**31, 0, -5, 2.5, torch.tensor(-5), torch.ones(3)])
def test_a_number_of_nodes_that_is_none(tmp_path, count):
    none = dict.fromkeys(("x", "y", *small.MASKS))
    path = save(tmp_path / "a.pt", **none, num_nodes=count)
    refused("pyg", path, tmp_path, "num_nodes in", "a.pt is", "from 1 to 2147483647")


@pytest.mark.parametrize("end", [10**15, -3])
def test_ends_that_say_how_many_nodes(tmp_path, end):
    none = dict.fromkeys(("x", "y", *small.MASKS))
    path = save(tmp_path / "a.pt", **none, edge_index=torch.tensor([[0, 1], [1, end]]))
    refused("pyg", path, tmp_path, f"has node {end} in edge 1, expected ids from 0 to")


def test_slices_that_are_no_tensors(tmp_path):
    torch.save((tensors(), {"edge_index": 3, "words": [1]}), tmp_path / "a.pt")
    refused("pyg", tmp_path / "a.pt", tmp_path, "a.pt has a int as slices of edge_index")
    torch.save((tensors(), {"edge_index": torch.tensor([0, 10]), "words": [1]}), tmp_path / "a.pt")
    same_rows(imported("pyg", tmp_path / "a.pt", tmp_path / "g"))


def test_bad_files(tmp_path):
    path = tmp_path / "a.pt"
    refused("pyg", path, tmp_path, "a.pt does not exist")
    for content, word in (
        (b"", "is empty"), (small.HTML, "HTML page"), (b"\x80\x02nonsense", "cannot be read"),
        (save(tmp_path / "whole.pt").read_bytes()[:-500], "cannot be read"),
    ):  # fmt: skip
        path.write_bytes(content)
        (tmp_path / "made").rmdir()
        refused("pyg", path, tmp_path, "a.pt", word)
    for value in (torch.zeros(3), [1, 2], "words", 3):
        torch.save(value, path)
        (tmp_path / "made").rmdir()
        refused("pyg", path, tmp_path, "a.pt holds a", type(value).__name__)


def test_a_bomb(tmp_path):
    small.bomb(tmp_path / "a.pt", "archive/data.pkl")
    refused("pyg", tmp_path / "a.pt", tmp_path, "unpacks to", limit_gb=0.001)
