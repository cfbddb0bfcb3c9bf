"""Read made files with tf.data, each epoch audited; it runs where TensorFlow is.

The environment ``READING_SETS`` names the folder of the sets, ``READING_OWN`` what was adopted.
"""

import os
import sys
from pathlib import Path

from harness.worker.adapters.tensorflow.loading import SIDE, own
from harness.worker.input.evidence.audit import WrongDelivery
from harness.worker.input.open import reading
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed

WORKLOAD = Reading("read-small", "Small pictures", "small-pictures", 24)


def read(name, autotune=False, **factors):
    form = "tfrecord" if "tfrecord" in name else "raw"
    asked = {"format": form, "reader": "tf-data", "batch": 5, "reader_threads": 2}
    asked.update({"prefetch": 1, "cache": "as-found"}, **factors)
    folder = str(Path(os.environ["READING_SETS"]) / name)
    feed = fed(WORKLOAD, asked, Place(0, 1, 0, 1, "here", "none"), folder)
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


def test_no_pipeline_is_written_anew_as_code_into_the_temporary_folder():
    read("small-pictures-raw-24", decode=True)
    read("small-pictures-tfrecord-24", shuffle="file", buffer_samples=8)
    read(os.environ["READING_OWN"], shuffle="none")
    assert [name for name in sys.modules if name.startswith("__autograph_generated")] == []


def test_shards_are_read_whole_each_record_once():
    _, told, _ = read("small-pictures-tfrecord-24", shuffle="file", buffer_samples=8)
    assert [one["samples"] for one in told] == [24, 24]
    assert told[0]["order"] != told[1]["order"]  # each epoch is shuffled anew


def test_records_of_ones_own_are_counted_file_by_file():
    for shuffle in ("none", "file"):
        _, told, batches = read(os.environ["READING_OWN"], shuffle=shuffle, buffer_samples=4)
        assert [one["samples"] for one in told] == [11, 11]
        for batch in batches:
            for place, sample in enumerate(batch.samples):
                assert batch.data[place].numpy() == bytes([sample]) * (100 + sample)


def test_records_that_changed_places_are_no_result():
    path = Path(os.environ["READING_OWN"]) / "dataset.json"
    (one,) = (one for one in Path(os.environ["READING_SETS"]).glob("mine/*0"))
    kept = one.read_bytes()
    first = 16 + 100  # a record's frame, and its data
    one.write_bytes(kept[first:] + kept[:first])
    try:
        read(str(path.parent), shuffle="none")
    except WrongDelivery as fault:
        why = str(fault)
    finally:
        one.write_bytes(kept)
    assert "not as long as it was" in why
