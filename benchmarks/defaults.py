"""Train without options against recipes of PyG on real graphs: test score, seconds.

examples:
  python -m benchmarks defaults --work runs/defaults                      the graphs in the box
  python -m benchmarks defaults --data folder --work runs/defaults --out defaults.json
  python -m benchmarks defaults --data folder --work runs/defaults --only ours --graphs cora,nell

Ours is `sgcn train GRAPH`, nothing else. `pyg-plain` is PyG's GCN: two layers, dropout 0.5, weight
decay 5e-4, Adam 0.01. `pyg-classic` has residuals, a norm and dropout, and chooses GCN or SAGE,
decay, dropout, lr, depth and norm on validation nodes, one after the other, with seed 0. Both: full
batch, width 128, up to 300 epochs, at most 50 without a better validation score, features scaled in
the way that validation prefers. Scores are micro-F1 of test nodes where validation is best, seconds
are CPU time of training.

Each run leaves a file in --work, GRAPH/CONTESTANT/RECIPE-sSEED.json, and is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean, stdev
from time import process_time
from typing import Any

from benchmarks.engines import set_threads
from benchmarks.options import add_integers, add_out, check_positive, listed, target
from benchmarks.process import call
from benchmarks.report import finish, write
from sgcn.data.bundled import BUNDLED
from sgcn.data.source import open_as_is
from sgcn.errors import SgcnError
from sgcn.options import known_name

OURS, PEERS = "ours", ("pyg-plain", "pyg-classic")
Run = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="DIR",
        help="every .npz in it with features, labels and a split; before the box where names agree",
    )  # fmt: skip
    parser.add_argument("--graphs", metavar="NAME[,..]", help="only these, in this order")
    parser.add_argument("--only", choices=(OURS, "peers"), help="run these; the table has all")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/defaults"), metavar="DIR",
        help="the runs, a file each; default: %(default)s",
    )  # fmt: skip
    add_integers(
        parser,
        ("--seeds", 3, "runs of each contestant"),
        ("--tries", 10, "recipes that a contestant of PyG chooses from, at most"),
        ("--threads", 1, "threads of every run"),
    )
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "seeds", "tries", "threads")
    out = target(args.out)
    known = found(args.data)
    names = [*known] if args.graphs is None else listed("--graphs", args.graphs)
    graphs = {name: known[known_name("graph", name, known)] for name in names}
    set_threads(args.threads)
    for name, data in graphs.items():
        if args.only != OURS:
            peers(name, data, args)
        if args.only != "peers":
            ours(name, data, args)
    finish(summary(args.work, graphs), table, out)


def found(folder: Path | None) -> dict[str, str]:
    """Names of graphs -> what `sgcn train` takes for them, small graphs first."""
    import numpy as np

    graphs = {name: (facts.nodes, name) for name, facts in BUNDLED.items()}
    if folder is not None and not folder.is_dir():
        raise SgcnError(f"--data is {str(folder)!r}, expected a folder with .npz files")
    for path in [] if folder is None else sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            if {"indptr", "y", "split"} <= {*file.files} and {"x", "x_indptr"} & {*file.files}:
                graphs[path.stem] = len(file["indptr"]) - 1, str(path.resolve())
    return {name: data for name, (_, data) in sorted(graphs.items(), key=lambda one: one[1][0])}


def ours(name: str, data: str, args: argparse.Namespace) -> None:
    """A run that fails is told and tried again by the next command; the others go on."""
    for seed in range(args.seeds):
        file = args.work / name / OURS / f"s{seed}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                call("benchmarks.defaults_ours", {"data": data, "seed": seed}, file, args.threads)
            except SgcnError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            _tell(name, OURS, f"s{seed}", json.loads(file.read_text()))


def peers(name: str, data: str, args: argparse.Namespace) -> None:
    from benchmarks import defaults_peers  # it needs PyG, which ours does not

    began = process_time()
    peer = defaults_peers.Peer(open_as_is(data))
    loaded = process_time() - began

    def run(contestant: str, recipe: defaults_peers.Recipe, seed: int) -> Run:
        file = args.work / name / contestant / f"{recipe.name}-s{seed}.json"
        if not file.exists():
            found = defaults_peers.train(peer, recipe, seed) | {"load_seconds": loaded}
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, found)
            _tell(name, contestant, file.stem, found)
        done: Run = json.loads(file.read_text())
        return done

    defaults_peers.contest(peer, run, args.seeds, args.tries)


def _tell(name: str, contestant: str, what: str, run: Run) -> None:
    print(f"{name} {contestant} {what}: validation {100 * run['validation']:.2f}, "
          f"test {100 * run['test']:.2f}, {run['seconds']:.1f} s", flush=True)  # fmt: skip


def summary(work: Path, names: Any) -> dict[str, Any]:
    """What the files of ``work`` hold."""
    results = {
        name: {who: row for who in (OURS, *PEERS) if (row := _row(work / name / who))}
        for name in names
    }
    ratios = {}
    for name, rows in results.items():
        if better := _better(rows):
            ratios[f"{name}/{better}"] = rows[better]["seconds"] / rows[OURS]["seconds"]
    return {"results": {name: rows for name, rows in results.items() if rows}, "ratios": ratios}


def _better(rows: dict[str, Run]) -> str | None:
    """The contestant of PyG with the better test score, if ours has one to set beside it."""
    theirs = [who for who in PEERS if who in rows]
    return max(theirs, key=lambda who: rows[who]["test"]) if theirs and OURS in rows else None


def _row(folder: Path) -> Run | None:
    """Means over seeds of the recipe that was best on validation nodes with seed 0."""
    recipes: dict[str, list[Run]] = {}
    for file in sorted(folder.glob("*.json")):
        done = json.loads(file.read_text())
        recipes.setdefault(done.get("recipe", ""), []).append(done)
    if not recipes:
        return None
    # Names end with the seed: seed 0 is the first of each. Of equals, the one run with more seeds.
    chosen = max(recipes.values(), key=lambda runs: (runs[0]["validation"], len(runs)))
    test = [one["test"] for one in chosen]
    row = {
        "test": mean(test), "spread": stdev(test) if len(test) > 1 else 0.0,
        "validation": mean(one["validation"] for one in chosen), "seeds": len(test),
        "seconds": mean(one["seconds"] for one in chosen),
    }  # fmt: skip
    if folder.name == OURS:
        return row | {"process_seconds": mean(one["process_seconds"] for one in chosen)}
    return row | {
        "choosing_seconds": sum(runs[0]["seconds"] for runs in recipes.values()),
        "tried": len(recipes), "recipe": chosen[0]["recipe"],
    }  # fmt: skip


def table(report: dict[str, Any]) -> str:
    """Markdown: a row a graph."""
    out = [
        "Test F1 in percent, mean and deviation over seeds; CPU seconds of a training. Difference: "
        "ours minus the better of PyG; times: seconds of that one over ours.", "",
        "| graph | ours | pyg-plain | pyg-classic | chosen | difference | times |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, rows in report["results"].items():
        cells = [_cell(rows.get(who)) for who in (OURS, *PEERS)]
        chosen, difference, times = rows.get(PEERS[1], {}).get("recipe", ""), "", ""
        if better := _better(rows):
            difference = f"{100 * (rows[OURS]['test'] - rows[better]['test']):+.2f}"
            times = f"{report['ratios'][f'{name}/{better}']:.1f}"
        out.append(f"| {' | '.join([name, *cells, chosen, difference, times])} |")
    return "\n".join(out)


def _cell(row: Run | None) -> str:
    if row is None:
        return ""
    choosing = f" + {row['choosing_seconds']:.0f}" if "choosing_seconds" in row else ""
    return f"{100 * row['test']:.2f} ± {100 * row['spread']:.2f}, {row['seconds']:.1f}{choosing} s"
