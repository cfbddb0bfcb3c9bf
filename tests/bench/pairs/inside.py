"""One process of a comparison: adapter and plain script alternate, and time is kept.

    python -m tests.bench.pairs.inside FRAMEWORK WORKLOAD BATCH FACTORS ROUNDS NUMBER

prints JSON; FACTORS is such, the options that both are given. Three steppers live side by side:
ours, plain, and plain once more (the A/A). Each round runs them forward and backward (A B C C B A);
a turn is as many steps as take a third of a second. NUMBER picks the order they are created and
started in, of all six: where each comes to lie in memory moved TensorFlow's AlexNet by 5 %. With
ROUNDS 0 what one step of ours and of plain computes is compared instead of timed. Python 3.7
grammar.
"""

import importlib
import json
import re
import sys
import tempfile
import time

from harness.worker import feed, place
from harness.worker.job import Job, Span
from harness.worker.network.asked_workload import asked_workload
from tests.scales import parted

WARM_STEPS = 2
TURN_S = 0.3
ORDERS = (
    "ours plain again",
    "again plain ours",
    "plain again ours",
    "ours again plain",
    "again ours plain",
    "plain ours again",
)
REFERENCES = {"tensorflow@1.15": "tensorflow1"}
SIDES = {"keras": "tensorflow"}
GIVEN = {"precision": "precision", "compile": "compiled", "sequence": "sequence"}
"""How a script calls what a factor says."""
ON_GPUS = {"torch": {"device": "cuda"}, "jax": {}}
"""What a script is told beside, where the factor `device` says gpu; JAX's finds one by itself."""
OF_TEXTS = {"tinygpt", "gpt2-124m"}
"""What a framework's second script trains."""


def script(framework, name):
    """Name the plain script of a framework that trains a network."""
    kind = "_gpt_train" if name in OF_TEXTS else "_train"
    return REFERENCES.get(framework, framework) + kind


def opened(framework, name, batch, chosen, strategy="none", environment=()):
    """Open the adapter, which joins other ranks; give it, and what makes our activity."""
    framework = framework.partition("@")[0]
    adapter = importlib.import_module("harness.worker.adapters." + framework + ".adapter")
    described = importlib.import_module("workloads." + name.replace("-", "_")).WORKLOAD
    workload = asked_workload(described, name, chosen)
    where = place.find(dict(environment))
    scale, factors = parted(
        {"precision": "fp32", "batch": batch, **chosen, "ranks_per_node": where.size}
    )
    names = ("trial", "", "", name, "", framework, "", framework, strategy)
    job = Job(*names, scale, factors, {}, Span(1), Span(1), 1, tempfile.gettempdir())
    made = adapter.open(job, where)
    fed = feed.describe(workload, scale, seed=1, place=where)
    return made, lambda: made.activity(workload, fed, {})


def ours(*given):
    _, make = opened(*given)
    activity = make()
    return activity.step, activity


def plain(framework, name, batch, chosen):
    given = {GIVEN[factor]: value for factor, value in chosen.items() if factor != "device"}
    if chosen.get("device") == "gpu":
        given.update(ON_GPUS[framework])
    module = importlib.import_module("tests.bench.reference." + script(framework, name))
    step = module.prepare(name, batch, **given)
    return step, step


def timed(step, wait, steps):
    """Give the seconds of one step, of the wall's and of the CPUs' clocks."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        result = step()
    wait(result)
    return (time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps


def compared(side, makers, name, chosen):
    """List what only one of both computes, with the reason where it is known."""
    explained = side.EXPLAINED + (side.EXPLAINED_OF_TEXTS if name in OF_TEXTS else ())
    seen = {kind: side.operations(makers[kind], chosen) for kind in ("ours", "plain")}
    found = []
    for kind, other in (("ours", "plain"), ("plain", "ours")):
        for what, count in sorted((seen[kind] - seen[other]).items()):
            line = kind + " " + what
            whys = [why for pattern, why in explained if re.match(pattern, line)]
            found.append([kind, what, count, whys[0] if whys else None])
    return {"only": found, "shared": sum((seen["ours"] & seen["plain"]).values())}


def main(framework, name, batch, chosen, rounds, number):
    side = importlib.import_module(
        "tests.bench.pairs.frameworks." + SIDES.get(framework, framework).partition("@")[0]
    )
    side.begin()
    given = (framework, name, batch, chosen)
    makers = {"ours": lambda: ours(*given), "plain": lambda: plain(*given)}
    if not rounds:
        return compared(side, makers, name, chosen)
    makers["again"] = makers["plain"]
    order = ORDERS[number % len(ORDERS)].split()
    made = {kind: makers[kind]() for kind in order}
    steps = {kind: step for kind, (step, _) in made.items()}
    # Ours waits as the timed loop does, the others for the loss that they gave.
    waits = dict.fromkeys(order, side.wait)
    waits["ours"] = lambda _: made["ours"][1].sync()
    for kind in order:
        last = [timed(steps[kind], waits[kind], 1)[0] for _ in range(WARM_STEPS)][-1]
    turn = max(1, round(TURN_S / last))
    seconds = {kind: [] for kind in makers}
    for _ in range(rounds):
        for kind in order + order[::-1]:
            seconds[kind].append(timed(steps[kind], waits[kind], turn))
    return seconds


if __name__ == "__main__":
    name, batch, chosen = sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    answer = main(sys.argv[1], name, batch, chosen, *map(int, sys.argv[5:]))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
