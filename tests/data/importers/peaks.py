"""How much memory each import takes beside the largest array that it writes.

    python tests/data/importers/peaks.py             every format, many edges and wide features
    python tests/data/importers/peaks.py planetoid   some of them
    python tests/data/importers/peaks.py --size small  a graph of a few MB

Each import is a process of its own, which imports a small graph of the same format first: kernels
are then loaded. This one watches from outside, every millisecond, how much anonymous memory
(RssAnon) the other holds; pages of mapped files are the system's, which takes them back at will.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from writers import FORMATS, Format, Truth, csv, make_truth, write_planetoid_as, write_scipy

#: Nodes, undirected edges drawn and features: one graph is large by its edges, one by its features.
SIZES = {"edges": (250_000, 5_000_000, 1), "features": (50_000, 100_000, 1_024)}
#: On demand only: what parts on their way amount to shows where arrays are small.
SMALL = {"small": (20_000, 500_000, 8)}


def write_tsv(folder: Path, truth: Truth) -> None:
    ends = np.stack((truth.src, truth.dst), 1)
    (folder / "edges.tsv").write_text(csv(ends).replace(",", "\t"))


def write_parquet(folder: Path, truth: Truth) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = pyarrow.table({"source": truth.src, "target": truth.dst})
    parquet.write_table(columns, folder / "edges.parquet")
    names = [str(k) for k in range(truth.x.shape[1])]
    features = pyarrow.table(list(truth.x.T), names)
    parquet.write_table(features, folder / "x.parquet")


def with_npy(folder: Path, truth: Truth) -> None:
    np.save(folder / "x.npy", truth.x)
    write_scipy(folder, truth)


def with_csv(folder: Path, truth: Truth) -> None:
    (folder / "x.csv").write_text(csv(truth.x))
    FORMATS["edgelist"].write(folder, truth)


def weights_of(truth: Truth) -> Any:
    return np.random.default_rng(0).random(len(truth.src)).astype(np.float32)


def write_weighted_csv(folder: Path, truth: Truth) -> None:
    lines = zip(truth.src.tolist(), truth.dst.tolist(), weights_of(truth).tolist(), strict=True)
    (folder / "edges.csv").write_text("".join(f"{i},{j},{w:.6f}\n" for i, j, w in lines))


def write_weighted_scipy(folder: Path, truth: Truth) -> None:
    matrix = sp.coo_array((weights_of(truth), (truth.src, truth.dst)), shape=(len(truth),) * 2)
    sp.save_npz(folder / "matrix.npz", matrix.tocsr())


def write_weighted_pyg(folder: Path, truth: Truth) -> None:
    import torch

    edges = torch.from_numpy(np.stack((truth.src, truth.dst)))
    weights = torch.from_numpy(weights_of(truth))
    data = {"edge_index": edges, "edge_weight": weights, "num_nodes": len(truth)}
    torch.save(data, folder / "data.pt")


def write_weighted_networkx(folder: Path, truth: Truth) -> None:
    rows = zip(truth.src.tolist(), truth.dst.tolist(), weights_of(truth).tolist(), strict=True)
    nodes = [{"id": k} for k in range(len(truth))]
    edges = [{"source": i, "target": j, "w": w} for i, j, w in rows]
    (folder / "graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))


#: Graphs with weights, which have no features here.
WEIGHTED = {
    "edgelist-weighted": Format(
        "edgelist", write_weighted_csv, (), {"weight_column": 2}, source="edges.csv"
    ),
    "scipy-weighted": Format(
        "scipy", write_weighted_scipy, (), {"weighted": True}, source="matrix.npz"
    ),
    "pyg-weighted": Format("pyg", write_weighted_pyg, (), {"weighted": True}, source="data.pt"),
    "networkx-weighted": Format(
        "networkx", write_weighted_networkx, (), {"weight": "w"}, source="graph.json"
    ),
}

#: The formats of the other tests; features beside the edges are named as they are for a user.
CASES = FORMATS | {
    "planetoid": replace(FORMATS["planetoid"], write=write_planetoid_as),
    "scipy": replace(FORMATS["scipy"], write=with_npy, options={"features": "x.npy"}),
    "edgelist": replace(FORMATS["edgelist"], write=with_csv, options={"features": "x.csv"}),
    "edgelist-tsv": Format("edgelist", write_tsv, (), source="edges.tsv"),
    "edgelist-parquet": Format(
        "edgelist", write_parquet, (), {"features": "x.parquet"}, source="edges.parquet"
    ),
    **WEIGHTED,
}


def large_truth(nodes: int, edges: int, width: int) -> Truth:
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, nodes, (2, edges), np.int32)
    x = rng.integers(0, 10, (nodes, width)) / 10
    split = np.repeat(np.array([0, 1, -1, 2], np.int8), nodes // 4)  # as Planetoid's nodes lie
    return Truth(src, dst, x, rng.integers(0, 4, nodes), split)


def write_both(name: str, size: str, place: Path) -> None:
    small = make_truth(40)
    small.split = np.repeat(np.array([0, 1, -1, 2], np.int8), 10)
    for folder, truth in (("small", small), ("large", large_truth(*(SIZES | SMALL)[size]))):
        (place / folder).mkdir()
        CASES[name].write(place / folder, truth)


def bring(name: str, place: Path) -> None:
    """The process that is watched: it says when it begins and when it is done."""
    from sgcn.data.importers import import_graph

    format = CASES[name]
    for folder in ("small", "large"):
        os.chdir(place / folder)
        if folder == "large":
            print("ready", flush=True)
            sys.stdin.readline()
        import_graph(
            format.importer, Path(format.source), place / f"{folder}-out", **format.given(Path())
        )
    print("done", flush=True)
    sys.stdin.readline()


def resident(process: int, field: str) -> int:
    """A line of the kernel's account of a process, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def watched(name: str, place: Path) -> tuple[int, int]:
    """The growth of anonymous memory while the import ran, and that of all resident memory."""
    command = [sys.executable, __file__, "--bring", name, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        Path(f"/proc/{child.pid}/clear_refs").write_text("5")  # VmHWM counts from here
        before = peak = resident(child.pid, "RssAnon")
        all_before = resident(child.pid, "VmRSS")
        child.stdin.write(b"\n")
        child.stdin.flush()
        os.set_blocking(child.stdout.fileno(), False)
        while not child.stdout.read(1):
            if child.poll() is not None:
                raise SystemExit(f"the import of {name} failed")
            peak = max(peak, resident(child.pid, "RssAnon"))
            time.sleep(0.001)
        return peak - before, resident(child.pid, "VmHWM") - all_before


def measure(name: str, size: str) -> str:
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        writer = multiprocessing.get_context("spawn").Process(
            target=write_both, args=(name, size, place)
        )
        writer.start()
        writer.join()
        own, everything = watched(name, place)
        sizes = {path.name: path.stat().st_size for path in (place / "large-out").glob("*.npy")}
    largest: Any = max(sizes, key=sizes.__getitem__)
    most = sizes[largest]
    return (
        f"| {name} | {size} | {largest} | {most / 1e6:.0f} | {own / 1e6:.0f} | {own / most:.2f} | "
        f"{everything / 1e6:.0f} |"
    )


def main(names: list[str], sizes: list[str]) -> None:
    print("| format | graph | largest array | MB | peak, MB | factor | with mapped files, MB |")
    print("|---|---|---|---|---|---|---|")
    for name in names or list(CASES):
        for size in sizes:
            if size != "features" or name not in ("edgelist-tsv", *WEIGHTED):  # these have none
                print(measure(name, size), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FORMAT", help=", ".join(CASES))
    parser.add_argument("--size", choices=SIZES | SMALL, action="append")
    parser.add_argument("--bring", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bring:
        bring(args.bring[0], Path(args.bring[1]))
    else:
        main(args.names, args.size or list(SIZES))
