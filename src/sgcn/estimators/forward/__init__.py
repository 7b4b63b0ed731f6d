"""Forward rules by name. A new one is a file beside this one and a line in `FORWARD_RULES`."""

from __future__ import annotations

from sgcn.estimators.forward.anchored import Anchored
from sgcn.estimators.forward.base import ForwardRule
from sgcn.estimators.forward.plain import Plain
from sgcn.estimators.forward.recursive import Recursive
from sgcn.estimators.forward.vrgcn import Vrgcn

FORWARD_RULES: dict[str, type[ForwardRule]] = {
    "plain": Plain,
    "recursive": Recursive,
    "anchored": Anchored,
    "vrgcn": Vrgcn,
}

__all__ = ["FORWARD_RULES", "ForwardRule"]
