"""Open input with the standard library alone; frameworks bring loaders of their own."""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Optional, Union

from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.input.activity import ReadingActivity
from harness.worker.input.byte_ranges import Stretches
from harness.worker.input.compute import stand_in
from harness.worker.input.dataset import MANIFEST, Dataset
from harness.worker.input.direct import Direct
from harness.worker.input.epochs import Epochs
from harness.worker.input.files import Files
from harness.worker.input.loaders.asynchronous import AsyncLoader
from harness.worker.input.loaders.loader import Loader
from harness.worker.input.loaders.opening import OpeningLoader
from harness.worker.input.loaders.plain import PlainLoader
from harness.worker.network.workload import Opening, Reading

Own = Callable[[Dataset, Files, int], Optional[Loader]]
"""A framework's loaders: None for a reader that is not the framework's own."""


def reading(
    workload: Union[Opening, Reading], feed: Feed, own: Optional[Own] = None
) -> ReadingActivity:
    """Open what a read workload reads."""
    dataset, files = opened(feed)
    loader = loader_of(dataset, files, feed.batch_per_rank, own)
    epochs = Epochs(dataset, files, loader, feed.batch_per_rank, whole=True)
    return ReadingActivity(
        epochs, feed.batch_per_rank, workload.unit, stand_in(files.compute, files.compute_ms)
    )


def opened(feed: Feed) -> "tuple[Dataset, Files]":
    """Open the set of files that a feed names."""
    files = feed.files
    if files is None:
        raise Unsupported("this job names no data set to read")
    if not os.path.exists(os.path.join(files.folder, MANIFEST)):
        raise Unsupported("{} is no finished data set; `bakeoff data create`".format(files.folder))
    return Dataset(files.folder, None if feed.vocabulary is None else feed.input[0]), files


def loader_of(
    dataset: Dataset, files: Files, batch_per_rank: int, own: Optional[Own] = None
) -> Loader:
    """Choose the loader that a reader's name stands for."""
    loader = None if own is None else own(dataset, files, batch_per_rank)
    if loader is not None:
        return loader
    room = int(dataset.manifest["largest"])
    shape: Any = {
        "room": room,
        "batch_per_rank": batch_per_rank,
        "threads": files.threads,
        "prefetch": files.prefetch,
    }
    if files.reader in ("pread", "mmap"):
        stretches = Stretches(dataset)
        shape["room"] = stretches.room
        read = stretches.pread if files.reader == "pread" else stretches.mapped
        return PlainLoader(read, rest=stretches.rest, **shape)
    if files.reader == "open":
        return OpeningLoader(dataset, batch_per_rank=batch_per_rank, threads=files.threads)
    if files.reader == "direct":
        return PlainLoader(Direct(dataset).read, **shape)
    if files.reader == "threads":
        parsed = container(dataset)
        return PlainLoader(parsed.read, rest=getattr(parsed, "rest", _nothing), **shape)
    if files.reader in ("async-thread", "async-process"):
        return AsyncLoader(
            dataset,
            container,
            batch_per_rank=batch_per_rank,
            threads=files.threads,
            buffers=files.buffers,
            buffer_samples=files.buffer_samples,
            process=files.reader == "async-process",
        )
    raise Unsupported("there is no reader '{}' here".format(files.reader))


def _nothing() -> None:
    """Rest as what holds no pages does."""


def container(dataset: Dataset) -> Any:
    """Import the reader of a set's format and open the set with it."""
    module = importlib.import_module("harness.worker.readers.{}".format(dataset.format))
    return module.open(dataset)
