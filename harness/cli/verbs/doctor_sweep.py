"""`bakeoff doctor --sweep`: try threads and affinities, and recommend with figures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness import units
from harness.cli.output import Part, Table, say

if TYPE_CHECKING:
    from harness.doctor.thread_sweep import Setting


def sweep(name: str, *, framework: str = "torch", trials: int = 2, until: str = "2 s") -> int:
    """Run each setting briefly, print what it reached, and say which to take."""
    from harness.cli.built_studies import carry_out
    from harness.doctor.thread_sweep import recommend, sessions, settings
    from harness.errors import RunError
    from harness.machine.sysfs_topology import read_topology
    from harness.platform.platform import load_platform

    platform = load_platform(name)
    topology = read_topology(os.sched_getaffinity(0))
    root = Path("runs") / f"sweep-{platform.name}-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
    planned = sessions(
        platform,
        cores=len(topology.cores),
        cpus=len(topology.cpus),
        framework=framework,
        trials=trials,
        until=until,
    )
    found = [
        setting for one, results in carry_out(planned, root) for setting in settings(results, one)
    ]
    if not found:
        raise RunError(f"No setting could be tried; {root} says why.")
    for part in _in_words(found, *recommend(found)):
        say(part)
    return 0


def _in_words(
    found: Sequence[Setting], chosen: Setting, equals: Sequence[Setting]
) -> Iterator[Part]:
    fastest = max(one.rate for one in found)
    rows = [
        (
            one.words,
            units.scaled(one.rate, "FLOP/s"),
            units.per_cent(one.rate / fastest),
            "(disturbed)" if one.disturbed else "",
        )
        for one in sorted(found, key=lambda one: -one.rate)
    ]
    yield Table(rows, right=frozenset({1, 2}))
    same = f"; no worse: {', '.join(one.words for one in equals)}" if equals else ""
    share = units.per_cent(chosen.rate / fastest)
    yield f"Recommended: {chosen.words} ({share} of the fastest{same})."
    yield (
        f"  in a study: threads = {chosen.threads}; in the platform: "
        f'[binding] threads = "{chosen.affinity}", memory = "{chosen.memory}"'
    )
    if all(one.disturbed for one in found):
        yield "Other processes ran all the while: sweep again on a quiet machine."
