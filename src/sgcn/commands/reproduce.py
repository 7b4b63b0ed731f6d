"""Repeat a table or figure of the paper on the data at hand.

examples:
  sgcn reproduce list                                   what there is
  sgcn reproduce f1-table --data debian,my/ppi.npz --epochs 20 --jobs 2
  sgcn reproduce f1-table --data debian --reading best  the learning rate of every row by validation
  sgcn reproduce decomposition --stand-in               a generated graph for one that is not here
  sgcn reproduce all --budget quick --data debian       everything, small

Run it again after a stop: runs that are done are not repeated. Files of runs/ that other machines
have made may be put together; --known writes the pages of those that are there.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from sgcn.errors import SgcnError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name of `sgcn reproduce list`, list or all")
    parser.add_argument(
        "--data", metavar="D[,D...]", help="names, graph directories or .npz; default: the paper's"
    )
    parser.add_argument(
        "--stand-in", action="store_true",
        help="take generated graphs for datasets of the paper that are not here",
    )  # fmt: skip
    parser.add_argument(
        "--reading", choices=("code", "text", "best"), default="code",
        help="settings of the authors' code, of the paper's text, or of the code with the best of "
        "four learning rates for every row; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--runs", type=int, metavar="N", help="seeds; default: 3, or 2 for quick")
    parser.add_argument(
        "--budget", choices=("quick", "paper"), default="paper", help="default: %(default)s"
    )
    parser.add_argument("--epochs", type=int, metavar="N", help="instead of the budget's")
    parser.add_argument(
        "--samplers", metavar="S[,S...]", help="rows of the tables over samplers; see the list"
    )
    parser.add_argument(
        "--restart", choices=("norm", "gradient", "movement", "never"), default="norm",
        help="what calls an early snapshot; default: %(default)s, as in the paper's algorithms",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that run at once; default: 1"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--known", action="store_true", help="run nothing; write what is there")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.experiments import EXPERIMENTS, execute, output
    from sgcn.experiments.core import PLANS, ROWS
    from sgcn.experiments.data import find, split_names
    from sgcn.files import can_be_made
    from sgcn.options import check, integer, known_name, nearest
    from sgcn.runs.config import make_config

    if args.name == "list":
        print(_listing())
        return
    chosen = EXPERIMENTS
    if args.name != "all":
        chosen = {known_name("experiment", args.name, EXPERIMENTS): EXPERIMENTS[args.name]}
    samplers = None if args.samplers is None else tuple(split_names(args.samplers))
    changes = {"runs": args.runs, "epochs": args.epochs, "samplers": samplers}
    given = {key: value for key, value in changes.items() if value is not None}
    plan = replace(PLANS[args.budget], restart=args.restart, reading=args.reading, **given)
    check("--runs", plan.runs, integer())
    check("--epochs", plan.epochs, integer())
    for name in plan.samplers:
        if name not in ROWS:
            raise SgcnError(
                f"--samplers has {name!r}, expected some of {', '.join(ROWS)}{nearest(name, ROWS)}"
            )
    check("--jobs", args.jobs, integer())
    if not can_be_made(args.out):
        raise SgcnError(f"--out is '{args.out}', expected a directory that can be written")
    cases = {}
    for name, experiment in chosen.items():
        wanted = split_names(args.data) if args.data is not None else experiment.data
        data = find(wanted, args.budget, args.stand_in)
        cases[name] = [case for one in data for case in experiment.cases(plan, one)]
        for case in cases[name]:
            make_config(case.values)  # refuses what no run could be made of
    for name, experiment in chosen.items():
        if not args.quiet:
            print(f"{name}: {experiment.title}", flush=True)
        runs = execute.run_all(
            cases[name], plan, args.out, jobs=args.jobs, quiet=args.quiet, start=not args.known
        )
        paths = output.write(name, experiment, plan, runs, args.out, _command(args, name))
        if not args.quiet:
            print(f"{', '.join(str(path) for path in paths)}", flush=True)


def _command(args: argparse.Namespace, name: str) -> str:
    """What makes these files again, wherever a file of the user's is by then."""
    from sgcn.experiments.data import split_names

    words = ["sgcn", "reproduce", name]
    if args.data is not None:
        words += ["--data", ",".join(one.rpartition("/")[2] for one in split_names(args.data))]
    words += ["--stand-in"] if args.stand_in else []
    words += ["--reading", args.reading, "--budget", args.budget]
    for option in ("runs", "epochs", "samplers"):
        value = getattr(args, option)
        words += [] if value is None else [f"--{option}", str(value)]
    words += [] if args.restart == "norm" else ["--restart", args.restart]
    return shlex.join(words)


def _listing() -> str:
    from sgcn.experiments import EXPERIMENTS
    from sgcn.experiments.core import PLANS, READINGS

    lines = []
    for name, experiment in EXPERIMENTS.items():
        lines.append(f"{name:<18}{experiment.title}")
        lines.append(f"{'':<18}in the paper on {', '.join(experiment.data)}")
    lines.append("")
    lines += [f"--reading {name:<5} {reading.words}" for name, reading in READINGS.items()]
    lines += [
        f"--budget {plan.budget:<6} {plan.epochs} epochs of 10 sampled steps, width {plan.width}, "
        f"{plan.runs} runs; tables over samplers have {', '.join(plan.samplers)}"
        for plan in PLANS.values()
    ]
    return "\n".join(lines)
