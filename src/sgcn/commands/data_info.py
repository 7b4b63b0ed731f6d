"""Say what a graph is like, and what may surprise about it.

examples:
  sgcn data info flickr-like
  sgcn data info my-graph/ --json
  sgcn data info synthetic:nodes=20000,degree=12,noise=0.3
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

from sgcn.commands import graph_argument

if TYPE_CHECKING:
    from sgcn.data.describe import Degrees, Description, LabelFacts

_SHOWN = 8  # classes with their counts
_BAR = 40


def arguments(parser: argparse.ArgumentParser) -> None:
    graph_argument(parser)
    parser.add_argument("--json", action="store_true", help="all figures for a program to read")


def run(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from sgcn.data.bundled import BUNDLED
    from sgcn.data.describe import describe
    from sgcn.data.source import names_of, open_as_is
    from sgcn.training.events import to_json

    description = describe(open_as_is(args.data))
    if args.json:
        print(to_json(asdict(description), indent=1))
        return
    if args.data in BUNDLED:
        print(_line("about", BUNDLED[args.data].about))
    print("\n".join(_page(description, names_of(args.data).classes or [])))


def _page(d: Description, names: list[str]) -> Iterator[str]:
    kind = f"{'directed' if d.directed else 'undirected'}{', weighted' if d.weighted else ''}"
    yield _line("nodes", f"{d.nodes:,}")
    yield _line("edges", f"{d.edges:,} {kind}")
    yield from _degrees(d.degrees)
    if (f := d.features) is not None:
        span = f"{f.density:.2%} not zero, from {f.least:g} to {f.most:g}"
        kind = "sparse" if f.sparse else "dense"
        yield _line("features", f"{f.width:,} {kind} {f.dtype}, {span}")
    if d.labels is not None:
        yield _line("labels", _labels(d.labels, names))
    if (y := d.numbers) is not None:
        span = f"from {y.least:g} to {y.most:g}, mean {y.mean:g}, deviation {y.deviation:g}"
        numbers = f"{y.width} number{'s' * (y.width > 1)} a node"
        yield _line("labels", f"{numbers}; {y.labelled:,} nodes ({span})")
    if d.split is not None:
        yield _line("split", ", ".join(f"{n:,} {name}" for name, n in d.split.items() if n))
    if d.homophily is not None and d.labels is not None:
        means = "mean overlap of label sets" if d.labels.multi_label else "edges inside a class"
        yield _line("homophily", f"{d.homophily:.3f} ({means})")
    parts = ", ".join(f"{_size(n)} {name}" for name, n in d.memory.items() if n)
    yield _line("memory", f"{_size(sum(d.memory.values()))} ({parts})")
    yield from (_line("note", note) for note in d.notes)


def _line(name: str, text: str) -> str:
    return fill(f"{name:<11}{text}", 100, subsequent_indent=" " * 11, break_on_hyphens=False)


def _degrees(d: Degrees) -> Iterator[str]:
    words = f"{d.least} least, {d.median:g} median, {d.mean:.1f} mean, {d.most:,} most"
    yield _line("degrees", words)
    most = max(count for _, _, count in d.histogram)
    for low, high, count in d.histogram:
        span = str(low) if low == high else f"{low}-{high}"
        bar = "#" * round(_BAR * count / most) or ("." if count else "")
        yield f"{span:>23} {bar:<{_BAR}} {count:,}"


def _labels(labels: LabelFacts, names: list[str]) -> str:
    ranked = sorted(enumerate(labels.counts), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{names[c] if names else c}: {count:,}" for c, count in ranked[:_SHOWN])
    more = f", {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
    what = "labels, several a node" if labels.multi_label else "classes"
    return f"{labels.classes} {what}; {labels.labelled:,} nodes ({shown}{more})"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
