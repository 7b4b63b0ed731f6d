"""Train graph convolutional networks by sampling: any sampler with any variance-reduction rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted
from sgcn.version import __version__

if TYPE_CHECKING:
    from sgcn.block import Batch, Block
    from sgcn.estimators import ESTIMATORS, Estimator, make_estimator
    from sgcn.estimators.large_batch import suggest_large_batch
    from sgcn.graph import Graph
    from sgcn.nn import Model, make_model
    from sgcn.rng import Key
    from sgcn.samplers import SAMPLERS, NodeSet, Sampler, make_sampler
    from sgcn.sources import Loader
    from sgcn.training.loop import fit
    from sgcn.training.options import Training

__all__ = [
    "ESTIMATORS",
    "SAMPLERS",
    "Batch",
    "Block",
    "Estimator",
    "Graph",
    "Key",
    "Loader",
    "Model",
    "NodeSet",
    "Sampler",
    "SgcnError",
    "Training",
    "TrainingDiverged",
    "TrainingInterrupted",
    "__version__",
    "fit",
    "make_estimator",
    "make_model",
    "make_sampler",
    "suggest_large_batch",
]

_HOME = {
    "Batch": "sgcn.block",
    "Block": "sgcn.block",
    "ESTIMATORS": "sgcn.estimators",
    "Estimator": "sgcn.estimators",
    "Graph": "sgcn.graph",
    "Key": "sgcn.rng",
    "Loader": "sgcn.sources",
    "Model": "sgcn.nn",
    "SAMPLERS": "sgcn.samplers",
    "NodeSet": "sgcn.samplers",
    "Sampler": "sgcn.samplers",
    "Training": "sgcn.training.options",
    "fit": "sgcn.training.loop",
    "make_estimator": "sgcn.estimators",
    "make_model": "sgcn.nn",
    "make_sampler": "sgcn.samplers",
    "suggest_large_batch": "sgcn.estimators.large_batch",
}
#: Packages that need no import statement of their own.
_ROOMS = ("analysis", "data", "estimators", "nn", "rows", "runs", "samplers", "training")


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that ``sgcn --help`` does not wait for numba."""
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"sgcn.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'sgcn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
