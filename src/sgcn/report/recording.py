"""One run as the page shows it, finished or not: its configuration, its summary and its curves."""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.errors import SgcnError
from sgcn.report.thinning import POINTS, Floats, smooth, thin
from sgcn.runs.config import read_toml
from sgcn.runs.layout import CONFIG, METRICS, SUMMARY

CURVES = ("loss", "f1", "validation_loss", "gradient_norm", "gradient_error", "norm_growth")
#: Those that jump from batch to batch so much that a smooth line helps.
_NOISY = {"loss", "gradient_norm"}
#: The parts of a run's seconds, in the order in which a step meets them.
PARTS = ("sampling", "transfer", "compute", "snapshot", "evaluation")


class Curve:
    """Points: when, in both clocks, and what."""

    def __init__(self) -> None:
        self._points = array("d")

    def __len__(self) -> int:
        return len(self._points) // 3

    def add(self, step: float, seconds: float, value: float) -> None:
        self._points.extend((step, seconds, value))

    def drawn(self, points: int, smoothed: bool = False) -> dict[str, Any]:
        """At most ``points`` of the curve, ready for JSON."""
        step, seconds, value = np.array(self._points).reshape(-1, 3).T
        if smoothed:
            value = smooth(value)
        at = thin(value, points)
        return {
            "step": step[at].astype(np.int64).tolist(),
            "seconds": _short(seconds[at]),
            "value": _short(value[at]),
        }


class Recording:
    """A run directory, read again and again while it grows; only new lines cost time."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.config: dict[str, str] = {}
        self.summary: dict[str, Any] | None = None
        self._forget()

    def _forget(self) -> None:
        """Back to before the first line."""
        self.curves = {name: Curve() for name in CURVES}
        self.snapshots = Curve()
        self.spent = dict.fromkeys(("total", *PARTS), 0.0)
        self.steps = self.restarts = 0
        self.best: dict[str, Any] = {}
        self._read, self._last, self._lines = 0, b"", 0

    def refresh(self) -> bool:
        """Take in what the run wrote since the last call; whether that was anything."""
        before = (self.config, self.summary, self._read, self._last)
        self.config = _flat(read_toml(self.folder / CONFIG))
        self.summary = _summary(self.folder / SUMMARY)
        self._follow(self.folder / METRICS)
        return before != (self.config, self.summary, self._read, self._last)

    def _follow(self, path: Path) -> None:
        """Read the new complete lines; one that is still being written waits for the next call."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return self._forget()
        except OSError as error:
            raise SgcnError(
                f"{path} cannot be read ({error.strerror}), expected the events of a run"
            ) from None
        with file:
            file.seek(self._read - len(self._last))
            if file.read(len(self._last)) != self._last:  # a resumed run has cut it, or a new one
                self._forget()
                file.seek(0)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._lines += 1
                bad = f"{path} has a line {self._lines} that is no JSON object, expected an event"
                self._take(_object(line, bad))
                self._read, self._last = self._read + len(line), line

    def _take(self, event: dict[str, Any]) -> None:
        step = _number(event.get("step"))
        seconds = _number(event.get("seconds"), self.spent["total"])
        self.spent["total"] = max(self.spent["total"], seconds)
        kind = event.get("event")
        found: dict[str, Any] = {}
        if kind == "step":
            found = {name: event.get(name) for name in ("loss", "gradient_norm", "norm_growth")}
            snapshot, restart = bool(event.get("snapshot")), bool(event.get("restart"))
            self.steps += 1
            self.restarts += restart
            if snapshot:
                self.snapshots.add(step, seconds, float(restart))
            for name in ("sampling", "transfer", "compute"):
                part = "snapshot" if snapshot and name == "compute" else name
                self.spent[part] += _number(event.get(name), 0.0)
        elif kind == "score":
            score = event.get("validation")
            self.spent["evaluation"] += _number(event.get("evaluation"), 0.0)
            if isinstance(score, dict):
                found = {"f1": score.get("f1_micro"), "validation_loss": score.get("loss")}
                if event.get("best"):
                    self.best = {"validation": score, "best_step": event.get("step")}
        elif kind == "probe":
            found["gradient_error"] = event.get("relative_mse")
        for name, value in found.items():
            if value is not None and step == step:
                self.curves[name].add(step, seconds, _number(value))

    def drawn(self, points: int = POINTS) -> dict[str, Any]:
        """What the page shows of this run, ready for JSON."""
        curves = {name: curve.drawn(points) for name, curve in self.curves.items() if curve}
        for name in _NOISY & curves.keys():
            curves[name]["smooth"] = self.curves[name].drawn(points, smoothed=True)
        return {
            "name": self.name,
            "finished": self.summary is not None,
            "config": self.config,
            "summary": self.summary if self.summary is not None else self._so_far(),
            "curves": curves,
            "snapshots": self.snapshots.drawn(points),
        }

    def _so_far(self) -> dict[str, Any]:
        """The summary before the end, counted from the events; there is no test score yet."""
        seed = self.config.get("training.seed", "")
        return {
            "data": self.config.get("data"),
            "sampler": self.config.get("sampler.name"),
            "estimator": self.config.get("estimator.name"),
            "seed": int(seed) if seed.isdecimal() else None,
            **self.best,
            "steps": self.steps,
            "snapshots": len(self.snapshots),
            "restarts": self.restarts,
            "seconds": self.spent,
        }


def _object(text: bytes, bad: str) -> dict[str, Any]:
    """The JSON object that ``text`` is; else the error with the sentence ``bad``."""
    try:
        found = json.loads(text, parse_constant=lambda _: None)  # NaN is no JSON
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SgcnError(bad)
    return found


def _summary(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        text = b""
    return _object(text, f"{path} is no JSON object that can be read, expected a run's summary")


def _flat(table: dict[str, Any], before: str = "") -> dict[str, str]:
    """`section.key` and its value in words."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = value if isinstance(value, str) else json.dumps(value, default=str)
    return flat


def _number(value: Any, missing: float = math.nan) -> float:
    """``value`` as a float if it is a finite number, or else ``missing``."""
    try:
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else missing
    except OverflowError:
        return missing


def _short(values: Floats) -> list[float | None]:
    """Six digits are more than a screen shows; a missing value is null."""
    return [float(f"{value:.6g}") if value == value else None for value in values.tolist()]
