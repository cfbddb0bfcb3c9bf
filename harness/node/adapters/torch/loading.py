"""This file reads files for torch: its own DataLoader, and batches of any loader made tensors."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch.utils import data as torch_data

from harness.node.adapters.torch.activity import MarkedActivity, TrainingActivity
from harness.node.adapters.torch.training import Trainer
from harness.node.contracts import Unsupported
from harness.node.feed import Feed
from harness.node.input.dataset import Dataset
from harness.node.input.epochs import Epochs
from harness.node.input.files import Files
from harness.node.input.loader import Batch
from harness.node.input.open import Own, container, loader_of, opened

_TYPES = {"|u1": torch.uint8, "<u2": torch.uint16, "<i2": torch.int16, "<f4": torch.float32}


class _Samples(torch_data.Dataset):
    """One sample at a time, as a DataLoader's worker asks for them; files open in each worker."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._container: Any = None

    def __len__(self) -> int:
        return self._dataset.samples

    def __getitem__(self, sample: int) -> Tuple[int, torch.Tensor]:
        if self._container is None:
            self._container = container(self._dataset)
        kept = bytearray(self._dataset.manifest["largest"])
        length = self._container.read(sample, memoryview(kept))
        return sample, torch.frombuffer(kept, dtype=torch.uint8, count=length)


class _Order(torch_data.Sampler):
    """The order of the epoch that is read."""

    def __init__(self) -> None:
        self.samples: Sequence[int] = ()

    def __iter__(self) -> Iterator[int]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


def _collated(read: List[Tuple[int, torch.Tensor]]) -> Tuple[List[int], Any]:
    samples = [sample for sample, _ in read]
    tensors = [tensor for _, tensor in read]
    if len({len(tensor) for tensor in tensors}) == 1:
        return samples, torch.stack(tensors)
    return samples, tensors


class TorchLoader:
    """torch's DataLoader: so many processes, each with batches of its own ahead."""

    keeps_order = True

    def __init__(self, dataset: Dataset, files: Files, batch: int, *, pinned: bool) -> None:
        if pinned and not torch.cuda.is_available():
            raise Unsupported("pinned memory is for copies to a GPU, and torch sees none")
        self._order = _Order()
        self._loader = torch_data.DataLoader(
            _Samples(dataset),
            batch_size=batch,
            sampler=self._order,
            num_workers=files.threads,
            prefetch_factor=max(1, files.prefetch),
            persistent_workers=True,
            pin_memory=pinned,
            collate_fn=_collated,
        )
        self._batches: Any = None

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch."""
        self._order.samples = order
        self._batches = None

    def next(self) -> Batch:
        """Give the next batch; the first one starts the workers, or wakes them."""
        if self._batches is None:
            self._batches = iter(self._loader)
        samples, tensors = next(self._batches)
        return Batch(samples, tensors, sum(one.nbytes for one in tensors))

    def rest(self) -> None:
        """Hold nothing of ours between epochs; the workers keep their files open."""

    def pids(self) -> List[int]:
        """Name the workers, once there are any."""
        running = getattr(self._loader, "_iterator", None)
        return [one.pid for one in getattr(running, "_workers", ())]

    def close(self) -> None:
        """End the workers."""
        self._batches = None
        self._loader = None


def own(options: Mapping[str, Any]) -> Own:
    """Give torch's own loader where it is asked for."""

    def made(dataset: Dataset, files: Files, batch: int) -> Optional[TorchLoader]:
        if files.reader != "dataloader":
            return None
        return TorchLoader(dataset, files, batch, pinned=bool(options.get("pin_memory")))

    return made


class _Fed:
    """What a training has beside its synthetic batch: the next one, from files."""

    def __init__(self, trainer: Trainer, feed: Feed, unit: str, loaders: Own) -> None:
        super().__init__(trainer, feed, unit)  # type: ignore[call-arg]
        dataset, files = opened(feed)
        if dataset.shape != tuple(feed.input):
            raise Unsupported(
                "the files hold samples of {}, and the network takes {}".format(
                    dataset.shape or "encoded pictures", tuple(feed.input)
                )
            )
        self.epochs = Epochs(
            dataset, files, loader_of(dataset, files, feed.batch, loaders), feed.batch, whole=False
        )
        self._trainer: Trainer = trainer
        self._dtype = _TYPES[dataset.manifest["dtype"]]
        self._scale = float(dataset.manifest["scale"])
        self._shape = tuple(feed.input)
        length = dataset.manifest["target_length"]
        targets = torch.tensor(dataset.targets())
        self._targets = targets.reshape(-1, length) if length else targets

    def fetch(self) -> None:
        """Wait for the next batch, and bring it to the device as the network takes it."""
        batch = self.epochs.next()
        stored = batch.data
        if not isinstance(stored, torch.Tensor):
            stored = torch.stack([torch.frombuffer(one, dtype=torch.uint8) for one in stored])
        values = stored.view(self._dtype).reshape(len(batch.samples), *self._shape)
        inputs = values.to(torch.float32).div_(self._scale)
        targets = self._targets[torch.tensor(batch.samples)]
        self.batch = self._trainer.place(inputs), targets.to(self._trainer.settings.device)


class FedActivity(_Fed, TrainingActivity):
    """Training on batches from files."""


class FedMarkedActivity(_Fed, MarkedActivity):
    """The same on a GPU."""
