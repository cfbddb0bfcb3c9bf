"""Say what a network has to be handed of made files; it runs beside a framework.

The environment ``FED_SETS`` names the folder of the sets. Python 3.7 grammar.
"""

import os
from pathlib import Path

import numpy

from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset
from harness.worker.input.open import container
from harness.worker.place import find
from tests.scales import fed

BATCH = 4


def feed_of(workload, folder, **factors):
    """Describe a feed of one of the sets, whose name ends with its format."""
    asked = dict({"batch": BATCH, "reader_threads": 2, "prefetch": 1, "shuffle": "file"}, **factors)
    asked["format"] = folder.split("-")[-1]
    asked["buffer_samples"] = 8
    path = str(Path(os.environ["FED_SETS"]) / folder)
    return fed(workload, asked, find({}), path)


def stored(feed, samples):
    """Give samples as the files hold them, channels first and scaled, and their targets."""
    dataset = Dataset(feed.files.folder)
    parsed, kept = container(dataset), []
    for sample in samples:
        room = bytearray(dataset.manifest["largest"])
        length = parsed.read(sample, memoryview(room))
        numbers = numpy.frombuffer(room, dataset.manifest["dtype"], length // _size(dataset))
        kept.append(numbers.reshape(feed.input).astype(numpy.float32))
    targets = numpy.array(dataset.targets()).reshape(dataset.samples, -1)
    scale = numpy.float32(dataset.manifest["scale"])
    return numpy.stack(kept) / scale, targets[list(samples)]


def _size(dataset):
    return numpy.dtype(dataset.manifest["dtype"]).itemsize


def refusal(work, *given, **named):
    """Give why something is not supported."""
    try:
        work(*given, **named)
    except Unsupported as reason:
        return str(reason)
    raise AssertionError((given, named))
