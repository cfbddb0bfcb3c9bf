"""The section of input and checkpoints: how fast the chain is rung by rung, and who waited."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.files import checkpoints
from harness.analysis.files.checkpoints import checkpoint_table
from harness.analysis.files.goodput import ALIKE
from harness.analysis.files.input import input_table
from harness.analysis.files.input_ladders import ladders
from harness.analysis.files.ladder import Ladder
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Brief, Chart, Gist, Group, Note, Rungs, Sheet
from harness.sections.contract.section import Section
from harness.units import counted, listed
from harness.verdicts.results import Interval

_COLUMNS = (
    Column("rung", "up to", "name"),
    Column("rate", "rate", "number"),
    Column("rate_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("trials", "n", "count"),
    Column("share", "of the rung above", "share"),
    Column("cpu_s_per_gb", "CPU-s per GB", "number"),
)
_RUNGS = (
    "Each rung does what the one above it does, and one thing more; the largest drop is where the "
    "time goes."
)
_READ = (
    "Caches are called what was proved: cold from 90 % of the bytes out of storage on, warm up to "
    "10 %. Accelerator utilisation is the time not spent waiting over all time, and rises when the "
    "CPU is overloaded; goodput is the time that computing takes undisturbed over the time that "
    "all of it took."
)
_SAVED = (
    "Each time counts from the moment a checkpoint begins: whole is complete and synced on the "
    "tier that takes it first, durable the same where it stays. Each trial restores its last "
    "checkpoint from there and compares every byte; one that differs fails."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    every = (*ladders(results), *checkpoints.ladders(results))
    told = [f"{one.title}: {one.bottleneck}" for one in every if one.bottleneck]
    if every:
        yield Gist(listed(told, between="; ") or counted(len(every), "ladder"))
    yield Group((Note(_RUNGS), *(ladder_chart(one, at) for at, one in enumerate(every, 1))))
    yield Group((Note(_READ), Sheet(input_table(results))))
    yield Group((Note(_SAVED), Sheet(checkpoint_table(results))))
    yield Brief("Checkpoints:", tuple(checkpoints.lines(results)))


def ladder_chart(ladder: Ladder, number: int) -> Chart:
    """Draw one ladder, with the share that each rung keeps of the one above."""
    name = f"ladder-{number}"
    title = f"{ladder.title}, {ladder.state}" if ladder.state else ladder.title
    rows: list[tuple[str, float, Interval | None, str, int, float | None, float | None]] = []
    above: float | None = None
    odd = []
    for rung in ladder.rungs:
        rate = rung.rate
        share = rate.value / above if above else None
        if share is not None and ALIKE * share > 1:
            share = None  # what it stands on was disturbed, or asked for less at a time
            odd.append(f"“{rung.name}” is faster than what it stands on: no share is given.")
        rows.append(
            (rung.name, rate.value, rate.interval, rate.unit, rate.n, share, rung.cpu_s_per_gb)
        )
        above = rate.value
    notes = [f"Bottleneck: {ladder.bottleneck}."] if ladder.bottleneck else []
    notes += odd
    notes += [ladder.source] if ladder.source else []
    return Chart(
        Rungs(ladder.rungs), Table(name, title, _COLUMNS, tuple(rows)), title, " ".join(notes)
    )


SECTION = Section(
    "Input and checkpoints, rung by rung", 900, _blocks, contents="Input and checkpoints"
)
