"""Draws docs/pictures/architecture.svg: the data's way and the rooms, from the linter's layers.

python -m tools.architecture [OUT]      default: docs/pictures/architecture.svg
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

HOME = Path(__file__).parents[1]
BLUE, GREY, PALE, ORANGE = "#0072B2", "#555555", "#EAF2F8", "#D55E00"
#: What each room is for.
ROOMS = {
    "__main__": "python -m sgcn",
    "cli": "the command line: errors become sentences",
    "commands": "one file a command",
    "experiments": "the paper's tables and figures",
    "report": "a page of runs",
    "analysis": "variance, distances, bounds",
    "runs": "run directories, configuration, curves",
    "training": "the loop, optimisers, checkpoints, sinks",
    "estimators": "forward x gradient x schedule, the engine",
    "nn": "layers, models, adapters",
    "rows": "row stores and histories",
    "compute": "operators, buffers, the exact pass",
    "data": "import, export, splits, synthetic graphs",
    "sources": "which seeds come next",
    "task": "labels, loss, score",
    "samplers": "one file a sampler",
    "graph": "topology and P",
    "store": "directories of arrays",
    "kernels": "compiled loops",
    "chunks": "parts of arrays",
    "options": "declared, checked",
    "files": "whole or not at all",
    "machine": "memory",
    "rng": "streams by name",
    "block": "what is drawn",
    "labels": "what y holds",
    "metrics": "scores by name",
    "errors": "one sentence each",
    "version": "",
}
#: The hops of a step, and the room of each.
WAY = [
    ("seeds", "sources"),
    ("sampler\n(state)", "samplers"),
    ("batch", "block"),
    ("rows read", "rows"),
    ("forward rule\ngradient rule", "estimators"),
    ("sums,\nproducts", "compute"),
    ("optimiser", "training"),
    ("histories\nwritten", "rows"),
    ("feedback,\nevents", "training"),
]


def layers() -> list[list[str]]:
    """The lines of the contract of imports, top first."""
    text = (HOME / "pyproject.toml").read_text()
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    return [line.replace("|", " ").replace(":", " ").split() for line in contract["layers"]]


def box(axes: Any, x: float, y: float, width: float, text: str, note: str, *, edge: str) -> None:
    patch = Rectangle((x, y), width, 0.72, facecolor=PALE, edgecolor=edge, linewidth=1.1)
    axes.add_patch(patch)
    middle = x + width / 2
    axes.text(middle, y + 0.43, text, ha="center", va="center", fontsize=8.5, color="black")
    axes.text(middle, y + 0.14, note, ha="center", va="center", fontsize=6.5, color=GREY)


def draw(out: Path) -> None:
    rooms = layers()
    figure, (way, house) = plt.subplots(
        2, 1, figsize=(8.5, 9), height_ratios=[1, 6], layout="constrained"
    )
    for k, (word, room) in enumerate(WAY):
        way.text(k, 0.62, word, ha="center", va="center", fontsize=8.5)
        way.text(k, 0.12, room, ha="center", va="center", fontsize=7, color=BLUE)
        if k:
            arrow = {"arrowstyle": "->", "color": ORANGE, "lw": 1.2}
            way.annotate("", (k - 0.38, 0.62), (k - 0.62, 0.62), arrowprops=arrow)
    way.set_xlim(-0.6, len(WAY) - 0.4)
    way.set_ylim(-0.1, 1.1)
    way.set_title("one step: what happens, and the room where it does", fontsize=9.5, loc="left")
    for level, names in enumerate(rooms):
        width = 8.0 / len(names) - 0.15
        for k, name in enumerate(names):
            edge = BLUE if name in {room for _, room in WAY} else GREY
            box(house, k * (width + 0.15), -level * 0.86, width, name, ROOMS[name], edge=edge)
    house.set_xlim(-0.1, 8.1)
    house.set_ylim(-0.86 * len(rooms) + 0.7, 0.9)
    title = "rooms: each imports from lines below its own, never from above (make lint)"
    house.set_title(title, fontsize=9.5, loc="left")
    for axes in (way, house):
        axes.axis("off")
    mpl.rcParams["svg.hashsalt"] = "sgcn"
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


def main() -> int:
    default = HOME / "docs" / "pictures" / "architecture.svg"
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    return 0


if __name__ == "__main__":
    sys.exit(main())
