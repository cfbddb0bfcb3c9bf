"""Find the differences between cells and between machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.analysis import numbers
from harness.analysis.cell_names import factor_value, in_order
from harness.analysis.context.absolute_paths import without_place
from harness.analysis.ranking import machine_name
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.study.recorded_variables import is_telling

_LONGEST = 300


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Turn nested facts into dotted keys and short texts."""
    found: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found.update(flatten(value, f"{name}."))
        elif isinstance(value, list | tuple):
            if any(isinstance(item, Mapping) for item in value):
                for index, item in enumerate(value):
                    found.update(flatten({str(index): item}, f"{name}."))
            else:
                found[name] = ", ".join(str(item) for item in value) or numbers.UNKNOWN
        else:
            found[name] = _word(name, value)
    told = {key: without_place(text) for key, text in found.items()}
    return {k: v if len(v) <= _LONGEST else v[:_LONGEST] + " …" for k, v in told.items()}


def _word(name: str, value: object) -> str:
    if value is None:
        return numbers.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith(("bytes", ".size")):
        return numbers.size(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def host_facts(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of the environment only the variables that change how fast frameworks run."""
    facts = dict(provenance)
    environment = facts.pop("environment", None)
    if isinstance(environment, Mapping):
        # The rest is nobody's business on a page that travels.
        variables = {name: value for name, value in environment.items() if is_telling(name)}
        if variables:
            facts["environment"] = variables
    return facts


def between_cells(results: Results) -> Table:
    """List the varied factors with the values they take; versions where frameworks differ."""
    columns = (Column("what", "what", "name"), Column("values", "values", "long"))
    rows: list[tuple[Any, ...]] = []
    for name in dict.fromkeys(("workload", "framework", "strategy", *results.varied)):
        values = in_order(factor_value(cell, name) for cell in results.cells)
        seen = dict.fromkeys(_word(name, value) for value in values)
        if len(seen) > 1:
            rows.append((name.replace("_", " "), ", ".join(seen)))
    for framework in dict.fromkeys(c.framework for c in results.cells):
        versions = dict.fromkeys(
            f"{k} {v}"
            for cell in results.cells
            if cell.framework == framework
            for k, v in cell.versions.items()
        )
        if versions:
            rows.append((f"versions with {framework}", ", ".join(versions)))
    for workload in dict.fromkeys(c.workload for c in results.cells):
        cell = next(c for c in results.cells if c.workload == workload)
        if cell.parameters is not None:
            parameters, macs = numbers.count(cell.parameters), numbers.count(cell.macs)
            counted = f"{parameters} parameters, {macs} multiplications forward per sample"
            rows.append((f"size of {workload}", counted))
    return Table("differences", "What differs between the cells", columns, tuple(rows))


def between_runs(results: Results) -> Table:
    """List side by side what is not the same on every machine."""
    columns = (
        Column("what", "what", "name"),
        *(Column(f"run{i}", machine_name(run), "long") for i, run in enumerate(results.runs)),
    )
    facts_by_run = [
        flatten(
            {
                "platform": run.platform,
                "host": host_facts(run.provenance),
                "measure": run.measure,
                "environment": run.environments,
            }
        )
        for run in results.runs
    ]
    keys = dict.fromkeys(key for facts in facts_by_run for key in facts)
    rows = [
        (key, *(facts.get(key) for facts in facts_by_run))
        for key in keys
        if len({facts.get(key) for facts in facts_by_run}) > 1
    ]
    return Table("machines", "What differs between the machines", columns, tuple(rows))
