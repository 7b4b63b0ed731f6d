"""State that a run can be resumed from: safetensors and JSON, complete or not there.

Histories are in it only together with the weights they belong to (`sgcn.estimators.state`).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from sgcn.errors import SgcnError
from sgcn.files import write_bytes, write_text

_CURRENT = "current"


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """A safetensors file."""
    write_bytes(path, save({k: v.detach().contiguous() for k, v in tensors.items()}))


def save_state(folder: Path, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write one checkpoint beside the last, point to it, and remove the others."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"step-{step}"
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir()
    write_tensors(folder / name / "tensors.safetensors", tensors)
    write_text(folder / name / "facts.json", json.dumps(facts))
    write_text(folder / _CURRENT, name)
    for other in folder.glob("step-*"):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)


def load_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The last complete checkpoint, or None if there is none yet."""
    try:
        here = folder / (folder / _CURRENT).read_text()
        facts = json.loads((here / "facts.json").read_text())
        return load_file(here / "tensors.safetensors"), facts
    except FileNotFoundError:
        return None
    except Exception as error:
        raise SgcnError(
            f"{folder} cannot be read, expected the checkpoint of a run: start again ({error})"
        ) from None


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's state as flat tensors and JSON."""
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Any] = {}
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{key}"] = value
            else:
                facts[f"{index}.{key}"] = value
    return tensors, facts


def unpack_optimizer(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], facts: dict[str, Any]
) -> None:
    """Put back what `pack_optimizer` took; the hyper-parameters stay those of ``optimizer``."""
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = tensor
    for name, value in facts.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
