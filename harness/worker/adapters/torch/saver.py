"""Save what torch trains, with torch's own means.

save                torch.save: one file, pickled tensors in a zip archive; the first rank's
distributed         torch.distributed.checkpoint: every rank writes its part
distributed-async   the same behind the training, from a copy in memory
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch

from harness.worker.adapters.torch.strategies.hvd import Horovod
from harness.worker.adapters.torch.training import Trainer
from harness.worker.contracts import Unsupported

_FILE = "state.pt"


def saver(trainer: Trainer) -> TorchSaver:
    """Choose the saver that the job's option names."""
    known = {
        "save": TorchSaver,
        "distributed": DistributedSaver,
        "distributed-async": AsynchronousSaver,
    }
    return known[trainer.settings.saver](trainer)


class TorchSaver:
    """Network, optimiser and loss scale, as the usual script keeps them."""

    name = "torch.save"
    together = False

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    @property
    def bytes(self) -> int:
        """Add up the tensors."""
        state = [one for _, one in leaves(self._state()) if isinstance(one, torch.Tensor)]
        return sum(one.numel() * one.element_size() for one in state)

    def save(self, folder: str) -> Optional[Callable[[], None]]:
        """Write the state; training goes on when it is written."""
        torch.save(self._state(), os.path.join(folder, _FILE))
        return None

    def restore(self, folder: str) -> None:
        """Read the state back onto the device."""
        device = self._trainer.settings.device
        state = torch.load(os.path.join(folder, _FILE), map_location=device, weights_only=True)
        self._trainer.network.load_state_dict(state["network"])
        self._trainer.optimiser.load_state_dict(state["optimiser"])
        self._trainer.scaler.load_state_dict(state["scaler"])

    def digest(self) -> str:
        """Hash every tensor, and what is no tensor, by name."""
        return digest(self._state())

    def _state(self) -> Dict[str, Any]:
        return {
            "network": self._trainer.network.state_dict(),
            "optimiser": self._trainer.optimiser.state_dict(),
            "scaler": self._trainer.scaler.state_dict(),
        }


class DistributedSaver(TorchSaver):
    """Every rank writes its part of the state, and reads what it needs of it."""

    name = "torch.distributed.checkpoint"
    together = True

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        if trainer.scaler.is_enabled():
            raise Unsupported("torch.distributed.checkpoint is not used with fp16's loss scale")
        if isinstance(trainer.strategy, Horovod):
            raise Unsupported("torch.distributed.checkpoint needs torch's own ranks, not Horovod's")

    def save(self, folder: str) -> Optional[Callable[[], None]]:
        """Write this rank's part."""
        from torch.distributed import checkpoint

        self._share_statistics()
        checkpoint.save(self._parts(), checkpoint_id=folder)
        return None

    def restore(self, folder: str) -> None:
        """Read this rank's part into the tensors that are there."""
        from torch.distributed import checkpoint
        from torch.distributed.checkpoint.state_dict import set_state_dict

        parts = self._parts()
        checkpoint.load(parts, checkpoint_id=folder)
        set_state_dict(
            self._trainer.network,
            self._trainer.optimiser,
            model_state_dict=parts["network"],
            optim_state_dict=parts["optimiser"],
        )

    def _share_statistics(self) -> None:
        """Take over the first rank's running statistics, as the next forward pass would anyway.

        What every rank holds is written by any of them, as if it were the same.
        """
        from torch import distributed

        if distributed.is_initialized():
            for buffer in self._trainer.network.buffers():
                distributed.broadcast(buffer, 0)

    def _parts(self) -> Dict[str, Any]:
        from torch.distributed.checkpoint.state_dict import get_state_dict

        network, optimiser = get_state_dict(self._trainer.network, self._trainer.optimiser)
        return {"network": network, "optimiser": optimiser}


class AsynchronousSaver(DistributedSaver):
    """Copies the state in memory; a thread of torch's own writes the copy."""

    name = "torch.distributed.checkpoint, asynchronous"

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        from torch import distributed

        self._writing: Any = None
        # A group of its own: its exchanges must not come between those of training.
        self._group = (
            distributed.new_group(backend="gloo") if distributed.is_initialized() else None
        )

    def save(self, folder: str) -> Optional[Callable[[], None]]:
        """Copy the state, after the one before it is written; give what waits for this one."""
        from torch.distributed import checkpoint

        if self._writing is not None:
            self._writing.result()
        self._share_statistics()
        self._writing = writing = checkpoint.async_save(
            self._parts(), checkpoint_id=folder, process_group=self._group
        )
        return lambda: writing.result() and None


def leaves(state: Any, name: str = "") -> Iterator[Tuple[str, Any]]:
    """Walk through everything in a state, in an order that does not depend on how it was made."""
    if isinstance(state, dict):
        for key in sorted(state, key=str):
            yield from leaves(state[key], "{}/{}".format(name, key))
    elif isinstance(state, (list, tuple)):
        for number, one in enumerate(state):
            yield from leaves(one, "{}/{}".format(name, number))
    else:
        yield name, state


def digest(state: Any) -> str:
    """Hash a state: names, values, and the bytes of every tensor as it lies in rows."""
    whole = hashlib.sha256()
    for name, leaf in leaves(state):
        whole.update(name.encode())
        if isinstance(leaf, torch.Tensor):
            flat = leaf.detach().cpu().contiguous().reshape(-1)
            whole.update(memoryview(flat.view(torch.uint8).numpy()))
        else:
            whole.update(repr(leaf).encode())
    return whole.hexdigest()
