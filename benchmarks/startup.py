"""Time how soon commands start: --help, the first training step, compiling kernels.

examples:
  python -m benchmarks startup                          debian, with an empty cache of kernels first
  python -m benchmarks startup --warm --rounds 5 --out startup.json

CPU of `sgcn --help`, and how soon `sgcn train` takes its first steps, with kernels from the cache
and with none compiled yet.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from benchmarks import peers
from benchmarks.options import add_integers, add_out, check_positive, target
from benchmarks.process import environment
from benchmarks.report import finish
from sgcn.errors import SgcnError

_PATIENCE = 600.0  # seconds until a training that takes no step counts as hanging


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="debian", metavar="DATA", help="default: %(default)s")
    add_integers(
        parser,
        ("--rounds", 3, "starts to take the median of"),
        ("--threads", 1, "threads of the training"),
    )
    parser.add_argument(
        "--warm", action="store_true", help="leave out the start that compiles all kernels"
    )
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "rounds", "threads")
    out = target(args.out)
    finish(measure(args.data, args.rounds, args.threads, cold=not args.warm), table, out)


def measure(data: str, rounds: int, threads: int, *, cold: bool) -> dict[str, Any]:
    """The figures as a dictionary of plain values, in the layout of the JSON file."""
    results: dict[str, Any] = {"help_cpu": median(help_cpu() for _ in range(rounds))}
    with tempfile.TemporaryDirectory(prefix="sgcn-benchmark-") as folder:
        own = Path(folder) / "kernels"
        if cold:
            first = first_steps(data, threads, Path(folder), own)
            results |= {f"cold_{name}": value for name, value in first.items()}
        else:
            first_steps(data, threads, Path(folder), None)  # fills the cache, if it was empty
        warm = [first_steps(data, threads, Path(folder), own if cold else None)
                for _ in range(rounds)]  # fmt: skip
    results |= {f"warm_{name}": median(one[name] for one in warm) for name in warm[0]}
    if cold:
        results["compiling"] = results["cold_regular_cpu"] - results["warm_regular_cpu"]
    return {
        "results": results,
        "data": Path(data).name,
        "rounds": rounds,
        "threads": threads,
        "versions": peers.versions(),
    }


def help_cpu() -> float:
    """CPU seconds of `sgcn --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "sgcn", "--help"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_steps(data: str, threads: int, folder: Path, cache: Path | None) -> dict[str, Any]:
    """Start `sgcn train`, wait for its first step and for its first regular one, and stop it.

    ``said`` is 1 if it told that it was compiling. The CPU seconds are those at the regular step.
    """
    out = folder / "run"
    command = [sys.executable, "-m", "sgcn", "train", data, "--out", str(out), "--force", "--quiet"]
    # With these no trial comes before the first step.
    for setting in ("model.layer=mean", "model.dropout=0.0", "optimizer.name=muon"):
        command += ["--set", setting]
    more = {} if cache is None else {"NUMBA_CACHE_DIR": str(cache)}
    metrics = out / "metrics.jsonl"
    metrics.unlink(missing_ok=True)  # of the run before
    began = monotonic()
    process = subprocess.Popen(
        command, env=environment(threads, **more), stderr=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = {}
    try:
        while "regular" not in found:
            sleep(0.005)
            now = monotonic() - began
            if process.poll() is not None or now > _PATIENCE:
                why = "" if process.stderr is None else process.stderr.read().strip()
                raise SgcnError(f"sgcn train {data} took no step ({why[-300:]}), expected some")
            for step in _steps(metrics):
                found.setdefault("first", now)
                if not step["snapshot"]:
                    found["regular"] = now
        found["regular_cpu"] = _cpu(process.pid)
    finally:
        process.kill()
        _, errors = process.communicate()
    return found | {"said": int("compiling" in errors)}


def _steps(metrics: Path) -> list[dict[str, Any]]:
    """The steps in the file so far; the last line may be half there."""
    steps = []
    lines = metrics.read_text().splitlines() if metrics.is_file() else []
    for line in lines[:8]:  # scores stand between the steps
        try:
            event = json.loads(line)
        except ValueError:
            break
        if event["event"] == "step":
            steps.append(event)
    return steps


def _cpu(pid: int) -> float:
    """CPU seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    found = report["results"]
    lines = [
        f"{'sgcn --help':<44}{found['help_cpu']:>8.2f} s of CPU",
        f"{'sgcn train ' + report['data'] + ', first step':<44}{found['warm_first']:>8.2f} s",
        f"{'  first regular step':<44}{found['warm_regular']:>8.2f} s, "
        f"{found['warm_regular_cpu']:.2f} s of CPU",
    ]
    if "compiling" in found:
        said = "told" if found["cold_said"] else "not told"
        lines += [
            f"{'no kernel compiled yet, first regular step':<44}{found['cold_regular']:>8.2f} s, "
            f"{found['cold_regular_cpu']:.2f} s of CPU",
            f"{'  compiling, ' + said:<44}{found['compiling']:>8.2f} s of CPU",
        ]
    lines += ["", f"from the start of the command; {report['threads']} thread(s), median of "
              f"{report['rounds']}"]  # fmt: skip
    return "\n".join(lines)
