"""This file reads files with tf.data: parallel maps or interleaved shards, batches, prefetching.

Files of one sample each are read in the order asked for. Shards of records are interleaved, as
many at once as there are threads, and read whole: their order is tf.data's own.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import tensorflow.compat.v2 as tf

from harness.node.contracts import Unsupported
from harness.node.input.dataset import Dataset
from harness.node.input.files import Files
from harness.node.input.loader import Batch

READER = "tf-data"
SIDE = 64
"""Pictures are resized to so many pixels in both directions (Chien et al. 2018)."""
AUTOTUNE = -1
"""``tf.data.AUTOTUNE``, by the one value that all versions give it."""


class TfDataLoader:
    """One pipeline an epoch."""

    def __init__(self, dataset: Dataset, files: Files, batch: int, *, autotune: bool) -> None:
        if dataset.format not in ("raw", "tfrecord"):
            raise Unsupported("tf.data reads raw and tfrecord here, not {}".format(dataset.format))
        self.keeps_order = dataset.format == "raw"
        self._dataset = dataset
        self._files = files
        self._batch = batch
        self._parallel = AUTOTUNE if autotune else files.threads
        self._prefetch = AUTOTUNE if autotune else files.prefetch
        self._pipeline: Any = None
        self._batches: Any = None

    def begin(self, order: Sequence[int]) -> None:
        """Build the epoch's pipeline; nothing is read yet."""
        read = self._raw(order) if self.keeps_order else self._records(order)
        pipeline = read.batch(self._batch)
        self._pipeline = pipeline.prefetch(self._prefetch) if self._prefetch else pipeline
        self._batches = None

    def _raw(self, order: Sequence[int]) -> Any:
        paths = tf.constant(self._dataset.paths)

        def read(sample: Any) -> Any:
            return self._sample(sample, tf.io.read_file(tf.gather(paths, sample)))

        numbers = tf.data.Dataset.from_tensor_slices(tf.constant(list(order), tf.int64))
        return numbers.map(read, num_parallel_calls=self._parallel)

    def _records(self, order: Sequence[int]) -> Any:
        dataset = self._dataset
        shards = list(dict.fromkeys(dataset.place(sample)[0] for sample in order))
        if sum(dataset.held[shard] for shard in shards) != len(order):
            raise Unsupported("tf.data reads shards whole: shuffle = none or file, and one rank")
        features = {
            "id": tf.io.FixedLenFeature((), tf.int64),
            "x": tf.io.FixedLenFeature((), tf.string),
        }

        def read(record: Any) -> Any:
            found = tf.io.parse_single_example(record, features)
            return self._sample(found["id"], found["x"])

        paths = tf.data.Dataset.from_tensor_slices([dataset.paths[shard] for shard in shards])
        cycle = min(len(shards), max(1, self._files.threads))
        records = paths.interleave(
            tf.data.TFRecordDataset,
            cycle_length=cycle,
            num_parallel_calls=AUTOTUNE if self._parallel == AUTOTUNE else cycle,
        )
        if self._files.buffer_samples:
            records = records.shuffle(self._files.buffer_samples, seed=self._files.seed)
        return records.map(read, num_parallel_calls=self._parallel)

    def _sample(self, sample: Any, stored: Any) -> Any:
        """Give a sample's number, how many bytes were stored of it, and what it is."""
        length = tf.strings.length(stored)
        if not self._files.decode:
            return sample, length, stored
        picture = tf.image.decode_jpeg(stored, channels=3)
        return sample, length, tf.image.resize(picture, (SIDE, SIDE))

    def next(self) -> Batch:
        """Give the next batch; the first one starts the pipeline."""
        if self._batches is None:
            self._batches = iter(self._pipeline)
        samples, lengths, data = next(self._batches)
        return Batch(samples.numpy().tolist(), data, int(lengths.numpy().sum()))

    def rest(self) -> None:
        """Let the pipeline of the last epoch go."""
        self._batches = None

    def pids(self) -> List[int]:
        """Read with threads only."""
        return []

    def close(self) -> None:
        """Let everything go."""
        self._batches = self._pipeline = None


def own(*, autotune: bool) -> Callable[[Dataset, Files, int], Optional[TfDataLoader]]:
    """Give tf.data where it is asked for."""

    def made(dataset: Dataset, files: Files, batch: int) -> Optional[TfDataLoader]:
        if files.reader != READER:
            return None
        return TfDataLoader(dataset, files, batch, autotune=autotune)

    return made
