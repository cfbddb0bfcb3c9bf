"""Train on batches from files: tf.data's own, or any loader's bytes made tensors.

Stored numbers become what the network takes within tf.data's pipeline, whole batches in parallel,
as TensorFlow's guide on its performance advises ("vectorise"). What another loader delivers goes
through the same function once it is there.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.activity import TrainingActivity, draw
from harness.worker.adapters.tensorflow.loading import TfDataLoader, own
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.input.dataset import Dataset
from harness.worker.input.epochs import Epochs
from harness.worker.input.open import loader_of, opened

COLOURS = 3
MIDDLE = 127.5
"""Decoded pictures, 0 to 255, are brought to -1 to 1."""


class Preparation:
    """Makes stored samples a batch: inputs in the network's layout and type, and their targets. Of
    texts both are their tokens, the targets one later.
    """

    def __init__(self, dataset: Dataset, feed: Feed, arrangement: Arrangement, dtype: Any) -> None:
        shape = tuple(feed.input)
        self.is_text = dataset.is_text
        self.is_decoded = feed.files is not None and feed.files.decode
        """Whether pictures come decoded, channels last, in the size that the network takes."""
        if dataset.shape != (None if self.is_decoded else shape):
            raise Unsupported(
                "the files hold samples of {}, and the network takes {}".format(
                    dataset.shape or "encoded pictures", shape
                )
            )
        self.stored = numpy.dtype(dataset.manifest["dtype"] or numpy.uint8)
        self.length = int(dataset.manifest["largest"]) // self.stored.itemsize
        """Numbers in a stored sample, where all have as many."""
        if self.is_text:
            return
        axes = len(shape)
        to_last, to_first = (0, *range(2, axes + 1), 1), (0, axes, *range(1, axes))
        self._turned: Optional[Tuple[int, ...]] = None
        if self.is_decoded:
            if axes != 3 or shape[0] != COLOURS:
                raise Unsupported(
                    "pictures have three channels; the network takes {}".format(shape)
                )
            self._shape = [-1, *shape[1:], COLOURS]
            self._turned = None if arrangement.channels_last else to_first
        else:
            self._shape = [-1, *shape]
            self._turned = to_last if arrangement.channels_last and axes > 1 else None
        self._sample = [-1, *arrangement.sample()]
        self._scale = float(dataset.manifest["scale"])
        self._dtype = dtype
        length = dataset.manifest["target_length"]
        targets = numpy.array(dataset.targets())
        self._targets = targets.reshape(-1, length) if length else targets.astype(numpy.int32)

    def __call__(self, samples: Any, stored: Any) -> Tuple[Any, Any]:
        """Prepare stored numbers, or the bytes they lie in; belongs inside a traced function."""
        if stored.dtype == tf.string:
            stored = tf.io.decode_raw(stored, tf.as_dtype(self.stored))
        if self.is_text:
            tokens = tf.cast(tf.reshape(stored, [-1, self.length]), tf.int32)
            return tokens[:, :-1], tokens[:, 1:]
        values = tf.reshape(stored, self._shape)
        if self._turned is not None:
            values = tf.transpose(values, self._turned)
        values = tf.cast(tf.reshape(values, self._sample), tf.float32)
        values = values / MIDDLE - 1.0 if self.is_decoded else values / self._scale
        return tf.cast(values, self._dtype), tf.gather(self._targets, samples)


class FedActivity(TrainingActivity):
    """Training on batches from files; until the first came, on a synthetic one."""

    def __init__(
        self,
        trainer: Any,
        batch: Tuple[Any, Any],
        units: Mapping[str, float],
        compiled: bool,
        source: Tuple[Epochs, Any],
    ) -> None:
        super().__init__(trainer, batch, units, compiled)
        self.epochs, self._prepared = source

    def _stepping(self, batch: Tuple[Any, Any]) -> Callable[..., Any]:
        """Give the step as a function of a batch: each comes from elsewhere."""
        trainer, strategy = self._trainer, self._trainer.strategy
        self.batch = batch

        def step(x: Any, target: Any) -> Any:
            parts = strategy.spread((x, target))
            return strategy.run(lambda: trainer.step(*parts, is_dropping=True))()

        return step

    def _taken(self) -> Tuple[Any, ...]:
        return self.batch

    def _take(self, batch: Tuple[Any, Any]) -> None:
        self.batch = batch

    def fetch(self) -> None:
        """Wait for the next batch."""
        read = self.epochs.next()
        self.batch = read.data if self._prepared is None else self._prepared(read)


def fed(
    trainer: Any, feed: Feed, unit: str, arrangement: Arrangement, dtype: Any, **how: bool
) -> FedActivity:
    """Open the files of a feed and what is trained on them; ``how``: compiled, autotune."""
    dataset, files = opened(feed)
    preparation = Preparation(dataset, feed, arrangement, dtype)
    loaders = own(autotune=how["autotune"], prepare=preparation, size=feed.input[1:])
    loader = loader_of(dataset, files, feed.batch_per_rank, loaders)
    prepared = None
    if not isinstance(loader, TfDataLoader):
        prepared = _converter(preparation, feed)
    epochs = Epochs(dataset, files, loader, feed.batch_per_rank, whole=False)
    batch = draw(feed, arrangement, dtype)
    units = {unit: feed.work_per_rank}
    return FedActivity(trainer, batch, units, how["compiled"], (epochs, prepared))


def _converter(preparation: Preparation, feed: Feed) -> Any:
    """Trace the preparation of batches that other loaders deliver as buffers."""
    kind = preparation.stored
    traced = tf.function(preparation.__call__, autograph=False).get_concrete_function(
        tf.TensorSpec([feed.batch_per_rank], tf.int64),
        tf.TensorSpec([feed.batch_per_rank, preparation.length], kind),
    )

    def convert(read: Any) -> Tuple[Any, Any]:
        stored = numpy.stack([numpy.frombuffer(one, kind) for one in read.data])
        made: Tuple[Any, Any] = traced(tf.constant(read.samples, tf.int64), tf.constant(stored))
        return made

    return convert
