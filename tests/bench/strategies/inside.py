"""One rank of a comparison: adapter and plain script train by turns, in one group.

    python -m tests.bench.strategies.inside STRATEGY WORKLOAD BATCH FACTORS ROUNDS NUMBER

Rank 0 prints JSON. As in the comparison of frameworks (``tests/bench/pairs``) three steppers live
side by side, ours, plain, and plain once more (the A/A), and each round runs them forward and
backward. All ranks take the same number of steps and begin each turn together. With ROUNDS 0 the
exchanges of a step are counted instead, by the framework's word and by the kernel's. Python 3.7
grammar.
"""

import importlib
import json
import os
import re
import sys

from harness.worker import place
from harness.worker.facts import network_use
from tests.bench.pairs.inside import ORDERS, opened, timed

WARM_STEPS = 2
COUNTED_STEPS = 3
TURN_S = 0.5


def sent():
    """Give the bytes that this process has sent over TCP, as the kernel counted them."""
    return sum(one["sent"] for one in network_use.carried().values())


def counted(side, strategy, makers, agree, wait):
    """Say what a step of each exchanges: how often, how many bytes, and what went over TCP."""
    found, counts = {}, {}
    for kind in ("ours", "plain"):
        held = []

        def make(kind=kind, held=held):
            held.append(makers[kind]())
            return held[0]

        counts[kind] = seen = side.exchanges(strategy, make)
        step, made = held[0]
        finish = (lambda _, made=made: made.sync()) if kind == "ours" else wait
        finish(step())
        agree(0.0)
        before = sent()
        for _ in range(COUNTED_STEPS):
            finish(step())
        over_tcp = (sent() - before) / COUNTED_STEPS
        agree(0.0)  # a rank that has left has closed its connections
        size = sum(each * count for (_, each), count in seen.items())
        found[kind] = {"exchanges": sum(seen.values()), "bytes": size, "sent": over_tcp}
    return {
        **found,
        "only": [*only("ours", "plain", counts, side), *only("plain", "ours", counts, side)],
    }


def only(kind, other, counts, side):
    """List what only one of both exchanges, with the reason where it is known."""
    for (name, size), count in sorted((counts[kind] - counts[other]).items()):
        line = f"{kind} {name} {size}"
        whys = [why for pattern, why in side.EXPLAINED if re.match(pattern, line)]
        yield [kind, f"{name}, {size} B", count, whys[0] if whys else None]


def main(pair, name, batch, chosen, rounds, number):
    framework, _, strategy = pair.partition("-")
    basis = importlib.import_module("tests.bench.pairs.frameworks." + framework)
    side = importlib.import_module("tests.bench.strategies.frameworks." + framework)
    basis.begin()
    if not rounds:
        side.begin(strategy)
    adapter, make = opened(framework, name, batch, chosen, strategy, os.environ)
    script = importlib.import_module("tests.bench.reference." + pair.replace("-", "_") + "_train")

    def plain():
        step = script.prepare(name, batch, **side.joined(adapter))
        return step, step

    def ours():
        activity = make()
        return activity.step, activity

    makers = {"ours": ours, "plain": plain, "again": plain}
    if not rounds:
        return counted(side, strategy, makers, adapter._strategy.agree, basis.wait)
    order = ORDERS[number % len(ORDERS)].split()
    made = {kind: makers[kind]() for kind in order}
    activity = made["ours"][1]
    waits = dict.fromkeys(order, basis.wait)
    waits["ours"] = lambda _: activity.sync()
    last = 0.0
    for kind in order:
        for _ in range(WARM_STEPS):
            last = timed(made[kind][0], waits[kind], 1)[0]
    turn = max(1, round(TURN_S / activity.agree(last)))
    seconds = {kind: [] for kind in order}
    for _ in range(rounds):
        for kind in order + order[::-1]:
            activity.agree(0.0)
            seconds[kind].append(timed(made[kind][0], waits[kind], turn))
    return seconds


if __name__ == "__main__":
    name, batch, chosen = sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    answer = main(sys.argv[1], name, batch, chosen, *map(int, sys.argv[5:]))
    if place.find(os.environ).rank == 0:
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)  # whoever leaves a group waits for nobody here
