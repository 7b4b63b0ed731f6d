"""The picture of `sgcn variance`: errors against steps, a row a sampler, a line an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.analysis.variance import COLUMNS
from sgcn.files import replacing

#: What a picture may be, by the end of its name.
FORMATS = (".svg", ".png", ".pdf")

_TITLES = ("mean-square error", "squared bias", "variance")


def draw(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw ``results`` of `sgcn variance` into ``out``; its name says the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    samplers = list(dict.fromkeys(result["sampler"] for result in results))
    estimators = list(dict.fromkeys(result["estimator"] for result in results))
    figure, axes = plt.subplots(
        len(samplers), len(COLUMNS), figsize=(12, 3.2 * len(samplers)), sharex=True, sharey="row",
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for result in results:
        line = axes[samplers.index(result["sampler"])]
        color = f"C{estimators.index(result['estimator'])}"
        for axis, name in zip(line, COLUMNS, strict=True):
            at, value, error = _series(result["steps"], name)
            # A logarithmic axis cannot show a bias that came out below zero.
            known = value > 0
            axis.errorbar(
                at[known], value[known], np.minimum(error, 0.9 * value)[known], color=color,
                label=result["estimator"], lw=1.5, marker="o", ms=3, elinewidth=0.8,
            )  # fmt: skip
    for line, sampler in zip(axes, samplers, strict=True):
        line[0].set_ylabel(f"{sampler}\nrelative to |G|²")
        for axis in line:
            axis.set_yscale("log")
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
    for column, title in enumerate(_TITLES):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel("step")
    axes[0, 0].legend(frameon=False)
    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=120)
    plt.close(figure)


def _series(steps: Sequence[Mapping[str, Any]], name: str) -> tuple[Any, Any, Any]:
    """Steps, values and errors; NaN where a value is missing, no error where that is."""
    at = np.array([step["step"] for step in steps], float)
    value = np.array([step[name] for step in steps], float)
    error = np.array([step[f"{name}_error"] for step in steps], float)
    return at, value, np.nan_to_num(error)
