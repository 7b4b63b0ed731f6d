"""Scores by name, plainly defined: of the outputs for some nodes, and their targets.

Targets are classes (n,), sets of labels (n, C) or numbers (n, T). What does not exist is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.labels import CLASSES, NUMBERS, SETS

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Metric:
    """``of`` outputs and targets; what people call it, and where it has a meaning."""

    label: str
    of: Callable[[Any, Any], float]
    kinds: tuple[str, ...] = (CLASSES, SETS)
    lower_is_better: bool = False


def _counts(outputs: Array, targets: Array) -> tuple[Array, Array]:
    """Of each class: nodes given it rightly, and nodes given it plus nodes that have it.

    A node is given the class of its largest output, or the labels whose outputs are above 0.
    """
    if targets.ndim == 2:
        guess, truth = outputs > 0, targets > 0
        return (guess & truth).sum(0), guess.sum(0) + truth.sum(0)
    guess, classes = outputs.argmax(1), outputs.shape[1]
    hits = np.bincount(targets[guess == targets], minlength=classes)
    return hits, np.bincount(guess, minlength=classes) + np.bincount(targets, minlength=classes)


def f1_micro(outputs: Array, targets: Array) -> float:
    """2 TP / (2 TP + FP + FN), summed over classes: the accuracy, where a node has one class."""
    hits, both = _counts(outputs, targets)
    return 2.0 * float(hits.sum()) / max(float(both.sum()), 1.0)


def f1_macro(outputs: Array, targets: Array) -> float:
    """The mean F1 of the classes that any node has or was given."""
    hits, both = _counts(outputs, targets)
    seen = both > 0
    return _mean(2.0 * hits[seen] / both[seen])


def accuracy(outputs: Array, targets: Array) -> float:
    """The share of nodes with the right class, or with all labels right."""
    right = ((outputs > 0) == (targets > 0)).all(1) if targets.ndim == 2 else None
    return float(np.mean(outputs.argmax(1) == targets if right is None else right))


def roc_auc(outputs: Array, targets: Array) -> float:
    """The chance that a node of a class has a higher score for it than one of another, ties half.

    The mean over classes with nodes both inside and outside.
    """
    return _ranked(outputs, targets, _auc)


def average_precision(outputs: Array, targets: Array) -> float:
    """Precision at every threshold, weighted by the recall it adds: the mean over classes with a
    node; of two classes the second one's."""
    return _ranked(outputs, targets, _precision)


def _ranked(outputs: Array, targets: Array, of: Callable[[Array, Array], float]) -> float:
    scores, inside = outputs.astype(np.float64), targets > 0
    if targets.ndim == 1:
        inside = targets[:, None] == np.arange(scores.shape[1])
        if scores.shape[1] == 2:
            scores, inside = scores[:, 1:] - scores[:, :1], inside[:, 1:]
        else:  # the log of softmax: nodes are compared with each other
            scores -= scores.max(1, keepdims=True)
            scores -= np.log(np.exp(scores).sum(1, keepdims=True))
    found = np.array([of(*_thresholds(s, hit)) for s, hit in zip(scores.T, inside.T, strict=True)])
    return _mean(found[~np.isnan(found)])


def _thresholds(scores: Array, inside: Array) -> tuple[Array, Array]:
    """Nodes inside and outside of a class from every distinct score on, the highest first."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.cumsum(inside[order], dtype=np.float64)[last]
    return hits, last + 1 - hits


def _auc(hits: Array, misses: Array) -> float:
    area = (np.diff(misses, prepend=0.0) * (hits + np.append(0.0, hits[:-1])) / 2.0).sum()
    pairs = hits[-1] * misses[-1]
    return float(area / pairs) if pairs else np.nan


def _precision(hits: Array, misses: Array) -> float:
    precision = hits / (hits + misses)
    return float((np.diff(hits, prepend=0.0) * precision).sum() / hits[-1]) if hits[-1] else np.nan


def mse(outputs: Array, targets: Array) -> float:
    """The mean of squared differences, in the units of the targets."""
    return float(np.square(outputs.astype(np.float64) - targets).mean())


def mae(outputs: Array, targets: Array) -> float:
    """The mean of absolute differences, in the units of the targets."""
    return float(np.abs(outputs.astype(np.float64) - targets).mean())


def r2(outputs: Array, targets: Array) -> float:
    """1 - squared errors / squared distances from the mean: the mean over targets that vary."""
    targets = targets.astype(np.float64)
    away, spread = np.square(outputs - targets).sum(0), np.square(targets - targets.mean(0)).sum(0)
    varies = spread > 0
    return _mean(1.0 - away[varies] / spread[varies])


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else np.nan


#: Every metric by name. A new one is a line.
METRICS: dict[str, Metric] = {
    "f1_micro": Metric("F1", f1_micro),
    "f1_macro": Metric("macro F1", f1_macro),
    "accuracy": Metric("accuracy", accuracy),
    "roc_auc": Metric("ROC-AUC", roc_auc),
    "average_precision": Metric("average precision", average_precision),
    "mse": Metric("MSE", mse, (NUMBERS,), lower_is_better=True),
    "mae": Metric("MAE", mae, (NUMBERS,), lower_is_better=True),
    "r2": Metric("R2", r2, (NUMBERS,)),
}


def label(name: str) -> str:
    """What people call the score ``name``, which may be of a function of theirs, or the loss."""
    return METRICS[name].label if name in METRICS else name


def key_of(scores: Mapping[str, Any]) -> str:
    """The score that is shown where there is room for one: a task has it first."""
    return next(iter(scores))


def shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.6g}"


def words(scores: Mapping[str, float]) -> str:
    """All of ``scores`` in a line."""
    return ", ".join(f"{label(name)} {shown(value)}" for name, value in scores.items())
