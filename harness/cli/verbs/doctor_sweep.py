"""`bakeoff doctor --sweep`: try threads and affinities, and recommend with figures."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click


def carry_out(name: str, *, framework: str = "torch", trials: int = 2, until: str = "2 s") -> int:
    """Run each setting briefly, print what it reached, and say which to take."""
    from harness import units
    from harness.cli.session_progress import watching
    from harness.doctor.thread_sweep import Setting, recommend, sessions, settings
    from harness.errors import RunError
    from harness.machine.sysfs_topology import read_topology
    from harness.plan.plan import make_plan
    from harness.platform.platform import load_platform
    from harness.run import session
    from harness.sections.read import read_results
    from harness.study.study import load_study

    platform = load_platform(name)
    topology = read_topology(os.sched_getaffinity(0))
    root = Path("runs") / f"sweep-{platform.name}-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
    found: list[Setting] = []
    planned = sessions(
        platform,
        cores=len(topology.cores),
        cpus=len(topology.cpus),
        framework=framework,
        trials=trials,
        until=until,
    )
    for one, affinity, memory in planned:
        root.mkdir(parents=True, exist_ok=True)
        study = root / f"{one.name}.toml"
        study.write_text(one.study, encoding="utf-8")
        plan = make_plan(load_study(study), one.platform)
        with watching() as observer:
            result = session.start(
                plan, root=root / one.name, study_text=one.study, observer=observer
            )
        if result.interrupted:
            return result.interrupted
        if result.ok:
            found += settings(read_results([result.run]), affinity, memory)
    if not found:
        raise RunError(f"No setting could be tried; {root} says why.")
    chosen, equals = recommend(found)
    fastest = max(one.rate for one in found)
    width = max(len(one.words) for one in found)
    for setting in sorted(found, key=lambda one: -one.rate):
        note = "  (disturbed)" if setting.disturbed else ""
        rate = units.scaled(setting.rate, "FLOP/s")
        share = units.per_cent(setting.rate / fastest)
        click.echo(f"{setting.words:<{width}}  {rate:>14}  {share:>5}{note}")
    same = f"; no worse: {', '.join(one.words for one in equals)}" if equals else ""
    share = units.per_cent(chosen.rate / fastest)
    click.echo(f"Recommended: {chosen.words} ({share} of the fastest{same}).")
    click.echo(
        f"  in a study: threads = {chosen.threads}; in the platform: "
        f'[binding] threads = "{chosen.affinity}", memory = "{chosen.memory}"'
    )
    if all(one.disturbed for one in found):
        click.echo("Other processes ran all the while: sweep again on a quiet machine.")
    return 0
