"""Say what the comparison of strategies needs to know of JAX."""

import math
import re
from collections import Counter

from tests.bench.pairs import hlo
from tests.bench.pairs.frameworks import jax as basis

KINDS = {"all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"}
PART = re.compile(r"([a-z]+)(\d+)\[([\d,]*)\]")
EXPLAINED = ()


def begin(_strategy):
    basis.dump()


def joined(_adapter):
    """Share nothing: the script finds the group that this process is in."""
    return {}


def exchanges(_strategy, make):
    """Count the collectives of the step as XLA optimised it, by kind and bytes."""
    seen = Counter()
    for line, count in hlo.counted(basis.optimised(make), KINDS).items():
        kind, _, shapes = line.partition(" ")
        seen[kind, sum(map(size, PART.findall(shapes)))] += count
    return seen


def size(part):
    _, bits, shape = part
    return int(bits) // 8 * math.prod(int(one) for one in shape.split(",") if one)
