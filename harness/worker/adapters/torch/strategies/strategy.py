"""What a strategy does in torch, and how a lone rank does it: not at all.

A strategy is a module beside this one with ``join(job, place, settings) -> Strategy``. Batch norm
normalises each rank's own batch in every strategy here (torch has synchronised batch norm on GPUs
only, and the papers did not use it).
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, ContextManager, Mapping

import torch

from harness.worker.adapters.torch.settings import Settings
from harness.worker.contracts import Unsupported
from harness.worker.job import Job
from harness.worker.place import Place

MODULES = {"ddp": "ddp", "horovod": "hvd"}


class Strategy:
    """A rank that trains alone; the others say what they do otherwise."""

    def wrap(self, forward: Any) -> Any:
        """Give what a step calls in place of network and loss."""
        return forward

    def wrap_optimiser(self, optimiser: Any, network: Any) -> Any:
        """Give what updates the weights."""
        return optimiser

    def exchanging(self, model: Any, *, is_last: bool) -> ContextManager[Any]:
        """Give what a micro-batch runs in; gradients are exchanged with the last of a step.

        The wrapped model is given, not kept: torch's gloo may wait for ever for its own threads if
        the group ends with the last of what it served (they need the interpreter's lock).
        """
        del model, is_last  # nobody exchanges
        return contextlib.nullcontext()

    def require_gradients_before_update(self) -> None:
        """Refuse to clip gradients that are exchanged only within the update."""

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return value

    def exchange(self, operation: str, message: int) -> Any:
        """Give an exchange of so many bytes, as ``harness/worker/collective.py`` steps it."""
        raise Unsupported("one rank has nobody to exchange messages with")

    def facts(self) -> Mapping[str, Any]:
        """Say what carried the gradients."""
        return {}

    def close(self) -> None:
        """Leave the other ranks."""


def join(job: Job, place: Place, settings: Settings) -> Strategy:
    """Meet the other ranks; each rank's dropouts draw their own numbers."""
    torch.manual_seed(job.seed + place.rank)
    if job.strategy == "none":
        return Strategy()
    if job.strategy not in MODULES:
        raise Unsupported("torch adapter: no strategy '{}'".format(job.strategy))
    name = "harness.worker.adapters.torch.strategies.{}".format(MODULES[job.strategy])
    strategy: Strategy = importlib.import_module(name).join(job, place, settings)
    return strategy
