"""This file reads made files with tf.data, each epoch audited; it runs where TensorFlow is.

The environment ``READING_SETS`` names the folder of the sets.
"""

import os
from pathlib import Path

from harness.node.adapters.tensorflow.loading import SIDE, own
from harness.node.feed import describe
from harness.node.input.open import reading
from harness.node.place import Place
from harness.node.workload import Reading

WORKLOAD = Reading("read-small", "Small pictures", "small-pictures", 24)


def read(name, autotune=False, **factors):
    asked = {"format": name.split("-")[2], "reader": "tf-data", "batch": 5, "reader_threads": 2}
    asked.update({"prefetch": 1, "cache": "as-found"}, **factors)
    folder = str(Path(os.environ["READING_SETS"]) / name)
    feed = describe(WORKLOAD, asked, 1, Place(0, 1, 0, 1, "here", "none"), {"data": folder})
    work = reading(WORKLOAD, feed, own(autotune=autotune))
    work.epochs.turn()
    told, batches = [], []
    for _ in range(2):
        while work.epochs.left():
            batches.append(work.epochs.next())
        told.append(work.epochs.turn())
    work.epochs._loader.close()
    return work, told, batches


def test_files_come_in_the_order_asked_for_and_whole():
    for autotune in (False, True):
        work, told, batches = read("small-pictures-raw-24", autotune, shuffle="global")
        whole = work.epochs._dataset.bytes
        assert [one["samples"] for one in told] == [24, 24]
        assert [one["bytes"] for one in told] == [whole, whole]
        first = batches[0]
        path = work.epochs._dataset.paths[first.samples[0]]
        assert first.data[0].numpy() == Path(path).read_bytes()


def test_pictures_are_decoded_and_resized():
    _, _, batches = read("small-pictures-raw-24", decode=True)
    assert tuple(batches[0].data.shape) == (5, SIDE, SIDE, 3)
    assert float(batches[0].data.numpy().max()) > 1.0


def test_shards_are_read_whole_each_record_once():
    _, told, _ = read("small-pictures-tfrecord-24", shuffle="none", buffer_samples=8)
    assert [one["samples"] for one in told] == [24, 24]
