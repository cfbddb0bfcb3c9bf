"""Train AlexNet or ResNet-50 in plain JAX with the batch divided over processes.

    JAX_COORDINATOR_ADDRESS=… python jax_data_parallel_train.py {alexnet,resnet50} [--batch 16]

It shares nothing with the harness: JAX's strategy ``data-parallel`` is measured against it.
"""

import os

import jax
from jax.sharding import NamedSharding, PartitionSpec

from tests.bench.reference import jax_train
from tests.bench.reference.rank import main


def prepare(name, batch, precision="fp32"):
    """Make a training step of all processes; calling it returns the loss array."""
    if not jax.distributed.is_initialized():
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            num_processes=int(os.environ["WORLD_SIZE"]), process_id=int(os.environ["RANK"])
        )
    mesh = jax.make_mesh((jax.device_count(),), ("batch",))
    whole = NamedSharding(mesh, PartitionSpec())
    split = NamedSharding(mesh, PartitionSpec("batch"))
    return jax_train.prepare(name, batch * jax.process_count(), precision, whole, split)


if __name__ == "__main__":
    main(prepare, jax.block_until_ready)
