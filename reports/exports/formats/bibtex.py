"""Write a BibTeX entry for each run, so that a paper can say which data it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from harness.analysis.context.machine_words import named_machine
from harness.analysis.results import Results
from harness.store.records import RunInfo
from reports.exports.formats.latex import escaped


def of_results(results: Results) -> str:
    """Give one entry a run."""
    return "\n".join(_entry(results, run) for run in results.runs)


def keys_of(results: Results) -> Sequence[str]:
    """Give the keys by which the runs are cited."""
    return [_key(run) for run in results.runs]


def _key(run: RunInfo) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", f"bakeoff-{run.name}").strip("-")


def _entry(results: Results, run: RunInfo) -> str:
    when = datetime.fromtimestamp(run.started_wall_ns / 1e9, UTC)
    software: dict[str, Any] = dict(run.provenance.get("software") or {})
    source: dict[str, Any] = dict(run.provenance.get("source") or {})
    commit = f", source {str(source['commit'])[:12]}" if source.get("commit") else ""
    version = f" {software['bakeoff']}" if software.get("bakeoff") else ""
    fields = {
        "title": f"{{{escaped(run.title)}: measurements with Bakeoff{escaped(version)}}}",
        "key": "Bakeoff",
        "year": f"{when:%Y}",
        "month": f"{when:%B}",
        "howpublished": escaped(f"Run {run.name}, seed {run.seed}{commit}"),
        "note": escaped(f"Measured on {named_machine(results, run)}"),
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{{_key(run)},\n{lines}}}\n"
