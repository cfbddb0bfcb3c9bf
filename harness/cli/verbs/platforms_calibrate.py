"""`bakeoff platforms calibrate`: measure a machine's ceilings into its profile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import Table, emit, note

if TYPE_CHECKING:
    from harness.platform.platform import Platform


@click.command("calibrate")
@click.argument("name", default="local")
@click.option("--framework", default="torch", show_default=True, help="What computes.")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), help="By default what there is.")
@click.option("--trials", type=click.IntRange(1), default=3, show_default=True)
@click.option("--until", default="3 s", show_default=True, help="How long each trial measures.")
@click.option("--only", multiple=True, help="Sessions to run: kernels, memory-DDR, storage …")
@click.option("--json", "as_json", is_flag=True, help="Print the ceilings as JSON.")
def calibrate(
    name: str,
    framework: str,
    device: str | None,
    trials: int,
    until: str,
    only: tuple[str, ...],
    as_json: bool,
) -> int:
    """Measure what this machine can do at most, and write it into a profile.

    Products and convolutions by precision, the memory of each tier, copies to the device, storage:
    ordinary trials of the framework itself. Reports then show results as a share of it.
    """
    from harness.cli.built_studies import carry_out
    from harness.doctor.ceilings import measured, peaks, sessions, with_ceilings
    from harness.errors import RunError, UsageError
    from harness.platform.platform import load_platform
    from harness.store.files import write_whole

    platform = load_platform(name)
    device = device or ("gpu" if platform.accelerators else "cpu")
    planned = list(
        sessions(platform, framework=framework, device=device, trials=trials, until=until)
    )
    names = [one.name for one in planned]
    unknown = sorted(set(only) - set(names))
    if unknown:
        raise UsageError(f"there is no session {unknown[0]}. Known: {', '.join(names)}.")
    started = datetime.now(UTC)
    root = Path("runs") / f"calibrate-{platform.name}-{started:%Y-%m-%d-%H%M%S}"
    wanted = [one for one in planned if not only or one.name in only]
    found = [
        ceiling for one, results in carry_out(wanted, root) for ceiling in measured(results, one)
    ]
    if not found:
        raise RunError(f"No ceiling was measured; {root} says why.")
    where = f"bakeoff platforms calibrate, {framework}, {started:%Y-%m-%d}, run {root.name}"
    tables = {one.name: dict(one.table(where)) for one in (*peaks(found), *found)}
    path = _own_file(platform)
    write_whole(path, with_ceilings(_text(path, platform), tables))
    load_platform(str(path))
    emit(tables, lambda: Table([_row(*one) for one in tables.items()]), as_json=as_json)
    note(f"Wrote {len(tables)} ceilings into {path}")
    return 0


def _row(name: str, ceiling: Mapping[str, str]) -> tuple[str, str]:
    doubt = "  (at least: trials were disturbed)" if "at least" in ceiling["source"] else ""
    return name, (ceiling.get("compute") or ceiling["bandwidth"]) + doubt


def _own_file(platform: Platform) -> Path:
    """Name the profile to write into: the user's own, or a new one that refines a shipped one."""
    from harness.plugins import files

    name, shipped = platform.name, files("platforms").get(platform.name)
    path = Path(platform.file or "")
    is_shipped = shipped is not None and shipped.path.resolve() == path
    return Path("platforms") / f"{name}.toml" if is_shipped else path


def _text(path: Path, platform: Platform) -> str:
    from harness.toml.write import toml_text

    if path.exists():
        return path.read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"title": platform.title, "extends": platform.name}
    return toml_text(table, ["Measured here, over the shipped one."])
