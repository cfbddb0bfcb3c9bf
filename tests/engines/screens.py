"""Screen three pretended hosts, one of them sick, over and over: how often is it named, and alone?

    python -m tests.engines.screens [--runs 20] [--fault NAME] [--more N]

Which host is sick, and how badly, is drawn anew for each screen. What was found is kept by the code
that it was found with, so that the same command goes on where it was; ``--more`` ends it after so
many further screens. The table is ``build/screens/table.md``; a screen that missed leaves its run
beside it. Exit code 1 says that a fault was missed, or a healthy host named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.time_to_answer.judging import share
from tests.engines.conftest import Site, mpi_variables
from tests.engines.hosts import Hosts, available
from tests.engines.planted_nodes import Planted, corrupt, narrow, throttled

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "screens"
_TESTED = ("harness/worker", "harness/analysis/nodes", "harness/stats", "harness/agent")
_TESTED += ("harness/doctor", "harness/run", "harness/ranks")
_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Fault:
    """A kind of fault, and how it is screened for."""

    draw: Callable[[Random], Planted]
    words: tuple[str, ...]
    """What stands behind `bakeoff screen --platform NAME`."""

    @property
    def launcher(self) -> str:
        """What starts the ranks: plain MPI is started by its own."""
        return "mpirun" if "mpi" in self.words else "ssh"


def nothing(draw: Random) -> Planted:
    """Plant nothing."""
    return Planted("", lambda *_: nullcontext())


_TRAINED = ("--measure", "train", "--until", "0.2 s")
_SENT = ("--framework", "mpi", "--measure", "pairs", "--until", "0.2 s")
FAULTS: Mapping[str, Fault] = {
    "held back by its control group": Fault(throttled, _TRAINED),
    "a narrow cable": Fault(narrow, _SENT),
    "a bit of a weight turned over": Fault(corrupt, _TRAINED),
    "none: training": Fault(nothing, _TRAINED),
    "none: sending": Fault(nothing, _SENT),
}
Found = dict[str, Any]


def main(words: Sequence[str]) -> int:
    """Screen until each fault was screened for often enough; write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.screens")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--more", type=int, default=sys.maxsize)
    asked = parser.parse_args(words)
    if why := available():
        print(f"Hosts cannot be pretended here: {why}.", file=sys.stderr)
        return 2
    OUT.mkdir(parents=True, exist_ok=True)
    kept = OUT / f"{tested_code()}.jsonl"
    known = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(one["fault"], one["number"]) for one in known}
    chosen = asked.fault or [name for name, fault in FAULTS.items() if fault.draw is not nothing]
    every = ((name, number) for number in range(1, asked.runs + 1) for name in chosen)
    left = [one for one in every if one not in done][: asked.more]
    if left:
        with TemporaryDirectory() as there, Hosts(Path(there), 3) as hosts:
            site = Site(hosts)
            for name, number in left:
                known.append(screened(site, name, number))
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[-1]) + "\n")
                print(in_words(known[-1]), flush=True)
    (OUT / "table.md").write_text(table(known), encoding="utf-8")
    print(table(known))
    return int(any(one["named"] != one["sick"] for one in known))


def screened(site: Site, name: str, number: int) -> Found:
    """Plant a fault on one host, and screen all."""
    draw = Random(f"{name}/{number}")
    fault, sick = FAULTS[name], draw.choice(site.hosts.nodes)
    planted = fault.draw(draw)
    is_sick = fault.draw is not nothing
    if fault.launcher == "ssh":
        site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    else:
        site.platform(
            "mpirun", environment=mpi_variables(site.hosts), hosts="h[1-3]", ssh=site.hosts.ssh
        )
    verb = (sys.executable, "-P", "-m", "harness.cli", "screen", "--platform", "there.toml")
    began, load = time.monotonic(), os.getloadavg()[0]
    with planted.plant(site.hosts, sick):
        told = site.hosts.run(
            "h0", *verb, *fault.words, "--json", check=False, timeout_s=_TIMEOUT_S
        )
    seconds = round(time.monotonic() - began, 1)
    answer = json.loads(told.stdout) if told.stdout else {"sick": [], "run": None}
    found = {
        "fault": name,
        "number": number,
        "drawn": planted.words,
        "sick": [sick] if is_sick else [],
        "named": answer["sick"],
        "seconds": seconds,
        "load": round(load, 1),
        "rows": [
            {key: one[key] for key in ("node", "measure", "ratio", "p", "is_named")}
            for one in answer.get("rows", ())
        ],
        "failures": answer.get("failures", []),
        "mismatches": answer.get("mismatches", []),
        "fingerprint": answer.get("fingerprint", told.stderr[-2000:]),
    }
    runs = site.folder / "runs"
    if found["named"] != found["sick"] and runs.exists():
        shutil.move(runs, OUT / f"missed-{tested_code()}-{name.replace(' ', '-')}-{number}")
    shutil.rmtree(runs, ignore_errors=True)
    return found


def in_words(one: Found) -> str:
    """Say how one screen ended."""
    where = f"on {one['sick'][0]} ({one['drawn']})" if one["sick"] else ""
    named = ", ".join(one["named"]) or "nobody"
    return f"{one['fault']} {where}: named {named}, {one['seconds']:.0f} s, load {one['load']}"


def table(found: Iterable[Found]) -> str:
    """Lay out a row for each kind of fault."""
    lines = [
        "| fault | `screen` | named | a healthy host named | s, median (most) | load |",
        "|---|---|---|---|---|---|",
    ]
    by_fault: dict[str, list[Found]] = {}
    for one in found:
        by_fault.setdefault(one["fault"], []).append(one)
    for name, some in by_fault.items():
        of = len(some)
        right = sum(set(one["sick"]) <= set(one["named"]) for one in some)
        wrong = sum(bool(set(one["named"]) - set(one["sick"])) for one in some)
        seconds = [one["seconds"] for one in some]
        loads = [one["load"] for one in some]
        lines.append(
            f"| {name} | `{' '.join(FAULTS[name].words)}` "
            f"| {share(right, of) if some[0]['sick'] else '–'} | {share(wrong, of)} "
            f"| {median(seconds):.0f} ({max(seconds):.0f}) | {min(loads)} to {max(loads)} |"
        )
    return "\n".join([*lines, ""])


def tested_code() -> str:
    """Give a digest of what is tested: what other code found is not counted together."""
    digest = hashlib.sha256()
    for folder in _TESTED:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
