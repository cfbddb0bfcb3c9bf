"""The verb `list`: workloads, frameworks, platforms, studies and runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from harness.analysis.numbers import UNKNOWN
from harness.cli.output import Part, Table, emit, note

if TYPE_CHECKING:
    from harness.store.layout import RunPaths

Row = dict[str, Any]


def _workloads() -> list[Row]:
    from harness import plugins
    from harness.worker.network.shapes import count

    rows: list[Row] = []
    for entry, module in plugins.loaded("workloads"):
        if module is None:
            rows.append({"name": entry.name, "problem": entry.problem})
            continue
        workload = module.WORKLOAD
        row: Row = {"name": workload.name, "kind": workload.kind, "title": workload.title}
        if hasattr(workload, "network"):
            counts = count(workload.network)
            row |= {
                "parameters": counts.parameters,
                "macs": counts.macs,
                "input": list(workload.network.input),
                "shapes": {path: list(shape) for path, shape in counts.shapes},
            }
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["name"]))


def _frameworks() -> list[Row]:
    from harness.errors import BakeoffError
    from harness.gate.everything_study import is_ready
    from harness.platform.platform import load_platform
    from harness.study.framework import framework_info, framework_names

    here = load_platform("local")
    rows: list[Row] = []
    for name in framework_names():
        try:
            info = framework_info(name)
        except BakeoffError as error:
            rows.append({"name": name, "problem": str(error)})
            continue
        rows.append(
            {
                "name": name,
                "title": info.title,
                "installed": is_ready(name, here),
                "kinds": list(info.kinds),
                "devices": list(info.devices),
                "strategies": list(info.strategies),
                "factors": {key: list(value or ["any"]) for key, value in info.factors.items()},
                "options": {key: option.meaning for key, option in info.options.items()},
            }
        )
    return rows


def _platforms() -> list[Row]:
    from harness.errors import BakeoffError
    from harness.platform.platform import load_platform, platform_names

    rows: list[Row] = []
    for name in platform_names():
        try:
            platform = load_platform(name)
        except BakeoffError as error:
            rows.append({"name": name, "problem": str(error)})
            continue
        rows.append(
            {
                "name": name,
                "title": platform.title,
                "launcher": platform.launcher.name,
                "tried": platform.tried,
                "nodes": platform.nodes,
            }
        )
    return rows


def _studies() -> list[Row]:
    from harness.errors import BakeoffError
    from harness.study.study import load_study, study_files

    rows: list[Row] = []
    for name, path in sorted(study_files().items()):
        try:
            study = load_study(path)
        except BakeoffError as error:
            rows.append({"name": name, "problem": str(error)})
            continue
        rows.append({"name": name, "title": study.title, "sizes": list(study.sizes)})
    return rows


def _runs() -> list[Row]:
    from harness.errors import BakeoffError
    from harness.store.layout import RunPaths
    from harness.store.run_directory.find_runs import RUNS, runs_in

    rows: list[Row] = []
    for folder in runs_in(RUNS):
        paths, name = RunPaths(folder), str(folder.relative_to(RUNS))
        try:
            if not paths.files.exists(paths.plan):
                rows.append({"name": name, "problem": "it was never fully made; remove it"})
                continue
            rows.append({"name": name, **_run(paths)})
        except (OSError, ValueError, BakeoffError) as error:
            rows.append({"name": name, "problem": str(error)})
    return rows


@dataclass(frozen=True)
class _Started:
    """What is listed of ``run.json``."""

    title: str
    started_wall_ns: int


def _run(paths: RunPaths) -> Row:
    from harness.analysis.numbers import moment
    from harness.store.run_code import doubts
    from harness.store.run_directory import opening
    from harness.store.run_directory.due import read_due
    from harness.store.typed import damage, read
    from harness.worker.redaction.redact import redact_text

    with damage(paths.run):
        run = read(_Started, paths.files.read_object(paths.run))
    count, holder = read_due(paths).count(), opening.holder(paths)
    return {
        "title": redact_text(run.title),
        "started": moment(run.started_wall_ns),
        "done": count.done,
        "left": count.left,
        "planned": count.total,
        "at_work": None if holder is None else str(holder),
        "doubts": [redact_text(one) for one in doubts(paths)],
    }


KINDS: dict[str, Callable[[], list[Row]]] = {
    "workloads": _workloads,
    "frameworks": _frameworks,
    "platforms": _platforms,
    "studies": _studies,
    "runs": _runs,
}
_TOO_WIDE = ("shapes", "factors", "options", "doubts")  # these are for --json


@click.command("list")
@click.argument("what", type=click.Choice(list(KINDS)))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with everything known.")
def command(what: str, *, as_json: bool) -> None:
    """List workloads, frameworks, platforms, studies or runs."""
    rows = KINDS[what]()
    emit(rows, lambda: _in_columns(rows), as_json=as_json)
    if not rows and not as_json:
        note(f"There are no {what} here.")


def _in_columns(rows: Sequence[Row]) -> list[Part]:
    """Give a table of those that can be used, then a line for each of the others and each doubt."""
    usable = [row for row in rows if "problem" not in row]
    columns = list(dict.fromkeys(key for row in usable for key in row if key not in _TOO_WIDE))
    texts = [[_cell(row.get(column)) for column in columns] for row in usable]
    numbers = frozenset(
        index
        for index, column in enumerate(columns)
        if any(type(row.get(column)) is int for row in usable)
    )
    others = [
        f"{row['name']}  cannot be used: {row['problem']}" for row in rows if row not in usable
    ]
    others += [f"{row['name']}  {doubt}" for row in rows for doubt in row.get("doubts", ())]
    return [Table(texts, columns, numbers), *others]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        separator = " × " if all(isinstance(one, int) for one in value) else ", "
        return separator.join(map(str, value)) or UNKNOWN
    return str(value)
