"""Read files with tf.data: parallel maps or interleaved shards, batches, prefetching.

Files of one sample each are read in the order asked for. Shards of records are interleaved, as
many at once as there are threads, and read whole: their order is tf.data's own. Records that we
made hold their own number; a user's are counted from the first of their file, and each has to be as
long as the one of that number was when the files were adopted.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence.audit import WrongDelivery
from harness.worker.input.files import Files
from harness.worker.input.loaders.loader import Batch

READER = "tf-data"
SIDE = 64
"""Where nothing is trained, pictures are resized to so many pixels in both directions (Chien et al.
2018)."""
AUTOTUNE = -1
"""``tf.data.AUTOTUNE``, by the one value that all versions give it."""

Prepare = Callable[[Any, Any], Any]
"""Makes a batch of stored samples, and their numbers, what is trained on; within the pipeline."""


class TfDataLoader:
    """One pipeline an epoch."""

    def __init__(
        self,
        dataset: Dataset,
        files: Files,
        batch_per_rank: int,
        *,
        autotune: bool,
        prepare: Optional[Prepare] = None,
        size: Sequence[int] = (SIDE, SIDE),
    ) -> None:
        if dataset.format not in ("raw", "tfrecord"):
            raise Unsupported("tf.data reads raw and tfrecord here, not {}".format(dataset.format))
        self.keeps_order = dataset.format == "raw"
        self._prepare = prepare
        self._size = tuple(size)
        self._lengths: Any = None
        self._paths_asked: List[str] = []
        self._dataset = dataset
        self._files = files
        self._batch_per_rank = batch_per_rank
        self._parallel = AUTOTUNE if autotune else files.threads
        self._prefetch = AUTOTUNE if autotune else files.prefetch
        self._epochs = 0
        self._pipeline: Any = None
        self._batches: Any = None

    def begin(self, order: Sequence[int]) -> None:
        """Build the epoch's pipeline; nothing is read yet."""
        self._epochs += 1
        # Autograph would write each function anew as a file, which a worker that is killed leaves;
        # what decides in them is known before they are traced.
        self._pipeline = tf.autograph.experimental.do_not_convert(self._built)(order)
        self._batches = None

    def _built(self, order: Sequence[int]) -> Any:
        read = self._raw(order) if self.keeps_order else self._records(order)
        prepare = self._prepare
        pipeline = read.batch(self._batch_per_rank, drop_remainder=prepare is not None)
        if prepare is not None:
            pipeline = pipeline.map(
                lambda samples, lengths, stored: (samples, lengths, prepare(samples, stored)),
                num_parallel_calls=self._parallel,
            )
        return pipeline.prefetch(self._prefetch) if self._prefetch else pipeline

    def _raw(self, order: Sequence[int]) -> Any:
        paths = tf.constant(self._dataset.paths)
        if self._files.decode:
            self._paths_asked = [self._dataset.paths[sample] for sample in order]

        def read(sample: Any) -> Any:
            return self._sample(sample, tf.io.read_file(tf.gather(paths, sample)))

        numbers = tf.data.Dataset.from_tensor_slices(tf.constant(list(order), tf.int64))
        return numbers.map(read, num_parallel_calls=self._parallel)

    def _records(self, order: Sequence[int]) -> Any:
        dataset, files = self._dataset, self._files
        if files.shuffle == "global" or (files.shuffle == "none" and files.size > 1):
            raise Unsupported("tf.data reads shards whole: shuffle = none or file, and one rank")
        shards = list(dict.fromkeys(dataset.place(sample)[0] for sample in order))
        read = self._own if dataset.is_own else self._made
        records = read(shards, min(len(shards), max(1, files.threads)))
        if sum(dataset.held[shard] for shard in shards) == len(order):
            return records
        asked = numpy.zeros(dataset.samples, bool)  # training leaves out what fills no batch
        asked[list(order)] = True
        return records.filter(lambda sample, *_: tf.gather(asked, sample))

    def _made(self, shards: Sequence[int], cycle: int) -> Any:
        """Read records that hold their number."""
        features = {
            "id": tf.io.FixedLenFeature((), tf.int64),
            "x": tf.io.FixedLenFeature((), tf.string),
        }

        def read(record: Any) -> Any:
            found = tf.io.parse_single_example(record, features)
            return self._sample(found["id"], found["x"])

        paths = tf.data.Dataset.from_tensor_slices([self._dataset.paths[shard] for shard in shards])
        records = self._interleaved(paths, tf.data.TFRecordDataset, cycle)
        return records.map(read, num_parallel_calls=self._parallel)

    def _own(self, shards: Sequence[int], cycle: int) -> Any:
        """Count the records of each file, whatever message they hold."""
        dataset = self._dataset
        if self._lengths is None:
            self._lengths = numpy.array(dataset.index()[2::3], numpy.int64)
        paths = [dataset.paths[shard] for shard in shards]
        firsts = numpy.array([dataset.first[shard] for shard in shards], numpy.int64)

        def counted(path: Any, first: Any) -> Any:
            return tf.data.TFRecordDataset(path).enumerate(first)

        files = tf.data.Dataset.from_tensor_slices((paths, firsts))
        records = self._interleaved(files, counted, cycle)
        return records.map(self._sample, num_parallel_calls=self._parallel)

    def _interleaved(self, files: Any, opened: Callable[..., Any], cycle: int) -> Any:
        records = files.interleave(
            opened,
            cycle_length=cycle,
            num_parallel_calls=AUTOTUNE if self._parallel == AUTOTUNE else cycle,
        )
        if self._files.shuffle == "file" and self._files.buffer_samples:
            seed = self._files.seed + self._epochs
            records = records.shuffle(self._files.buffer_samples, seed=seed)
        return records

    def _sample(self, sample: Any, stored: Any) -> Any:
        """Give a sample's number, how many bytes were stored of it, and what it is."""
        length = tf.strings.length(stored)
        if not self._files.decode:
            return sample, length, stored
        picture = tf.image.decode_jpeg(stored, channels=3)  # and PNG, which goes by no other name
        return sample, length, tf.image.resize(picture, self._size)

    def _decoded(self, path: str) -> None:
        """Refuse a picture by its name, which the error of a pipeline does not tell."""
        try:
            tf.image.decode_jpeg(tf.io.read_file(path), channels=3)
        except tf.errors.InvalidArgumentError as error:
            why = str(error.message).strip()
            raise WrongDelivery("{} cannot be decoded: {}".format(path, why)) from None

    def next(self) -> Batch:
        """Give the next batch; the first one starts the pipeline."""
        if self._batches is None:
            self._batches = iter(self._pipeline)
        try:
            told, lengths, data = next(self._batches)
        except tf.errors.InvalidArgumentError:
            for path in self._paths_asked:
                self._decoded(path)
            raise
        samples, stored = told.numpy(), lengths.numpy()
        if self._lengths is not None and (self._lengths[samples] != stored).any():
            raise WrongDelivery("a record is not as long as it was: the files have changed")
        return Batch(samples.tolist(), data, int(stored.sum()))

    def rest(self) -> None:
        """Let the pipeline of the last epoch go."""
        self._batches = None

    def pids(self) -> List[int]:
        """Read with threads only."""
        return []

    def close(self) -> None:
        """Let everything go."""
        self._batches = self._pipeline = None


def own(**how: Any) -> Callable[[Dataset, Files, int], Optional[TfDataLoader]]:
    """Give tf.data where it is asked for; ``how``: autotune, prepare, size."""

    def made(dataset: Dataset, files: Files, batch_per_rank: int) -> Optional[TfDataLoader]:
        if files.reader != READER:
            return None
        return TfDataLoader(dataset, files, batch_per_rank, **how)

    return made
