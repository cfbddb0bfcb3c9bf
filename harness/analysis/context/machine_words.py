"""Say in a line what a run was measured on: processor, cores, memory, GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import units
from harness.analysis import numbers
from harness.analysis.ranking import in_sentence
from harness.analysis.results import Results
from harness.store.records import RunInfo


def machine_in_words(run: RunInfo) -> str:
    """Take what was observed where the run was started; of other nodes, what their profile says."""
    launcher = run.platform.get("launcher") or {}
    seen = run.provenance.get("machine")
    if seen and launcher.get("name", "local") == "local":
        return ", ".join(_observed(seen))
    return _claimed(run.platform)


def named_machine(run: RunInfo) -> str:
    """Say inside a sentence what a run was measured on; by its title where no more is known."""
    title = str(run.platform.get("title") or run.platform.get("name") or "")
    return machine_in_words(run) or in_sentence(title) or "a machine that nothing describes"


def _observed(machine: Mapping[str, Any]) -> Iterator[str]:
    yield from _text(machine.get("cpu_model"))
    cores, allowed = machine.get("cores"), machine.get("cores_allowed")
    if allowed and cores and allowed < cores:
        yield f"{allowed} of {units.counted(cores, 'core')}"
    elif cores:
        yield units.counted(cores, "core")
    yield from _memory(machine.get("memory_limit_bytes") or machine.get("memory_bytes"))
    names = Counter(str(gpu.get("name") or "GPU") for gpu in machine.get("gpus") or ())
    yield from (f"{count} × {name}" for name, count in names.items()) if names else ("no GPU",)


def _claimed(platform: Mapping[str, Any]) -> str:
    each = ", ".join(_claimed_of_a_node(platform))
    nodes = platform.get("nodes")
    if not isinstance(nodes, int) or nodes < 2:
        return each
    return f"{nodes} nodes, each {each}" if each else f"{nodes} nodes"


def _claimed_of_a_node(platform: Mapping[str, Any]) -> Iterator[str]:
    node = platform.get("node") or {}
    yield from _text(node.get("cpu"))
    cores = node.get("cores") or node.get("cpus")
    if cores:
        yield units.counted(cores, "core")
    yield from _memory(sum(one.get("size") or 0 for one in node.get("memory") or ()))
    for one in platform.get("accelerators") or ():
        yield f"{one.get('count', 1)} × {one.get('model') or 'accelerator'}"


def _text(value: object) -> Iterator[str]:
    if value:
        yield str(value)


def _memory(size: int | None) -> Iterator[str]:
    if size:
        yield f"{numbers.size(size)} of memory"


def versions_in_words(results: Results, run: RunInfo) -> str:
    """Name the versions of the frameworks that a run timed, and of the harness."""
    found: dict[str, None] = {}
    for cell in results.cells:
        version = cell.versions.get(cell.framework)
        if version and cell.run in (run.name, run.directory):
            found[f"{cell.framework} {version}"] = None
    software = run.provenance.get("software")
    own = software.get("bakeoff") if isinstance(software, dict) else None
    return ", ".join((*found, *([f"bakeoff {own}"] if own else [])))


def header(results: Results) -> Sequence[str]:
    """Say of each run on what, with what and when it was measured."""
    titles = [str(run.platform.get("title") or run.platform.get("name")) for run in results.runs]
    lines = []
    for run, title in zip(results.runs, titles, strict=True):
        machine = machine_in_words(run)
        said = (
            run.name if titles.count(title) > 1 else "",  # one machine, measured twice
            title if len(titles) > 1 or not machine else "",
            machine,
            versions_in_words(results, run),
            numbers.moment(run.started_wall_ns),
        )
        lines.append(" · ".join(one for one in said if one))
    return lines
