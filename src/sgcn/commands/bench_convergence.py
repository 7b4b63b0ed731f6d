"""Time training to the same accuracy: PyG, the full batch, plain sampling, corrected rules.

examples:
  sgcn bench convergence --data debian                  some twenty minutes on one thread
  sgcn bench convergence --data my.npz --only pyg-minibatch,sgcn/neighbor,anchored/neighbor
  sgcn bench convergence --data flickr-like --budget 300 --trial 60 --out runs/flickr

A stopped command goes on where it was: runs that left their file in --out are not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

_DEFAULT = (
    "pyg-full,pyg-minibatch,full,sgcn/exact,sgcn/neighbor,sgcn/vrgcn,sgcn/fastgcn,sgcn/ladies,"
    "sgcn/saint,sgcn/labor,sgcn/cluster,sgcn++/neighbor,sgcn++/ladies,anchored/neighbor,"
    "anchored/ladies,anchored++/neighbor,sgcn/neighbor+pre,anchored++/neighbor+pre,"
    "vrgcn/neighbor:1+pre,pyg-minibatch+avg,sgcn/neighbor+pre+avg,sgcn/neighbor:2+pre+avg,"
    "anchored++/neighbor:2+pre+avg,vrgcn/neighbor:1+pre+avg,vrgcn/neighbor:2+pre+avg"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="debian", metavar="DATA",
                        help="a name, graph directory or .npz; default: %(default)s")  # fmt: skip
    parser.add_argument(
        "--only", default=_DEFAULT, metavar="RUN[,..]",
        help="pyg-full, pyg-minibatch, full, ESTIMATOR/SAMPLER[:SIZE]; +pre: P X is computed once; "
        "+avg: the moving average of the weights is scored; full always runs, it sets the target; "
        "default: %(default)s",
    )  # fmt: skip
    for name, default, help in (
        ("--lr", "0.01,0.03", "learning rates of the grid"),
        ("--gap", "10,30,100", "gaps K of the grid"),
    ):
        parser.add_argument(
            name, default=default, metavar="X[,..]", help=f"{help}; default: %(default)s"
        )
    for name, seconds, help in (
        ("--trial", 12.0, "seconds of training for each point of the grid"),
        ("--budget", 90.0, "seconds of training for each run with the setting kept"),
    ):
        parser.add_argument(
            name, type=float, default=seconds, metavar="S", help=f"{help}; default: %(default)g"
        )
    for name, number, help in (
        ("--seeds", 3, "runs of the setting kept"),
        ("--width", 128, "of the two graph layers"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--threads", 1, "threads of every run"),
    ):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall",
        help="cpu on a machine that does other work, with one thread; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="runs, convergence.json and convergence.png go here; default: runs/convergence-DATA",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.convergence import main

    main(args)
