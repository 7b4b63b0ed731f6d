"""Every sampler by name. A new one is a file beside this one and a line in `_KNOWN`."""

from __future__ import annotations

from typing import Any

from sgcn.options import build
from sgcn.samplers.base import NodeSet, Sampler
from sgcn.samplers.cluster import Cluster
from sgcn.samplers.exact import Exact
from sgcn.samplers.fastgcn import Fastgcn
from sgcn.samplers.labor import Labor
from sgcn.samplers.ladies import Ladies
from sgcn.samplers.neighbor import Neighbor
from sgcn.samplers.saint import Saint
from sgcn.samplers.vrgcn import Vrgcn

_KNOWN: tuple[type[Sampler], ...] = (
    Exact,
    Neighbor,
    Vrgcn,
    Fastgcn,
    Ladies,
    Saint,
    Labor,
    Cluster,
)

SAMPLERS: dict[str, type[Sampler]] = {kind.name: kind for kind in _KNOWN}


def make_sampler(name: str, **options: Any) -> Sampler:
    """The sampler called ``name`` with ``options``; `sgcn samplers` lists both."""
    sampler: Sampler = build("sampler", SAMPLERS, name, options)
    return sampler


__all__ = ["SAMPLERS", "NodeSet", "Sampler", "make_sampler"]
