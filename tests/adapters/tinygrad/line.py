"""This file is a small network over one dimension, for the gate and for Adam."""

from dataclasses import replace

from tests.adapters.tinygrad import every_layer

WORKLOAD = replace(every_layer.WORKLOAD, network=every_layer.LINE, loss="cross-entropy")
