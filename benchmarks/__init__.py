"""What measures sgcn against others, interleaved in one run; not installed.

`python -m benchmarks NAME ...` runs one. A benchmark is a module with a docstring (first line: the
summary; the rest: examples), ``arguments(parser)`` and ``run(args)``, and a line in `BENCHMARKS`.
"""

from __future__ import annotations

#: Name of a benchmark, which is that of its module -> its summary, for the list in the help.
BENCHMARKS = {
    "sampling": "Time every sampler against published ways to sample, interleaved in one run.",
    "data": "Time importing a graph against only reading its files, interleaved in one run.",
    "step": "Time training steps against torch, PyG, the published procedure and a lower bound.",
    "product": "Time our products beside those of torch and NumPy: of a graph, and dense ones.",
    "cost": "Time regular steps against plain ones, snapshots against full-batch steps; memory.",
    "estimators": "Train every sampler with every estimator: gradient error, loss, F1.",
    "convergence": "Time training to the same accuracy: PyG, full batch, sampling, our rules.",
    "defaults": "Train without options against recipes of PyG on real graphs: test score, seconds.",
    "scale": "Time regular steps and snapshots on graphs of growing size, and measure memory.",
    "startup": "Time how soon commands start: --help, the first training step, compiling kernels.",
    "short": "Run short versions of the benchmarks: one JSON file, and a table for the docs.",
    "compare": "Compare the JSON files of two runs of benchmarks.",
}
