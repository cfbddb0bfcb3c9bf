"""Read files for torch: its own DataLoader, and batches of any loader made tensors."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch.utils import data as torch_data

from harness.worker.adapters.torch.activity import MarkedActivity, TrainingActivity
from harness.worker.adapters.torch.input.pictures import SIDE, Decoder, batch_of, fits
from harness.worker.adapters.torch.training import Trainer
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.input.dataset import Dataset
from harness.worker.input.epochs import Epochs
from harness.worker.input.evidence.audit import WrongDelivery
from harness.worker.input.files import Files
from harness.worker.input.loaders.loader import Batch
from harness.worker.input.open import Own, container, loader_of, opened

_BYTES = "|u1"
_TYPES = {_BYTES: torch.uint8, "<u2": torch.uint16, "<i2": torch.int16, "<f4": torch.float32}


class _Samples(torch_data.Dataset):
    """One sample at a time, as a DataLoader's worker asks for them; files open in each worker."""

    def __init__(self, dataset: Dataset, decoder: Optional[Decoder]) -> None:
        self._dataset = dataset
        self._decoder = decoder
        self._container: Any = None

    def __len__(self) -> int:
        return self._dataset.samples

    def __getitem__(self, sample: int) -> Tuple[int, int, Any]:
        """Give a sample's number, how many bytes were stored of it, and what it is."""
        if self._container is None:
            self._container = container(self._dataset)
        kept = bytearray(self._dataset.manifest["largest"])
        length = self._container.read(sample, memoryview(kept))
        if self._decoder is None:
            return sample, length, torch.frombuffer(kept, dtype=torch.uint8, count=length)
        try:
            return sample, length, self._decoder(memoryview(kept)[:length])
        except ValueError as problem:  # told by hand: raised, it would come with a worker's trace
            path = self._dataset.paths[self._dataset.place(sample)[0]]
            return sample, length, "{} cannot be decoded: {}".format(path, problem)


class _Order(torch_data.Sampler):
    """The order of the epoch that is read."""

    def __init__(self) -> None:
        self.samples: Sequence[int] = ()

    def __iter__(self) -> Iterator[int]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


def _collated(read: List[Tuple[int, int, Any]]) -> Tuple[List[int], int, Any]:
    samples = [sample for sample, _, _ in read]
    stored = sum(length for _, length, _ in read)
    tensors = [tensor for _, _, tensor in read]
    faults = [one for one in tensors if isinstance(one, str)]
    if faults:
        return samples, stored, faults[0]
    if len({tensor.shape for tensor in tensors}) == 1:
        return samples, stored, torch.stack(tensors)
    return samples, stored, tensors


class TorchLoader:
    """torch's DataLoader: so many processes, each with batches of its own ahead."""

    keeps_order = True

    def __init__(
        self,
        dataset: Dataset,
        files: Files,
        batch_per_rank: int,
        *,
        pinned: bool,
        size: Sequence[int],
    ) -> None:
        if pinned and not torch.cuda.is_available():
            raise Unsupported("pinned memory is for copies to a GPU, and torch sees none")
        self._order = _Order()
        self._loader = torch_data.DataLoader(
            _Samples(dataset, Decoder(size) if files.decode else None),
            batch_size=batch_per_rank,
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
        samples, stored, tensors = next(self._batches)
        if isinstance(tensors, str):
            raise WrongDelivery(tensors)
        return Batch(samples, tensors, stored)

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


def own(options: Mapping[str, Any], size: Sequence[int] = (SIDE, SIDE)) -> Own:
    """Give torch's own loader where it is asked for; pictures are decoded to a size."""

    def made(dataset: Dataset, files: Files, batch_per_rank: int) -> Optional[TorchLoader]:
        if files.reader != "dataloader":
            return None
        pinned = bool(options.get("pin_memory"))
        return TorchLoader(dataset, files, batch_per_rank, pinned=pinned, size=size)

    return made


class _Fed:
    """What a training has beside its synthetic batch: the next one, from files."""

    def __init__(self, trainer: Trainer, feed: Feed, unit: str, loaders: Own) -> None:
        super().__init__(trainer, feed, unit)  # type: ignore[call-arg]
        dataset, files = opened(feed)
        shape = tuple(feed.input)
        self._is_decoded = files.decode
        if files.decode and not fits(shape):
            raise Unsupported("pictures have three channels; the network takes {}".format(shape))
        if dataset.shape != (None if files.decode else shape):
            raise Unsupported(
                "the files hold samples of {}, and the network takes {}".format(
                    dataset.shape or "encoded pictures", shape
                )
            )
        self.epochs = Epochs(
            dataset,
            files,
            loader_of(dataset, files, feed.batch_per_rank, loaders),
            feed.batch_per_rank,
            whole=False,
        )
        self._trainer: Trainer = trainer
        self._dtype = _TYPES[dataset.manifest["dtype"] or _BYTES]
        self._scale = float(dataset.manifest["scale"])
        self._shape = shape
        self._targets: Optional[torch.Tensor] = None
        if not dataset.is_text:
            length = dataset.manifest["target_length"]
            targets = torch.tensor(dataset.targets())
            self._targets = targets.reshape(-1, length) if length else targets

    def fetch(self) -> None:
        """Wait for the next batch, and bring it to the device as the network takes it."""
        batch = self.epochs.next()
        stored = batch.data
        if not isinstance(stored, torch.Tensor):
            stored = torch.stack([torch.frombuffer(one, dtype=torch.uint8) for one in stored])
        if self._targets is None:
            inputs, targets = self._texts(stored)
        else:
            inputs = batch_of(stored) if self._is_decoded else self._read(stored)
            targets = self._targets[torch.tensor(batch.samples)]
        self.batch = self._trainer.place(inputs), targets.to(self._trainer.settings.device)

    def _texts(self, stored: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Make stored bytes tokens, and the token behind each."""
        tokens = stored.view(self._dtype).to(torch.int64)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def _read(self, stored: torch.Tensor) -> torch.Tensor:
        """Make stored bytes the numbers that they are."""
        values = stored.view(self._dtype).reshape(-1, *self._shape)
        return values.to(torch.float32).div_(self._scale)


class FedActivity(_Fed, TrainingActivity):
    """Training on batches from files."""


class FedMarkedActivity(_Fed, MarkedActivity):
    """The same on a GPU."""
