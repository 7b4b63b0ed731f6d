"""Run directories written by hand, and reading a page's data back."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path
from typing import Any


def step(number: int, **changed: Any) -> dict[str, Any]:
    """A step event that took 10 ms."""
    return {
        "epoch": 0, "step": number, "loss": 1.0 / (number + 1), "gradient_norm": 0.5,
        "norm_growth": 1.0,
        "snapshot": number % 10 == 0, "restart": False, "seconds": 0.01 * (number + 1),
        "sampling": 0.001, "transfer": 0.002, "compute": 0.006, "event": "step",
    } | changed  # fmt: skip


def lines(events: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def make_run(
    path: Path, events: list[dict[str, Any]], data: str = "a graph", **summary: Any
) -> Path:
    """A run that is not finished, unless there is a summary."""
    path.mkdir(parents=True)
    (path / "config.toml").write_text(
        f"data = {json.dumps(data)}\n[sampler]\nname = 'neighbor'\n[estimator]\nname = 'sgcn'\n"
        "[training]\nseed = 7\n"
    )
    (path / "metrics.jsonl").write_text(lines(events))
    if summary:
        (path / "summary.json").write_text(json.dumps({"data": data} | summary))
    return path


class Parts(html.parser.HTMLParser):
    """The elements of a page and the text of its scripts, as a browser would split them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def read_page(path: Path) -> dict[str, Any]:
    return Parts(path.read_text("utf-8")).data
