"""What a GPU day showed so far, in a few files of the top folder."""

from __future__ import annotations

import platform
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from harness.store.files import write_json, write_whole
from tests.gpu import results
from tests.gpu.answer import NotPossible
from tests.gpu.day import Day
from tests.gpu.host import ROOT
from tests.gpu.table import STEPS

_EVIDENCE = ("steps", "windows", "attribution", "platforms", "log.txt", "gpu-day.toml")
LARGEST_BYTES = 16 * 2**20
"""What a file of the top folder may have, so that it can be sent anywhere."""


def write(day: Day) -> None:
    """Write summary.json, summary.md and evidence.tar.gz anew."""
    found = {step.name: results.read(day, step) for step in STEPS}
    machine = _machine(day)
    write_json(day.out / "summary.json", {"version": 1, "machine": machine, "steps": found})
    with tarfile.open(day.out / "evidence.tar.gz", "w:gz") as packed:
        for path in sorted(day.work.iterdir()):
            if path.name in _EVIDENCE or path.name.startswith("nvml-"):
                packed.add(path, path.name)
    large = [one.name for one in day.out.iterdir() if one.stat().st_size > LARGEST_BYTES]
    write_whole(day.out / "summary.md", _text(day, machine, found, sorted(large)))


def _machine(day: Day) -> dict[str, Any]:
    try:
        gpus = [dict(gpu) for gpu in day.gpus.gpus.values()]
    except NotPossible:
        gpus = []
    return {**day.identity, "host": platform.node(), "commit": _commit(), "gpus": gpus}


def _commit() -> str | None:
    try:
        asked = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return asked.stdout.strip() or None


def _text(
    day: Day,
    machine: Mapping[str, Any],
    found: Mapping[str, dict[str, Any] | None],
    large: Sequence[str],
) -> str:
    title = "GPU day: a rehearsal on CPUs, no measurement" if day.is_dry else "GPU day"
    gpus = [f"{one['name']}, driver {one['driver_version']}" for one in machine["gpus"]]
    where = (
        f"{machine['host']}: {'; '.join(gpus) or 'no GPU seen'}; interpreter {machine['python']}; "
        f"Bakeoff {machine['commit'] or 'of an unknown commit'}."
    )
    lines = [
        f"# {title}",
        "",
        where,
        "",
        "| step | state | s | what it shows | why not |",
        "|---|---|---:|---|---|",
    ]
    for step in STEPS:
        one = found[step.name] or {"state": "not done", "seconds": "–", "reason": ""}
        row = (step.name, one["state"], one["seconds"], step.shows, one["reason"])
        lines.append("| " + " | ".join(str(word).replace("|", "/") for word in row) + " |")
    for name, one in found.items():
        if one is not None and one["lines"]:
            lines += ["", f"## {name}", "", "```", *one["lines"], "```"]
    if large:
        lines += ["", f"Larger than {LARGEST_BYTES >> 20} MiB: {', '.join(large)}."]
    return "\n".join(lines) + "\n"
