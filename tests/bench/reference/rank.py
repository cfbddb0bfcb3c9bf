"""Run a script of several ranks from a command line: every rank says its own rate."""

import argparse
import time


def main(prepare, wait=lambda loss: None):
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("alexnet", "resnet50"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch)
    for _ in range(3):
        wait(step())
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    wait(loss)
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s of this rank")
