"""Say what the comparison of strategies needs to know of TensorFlow."""

from collections import Counter

from tests.bench.pairs.frameworks.tensorflow import needed

# Horovod's tape exchanges in a branch: if there is more than one rank.
CALLS = {"PartitionedCall": "f", "StatefulPartitionedCall": "f", "StatelessIf": "then_branch"}
EXCHANGES = ("Collective", "Horovod", "Nccl")
EXPLAINED = ()


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
    for one in within(needed(getattr(made, "traced", made))):
        if one.type.startswith(EXCHANGES):
            value = one.inputs[0]
            seen[one.type, value.shape.num_elements() * value.dtype.size] += 1
    return seen


def within(operations):
    """Give operations, and those of the functions that they call."""
    for one in operations:
        yield one
        if one.type in CALLS:
            name = one.get_attr(CALLS[one.type]).name
            yield from within(one.graph._get_function(name).graph.get_operations())
