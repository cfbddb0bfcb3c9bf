"""The verb `screen`: which nodes of a machine are slower than the others, or compute otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import Part, Table, emit, note
from harness.units import counted, listed

if TYPE_CHECKING:
    from harness.analysis.nodes.fleet import Fleet


@click.command("screen")
@click.option("--platform", default="local", show_default=True, shell_complete=completion.platforms)
@click.option("--nodes", type=click.IntRange(3), help="How many; without it, all at hand.")
@click.option("--framework", default="torch", show_default=True, help="What computes.")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), help="By default what there is.")
@click.option("--train", default="tinycnn", show_default=True, help="The network that is trained.")
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Only train, layer, compute, memory, disk, pairs or together; may be repeated.",
)
@click.option("--blocks", type=click.IntRange(1), default=6, show_default=True)
@click.option("--until", default="1 s", show_default=True, help="How long each trial measures.")
@click.option("--of", "run", metavar="RUN", help="Only judge a screen made before once more.")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(*, platform: str, run: str | None, as_json: bool, **how: Any) -> int:
    """Find the nodes that differ from the others: slower ones, and those that compute otherwise.

    Every node alone takes training steps, computes the network's heaviest layer, multiplies
    matrices, streams memory and writes to each storage tier, on all of its GPUs where it has any;
    then each sends to the next, and all add up a message. That is repeated in blocks of random
    order. The exit code is 1 if a node is named,
    and if nothing can be told.
    """
    if run is not None:
        _say_what_is_ignored()
    import_numpy()
    from harness.analysis.nodes.fleet import fleet
    from harness.analysis.nodes.losses import losses
    from harness.analysis.read import read_results, run_directory
    from harness.store.dataset import Dataset

    place = run_directory(run) if run is not None else _carry_out(platform, how)
    found = fleet(read_results([place]), losses(Dataset([place])))
    facts = {**vars(found), "sick": found.sick, "exclude": _exclude(found), "run": place}
    emit(facts, lambda: _in_words(found), as_json=as_json)
    note(f"The run: {place}; the same verdict again: bakeoff screen --of {place}")
    return 1 if found.sick or found.doubt else 0


def _say_what_is_ignored() -> None:
    """Name the options that say how a screen is made, where one is only judged once more."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in ("run", "as_json")
        and context.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
    ]
    if given:
        do = "does" if len(given) == 1 else "do"
        note(f"{listed(given)} {do} not apply with --of, which judges what was measured before.")


def _carry_out(platform: str, how: dict[str, Any]) -> Path:
    from harness.cli.built_studies import carry_out
    from harness.doctor import node_screen
    from harness.errors import RunError
    from harness.platform.platform import load_platform
    from harness.ranks.nodes import launcher

    there = load_platform(platform)
    root = Path("runs") / f"screen-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
    wanted = node_screen.Wanted(**how)
    if not list(carry_out([node_screen.session(wanted, there, launcher(there))], root)):
        raise RunError(f"No trial ended well; {root} says why.")
    return root / node_screen.NAME


def _exclude(found: Fleet) -> str:
    from harness.launch.host_lists import folded

    return folded(found.sick)


def _in_words(found: Fleet) -> Iterator[Part]:
    from harness.analysis.nodes.failures import in_words
    from harness.units import per_cent, scaled

    ratio = {(one.node, one.measure): one for one in found.rows}
    rows = []
    for node in found.nodes:
        some = [ratio.get((node, measure)) for measure in found.measures]
        rows.append((node, *("–" if one is None else _shown(one) for one in some)))
    yield Table(rows, head=("node", *found.measures), right=frozenset(range(1, len(rows[0]))))
    yield "Rates as parts of the median node's; * marks a node that is named."
    yield ""
    for one in sorted(found.rows, key=lambda one: one.ratio):
        if one.is_named:
            change = per_cent(one.ratio - 1, 1)
            ends = f"{per_cent(one.low - 1, 1)} … {per_cent(one.high - 1, 1)}"
            yield f"{one.node}: {one.measure} {change} ({ends}), p {one.p:.3g}"
            yield from (f"    {sensor}" for sensor in one.sensors)
    for wrong in found.mismatches:
        where = "" if wrong.rank is None else f", first that of rank {wrong.rank}"
        yield (
            f"{wrong.node}: its loss differs from step {wrong.step} on{where}, "
            f"in {wrong.trials} of {counted(wrong.of, 'trial')} ({wrong.value!r}, others "
            f"{wrong.expected!r}): silent corruption, or another processor. Do not use it."
        )
    yield from in_words(found.failures)
    yield found.fingerprint
    for all_of in found.together:
        low, high = scaled(all_of.low, all_of.unit), scaled(all_of.high, all_of.unit)
        yield (
            f"All {all_of.nodes} nodes together: {all_of.measure} "
            f"{scaled(all_of.rate, all_of.unit)} ({low} … {high})."
        )
    if found.doubt:
        yield found.doubt
    if found.sick:
        yield f"Exclude: --exclude={_exclude(found)}"
    if found.all_alike:
        yield found.all_alike


def _shown(one: Any) -> str:
    return f"{one.ratio:.3f}{'*' if one.is_named else ''}"
