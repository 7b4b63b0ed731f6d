"""What an experiment leaves: tidy CSV, JSON, a figure as SVG and PNG, and a table in Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sgcn.experiments import figures
from sgcn.experiments.core import Experiment, Plan, Run, by_case
from sgcn.experiments.measures import curve, number, spread
from sgcn.files import write_text
from sgcn.training.events import to_json

COLUMNS = (
    "experiment", "reading", "budget", "data", "comparison", "sampler", "estimator", "setting",
    "seed", "quantity", "step", "seconds", "value", "paper", "paper_spread",
)  # fmt: skip


def write(
    name: str, experiment: Experiment, plan: Plan, runs: Sequence[Run], out: Path, command: str
) -> list[Path]:
    """All files of an experiment; their paths."""
    out.mkdir(parents=True, exist_ok=True)
    restarts = {run.case.values["estimator"].get("restart") for run in runs}
    facts = {
        "experiment": name,
        "title": f"{experiment.title}, reading `{plan.reading}`",
        "reading": plan.how.words,
        "command": command,
        "plan": asdict(plan),
        "epochs": sorted({run.epochs for run in runs}),
        "restarts": sorted(restarts - {None}),  # rows without snapshots have none
        "threads": sorted({r["threads"] for run in runs for r in run.results.values()}),
        "data": {run.case.data.label: run.case.data.note for run in runs},
        "note": experiment.note,
        "claim": experiment.claim.sentence(runs),
        "results": _summary(experiment, runs),
        "failed": [
            {"case": run.case.words, "seed": run.seed, "why": run.failed}
            for run in runs if run.failed
        ],
    }  # fmt: skip
    paths = [
        out / f"{name}-{plan.reading}{end}" for end in (".csv", ".json", ".md", ".svg", ".png")
    ]
    write_text(paths[0], _csv(name, experiment, plan, runs))
    write_text(paths[1], to_json(facts, indent=1) + "\n")
    write_text(paths[2], _markdown(facts, experiment))
    figures.write(experiment, plan, runs, paths[3:])
    return paths


# -- tidy ---------------------------------------------------------------------------------------


def _csv(name: str, experiment: Experiment, plan: Plan, runs: Sequence[Run]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for run in runs:
        start = {"experiment": name, "reading": plan.reading, "budget": plan.budget,
                 **run.case.columns, "seed": run.seed}  # fmt: skip
        writer.writerows(start | row for row in _rows(experiment, run))
    return text.getvalue()


def _rows(experiment: Experiment, run: Run) -> Iterator[dict[str, Any]]:
    for quantity in experiment.numbers:
        paper, paper_spread = experiment.paper(run.case, quantity)
        yield {
            "quantity": quantity, "value": _plain(number(run, quantity)),
            "paper": paper, "paper_spread": paper_spread,
        }  # fmt: skip
    for quantity in experiment.curves:
        for step, seconds, value in zip(*curve(run, quantity), strict=True):
            yield {
                "quantity": quantity, "step": int(step), "seconds": _plain(seconds),
                "value": _plain(value),
            }  # fmt: skip


def _plain(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def _summary(experiment: Experiment, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One entry for each case and quantity: mean and spread over the runs, and the paper's."""
    entries = []
    for group in by_case(runs):
        case = group[0].case
        for quantity in experiment.numbers:
            mean, deviation = spread(group, quantity)
            paper, paper_spread = experiment.paper(case, quantity)
            entries.append({
                **case.columns, "same_data": case.data.same, "quantity": quantity,
                "mean": mean, "spread": deviation, "runs": len(group),
                "failed": sum(run.failed is not None for run in group),
                "paper": paper, "paper_spread": paper_spread,
            })  # fmt: skip
    return entries


# -- for people ---------------------------------------------------------------------------------


def _markdown(facts: dict[str, Any], experiment: Experiment) -> str:
    plan = facts["plan"]
    epochs, threads = (" or ".join(map(str, facts[key])) for key in ("epochs", "threads"))
    restarts = " or ".join(facts["restarts"]) or "none"
    lines = [
        f"# {facts['title']}",
        "",
        f"    {facts['command']}",
        "",
        f"Reading `{plan['reading']}`: {facts['reading']}.",
        "",
        f"Budget `{plan['budget']}`, epochs of 10 sampled steps: {epochs}, width: {plan['width']}, "
        f"restarts: {restarts}, runs: {plan['runs']}, threads: {threads}. Mean ± standard "
        "deviation over the runs.",
    ]
    if experiment.note:
        lines += ["", experiment.note]
    for data, note in facts["data"].items():
        entries = [e for e in facts["results"] if e["data"] == data]
        lines += ["", f"## {data}: {note}", "", *_table(entries, experiment.numbers)]
    for failure in facts["failed"]:
        lines += ["", f"{failure['case']}, seed {failure['seed']}: {failure['why']}."]
    lines += ["", facts["claim"]]
    return "\n".join(lines) + "\n"


def _table(entries: Sequence[dict[str, Any]], numbers: Sequence[str]) -> Iterator[str]:
    """A row for each case, a column for each quantity, and the paper's behind it where known."""
    names = ["sampler", "estimator", *(["setting"] if any(e["setting"] for e in entries) else [])]
    with_paper = {e["quantity"] for e in entries if e["paper"] is not None}
    same = all(e["same_data"] for e in entries)
    heading = [*names]
    for quantity in numbers:
        heading.append(quantity.replace("_", " "))
        if quantity in with_paper:
            heading.append("paper" if same else "paper (not the same labels/graph)")
    rows: dict[tuple[str, ...], list[str]] = {}
    for e in entries:
        cells = rows.setdefault(tuple(e[name] for name in names), [])
        cells.append(_shown(e["mean"], e["spread"], e["failed"]))
        if e["quantity"] in with_paper:
            cells.append("" if e["paper"] is None else _shown(e["paper"], e["paper_spread"]))
    body = ([*case, *cells] for case, cells in rows.items())
    for line in (heading, ["---"] * len(heading), *body):
        yield f"| {' | '.join(line)} |"


def _shown(mean: float, deviation: float | None, failed: int = 0) -> str:
    """Four digits of the mean, and the spread with as many decimals."""
    text = "-"
    if math.isfinite(mean):
        decimals = max(3 - math.floor(math.log10(abs(mean))), 0) if mean else 0
        text = f"{mean:.{decimals}f}"
        if deviation is not None and math.isfinite(deviation):
            text += f" ± {deviation:.{decimals}f}"
    return f"{text} ({failed} diverged)" if failed else text
