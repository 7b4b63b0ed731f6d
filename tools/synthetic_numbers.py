"""How much of a synthetic graph's labels its features tell, alone and averaged over neighbours.

    python -m tools.synthetic_numbers                     the graphs of docs/synthetic.md
    python -m tools.synthetic_numbers ppi-like,noise=0.2  any others, as after `synthetic:`
    python -m tools.synthetic_numbers --memory 100000000  what so many edges cost to generate

Prints a table for docs/synthetic.md: micro-F1 on the test nodes. The ceiling is the score of one
who knows the community of every node: what is missing to 1 is label noise. Bayes on x is the
score of one who knows the centres and label sets of all communities, but sees no edge.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn

from sgcn.compute.operators import GraphOperator
from sgcn.data.synthetic import Synthetic, parse_synthetic, synthetic
from sgcn.graph import Graph
from sgcn.machine import peak_memory
from sgcn.task import Task, split_nodes

GRAPHS = ("ppi-like", "flickr-like", "flickr-like,homophily=0.5", "flickr-like,noise=0.3")
STEPS, BATCH, EVERY = 2_000, 512, 100


def main(texts: list[str]) -> None:
    torch.set_num_threads(1)  # batches this small gain nothing from more
    print("| graph | x, linear | x, MLP | x, Bayes | P P x, linear | P P x, MLP | ceiling |")
    print("|---|---|---|---|---|---|---|")
    for text in texts:
        spec, seed = parse_synthetic(text)
        graph = synthetic(spec, seed)
        p, x = GraphOperator(graph), torch.from_numpy(graph.x)
        rows = (x, x, *2 * [p.aggregate(p.aggregate(x))])
        scores = [probe(graph, h, hidden) for h, hidden in zip(rows, (0, 256, 0, 256), strict=True)]
        scores.insert(2, bayes(graph, spec, seed))
        cells = (f"{score:.3f}" for score in (*scores, ceiling(graph, spec, seed)))
        print(f"| `{text}` | {' | '.join(cells)} |", flush=True)


def probe(graph: Graph, h: Tensor, hidden: int) -> float:
    """Test score of a linear model on the rows of ``h``, or of one with a hidden layer.

    Adam; the weights that validate best count.
    """
    torch.manual_seed(0)
    task = Task.of(graph)
    train, val, test = (torch.from_numpy(split_nodes(graph, part)).long() for part in range(3))
    h = (h - h[train].mean(0)) / h[train].std(0)
    width = h.shape[1]
    model: nn.Module = nn.Linear(width, task.outputs)
    if hidden:
        model = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, task.outputs)
        )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    best = (-1.0, 0.0)
    for step in range(1, STEPS + 1):
        nodes = train[torch.randint(len(train), (BATCH,))]
        optimizer.zero_grad()
        loss = task.loss(model.train()(h[nodes]), nodes)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        if step % EVERY == 0:
            model.eval()
            with torch.no_grad():
                scores = [task.score(model(h[nodes]), nodes)["f1_micro"] for nodes in (val, test)]
            best = max(best, (scores[0], scores[1]))
    return best[1]


def bayes(graph: Graph, spec: Synthetic, seed: int) -> float:
    """Test score of Bayes' rule on x: the chance of every label given all centres."""
    clean = synthetic(replace(spec, noise=0.0, label_noise=0.0), seed)
    _, one = np.unique(clean.x[:, 0], return_index=True)  # a node of each community
    centres, y = torch.from_numpy(clean.x[one]), torch.from_numpy(clean.y[one])
    variance = 2 * spec.features * spec.noise**2
    test = torch.from_numpy(split_nodes(graph, 2)).long()
    x = torch.from_numpy(graph.x)[test] * (1 + variance) ** 0.5
    chance = (-torch.cdist(x, centres).square() / (2 * variance)).softmax(1)
    logits = chance @ (y if spec.multi_label else nn.functional.one_hot(y)).float()
    return Task.of(graph).score(logits - 0.5, test)["f1_micro"]


def ceiling(graph: Graph, spec: Synthetic, seed: int) -> float:
    """Test score of the labels before noise."""
    clean = torch.from_numpy(synthetic(replace(spec, label_noise=0.0), seed, features=False).y)
    test = torch.from_numpy(split_nodes(graph, 2)).long()
    known = clean[test]
    logits = known.float() - 0.5 if spec.multi_label else nn.functional.one_hot(known).float()
    return Task.of(graph).score(logits, test)["f1_micro"]


def memory(edges: int) -> None:
    """Time and memory to generate a graph of mean degree 40 without features."""
    synthetic(Synthetic(), features=False)  # compiles
    before, began = peak_memory(), perf_counter()
    graph = synthetic(Synthetic(nodes=edges // 20, degree=40.0), features=False)
    seconds = perf_counter() - began
    result = (graph.nbytes + graph.y.nbytes + graph.split.nbytes) / 2**20
    used = (peak_memory() - before) / 2**20
    print(
        f"{graph.edges // 2:,} edges: {seconds:.1f} s; the graph has {result:,.0f} MiB, "
        f"generating it took {used:,.0f} MiB ({used / result:.2f} times)"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        memory(int(sys.argv[2]))
    else:
        main(sys.argv[1:] or list(GRAPHS))
