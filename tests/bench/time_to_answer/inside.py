"""One process of a calibration: steps with several amounts of added work take turns.

    python -m tests.bench.time_to_answer.inside FRAMEWORK ROUNDS PRODUCTS

PRODUCTS is JSON: how many products are added, one number for each side. Prints the CPU seconds of
a step of each side, round by round. Each round goes through all sides forward and backward. It has
one processor, as a cell of one thread has, so that CPU time is what a step takes left alone.
"""

import json
import os
import sys

from tests.bench.pairs.inside import opened, timed
from tests.bench.time_to_answer.planting.planted_adapters.planted import PRODUCTS, PlantedActivity

TURN_S = 0.05
WARM_STEPS = 5


def main(framework, rounds, products):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    _, make = opened(framework, "tinycnn", 16, {"threads": 1})
    activity = PlantedActivity(make(), PRODUCTS[framework](), max(products))
    steps = [timed(activity.step, lambda _: activity.sync(), 1)[1] for _ in range(WARM_STEPS)]
    turn = max(1, round(TURN_S / min(steps)))
    seconds = [[] for _ in products]
    for _ in range(rounds):
        sides = list(range(len(products)))
        here = [0.0 for _ in products]
        for side in sides + sides[::-1]:
            activity.products = products[side]
            here[side] += timed(activity.step, lambda _: activity.sync(), turn)[1] / 2
        for side in sides:
            seconds[side].append(here[side])
    return seconds


if __name__ == "__main__":
    answer = main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
