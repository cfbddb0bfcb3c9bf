"""Describe the AlexNet of Chien et al. (PDSW-DISCS 2018), their TensorFlow mini-app.

TensorFlow's SAME on the first convolution pads 3 before and 4 after; the pools round down.
"""

from __future__ import annotations

from harness.worker.network.workload import Adam, DataSet, Training
from workloads.alexnet_caffe import reference_network

WORKLOAD = Training(
    name="alexnet-chien",
    title="AlexNet of Chien et al., 102 classes, 224 x 224",
    unit="images",
    network=reference_network(image=224, pad=(3, 4), groups=1, classes=102),
    loss="cross-entropy",
    optimiser=Adam(rate=1e-3),
    data=DataSet("Caltech-101", 9_144),
    parameters=58_699_238,
    macs=1_135_446_016,
    content="small-pictures",
)
