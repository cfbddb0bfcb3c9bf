"""The verb `layers`: time each layer of a network alone, and keep the least that each needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import Part, Table, emit, note

if TYPE_CHECKING:
    from harness.analysis.floors.layer_table import LayerRow, LayerSum


@click.command("layers")
@click.argument("network")
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    default=("torch",),
    show_default=True,
    help="What computes; as often as there are several.",
)
@click.option("--batch", type=click.IntRange(1), default=16, show_default=True)
@click.option("--precision", default="fp32", show_default=True)
@click.option("--device", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True)
@click.option(
    "--threads", type=click.IntRange(1), default=None, help="Of each cell; all CPUs by default."
)
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    default=("default",),
    show_default=True,
    help="Order of dimensions in memory; as often as there are several.",
)
@click.option("--heaviest", type=click.IntRange(1), default=20, show_default=True)
@click.option("--all", "is_all", is_flag=True, help="Time every layer, and the step beside them.")
@click.option("--trials", type=click.IntRange(1), default=3, show_default=True)
@click.option("--until", default="500 ms", show_default=True, help="How long each trial measures.")
@click.option("--platform", default="local", show_default=True, shell_complete=completion.platforms)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(
    *, network: str, platform: str, heaviest: int, is_all: bool, as_json: bool, **how: Any
) -> int:
    """Time the layers of a network alone: forward, and forward and backward.

    Layers of the same shape are timed once, by default the 20 heaviest shapes. The least that
    anything needed for a shape is kept for this machine; `bakeoff explain` and the page say then
    what share of that each layer of a step reaches.
    """
    import_numpy()
    from harness.analysis.floors import kept_floors, layer_table
    from harness.cli.built_studies import carry_out
    from harness.doctor.layer_study import Wanted, session, training_called
    from harness.errors import RunError
    from harness.machine import share
    from harness.platform.platform import load_platform

    training, there = training_called(network), load_platform(platform)
    wanted = Wanted(network=network, heaviest=None if is_all else heaviest, **how)
    root = Path("runs") / f"layers-{network}-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
    found = [results for _, results in carry_out([session(wanted, there)], root)]
    if not found:
        raise RunError(f"No layer was timed; {root} says why.")
    floors = kept_floors.keep(found[0])
    told = layer_table.rows(found[0], training, floors, share.cache_bytes())
    if not told:
        raise RunError(f"No layer was timed; {root} says why.")
    added = layer_table.sums(told, found[0], training)
    emit(
        {"layers": [_row_as_json(one) for one in told], "sums": [vars(one) for one in added]},
        lambda: _in_words(told, added),
        as_json=as_json,
    )
    note(f"Kept for this machine; the run: {root / 'layers'}")
    return 0


def _in_words(told: Sequence[LayerRow], added: Sequence[LayerSum]) -> Iterator[Part]:
    from harness.analysis import numbers
    from harness.units import per_cent

    names = list(dict.fromkeys(name for one in told for name in one.times))
    head = ("layer", "alike", "pass", *names, "least", "by", "memory's least")
    lines = []
    for one in told:
        cells = []
        for name in names:
            time, share = one.times.get(name), one.share(name)
            shown = "–" if time is None else numbers.seconds(time.seconds)
            cells.append(shown if share is None else f"{shown} ({per_cent(share)})")
        doubt = " (disturbed: at most)" if one.floor.disturbed else ""
        least = (numbers.seconds(one.floor.seconds), f"{one.floor.by}{doubt}")
        memory = "in cache" if one.memory_floor_s == 0 else numbers.seconds(one.memory_floor_s)
        lines.append((one.layer, str(one.alike), one.key.passes, *cells, *least, memory))
    yield Table(lines, head=head, right=frozenset({1, *range(3, 4 + len(names)), 5 + len(names)}))
    for total in added:
        yield _sum_words(total)
    for one in told:
        if one.is_below_memory:
            yield (
                f"{one.layer}, {one.key.passes}: quicker than memory allows; the memory's ceiling "
                "was measured too low."
            )


def _sum_words(of: LayerSum) -> str:
    from harness.analysis import numbers
    from harness.units import per_cent

    words = (
        f"{of.by}: {of.layers} of {of.of} layers, forward and backward, add up to "
        f"{numbers.seconds(of.seconds)}, {per_cent(of.share)} of which is the least that this "
        "machine needed."
    )
    if of.step_s is None:
        return words
    gap = numbers.seconds(abs(of.seconds - of.step_s))
    step = f" The step, with its loss and update, takes {numbers.seconds(of.step_s)}: {gap}"
    if of.step_s < of.seconds:
        return f"{words}{step} less, which fusion, overlap and working in place gain."
    return f"{words}{step} more, for the loss, the update and what goes on between layers."


def _row_as_json(one: LayerRow) -> dict[str, Any]:
    return {
        "layer": one.layer,
        "alike": one.alike,
        "pass": one.key.passes,
        "batch": one.key.batch,
        "precision": one.key.precision,
        "device": one.key.device,
        "macs": one.macs,
        "bytes": one.bytes,
        "least_s": one.floor.seconds,
        "least_by": one.floor.by,
        "memory_least_s": one.memory_floor_s,
        "measured": [
            {
                "by": name,
                "seconds": time.seconds,
                "quickest_s": time.low,
                "slowest_s": time.high,
                "trials": time.trials,
                "disturbed": time.disturbed,
                "share_of_least": one.share(name),
            }
            for name, time in one.times.items()
        ],
    }
