"""Name what five papers claim; studies and their findings say which of it they measure.

The meaning is what the paper's abstract says was measured. A study of another paper names no claim.
"""

from __future__ import annotations

from collections.abc import Mapping

PAPERS: Mapping[str, tuple[str, str]] = {
    "bae2019": (
        "Bae et al., file input of Intel-Caffe on a Knights Landing supercomputer (HPCS 2019)",
        "10.1109/HPCS48598.2019.9188225",
    ),
    "chien2018": (
        "Chien et al., deep-learning input and output in TensorFlow (PDSW-DISCS 2018)",
        "10.1109/PDSW-DISCS.2018.00011",
    ),
    "lee2021": (
        "Lee et al., asynchronous input for large-scale deep learning (HiPC 2021)",
        "10.1109/HiPC53243.2021.00046",
    ),
    "shams2017": (
        "Shams et al., deep-learning frameworks over HPC architectures (ICDCS 2017)",
        "10.1109/ICDCS.2017.259",
    ),
    "wang2018": (
        "Wang et al., ResNet-50 in two distributed frameworks in a cloud (2018)",
        "10.5281/zenodo.3455641",
    ),
}
"""Title and doi of each."""

CLAIMS: Mapping[str, str] = {
    "bae2019/format": "raw pictures, LMDB and LevelDB",
    "bae2019/prefetch": "batches read ahead",
    "bae2019/shuffle": "shuffled against the order of the files",
    "bae2019/readers": "many readers of one set",
    "bae2019/tier": "parallel file system, burst buffer, memory",
    "bae2019/intel-caffe": "how fast Intel-Caffe trains",
    "bae2019/container-reading": "reading bare and in a container",
    "bae2019/container-training": "training bare and in a container",
    "bae2019/nodes": "many nodes",
    "lee2021/io-thread": "one thread of each process that only reads",
    "lee2021/many-samples": "many samples read at once",
    "lee2021/fewer-operations": "fewer operations shorten the time for input",
    "lee2021/double-buffering": "reading overlaps computing",
    "lee2021/neuron-inverter": "Neuron-Inverter",
    "lee2021/cosmoflow": "CosmoFlow",
    "lee2021/scaling": "scaling improves",
    "lee2021/regression": "regression is unaffected",
    "shams2017/caffe": "Caffe",
    "shams2017/tensorflow": "TensorFlow",
    "shams2017/singa": "Apache SINGA",
    "shams2017/scale-up": "more devices in a node",
    "shams2017/scale-out": "more nodes",
    "shams2017/cpu-gpu": "CPU against GPU",
    "shams2017/nvlink": "NVLink against PCIe",
    "shams2017/knl": "Knights Landing",
    "shams2017/training-time": "training time",
    "shams2017/utilisation": "how busy the hardware is",
    "shams2017/batch": "the batch's size",
    "chien2018/threads": "threads that read and decode",
    "chien2018/devices": "HDD, SSD, Optane, Lustre",
    "chien2018/prefetch": "a batch ahead hides input",
    "chien2018/io-cost": "the effective cost of input",
    "chien2018/checkpoint-devices": "checkpoints to each device",
    "chien2018/burst-buffer": "checkpoints through a burst buffer",
    "chien2018/disk-activity": "what the disks do meanwhile",
    "wang2018/two-frameworks": "ResNet-50 in two distributed frameworks",
    "wang2018/gpus-nodes": "several GPUs on several nodes",
    "wang2018/overheads": "input, copies to the device, exchange",
    "wang2018/container": "inside a container",
    "wang2018/network-baseline": "what the network does alone",
}
"""Every claim by its name, PAPER/WHAT."""
