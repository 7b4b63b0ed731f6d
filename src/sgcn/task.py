"""What is learned: labels, the loss of a row, and the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.labels import CLASSES, NUMBERS, SETS, kind_of, labelled
from sgcn.metrics import METRICS, Metric
from sgcn.options import nearest

#: One loss a row, of outputs (n, C) and targets: classes (n,), sets (n, C) or numbers (n, T).
RowLoss = Callable[[Tensor, Tensor], Tensor]
#: A number for the same. A larger one is better, unless it has ``lower_is_better = True``.
Score = Callable[[Tensor, Tensor], Any]
#: Losses by name, and what they are for; the first of a kind is its default.
LOSSES = {"cross_entropy": CLASSES, "bce": SETS, "mse": NUMBERS, "mae": NUMBERS}
_METRICS: dict[str, tuple[str, ...]] = {
    CLASSES: ("f1_micro",), SETS: ("f1_micro",), NUMBERS: ("mae", "r2"),
}  # fmt: skip
_DTYPES = {CLASSES: np.int64, SETS: np.float32, NUMBERS: np.float32}
_FORMS = {
    CLASSES: "a whole number a node, -1 for none",
    SETS: "a row of 0 and 1 a node",
    NUMBERS: "floats, NaN for none",
}


@dataclass(frozen=True, eq=False)
class Task:
    """Classes (``labels`` (N,)), sets of labels (N, C) or numbers (N, T), and how they are learned.

    ``weights`` are those of classes, or of absent and of present labels (2, C); ``scale`` has the
    mean and the standard deviation of each number. Both come from the training nodes.
    """

    labels: Tensor
    outputs: int
    kind: str = CLASSES
    row_loss: str | RowLoss = "cross_entropy"
    smoothing: float = 0.0
    weights: Tensor | None = None
    scale: tuple[Tensor, Tensor] | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    best_by: str = "loss"

    @property
    def multi_label(self) -> bool:
        return self.kind == SETS

    @staticmethod
    def of(
        graph: Graph,
        *,
        loss: str | RowLoss = "auto",
        class_weight: str | Sequence[float] | None = None,
        label_smoothing: float = 0.0,
        metrics: str | Sequence[str | Score] = "auto",
        best_by: str = "auto",
    ) -> Task:
        """The task that the graph's labels set, with the options of [task]."""
        y = _given(graph)
        kind = _kind(y, loss)
        if loss == "auto":
            loss = next(name for name, of in LOSSES.items() if of == kind)
        if label_smoothing and (callable(loss) or kind == NUMBERS):
            raise SgcnError(
                f"label_smoothing is {label_smoothing}, expected 0: it is for cross_entropy and bce"
            )
        labels = _labels(y, kind)
        outputs = int(labels.max(initial=-1)) + 1 if kind == CLASSES else labels.shape[1]
        scores, best = _scores(kind, metrics, best_by)
        weights = scale = None
        if class_weight is not None:
            if kind == NUMBERS or (callable(loss) and kind == SETS):
                what = "numbers" if kind == NUMBERS else "sets of labels with a loss of your own"
                raise SgcnError(f"class_weight is {class_weight!r}, expected none: y has {what}")
            weights = _class_weights(labels[train_nodes(graph)], kind, outputs, class_weight)
        if kind == NUMBERS:
            known = y[train_nodes(graph)].reshape(-1, outputs).astype(np.float64)
            spread = known.std(0)
            scale = _tensor(known.mean(0)), _tensor(np.where(spread > 0, spread, 1.0))
        task = Task(
            torch.from_numpy(labels), outputs, kind, loss, label_smoothing, weights, scale,
            scores, best,
        )  # fmt: skip
        if callable(loss):
            task._check_loss(torch.from_numpy(train_nodes(graph)[:1]).repeat(outputs + 1))
        return task

    def of_labels(self, graph: Graph) -> Task:
        """The same task on the labels of another graph: weights and scale stay as they are."""
        return replace(self, labels=torch.from_numpy(_labels(_given(graph), self.kind)))

    def _check_loss(self, nodes: Tensor) -> None:
        """Make sure that a function of the user's gives a loss a row."""
        assert callable(self.row_loss)
        found: Any = self.row_loss(torch.zeros(len(nodes), self.outputs), self.labels[nodes])
        shape = tuple(found.shape) if isinstance(found, Tensor) else None
        if shape != (len(nodes),):
            what = f"a {type(found).__name__}" if shape is None else f"of shape {shape}"
            raise SgcnError(
                f"the loss is {what} for {len(nodes)} rows, expected one loss a row: "
                "reduction='none', and .mean(1) where a row has several"
            )

    def loss(self, logits: Tensor, nodes: Tensor, weights: Tensor | None = None) -> Tensor:
        """sum_k weights[k] * loss(nodes[k]); the mean without weights."""
        y = self.labels.index_select(0, nodes)
        # A row that carries no weight may have no label; any class will do for it.
        each = self._rows(logits, y.clamp_min(0) if self.kind == CLASSES else y)
        return each.mean() if weights is None else each @ weights

    def _rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each row, class weights included."""
        smoothing, weights = self.smoothing, self.weights
        if self.row_loss == "bce":
            each = None if weights is None else torch.where(y > 0, weights[1], weights[0])
            y = y * (1.0 - smoothing) + smoothing / 2.0 if smoothing else y
            rows = binary_cross_entropy_with_logits(outputs, y, each, reduction="none")
            return rows.mean(1)
        if callable(self.row_loss):
            rows = self.row_loss(outputs, y)
        elif self.row_loss == "cross_entropy":
            rows = cross_entropy(outputs, y, reduction="none", label_smoothing=smoothing)
        else:
            assert self.scale is not None
            away = (outputs - y) / self.scale[1]
            rows = (away.square() if self.row_loss == "mse" else away.abs()).mean(1)
        return rows if weights is None else rows * weights.index_select(0, y)

    def score(self, logits: Tensor, nodes: Tensor) -> dict[str, float]:
        """The metrics and ``loss`` over ``nodes``, given the logits of exactly these."""
        if len(nodes) == 0:
            return dict.fromkeys((*self.metrics, "loss"), float("nan"))
        outputs, y = logits.detach().numpy(), self.labels.index_select(0, nodes).numpy()
        found = {name: float(metric.of(outputs, y)) for name, metric in self.metrics.items()}
        return found | {"loss": float(self.loss(logits, nodes))}

    def improves(self, new: Mapping[str, float], old: Mapping[str, float]) -> bool:
        """Whether ``new`` scores are better than ``old`` ones; one that does not exist is."""
        by = self.best_by
        sign = -1.0 if by == "loss" or self.metrics[by].lower_is_better else 1.0
        return not sign * new[by] <= sign * old[by]


def _kind(y: npt.NDArray[Any], loss: str | RowLoss) -> str:
    """What ``y`` holds for ``loss``, if they fit."""
    kind = kind_of(y)
    if kind == SETS and y.size and not (np.isin(y, (0, 1)) | (y != y)).all():
        raise SgcnError("multi-label y holds values other than 0 and 1, expected only them")
    if kind == CLASSES and y.dtype.kind not in "iu":
        raise SgcnError(f"y holds {y.dtype} values, expected whole class numbers, or floats")
    if kind == CLASSES and y.size and y.min() < -1:
        raise SgcnError(f"y holds {y.min()}, expected classes from 0 on, or -1 for no label")
    if kind == NUMBERS and np.isinf(y).any():
        raise SgcnError("y holds infinite numbers, expected finite ones, or NaN for none")
    wanted = LOSSES[loss] if isinstance(loss, str) and loss != "auto" else kind
    if wanted != kind and not (wanted == NUMBERS and y.dtype.kind == "f"):
        way = ""
        if (kind, wanted) == (CLASSES, NUMBERS):
            way = "; of a table, sgcn data import .. --set kind=numbers"
        raise SgcnError(
            f"loss is {loss!r} and y holds {kind} ({y.dtype}), expected {wanted}: {_FORMS[wanted]}"
            f"{way}"
        )
    if loss == "auto" and kind == NUMBERS and y.ndim == 1:
        known = y[labelled(y)]
        if len(known) and (known == np.floor(known)).all() and known.min() >= -1:
            raise SgcnError(
                f"y holds whole numbers as {y.dtype}, expected integers for classes (-1 for none), "
                "or task.loss = mse or mae to predict them as numbers"
            )
    return wanted


def _scores(
    kind: str, given: str | Sequence[str | Score], best_by: str
) -> tuple[dict[str, Metric], str]:
    """The metrics by name, that of ``best_by`` first, and what the best weights are best in."""
    known = {name: metric for name, metric in METRICS.items() if kind in metric.kinds}
    chosen: list[str] = []
    for metric in _METRICS[kind] if given == "auto" else given:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
        if callable(metric):
            if name in (*METRICS, *chosen, "loss"):
                raise SgcnError(f"two scores are called {name!r}, expected names that differ")
            lower = getattr(metric, "lower_is_better", False)
            known[name] = Metric(name, partial(_own, metric), lower_is_better=lower)
        elif name not in known:
            raise SgcnError(
                f"metrics has {name!r}, expected some of {', '.join(known)}, or functions: y holds "
                f"{kind}{nearest(name, known)}"
            )
        chosen.append(name)
    if best_by == "auto":
        best_by = chosen[0] if chosen and kind != NUMBERS else "loss"
    if best_by not in ("loss", *known):
        raise SgcnError(
            f"best_by is {best_by!r}, expected one of loss, {', '.join(known)}: y holds {kind}"
            f"{nearest(best_by, known)}"
        )
    first = [] if best_by == "loss" else [best_by]
    return {name: known[name] for name in dict.fromkeys(first + chosen)}, best_by


def _own(score: Score, outputs: Any, targets: Any) -> float:
    return float(score(torch.from_numpy(outputs), torch.from_numpy(targets)))


def _given(graph: Graph) -> Any:
    if graph.y is None:
        raise SgcnError("the graph has no labels (y), expected one row for each node")
    return np.asarray(graph.y)


def _labels(y: Any, kind: str) -> Any:
    if not labelled(y).any() or (kind == SETS and y.shape[1] == 0):
        raise SgcnError(f"y labels no node, expected {kind}: {_FORMS[kind]}")
    labels = np.nan_to_num(y.astype(_DTYPES[kind]), copy=False)
    return labels.reshape(len(y), -1) if kind == NUMBERS else labels


def _class_weights(y: Any, kind: str, classes: int, given: str | Sequence[float]) -> Tensor:
    """Weights of the ``given`` proportions whose sum over the rows of ``y`` is their number.

    A label of a set is weighed against its absence, whose share is 1. Balanced ones give every
    class, or the nodes with a label and those without, the same sum.
    """
    if not isinstance(given, str) and len(given) != classes:
        raise SgcnError(
            f"class_weight has {len(given)} numbers, expected one for each of {classes} classes"
        )
    if kind == CLASSES:
        counts = np.bincount(y, minlength=classes)[None]
    else:
        present = np.count_nonzero(y, axis=0)
        counts = np.stack([len(y) - present, present])
    some = np.maximum(counts, 1)  # a class without training nodes counts as one with one
    shares = 1.0 / some if isinstance(given, str) else np.ones(counts.shape)
    if not isinstance(given, str):
        shares[-1] = given
    total = (shares * counts).sum(None if kind == CLASSES else 0)
    if not (total > 0).all():
        raise SgcnError("class_weight is 0 for all training nodes, expected a number above 0")
    return _tensor(shares * len(y) / total).squeeze(0)


def _tensor(values: Any) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def train_nodes(graph: Graph) -> npt.NDArray[np.int32]:
    """The labelled training nodes: there is at least one."""
    train = split_nodes(graph, 0)
    if len(train) == 0:
        raise SgcnError("the graph has no labelled training nodes, expected at least one")
    return train


def split_nodes(graph: Graph, part: int) -> npt.NDArray[np.int32]:
    """The labelled nodes of split ``part``: 0 training, 1 validation, 2 test."""
    if graph.split is None:
        raise SgcnError("the graph has no split, expected 0 (train), 1 (validation), 2 (test)")
    chosen = np.asarray(graph.split) == part
    if graph.y is not None:
        chosen &= labelled(np.asarray(graph.y))
    return np.flatnonzero(chosen).astype(np.int32)
