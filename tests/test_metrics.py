"""Every metric against its plain definition, with loops: ties, and classes without nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sgcn.metrics import METRICS, key_of, label, shown, words

RNG = np.random.default_rng(0)
NODES, CLASSES = 40, 5


def outputs(ties: bool, columns: int = CLASSES) -> np.ndarray:
    """Some numbers; with ``ties`` a few rows that come again and again."""
    raw = RNG.normal(size=(NODES, columns)).astype(np.float32)
    return raw[RNG.integers(0, 6, NODES)] if ties else raw


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def f1(guess: np.ndarray, truth: np.ndarray) -> float | None:
    """Of one class; None if nobody has it and nobody was given it."""
    tp = sum(g and t for g, t in zip(guess, truth, strict=True))
    wrong = sum(g != t for g, t in zip(guess, truth, strict=True))
    return 2 * tp / (2 * tp + wrong) if tp + wrong else None


def auc(score: np.ndarray, truth: np.ndarray) -> float | None:
    """The chance of a pair to be in order, over all pairs."""
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0 for a in score[truth] for b in score[~truth]
    ]
    return mean(pairs) if pairs else None


def precision(score: np.ndarray, truth: np.ndarray) -> float | None:
    """sum over thresholds, from high to low, of precision times the growth of recall."""
    if not truth.any():
        return None
    total, before = 0.0, 0.0
    for threshold in sorted(set(score.tolist()), reverse=True):
        chosen = score >= threshold
        recall = truth[chosen].sum() / truth.sum()
        total += truth[chosen].mean() * (recall - before)
        before = recall
    return total


def columns_of(out: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(score, truth) of each class, by softmax in one line."""
    if y.ndim == 2:
        return [(out[:, c], y[:, c] > 0) for c in range(out.shape[1])]
    p = np.exp(out.astype(float)) / np.exp(out.astype(float)).sum(1, keepdims=True)
    chosen = [1] if out.shape[1] == 2 else range(out.shape[1])
    return [(p[:, c], y == c) for c in chosen]


def targets(kind: str, columns: int = CLASSES) -> np.ndarray:
    if kind == "classes":
        return RNG.integers(0, columns, NODES)
    y = (RNG.random((NODES, columns)) < 0.3).astype(np.float32)
    y[:, 1], y[:, 2] = 0.0, 1.0  # nobody, and everybody
    return y


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", ["classes", "two classes", "missing class", "sets"])
def test_classification(kind, ties):
    columns = 2 if kind == "two classes" else CLASSES
    out = outputs(ties, columns)
    y = targets("sets" if kind == "sets" else "classes", columns)
    if kind == "missing class":  # without nodes; and one that nobody has or is given
        y[y == 3] = 0
        y[y == 4], out[:, 4] = 1, -9.0
    if kind == "sets":
        guess, truth = out > 0, y > 0
        exact = np.mean([list(g) == list(t) for g, t in zip(guess, truth, strict=True)])
    else:
        guess, truth = np.eye(columns)[out.argmax(1)] > 0, np.eye(columns)[y] > 0
        exact = np.mean([g == t for g, t in zip(out.argmax(1), y, strict=True)])
    each = [f1(guess[:, c], truth[:, c]) for c in range(columns)]
    areas = [auc(*pair) for pair in columns_of(out, y)]
    precisions = [precision(*pair) for pair in columns_of(out, y)]
    wanted = {
        "f1_micro": f1(guess.ravel(), truth.ravel()),
        "f1_macro": mean([v for v in each if v is not None]),
        "accuracy": exact,
        "roc_auc": mean([v for v in areas if v is not None]),
        "average_precision": mean([v for v in precisions if v is not None]),
    }
    assert any(v is None for v in each + areas) == (kind in ("missing class", "sets"))
    for name, value in wanted.items():
        assert METRICS[name].of(out, y) == pytest.approx(value, rel=1e-6), name
    if kind != "sets":
        assert METRICS["f1_micro"].of(out, y) == METRICS["accuracy"].of(out, y)


def test_extremes():
    y = np.array([0, 0, 1, 1])
    out = np.array([[0, -800.0], [0, 300], [0, 301], [0, 900]], np.float32)  # softmax is 1.0
    for name in ("roc_auc", "average_precision"):
        assert METRICS[name].of(out, y) == 1.0
        assert METRICS[name].of(np.zeros_like(out), y) == 0.5
    assert METRICS["roc_auc"].of(-out, y) == 0.0
    nobody = np.zeros((4, 2), np.float32)
    assert math.isnan(METRICS["roc_auc"].of(out, nobody))
    assert math.isnan(METRICS["average_precision"].of(out, nobody))
    assert METRICS["f1_micro"].of(nobody, nobody) == 0.0
    assert math.isnan(METRICS["f1_macro"].of(nobody, nobody))


def test_numbers():
    y = RNG.normal(size=(NODES, 3)).astype(np.float32) * 50 + 1000
    y[:, 2] = 7.0  # does not vary: no share of its variance can be explained
    out = y + RNG.normal(size=y.shape).astype(np.float32)
    away = [[float(a) - float(b) for a, b in zip(*rows, strict=True)]
            for rows in zip(out, y, strict=True)]  # fmt: skip
    flat = [v for row in away for v in row]
    assert METRICS["mse"].of(out, y) == pytest.approx(mean([v * v for v in flat]))
    assert METRICS["mae"].of(out, y) == pytest.approx(mean([abs(v) for v in flat]))
    shares = []
    for c in (0, 1):
        middle = mean([float(v) for v in y[:, c]])
        spread = sum((float(v) - middle) ** 2 for v in y[:, c])
        shares.append(1 - sum(row[c] ** 2 for row in away) / spread)
    assert METRICS["r2"].of(out, y) == pytest.approx(mean(shares))
    assert METRICS["r2"].of(y, y) == 1.0
    assert math.isnan(METRICS["r2"].of(out[:, 2:], y[:, 2:]))


def test_words():
    scores = {"mae": 12345.678, "own": 0.5, "loss": math.nan}
    assert key_of(scores) == "mae"
    assert words(scores) == "MAE 12345.7, own 0.5000, loss nan"
    assert (label("f1_micro"), shown(0.91234)) == ("F1", "0.9123")
