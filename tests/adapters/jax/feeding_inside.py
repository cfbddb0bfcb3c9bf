"""Compare what JAX's network is handed with the files; it runs beside it."""

import numpy

from harness.worker.adapters.jax.feeding import Feeder
from harness.worker.adapters.jax.lowering.network import Lowered
from tests.adapters.handed import BATCH, feed_of, refusal, stored
from workloads import neuron_inverter, tinycnn


def handed(workload, folder, channels_last=True, **factors):
    feed = feed_of(workload, folder, **factors)
    feeder = Feeder(feed, Lowered(workload.network, channels_last, True))
    feeder.epochs.turn()
    batches = [feeder.next(), feeder.next()]
    for number, batch in enumerate(batches):  # the first is whole still, though its buffers are not
        samples = feeder.epochs._delivered[number * BATCH : (number + 1) * BATCH]
        inputs, targets = stored(feed, samples)
        expected = numpy.moveaxis(inputs, 1, -1) if channels_last else inputs
        assert numpy.allclose(batch.input, expected, rtol=2e-7, atol=0)
        assert numpy.array_equal(numpy.reshape(batch.target, targets.shape), targets)


def test_pictures_arrive_in_either_layout():
    for channels_last in (True, False):
        handed(tinycnn.WORKLOAD, "tiny-pictures-npy", channels_last, reader="threads")


def test_the_asynchronous_reader_serves_jax_too():
    handed(tinycnn.WORKLOAD, "tiny-pictures-npy", reader="async-thread", buffers=1)


def test_traces_arrive_with_their_vectors():
    handed(neuron_inverter.WORKLOAD, "traces-tfrecord", reader="threads")


def test_files_of_another_shape_are_refused():
    why = refusal(handed, neuron_inverter.WORKLOAD, "tiny-pictures-npy", reader="threads")
    assert "hold samples of (3, 32, 32)" in why
