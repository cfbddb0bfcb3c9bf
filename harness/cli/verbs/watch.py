"""The verb `watch`: what a running trial does to the machine, live.

It only reads files, so it works from any machine that shares the file system.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import emit_json, near, visible
from harness.errors import RunError
from harness.store.events.running_trial import TrialProgress
from harness.units import per_cent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.store.layout import RunPaths, TrialPaths
    from harness.store.samples.follow_samples import CurrentReading, Follower

_EVERY_S = 0.5
_WIDTH = 24
_MOST_BARS = 32
_GIB, _MB = 2.0**30, 1e6
_MOVING = (
    ("disk.read", "disk read"),
    ("disk.written", "disk written"),
    ("net.received", "received"),
    ("net.sent", "sent"),
    ("gpu.nvlink.sent", "NVLink sent"),
    ("gpu.pcie.sent", "PCIe sent"),
)

Readings = dict[tuple[str, str], "CurrentReading"]


@click.command("watch")
@click.argument("run", metavar="RUN")
@click.option("--once", is_flag=True, help="Print one look and end.")
@click.option("--json", "as_json", is_flag=True, help="Print one look as JSON.")
def command(run: str, *, once: bool, as_json: bool) -> int:
    """Show live what a running trial does to the machine.

    RUN is a run directory, or a name under runs/, here or on a shared file system. Ctrl-C ends the
    watching, not the run.
    """
    from harness.analysis.read import run_directory
    from harness.store.layout import RunPaths

    try:
        directory = run_directory(run)
    except RunError as error:
        begins = "One that was just started is there once its cells have been examined."
        raise RunError(f"{error}\n    {begins}") from None
    watcher = Watcher(RunPaths(directory.resolve()))
    if as_json:
        emit_json(watcher.once())
        return 0
    from rich.console import Console

    console = Console()
    if once or not sys.stdout.isatty():
        console.print(watcher.drawn())
        return 0
    from rich.live import Live

    with Live(watcher.drawn(), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_EVERY_S)
            live.update(watcher.drawn(), refresh=True)


@dataclass(frozen=True)
class WatchedTrial(TrialProgress):
    """What a running trial does, which it is, and how many trials of its run are done."""

    label: str
    trial: str
    done: int
    total: int


@dataclass(frozen=True)
class Channel:
    """What one channel of a node's hardware says now."""

    scope: str
    channel: str
    unit: str
    value: float


@dataclass(frozen=True)
class WatchFrame:
    """What `bakeoff watch --json` prints."""

    trial: WatchedTrial | None
    """None: no trial has begun."""
    nodes: Mapping[str, tuple[Channel, ...]]


class Watcher:
    """Follows whichever trial of a run is at work."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._trial: TrialPaths | None = None
        self._followers: dict[str, Follower] = {}
        self._log_bytes = -1
        self._standing = 0, 0

    def look(self) -> tuple[WatchedTrial | None, dict[str, Readings]]:
        """Read what is new: what the trial says, and each node's channels."""
        from harness.store.events.running_trial import label, latest_trial, read_trial_progress
        from harness.store.samples.follow_samples import Follower

        trial = latest_trial(self._paths)
        if trial is None:
            return None, {}
        if self._trial is None or trial.root != self._trial.root:
            self._trial = trial
            self._followers = {}
        for path in trial.all_samples():
            self._followers.setdefault(_node(path), Follower(path, trial.files))
        readings = {node: one.look() for node, one in sorted(self._followers.items())}
        done, total = self._counted()
        watched = WatchedTrial(
            **vars(read_trial_progress(trial)),
            label=label(self._paths, trial),
            trial=trial.root.name,
            done=done,
            total=total,
        )
        return watched, readings

    def _counted(self) -> tuple[int, int]:
        """Count the trials that are done, and all, as the session does.

        They are read anew only when it has noted something.
        """
        from harness.store.run_directory.due import read_due

        log_bytes = self._paths.files.size(self._paths.log)
        if log_bytes != self._log_bytes:
            count = read_due(self._paths).count()
            self._log_bytes = log_bytes
            self._standing = count.total - count.left, count.total
        return self._standing

    def once(self) -> WatchFrame:
        """Give one look as values."""
        trial, nodes = self.look()
        return WatchFrame(
            trial,
            {
                node: tuple(
                    Channel(scope, name, now.unit, now.value)
                    for (scope, name), now in readings.items()
                )
                for node, readings in nodes.items()
            },
        )

    def drawn(self) -> RenderableType:
        """Draw one look."""
        from rich.console import Group
        from rich.text import Text

        from harness.store.run_directory import opening

        standing, nodes = self.look()
        if standing is None:
            return Text(visible(_before_any(self._paths)))
        lines: list[RenderableType] = [Text(visible(_headline(standing)), style="bold")]
        lines += [_node_drawn(node, readings) for node, readings in nodes.items()]
        if not nodes:
            lines.append(Text("Nothing was observed of its hardware so far."))
        if opening.holder(self._paths) is None:
            lines.append(Text("Nobody is at work on this run: this is the last that it said."))
        return Group(*lines)


def _before_any(paths: RunPaths) -> str:
    """Say who is at work before the first trial begins, and where that is told."""
    from harness.store.run_directory import opening

    holder, logs = opening.holder(paths), paths.job_log(0).parent
    if holder is None:
        return "No trial has begun yet, and nobody is at work on this run: see `bakeoff status`."
    told = f" What it says: {near(logs)}/." if logs.is_dir() else ""
    return f"No trial has begun yet: networks are examined first. At work: {holder}.{told}"


def _node(path: Path) -> str:
    return path.name.removeprefix("samples.").removesuffix(".bin")


def _headline(standing: WatchedTrial) -> str:
    words = [
        f"{standing.done}/{standing.total} trials",
        f"{standing.label}, {standing.trial}",
        standing.phase or "starting",
    ]
    if standing.steps_per_s is not None:
        words.append(f"step {standing.steps}, {standing.steps_per_s:.3g} steps/s")
    if standing.loss is not None:
        words.append(f"loss {standing.loss:.4g}")
    return "  ".join(words)


def _node_drawn(node: str, readings: Readings) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(visible(node)), title_justify="left", show_header=False, box=None, padding=(0, 1)
    )
    for name, share, text in _bars(readings):
        filled = round(_WIDTH * min(1.0, max(0.0, share)))
        table.add_row(Text(visible(name)), "█" * filled + "░" * (_WIDTH - filled), text)
    for name, text in _figures(readings):
        table.add_row(Text(visible(name)), "", text)
    return table


def _bars(readings: Readings) -> list[tuple[str, float, str]]:
    from harness.verdicts.hardware_use import BUSY

    cores: dict[str, float] = {}
    for (scope, name), now in readings.items():
        if name in BUSY:
            # the kernel counts in hundredths of a second: between two looks it may seem too much
            cores[scope] = min(1.0, cores.get(scope, 0.0) + now.value)
    bars = [(scope.replace(":", " "), busy, per_cent(busy)) for scope, busy in cores.items()]
    if len(bars) > _MOST_BARS:
        mean = sum(cores.values()) / len(cores)
        bars = [(f"{len(cores)} cores", mean, per_cent(mean))]
    for (scope, name), now in readings.items():
        if name == "gpu.utilisation":
            used = readings.get((scope, "gpu.memory-used"))
            text = per_cent(now.value) + (f"  {used.value / _GIB:.1f} GiB" if used else "")
            bars.append((scope[:16], now.value, text))
    total, left = (readings.get(("node", f"memory.{name}")) for name in ("total", "available"))
    if total is not None and left is not None and total.value:
        used_bytes = total.value - left.value
        text = f"{used_bytes / _GIB:.1f} of {total.value / _GIB:.1f} GiB"
        bars.append(("memory", used_bytes / total.value, text))
    return bars


def _counts_power(scope: str, name: str) -> bool:
    """Leave out the parts of a package, which it counts already."""
    return name == "gpu.power.instant" or (
        name == "energy" and scope.rpartition("/")[2].startswith(("package", "dram"))
    )


def _figures(readings: Readings) -> list[tuple[str, str]]:
    figures = []
    for (scope, name), now in readings.items():
        if name == "rank.resident":
            used = [readings.get((scope, part)) for part in ("rank.user", "rank.system")]
            cores = sum(one.value for one in used if one is not None)
            text = f"{cores:.2f} cores, {now.value / _GIB:.2f} GiB"
            figures.append((scope.replace(":", " "), text))
    for channel, title in _MOVING:
        moved = sum(
            now.value
            for (scope, name), now in readings.items()
            if name == channel and scope != "net:lo"
        )
        if moved:
            figures.append((title, f"{moved / _MB:.1f} MB/s"))
    power = [now.value for (scope, name), now in readings.items() if _counts_power(scope, name)]
    if power:
        figures.append(("power", f"{sum(power):.0f} W"))
    cost = readings.get(("observer", "observer.cpu"))
    if cost is not None:
        figures.append(("observer", f"{per_cent(cost.value, 1)} of a core"))
    return figures
