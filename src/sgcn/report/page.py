"""The page: the data of the runs, joined with the template, the style and the scripts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sgcn import metrics
from sgcn.errors import SgcnError
from sgcn.files import check_target, write_text
from sgcn.report.recording import PARTS, Recording
from sgcn.report.thinning import POINTS
from sgcn.runs.layout import METRICS, is_run
from sgcn.training.events import to_json
from sgcn.version import __version__

_WEB = Path(__file__).parent / "web"
_SCRIPTS = ("format.js", "chart.js", "tables.js", "script.js")

#: Points of all lines of a curve together, so that a page of many runs stays a page.
_BUDGET = 16 * POINTS


def find_runs(paths: Sequence[Path]) -> list[Recording]:
    """The runs that ``paths`` name: run directories, or folders with runs at any depth below."""
    folders: dict[Path, int] = {}  # and how many parts of the path make its name
    for path in paths:
        within = path.resolve()
        below = (file.parent for file in within.rglob(METRICS))
        found = [within] if is_run(path) else sorted(filter(is_run, below))
        if not found:
            raise SgcnError(
                f"{path} is not a run directory, expected one that sgcn train wrote or a folder "
                "with such below it"
            )
        for run in found:
            folders.setdefault(run, len(run.relative_to(within).parts) or 1)
    return [*map(Recording, folders, _names(folders))]


def _names(folders: dict[Path, int]) -> list[str]:
    """So many last parts of each path, and as many before them as tell them apart."""
    longest = max(len(folder.parts) for folder in folders)
    for more in range(longest):
        names = ["/".join(path.parts[-parts - more :]) for path, parts in folders.items()]
        if len(set(names)) == len(names):
            break
    return names


def page_data(runs: Sequence[Recording]) -> dict[str, Any]:
    """What the scripts get to see."""
    points = max(POINTS // 8, min(POINTS, _BUDGET // len(runs)))
    return {
        "version": __version__,
        "parts": PARTS,
        "metrics": {
            name: {"label": metric.label, "best": "min" if metric.lower_is_better else "max"}
            for name, metric in metrics.METRICS.items()
        },
        "runs": [run.drawn(points) for run in runs],
    }


def page(data: dict[str, Any]) -> str:
    """One HTML text that needs nothing else. Its policy lets only its own style and script run."""
    style = (_WEB / "style.css").read_text("utf-8")
    script = "\n".join((_WEB / name).read_text("utf-8") for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        f"connect-src '{'self' if 'live' in data else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "data": embedded(data), "script": script}
    template = (_WEB / "template.html").read_text("utf-8")
    # One pass: what looks like a mark inside the data stays what it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], template)


def embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever the names in it say."""
    text = to_json(data)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def write_page(paths: Sequence[Path], out: Path) -> int:
    """Write the page of the runs in ``paths`` to ``out``, all of it or nothing; how many runs."""
    check_target("--out", out, (".html",))
    runs = find_runs(paths)
    for run in runs:
        run.refresh()
        if not run.steps:
            raise SgcnError(
                f"{run.folder} is still empty, expected a run with a step in its metrics.jsonl: "
                "wait for it, or follow it with --live"
            )
    text = page(page_data(runs))
    try:
        write_text(out, text)
    except OSError as error:
        raise SgcnError(f"{out} cannot be written ({error.strerror}): make room") from None
    return len(runs)
