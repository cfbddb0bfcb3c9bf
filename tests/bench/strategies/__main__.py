"""Measure strategies of two devices against plain scripts with the same strategy.

    python -m tests.bench.strategies [torch-ddp jax-data-parallel …] [--workload resnet50]
        [--record FILE]

Of each it is demanded that a step of both exchanges the same messages, in number and bytes, but for
what is explained, that both send as much over TCP, and that the lower end of the one-sided 95 %
interval of the ratio, plain's time over ours, is 0.95 or more over eight groups of fresh processes;
the script against itself (A/A) stands beside it. Each rank has its share of the cores to itself. A
record keeps each group's times, and what it holds of this very code is not measured again
(``tests/bench/pairs``).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.study.framework import framework_info
from tests import needs
from tests.adapters.interpreter import ROOT
from tests.bench.pairs.ratios import compared
from tests.bench.pairs.record import Record, digest
from tests.bench.strategies import ranks

ENOUGH = 0.95
MB = 1e6
BESIDE = 0.01, 0.2 * MB
"""What the libraries may say beside: Horovod's ranks talk of what is ready all the time."""


@dataclass(frozen=True)
class Pair:
    """An environment, and how its strategy spreads over two devices."""

    environment: str
    ranks: int = 2
    factors: dict[str, Any] = field(default_factory=dict)


PAIRS = {
    "torch-ddp": Pair("torch"),
    "torch-horovod": Pair("torch@horovod"),
    "tensorflow-multiworker": Pair("tensorflow"),
    "tensorflow-horovod": Pair("tensorflow@horovod"),
    "tensorflow-mirrored": Pair("tensorflow", ranks=1, factors={"devices_per_rank": 2}),
    "jax-data-parallel": Pair("jax"),
}


def say(line: str) -> None:
    """Print one line of the answer."""
    print(line, flush=True)


def together(name: str, *given: object) -> Any:
    """Run all ranks; give what the first one says."""
    pair = PAIRS[name]
    inside = ["-m", "tests.bench.strategies.inside", name, *map(str, given)]
    framework, _, strategy = name.partition("-")
    words = framework_info(framework).rank_variables(strategy, {})
    said = ranks.run([str(needs.compiled(pair.environment)), *inside], pair.ranks, words)
    return json.loads(said[0].splitlines()[-1])


def code(name: str) -> str:
    """Name the code that is compared: adapter, scripts, and what compares them."""
    here, framework = Path(__file__).parent, name.partition("-")[0]
    scripts = here.parent.joinpath("reference").glob(f"{framework}_*.py")
    pairs = (here.parent / "pairs" / file for file in ("inside.py", f"frameworks/{framework}.py"))
    return digest([ROOT / "harness/worker/adapters" / framework, here, *scripts, *pairs])


def same(seen: Any) -> bool:
    """Say what both exchange, and whether it is the same but for what is explained."""
    ours, plain = seen["ours"], seen["plain"]
    for kind, one in (("ours", ours), ("plain", plain)):
        say(
            f"    {kind}: {one['exchanges']} exchanges a step, {one['bytes'] / MB:.3f} MB in all; "
            f"a rank sends {one['sent'] / MB:.3f} MB over TCP"
        )
    for kind, what, count, why in seen["only"]:
        say(f"    only {kind}: {count} x {what}: {why or 'UNEXPLAINED'}")
    share, rest = BESIDE
    is_close = abs(ours["sent"] - plain["sent"]) <= share * plain["sent"] + rest
    is_same = ours["exchanges"] > 0 and is_close and all(why for *_, why in seen["only"])
    say(f"    the same exchanges: {'holds' if is_same else 'DOES NOT HOLD'}")
    return is_same


def compare(name: str, options: argparse.Namespace) -> bool:
    """Compare one strategy; print what was found and say whether it is good enough."""
    pair = PAIRS[name]
    spread = "2 ranks" if pair.ranks > 1 else "2 devices of one rank"
    say(f"{name}, {options.workload}, {spread}, batch {options.batch} each")
    record = Record(options.record, code(name))

    def group(rounds: int, number: int) -> Any:
        about = [name, options.workload, options.batch, pair.factors, rounds, number]
        given = [options.workload, options.batch, json.dumps(pair.factors), rounds, number]
        return record.answer(about, lambda: together(name, *given))

    is_same = same(group(0, 0))
    if not options.processes:
        return is_same
    made = [group(options.rounds, number) for number in range(options.processes)]
    return compared(made, ENOUGH, say) and is_same


def main() -> int:
    """Compare each strategy asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="STRATEGY", default=list(PAIRS))
    parser.add_argument("--workload", default="alexnet")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--processes", type=int, default=8, help="0: compare exchanges only")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the ranks along
    good: dict[str, bool] = {}
    for name in options.pairs:
        try:
            needs.compiled(PAIRS[name].environment)
        except pytest.skip.Exception as why:
            say(f"{name} is left out: {why}")
            continue
        good[name] = compare(name, options)
    say(f"Both hold for {sum(good.values())} of {len(good)} strategies.")
    return 0 if good and all(good.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
