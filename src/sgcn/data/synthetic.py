"""Synthetic graphs: communities, power-law degrees, and features and labels that depend on them.

The nodes of a community share a centre in feature space and a set of labels. A node's features are
its centre under heavy noise, so they alone tell its community badly; most of its neighbours share
the community, so the mean over a neighbourhood tells it well. A graph convolution can use this and
a network that sees one row at a time cannot.

A graph is a function of (spec, seed): the same bits for any number of threads.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import synthetic as kernels
from sgcn.kernels.random import permutation, uniforms
from sgcn.kernels.threads import kernel_threads
from sgcn.options import (
    Options,
    between,
    flag,
    integer,
    known_name,
    nearest,
    option,
    parse_value,
    real,
)
from sgcn.rng import Key, Stream, check_seed

# Streams of the generator: numbers that no layer of a sample has.
_ORDER, _EDGES, _CENTRES, _NOISE, _SETS, _LABELS, _OTHERS, _SPLIT = range(8)


@dataclass(frozen=True)
class Synthetic(Options):
    """What a synthetic graph is like."""

    nodes: int = option(10_000, integer(2), "nodes")
    degree: float = option(20.0, real(0, open_=True), "mean degree: twice the edges over the nodes")
    features: int = option(64, integer(), "features of a node")
    classes: int = option(8, integer(), "classes, or labels with multi_label")
    multi_label: bool = option(False, flag(), "a node has a set of labels instead of one class")
    communities: int = option(16, integer(), "equal communities; class = community mod classes")
    homophily: float = option(0.75, between(0, 1), "share of edges inside a community")
    power: float = option(2.5, real(2, open_=True), "exponent of the degrees' power law")
    hub: float = option(
        30.0, real(1, open_=True), "expected degree of the largest hub over the mean"
    )
    noise: float = option(0.5, real(0), "feature noise along a line, over the centres' distance")
    label_density: float = option(
        0.2, between(0, 1), "share of labels a community has (multi_label)"
    )
    label_noise: float = option(0.05, between(0, 1), "share of nodes with a random one's labels")
    train: float = option(0.6, between(0, 1), "share of training nodes")
    val: float = option(0.2, between(0, 1), "share of validation nodes; the rest is for testing")

    @property
    def edges(self) -> int:
        """Undirected edges: distinct, none from a node to itself."""
        return max(round(self.nodes * self.degree / 2), 1)


#: What stands before a name or a list of options where other graphs have names too.
PREFIX = "synthetic:"

#: Sizes, tasks and splits of the paper's five graphs; the edges are exact.
NAMED: dict[str, Synthetic] = {
    "ppi-like": Synthetic(
        nodes=14_755, degree=2 * 222_000 / 14_755, features=50, classes=121, multi_label=True,
        communities=24, hub=15.0, label_density=0.3, train=0.66, val=0.12,
    ),
    "ppi-large-like": Synthetic(
        nodes=56_944, degree=2 * 794_000 / 56_944, features=50, classes=121, multi_label=True,
        communities=48, hub=20.0, label_density=0.3, train=0.79, val=0.11,
    ),
    "flickr-like": Synthetic(
        nodes=89_250, degree=2 * 900_000 / 89_250, features=500, classes=7,
        communities=28, hub=60.0, train=0.50, val=0.25,
    ),
    "reddit-like": Synthetic(
        nodes=232_965, degree=2 * 11_600_000 / 232_965, features=602, classes=41,
        communities=41, hub=30.0, train=0.66, val=0.10,
    ),
    "yelp-like": Synthetic(
        nodes=716_847, degree=2 * 6_980_000 / 716_847, features=300, classes=100, multi_label=True,
        communities=200, hub=60.0, label_density=0.1, train=0.75, val=0.10,
    ),
}  # fmt: skip


def synthetic(spec: str | Synthetic, seed: int = 0, features: bool = True) -> Graph:
    """The graph named or described by ``spec``: x float32, y, split (0 train, 1 val, 2 test).

    ``y`` is one int64 class a node, or a 0/1 row of uint8 with ``multi_label``. Without
    ``features`` there is no x, and the rest is the same.
    """
    if isinstance(spec, str):
        spec = NAMED[known_name("synthetic graph", spec, NAMED)]
    _check(spec)
    key = Key(check_seed(seed))
    bounds = np.arange(spec.communities + 1, dtype=np.int64) * spec.nodes // spec.communities
    order = permutation(spec.nodes, key.stream(Stream.SYNTHETIC, _ORDER))
    community = np.empty(spec.nodes, np.int32)
    community[order] = np.repeat(np.arange(spec.communities, dtype=np.int32), np.diff(bounds))
    codes = _edges(spec, key, order, bounds)
    indptr, indices = kernels.rows_of_edges(codes, spec.nodes, kernel_threads())
    del codes  # eight bytes an edge: let go before the features come
    return Graph(
        indptr,
        indices,
        x=_features(spec, key, community) if features else None,
        y=_labels(spec, key, community),
        split=_split(spec, key),
    )


def parse_synthetic(text: str, seed: int = 0) -> tuple[Synthetic, int]:
    """The spec and seed that a text means, with or without ``synthetic:`` before it.

    ``flickr-like``, ``nodes=5000,degree=12``, or a name first and then what is different about it:
    ``flickr-like,noise=0.3,seed=2``. ``seed`` is for a text without.
    """
    words = [word.strip() for word in text.removeprefix(PREFIX).split(",")]
    base = Synthetic()
    if "=" not in words[0]:
        base = NAMED[known_name("synthetic graph", words.pop(0), NAMED)]
    values: dict[str, Any] = {}
    known = [*(field.name for field in dataclasses.fields(Synthetic)), "seed"]
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or name not in known:
            raise SgcnError(
                f"{text} has {word!r} in it, expected name=value with a name among "
                f"{', '.join(known)}{nearest(name, known)}"
            )
        if name in values:
            raise SgcnError(f"{text} gives {name} twice, expected one value")
        values[name] = parse_value(value)
    seed = check_seed(values.pop("seed", seed))
    spec = dataclasses.replace(base, **values)
    _check(spec)
    return spec, seed


def _check(spec: Synthetic) -> None:
    nodes, communities = spec.nodes, spec.communities
    for name, value in dataclasses.asdict(spec).items():
        if not math.isfinite(value):
            raise SgcnError(f"{name} is {value}, expected a finite number")
    if nodes > np.iinfo(np.int32).max:
        raise SgcnError(f"nodes is {nodes}, expected at most 2**31 - 1")
    if communities > nodes:
        raise SgcnError(f"communities is {communities}, expected at most the {nodes} nodes")
    if spec.classes > communities and not spec.multi_label:
        raise SgcnError(
            f"classes is {spec.classes}, expected at most the {communities} communities"
        )
    pairs = nodes * (nodes - 1) / 2
    inside = nodes * (nodes / communities - 1) / 2
    if communities == 1:
        room = pairs
    else:
        outside = 1.0 - spec.homophily
        room = min(inside / max(spec.homophily, 1e-9), (pairs - inside) / max(outside, 1e-9))
    # Hubs meet each other again and again: long before all pairs are used, few draws are new.
    if spec.edges > room / 4:
        raise SgcnError(
            f"degree is {spec.degree:g}, expected at most {room / 2 / nodes:.4g} for {nodes} nodes "
            f"in {communities} communities with homophily {spec.homophily:g}"
        )
    if spec.train + spec.val > 1:
        raise SgcnError(f"train + val is {spec.train + spec.val:g}, expected at most 1")


def _edges(spec: Synthetic, key: Key, order: Any, bounds: Any) -> npt.NDArray[np.int64]:
    """Exactly ``spec.edges`` distinct edges, sorted.

    Every round draws what is missing, so there is never one too many and none must be taken away.
    """
    power = 1.0 - 1.0 / (spec.power - 1.0)  # degree exponent g <=> weight ~ rank^(-1 / (g - 1))
    bend = _bend(spec.hub, power)
    codes = np.empty(spec.edges, np.int64)
    have = drawn = 0
    while have < spec.edges:
        tail = codes[have:]
        kernels.draw_edges(
            tail, drawn, key.stream(Stream.SYNTHETIC, _EDGES), order, bounds, spec.homophily,
            bend, power,
        )
        drawn += len(tail)
        tail.sort()
        have = kernels.absorb_edges(codes, have)
        if drawn > 100 * spec.edges:
            raise SgcnError(
                f"only {have} of {spec.edges} edges are distinct after {drawn} draws, expected "
                "room for all: lower hub or degree, or use fewer communities"
            )
    return codes


def _bend(hub: float, power: float) -> float:
    """The offset b at which the density (x + b)^(power - 1) on [0, 1] starts at ``hub``.

    The density at 0 falls as b grows, so halve the interval.
    """
    low, high = -40.0, 20.0  # of log2 b
    for _ in range(100):
        middle = (low + high) / 2
        b = 2.0**middle
        at_zero = power * b ** (power - 1.0) / ((1.0 + b) ** power - b**power)
        low, high = (middle, high) if at_zero > hub else (low, middle)
    return float(2.0**low)


def _features(spec: Synthetic, key: Key, community: Any) -> npt.NDArray[np.float32]:
    """Centres plus noise, scaled to variance 1 in every feature.

    Centres of unit variance are sqrt(2 F) apart, so noise of ``noise * sqrt(2 F)`` in every feature
    is ``noise`` times their distance along the line that joins them, whatever F is.
    """
    every = np.arange(spec.communities, dtype=np.int32)
    blank = np.zeros((spec.communities, spec.features), np.float32)
    centres = kernels.noisy_rows(blank, every, 0.0, 1.0, key.stream(Stream.SYNTHETIC, _CENTRES))
    noise = spec.noise * (2 * spec.features) ** 0.5
    scale = (1.0 + noise * noise) ** -0.5
    x: npt.NDArray[np.float32] = kernels.noisy_rows(
        centres, community, scale, noise * scale, key.stream(Stream.SYNTHETIC, _NOISE)
    )
    return x


def _labels(spec: Synthetic, key: Key, community: Any) -> npt.NDArray[Any]:
    stray = uniforms(spec.nodes, key.stream(Stream.SYNTHETIC, _LABELS)) < spec.label_noise
    other = uniforms(spec.nodes, key.stream(Stream.SYNTHETIC, _OTHERS)) * spec.communities
    taken = np.where(stray, other.astype(np.int32), community)
    if not spec.multi_label:
        classes: npt.NDArray[np.int64] = (taken % spec.classes).astype(np.int64)
        return classes
    chances = uniforms(spec.communities * spec.classes, key.stream(Stream.SYNTHETIC, _SETS))
    sets = chances < spec.label_density
    rows: npt.NDArray[np.uint8] = sets.reshape(spec.communities, -1).astype(np.uint8)[taken]
    return rows


def _split(spec: Synthetic, key: Key) -> npt.NDArray[np.int8]:
    train, val = int(spec.train * spec.nodes), int(spec.val * spec.nodes)
    parts = np.full(spec.nodes, 2, np.int8)
    order = permutation(spec.nodes, key.stream(Stream.SYNTHETIC, _SPLIT))
    parts[order[:train]] = 0
    parts[order[train : train + val]] = 1
    return parts
