"""This file says what the comparison of strategies needs to know of TensorFlow."""

from collections import Counter

from tests.bench.pairs.frameworks.tensorflow import needed

EXCHANGES = ("Collective", "Horovod", "Nccl")


def begin(_strategy):
    """Nothing is to be set before TensorFlow is asked."""


def joined(adapter):
    """Give the script the cluster: a process joins one but once."""
    strategy = getattr(adapter._strategy, "_strategy", None)
    return {} if strategy is None else {"joined": strategy}


def exchanges(_strategy, make):
    """Count the operations of a traced step that exchange, by kind and bytes."""
    _, made = make()
    seen = Counter()
    for one in needed(getattr(made, "traced", made)):
        if one.type.startswith(EXCHANGES):
            value = one.inputs[0]
            seen[one.type, value.shape.num_elements() * value.dtype.size] += 1
    return seen
