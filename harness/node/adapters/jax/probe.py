"""This file asks XLA's compiled step what it holds: heavy operations by type, and memory."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict

import jax

from harness.node.adapters.jax import training
from harness.node.adapters.jax.lowering import Lowered
from harness.node.adapters.jax.settings import Settings
from harness.node.feed import Feed
from harness.node.network import Dropout
from harness.node.workload import Training

# `%name = bf16[16,27,27,192]{…} convolution(` and the library calls that stand for one
HEAVY = re.compile(r"= \(?(\w+)\[[^=]*? (convolution|dot|custom-call)\(.*", re.MULTILINE)
TARGET = re.compile(r'custom_call_target="([^"]+)"')


def compiled_facts(workload: Training, feed: Feed, settings: Settings) -> Dict[str, Any]:
    """Compile the step as it is timed, without running it."""
    net = Lowered(workload.network, settings.channels_last, not settings.is_gpu)
    has_dropout = any(isinstance(site.layer, Dropout) for site in net.sites.values())
    step = training.make_step(net, workload, settings.precision, feed.global_batch, has_dropout)
    state = jax.eval_shape(lambda: training.initial(net, workload, 0, settings.precision))
    given = jax.eval_shape(
        lambda: training.draw_batch(
            net, (feed.batch, *feed.input), feed.targets, jax.random.key(0), jax.numpy.float32
        )
    )
    compiled = jax.jit(step, donate_argnums=0).lower(state, given).compile()
    heavy: Counter[str] = Counter()
    for match in HEAVY.finditer(compiled.as_text()):
        target = TARGET.search(match[0])
        heavy["{} {}".format(target[1] if target else match[2], match[1])] += 1
    memory = compiled.memory_analysis()
    return {
        "heavy_operations": dict(heavy),
        "temporary_bytes": int(memory.temp_size_in_bytes) if memory else None,
    }
