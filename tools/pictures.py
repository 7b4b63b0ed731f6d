"""Draws the pictures of docs/samplers.md: `make pictures`.

Every picture shows a real sample of a small fixed graph, drawn by the samplers themselves. The
files are a pure function of this script, the samplers and the pinned versions: running it again
gives the same bytes. With a directory as argument it writes PNG files there instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from sgcn import Batch, Block, Graph, Key, make_sampler
from sgcn.kernels import subgraphs
from sgcn.rng import Stream
from sgcn.samplers.cluster import partition_of

Entry = tuple[int, int, float]  # destination, source, weight
HERE = Path(__file__).resolve().parents[1] / "docs" / "pictures"

# Okabe and Ito's palette: told apart under every common colour blindness. Shapes differ too.
VERMILLION, ORANGE, GREEN, BLUE = "#D55E00", "#E69F00", "#009E73", "#0072B2"
SKY, PURPLE, INK = "#56B4E9", "#AA4499", "#222222"
FAINT_EDGE, FAINT_NODE, QUIET = "#E3E3E3", "#D2D2D2", "#666666"
PARTS = (ORANGE, SKY, GREEN, PURPLE)

STYLE: Any = {
    "svg.hashsalt": "sgcn",
    "svg.fonttype": "path",
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
}

# -- the graph: four communities, a hub in the middle and one node without neighbours ------------

CENTRES = ((-2.1, 1.12), (2.1, 1.12), (-2.1, -1.12), (2.1, -1.12))
MEMBERS = (10, 8, 8, 9)
TURNS = (0.3, 1.9, 4.4, 0.9)
GOLDEN_ANGLE = 2.399963
REACH = 1.02  # nodes of a community that are nearer than this are linked
HUB = 35
DOT = (0.005, 0.0)  # half of a line so short that its round ends make it a dot


def positions() -> Any:
    """Sunflower heads round the centres, then the hub, then the lonely node."""
    spots: list[Any] = []
    for (x, y), count, turn in zip(CENTRES, MEMBERS, TURNS, strict=True):
        k = np.arange(count)
        radius, angle = 0.375 * np.sqrt(k + 0.35), turn + GOLDEN_ANGLE * k
        spots.append(np.stack([x + 1.3 * radius * np.cos(angle), y + radius * np.sin(angle)], 1))
    spots.append([[0.0, 0.0], [0.0, -1.75]])
    return np.round(np.concatenate(spots), 3)


def edge_list(at: Any) -> list[tuple[int, int]]:
    """Near nodes within a community, the nearest pairs of two, and two nodes of each to the hub."""
    home = np.repeat(np.arange(4), MEMBERS)
    far = np.round(np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)), 6)
    edges = [
        (i, j)
        for i in range(HUB)
        for j in range(i + 1, HUB)
        if home[i] == home[j] and far[i, j] < REACH
    ]
    for a, b in ((0, 1), (0, 2), (1, 3), (2, 3)):
        pairs = sorted(
            (far[i, j], i, j) for i in np.flatnonzero(home == a) for j in np.flatnonzero(home == b)
        )
        edges += [(int(i), int(j)) for _, i, j in pairs[:2]]
    for a in range(4):
        near = sorted(np.flatnonzero(home == a), key=lambda i: far[i, HUB])
        edges += [(int(i), HUB) for i in near[:2]]
    return edges


AT = positions()
EDGES = edge_list(AT)
GRAPH = Graph.from_edges(*np.array(EDGES).T, nodes=len(AT))
SEEDS = [0, 3, 27]  # two neighbours of one community, and one node of another

# -- pieces of a picture --------------------------------------------------------------------------


def panel(axes: Any, title: str) -> None:
    """The whole graph, faint, under a title."""
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-3.8, 3.8)
    axes.set_ylim(-2.45, 2.4)
    axes.set_title(title, fontsize=8.5, color=INK, pad=3)
    lines(axes, EDGES, FAINT_EDGE, 0.9, zorder=1)
    for color, width, zorder in (("white", 5.6, 2.0), (FAINT_NODE, 4.0, 2.1)):
        strokes(axes, np.stack([AT - DOT, AT + DOT], 1), color, width, zorder)


def lines(axes: Any, pairs: Any, color: str, width: float, zorder: float, style: Any = "-") -> None:
    """Edges, all of one width."""
    strokes(axes, [AT[list(pair)] for pair in pairs], color, width, zorder, style)


def strokes(
    axes: Any, segments: Any, color: str, width: float, zorder: float, style: Any = "-"
) -> None:
    """Lines of one width, as one shape: that keeps the files small."""
    if len(segments):
        points = np.concatenate(segments)
        codes = [Outline.MOVETO, Outline.LINETO] * len(segments)
        axes.add_patch(
            PathPatch(
                Outline(points, codes),
                fill=False,
                edgecolor=color,
                linewidth=width,
                linestyle=style,
                capstyle="butt" if style != "-" else "round",
                snap=False,
                zorder=zorder,
            )
        )


def nodes(
    axes: Any,
    ids: Any,
    color: Any,
    *,
    marker: str = "o",
    size: Any = 44,
    edge: str = INK,
    zorder: float = 6,
) -> None:
    if len(ids):
        axes.scatter(
            AT[ids, 0],
            AT[ids, 1],
            s=size,
            c=color,
            marker=marker,
            edgecolors=edge,
            linewidths=0.8,
            zorder=zorder,
        )


def entries(block: Block) -> list[Entry]:
    """(destination, source, weight) of the off-diagonal entries, in global ids."""
    rows = np.repeat(block.dst, np.diff(block.indptr))
    cols = block.src[block.indices]
    return [
        (int(i), int(j), float(w))
        for i, j, w in zip(rows, cols, block.weights, strict=True)
        if i != j
    ]


def arrows(axes: Any, kept: list[Entry], color: str, *, heads: bool = True) -> None:
    """Lines from source to destination, as wide as the entry is large."""
    segments, widths, points = [], [], []
    for i, j, weight in sorted(kept, key=lambda entry: -entry[2]):
        step = (AT[i] - AT[j]) / np.hypot(*(AT[i] - AT[j]))
        side = np.array([-step[1], step[0]])
        tip = AT[i] - (0.135 if heads else 0.0) * step
        width = min(6.5 * weight, 6.5)
        half = 0.045 + 0.011 * width
        base = tip - 1.9 * half * step if heads else tip
        segments.append([AT[j], base])
        widths.append(width)
        points += [tip, base + half * side, base - half * side, tip]
    axes.add_collection(LineCollection(segments, linewidths=widths, colors=color, zorder=4))
    if heads and points:
        codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY]
        shape = Outline(points, codes * (len(points) // 4))
        axes.add_patch(PathPatch(shape, facecolor=color, edgecolor="none", zorder=5))


def legend(figure: Any, items: list[tuple[str, str, str]], columns: int | None = None) -> None:
    """``items`` are (marker or line style, colour, words)."""
    handles = []
    for mark, color, words in items:
        is_line = mark in ("-", "--")
        line: Any = mark if is_line else "none"
        handles.append(
            Line2D(
                [],
                [],
                color=color,
                linestyle=line,
                linewidth=2.0 if mark == "-" else 1.1,
                marker=None if is_line else mark,
                markersize=6.2,
                markeredgecolor=INK if color != FAINT_NODE else "white",
                markeredgewidth=0.8,
                label=words,
            )
        )
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=columns or len(items),
        frameon=False,
        fontsize=7.8,
        handletextpad=0.4,
        columnspacing=1.5,
        borderaxespad=0.1,
    )


SEED_ITEM = ("s", VERMILLION, "seeds")
UPPER_ITEM = ("o", ORANGE, "sources of layer 2")
LOWER_ITEM = ("D", SKY, "sources of layer 1")


def two_panels() -> tuple[Any, Any, Any]:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.75), facecolor="white")
    figure.subplots_adjust(left=0.005, right=0.995, top=0.91, bottom=0.085, wspace=0.02)
    return figure, left, right


def upper_panel(axes: Any, batch: Batch) -> None:
    upper = batch.blocks[1]
    arrows(axes, entries(upper), INK)
    nodes(axes, np.setdiff1d(upper.src, SEEDS), ORANGE)
    nodes(axes, SEEDS, VERMILLION, marker="s")


def lower_panel(axes: Any, batch: Batch) -> None:
    upper, lower = batch.blocks[1], batch.blocks[0]
    arrows(axes, entries(lower), BLUE)
    nodes(axes, np.setdiff1d(lower.src, np.union1d(upper.src, SEEDS)), SKY, marker="D", size=34)
    nodes(axes, np.setdiff1d(upper.src, SEEDS), ORANGE)
    seeds = np.intersect1d(lower.src, SEEDS)
    nodes(axes, np.union1d(seeds, np.intersect1d(lower.dst, SEEDS)), VERMILLION, marker="s")


# -- the pictures ---------------------------------------------------------------------------------


def layered(name: str, seed: int, **options: Any) -> Any:
    """Two panels: the block of layer 2, and under it the block of layer 1."""
    batch = make_sampler(name, **options).sample(GRAPH, SEEDS, Key(seed))
    figure, left, right = two_panels()
    panel(left, "layer 2: rows are the seeds")
    upper_panel(left, batch)
    panel(right, "layer 1: rows are the sources of layer 2")
    lower_panel(right, batch)
    legend(figure, [SEED_ITEM, UPPER_ITEM, LOWER_ITEM, ("-", QUIET, "kept entry; width: weight")])
    return figure


def exact() -> Any:
    return layered("exact", 0)


def neighbor() -> Any:
    return layered("neighbor", 5, sizes=2)


def labor() -> Any:
    return layered("labor", 5, sizes=2)


def fastgcn() -> Any:
    return layered("fastgcn", 5, sizes=9)


def ladies() -> Any:
    return layered("ladies", 5, sizes=5)


def vrgcn() -> Any:
    """The two sampled blocks, each over the exact rows that read the histories."""
    batch = make_sampler("vrgcn", sizes=1).sample(GRAPH, SEEDS, Key(5))
    figure, left, right = two_panels()
    titles = ("layer 1: rows are the sources of layer 2", "layer 2: rows are the seeds")
    draw = (lower_panel, upper_panel)
    for layer, axes in ((1, left), (0, right)):
        panel(axes, titles[layer])
        history = [(j, i) for i, j, _ in entries(batch.exact[layer])]
        lines(axes, history, PURPLE, 1.1, zorder=3, style=(0, (2.5, 1.6)))
        nodes(axes, batch.exact[layer].src, "white", edge=PURPLE, size=26, zorder=5.5)
        draw[layer](axes, batch)
    edge_items = [("-", INK, "live"), ("--", PURPLE, "history, exact")]
    legend(figure, [SEED_ITEM, UPPER_ITEM, LOWER_ITEM, *edge_items])
    return figure


def subgraph(draw: Callable[[Any, Batch], None], title: str, items: Any, batch: Batch) -> Any:
    """Two panels: what was drawn, and the one block that every layer uses."""
    figure, left, right = two_panels()
    panel(left, title)
    draw(left, batch)
    panel(right, "the block of every layer")
    block = batch.blocks[0]
    arrows(right, entries(block), BLUE, heads=False)
    nodes(right, block.dst, ORANGE, size=25 + 1300 * batch.loss_weights)
    block_items = [("-", BLUE, "width: weight"), ("o", ORANGE, "area: loss weight")]
    legend(figure, items + block_items)
    return figure


def saint_node() -> Any:
    size, key = 18, Key(2)
    batch = make_sampler("saint", variant="node", size=size).sample(GRAPH, np.arange(37), key)

    def draw(axes: Any, batch: Batch) -> None:
        from sgcn.kernels.blocks import law_sources
        from sgcn.samplers.base import column_law, scratch

        law, nobody = column_law(GRAPH), np.empty(0, np.int32)
        drawn, factor = law_sources(
            law,
            nobody,
            size,
            key.stream(Stream.LAYER),
            scratch.position(GRAPH),
        )
        counts = np.rint(factor * size * law.law[drawn]).astype(int)
        nodes(axes, drawn, VERMILLION, marker="s", size=70)
        for node, count in zip(drawn, counts, strict=True):
            axes.text(*AT[node], str(count), color="white", fontsize=6.5, fontweight="bold",
                      ha="center", va="center_baseline", zorder=7)  # fmt: skip

    title = f"{size} draws of a node, and their counts"
    return subgraph(draw, title, [("s", VERMILLION, "drawn")], batch)


def saint_edge() -> Any:
    size, key = 8, Key(1)
    batch = make_sampler("saint", variant="edge", size=size).sample(GRAPH, np.arange(37), key)

    def draw(axes: Any, batch: Batch) -> None:
        linked = np.flatnonzero(GRAPH.degrees).astype(np.int32)
        ends = subgraphs.edge_nodes(
            GRAPH.propagation, linked, size, key.stream(Stream.LAYER)
        ).reshape(-1, 2)
        lines(axes, ends, VERMILLION, 3.2, zorder=4)
        nodes(axes, ends[:, 1], ORANGE)
        nodes(axes, ends[:, 0], VERMILLION, marker="s")

    items = [("s", VERMILLION, "linked node"), ("o", ORANGE, "its neighbour")]
    return subgraph(draw, f"{size} draws of an edge", items, batch)


def saint_walk() -> Any:
    roots, length, key = 4, 4, Key(2)
    sampler = make_sampler("saint", variant="walk", size=roots, walk_length=length)
    batch = sampler.sample(GRAPH, np.arange(37), key)

    def draw(axes: Any, batch: Batch) -> None:
        paths = subgraphs.walk_nodes(GRAPH.propagation, roots, length, key.stream(Stream.LAYER))
        paths = paths.reshape(roots, length + 1)
        for path in paths:
            arrows(axes, [(b, a, 0.3) for a, b in pairwise(path) if a != b], VERMILLION)
        nodes(axes, paths[:, 1:].ravel(), ORANGE)
        nodes(axes, paths[:, 0], VERMILLION, marker="s")

    items = [("s", VERMILLION, "root"), ("o", ORANGE, "visited")]
    return subgraph(draw, f"{roots} walks of {length} steps", items, batch)


def cluster() -> Any:
    sampler = make_sampler("cluster", parts=4, parts_per_batch=2)
    batch = sampler.sample(GRAPH, np.arange(37), Key(5))

    def draw(axes: Any, batch: Batch) -> None:
        part = partition_of(GRAPH, 4).part
        cut = [(i, j) for i, j in EDGES if part[i] != part[j]]
        lines(axes, cut, QUIET, 0.9, zorder=1.5, style=(0, (2, 1.5)))
        taken = np.zeros(len(AT), bool)
        taken[batch.nodes] = True
        for c, (color, marker) in enumerate(zip(PARTS, "osD^", strict=True)):
            nodes(axes, np.flatnonzero((part == c) & taken), color, marker=marker)
            nodes(axes, np.flatnonzero((part == c) & ~taken), "white", marker=marker, edge=color)

    items = [("s", QUIET, "drawn part (filled)"), ("--", QUIET, "cut edge")]
    return subgraph(draw, "4 METIS parts, 2 drawn", items, batch)


def overview() -> Any:
    """Both layers of four samplers in one panel each, for the README."""
    figure, grid = plt.subplots(2, 2, figsize=(7.2, 5.0), facecolor="white")
    figure.subplots_adjust(left=0.005, right=0.995, top=0.955, bottom=0.05, wspace=0.02, hspace=0.1)
    shown: tuple[tuple[str, dict[str, Any], int, str], ...] = (
        ("neighbor", {"sizes": 2}, 5, "neighbor: 2 for each row"),
        ("labor", {"sizes": 2}, 5, "labor: 2 for each row"),
        ("ladies", {"sizes": 5}, 5, "ladies: 5 for each layer"),
        ("saint", {"variant": "walk", "size": 4, "walk_length": 4}, 2, "saint: 4 walks"),
    )
    for axes, (name, options, seed, title) in zip(grid.ravel(), shown, strict=True):
        panel(axes, title)
        seeds = np.arange(37) if name == "saint" else SEEDS
        batch = make_sampler(name, **options).sample(GRAPH, seeds, Key(seed))
        if name == "saint":
            arrows(axes, entries(batch.blocks[0]), BLUE, heads=False)
            nodes(axes, batch.nodes, ORANGE)
            continue
        arrows(axes, entries(batch.blocks[0]), BLUE, heads=False)
        arrows(axes, entries(batch.blocks[1]), INK)
        lower, upper = batch.blocks[0].src, batch.blocks[1].src
        nodes(axes, np.setdiff1d(lower, upper), SKY, marker="D", size=34)
        nodes(axes, np.setdiff1d(upper, SEEDS), ORANGE)
        nodes(axes, SEEDS, VERMILLION, marker="s")
    items = [SEED_ITEM, UPPER_ITEM, LOWER_ITEM, ("-", INK, "layer 2"), ("-", BLUE, "layer 1")]
    legend(figure, items)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "exact": exact,
    "neighbor": neighbor,
    "vrgcn": vrgcn,
    "fastgcn": fastgcn,
    "ladies": ladies,
    "saint-node": saint_node,
    "saint-edge": saint_edge,
    "saint-walk": saint_walk,
    "labor": labor,
    "cluster": cluster,
    "overview": overview,
}


def svg(figure: Any) -> str:
    """The figure as SVG without a date, its coordinates cut to hundredths of a point."""
    for artist in figure.findobj():
        artist.set_clip_on(False)
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    short = re.sub(r"(?<!scale\()-?\d+\.\d{5,}", lambda m: f"{float(m[0]):.2f}", text.getvalue())
    return re.sub(r" *\n *", "\n", short)


def main() -> None:
    folder, kind = (Path(sys.argv[1]), "png") if len(sys.argv) > 1 else (HERE, "svg")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        # The style must be set when a figure is made and when it is written.
        with plt.rc_context(STYLE):
            figure = draw()
            file = folder / f"sampler-{name}.{kind}"
            if kind == "svg":
                file.write_text(svg(figure))
            else:
                figure.savefig(file, dpi=150)
            plt.close(figure)


if __name__ == "__main__":
    main()
