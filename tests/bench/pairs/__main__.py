"""Measure adapters against plain scripts of the same framework.

    python -m tests.bench.pairs [torch keras …] [--workload resnet50] [--set compile=true]
        [--record FILE]

Of each pair it is demanded that both compute the same operations, but for what is explained, and
that the ratio's lower bound is 0.97 (``--enough``) or more; each pair's last lines say which of
both holds.

Both are given the same options (``--set``, as often as wanted). Compiled, what is compared is what
the compiler was given and what it made of it: Inductor's graphs, XLA's optimised instructions.

Fresh processes alternate both (``inside.py``); each gives one ratio, plain's time over ours, so
above 1 the adapter is faster. The verdict is the lower end of the one-sided 95 % interval over
processes. On a shared machine wall time is partly the neighbours'; CPU time stands beside it. A
record keeps each process's times, and what it holds of this very code is not measured again: a
quiet machine may be had in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.interpreter import ROOT, python
from tests.bench.pairs import inside as insides
from tests.bench.pairs.ratios import compared
from tests.bench.pairs.record import Record, digest

FRAMEWORKS = ("torch", "tensorflow", "tensorflow@1.15", "keras", "jax", "tinygrad")
WORKLOADS = {"tinygrad": ("tinycnn", "alexnet")}
LARGE = ("alexnet", "resnet50")
ALWAYS_COMPILED = {"jax"}
ENOUGH = 0.97


def say(line: str) -> None:
    """Print one line of the answer."""
    print(line, flush=True)


def inside(framework: str, *given: object) -> Any:
    """Run one process in the framework's interpreter."""
    made = subprocess.run(
        [python(framework), "-m", "tests.bench.pairs.inside", framework, *map(str, given)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise SystemExit(made.stderr)
    return json.loads(made.stdout.splitlines()[-1])


def reference(framework: str, workload: str) -> Path:
    """Name the file of the plain script, whether there is one or not."""
    return ROOT / "tests/bench/reference" / (insides.script(framework, workload) + ".py")


def code(framework: str, workload: str) -> str:
    """Name the code that is compared: the adapter, what it lowers, and the script."""
    plain = framework.partition("@")[0]
    adapters = {plain} | ({"tensorflow"} if plain == "keras" else set())
    compared_by = Path(insides.__file__), Path(__file__).with_name("frameworks")
    folders = (ROOT / "harness/worker/adapters" / name for name in adapters)
    return digest([*folders, reference(framework, workload), *compared_by])


def has_bf16() -> bool:
    """Tell whether this machine's processors multiply in bf16; without, they would only convert."""
    flags = Path("/proc/cpuinfo").read_text(encoding="ascii")
    return "avx512_bf16" in flags or "amx_bf16" in flags or " bf16" in flags


def explained(both: Any) -> bool:
    """Say what only one of both computes; false where a reason is missing."""
    say(f"    the same in both: {both['shared']} operations with their shapes")
    for kind, what, count, why in both["only"]:
        say(f"    only {kind}: {count} x {what[:80]}: {why or 'UNEXPLAINED'}")
    return all(why for *_, why in both["only"])


def compare(framework: str, workload: str, options: argparse.Namespace) -> bool:
    """Compare one workload; print what was found and say whether it is good enough."""
    factors = dict(options.set)
    if framework in ALWAYS_COMPILED:
        factors.pop("compile", None)
    chosen = ", ".join(f"{name} {value}" for name, value in factors.items()) or "fp32"
    say(f"{framework}, {workload}, batch {options.batch}, {chosen}")
    record = Record(options.record, code(framework, workload))

    def process(rounds: int, number: int) -> Any:
        about = [framework, workload, options.batch, factors, rounds, number]
        given = [framework, workload, options.batch, json.dumps(factors), rounds, number]
        return record.answer(about, lambda: inside(*given))

    is_same = explained(process(0, 0))
    say(f"    the same operations: {'holds' if is_same else 'DOES NOT HOLD'}")
    if not options.processes:
        return is_same
    made = [process(options.rounds, number) for number in range(options.processes)]
    return compared(made, options.enough, say) and is_same


def factor(text: str) -> tuple[str, Any]:
    """Read one of the options that a plain script can be given too."""
    name, _, value = text.partition("=")
    if name not in insides.GIVEN:
        raise argparse.ArgumentTypeError(f"no script knows '{name}'; {', '.join(insides.GIVEN)}")
    return name, int(value) if value.isdigit() else {"true": True, "false": False}.get(value, value)


def main() -> int:
    """Compare each framework and workload asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", default=FRAMEWORKS)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--set", action="append", type=factor, default=[], metavar="FACTOR=VALUE")
    parser.add_argument("--processes", type=int, default=8, help="0: compare the operations only")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--enough", type=float, default=ENOUGH, help="the least lower bound")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the process inside along
    if ("precision", "bf16") in options.set and not has_bf16():
        say("bf16 is left out: these processors have no instructions for it")
        return 0
    good: dict[str, bool] = {}
    for framework in options.frameworks:
        try:
            python(framework)
        except pytest.skip.Exception as why:
            say(f"{framework} is left out: {why}")
            continue
        for workload in options.workload or WORKLOADS.get(framework, LARGE):
            if not reference(framework, workload).exists():
                say(f"{framework}, {workload} is left out: no plain script trains it")
                continue
            good[f"{framework} {workload}"] = compare(framework, workload, options)
    say(f"Both hold for {sum(good.values())} of {len(good)} pairs.")
    return 0 if good and all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
