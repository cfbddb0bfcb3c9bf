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
from harness.study.framework import framework_names
from harness.verdicts.results import CellResult


def machine_in_words(results: Results, run: RunInfo) -> str:
    """Take what was observed where the run was started; of other nodes, what their profile says.

    Where neither says what it is made of, it is named by its title.
    """
    launcher = run.platform.get("launcher") or {}
    seen = run.provenance.get("machine")
    if seen and launcher.get("name", "local") == "local":
        return ", ".join(_observed(seen))
    nodes = _nodes(run.platform.get("nodes"), _used_nodes(results, run))
    each = ", ".join(_claimed_of_a_node(run.platform))
    if not each:
        return ", ".join(one for one in (_title(run), nodes) if one)
    return f"{nodes}, each {each}" if nodes else each


def began_on(run: RunInfo) -> str:
    """Say what a run was started on, where its platform says nothing of the nodes that it used."""
    seen = run.provenance.get("machine")
    launcher = run.platform.get("launcher") or {}
    is_local = launcher.get("name", "local") == "local"
    if is_local or not seen or any(_claimed_of_a_node(run.platform)):
        return ""
    return ", ".join(_observed(seen))


def named_machine(results: Results, run: RunInfo) -> str:
    """Say inside a sentence what a run was measured on."""
    words = in_sentence(machine_in_words(results, run))
    return words or "a machine that nothing describes"


def _title(run: RunInfo) -> str:
    return str(run.platform.get("title") or run.platform.get("name") or "")


def _used_nodes(results: Results, run: RunInfo) -> int:
    """Count the nodes that trials ran on; where none says so, what the cells ask for."""
    own = [cell for cell in results.cells if cell.run in (run.name, run.directory)]
    hosts = {host for cell in own for trial in cell.trials for host in trial.nodes}
    return len(hosts) or max((cell.scale.nodes for cell in own), default=1)


def _nodes(claimed: object, used: int) -> str:
    """Say how many nodes a run used, and of how many; nothing of a machine of one."""
    if isinstance(claimed, int) and claimed > used:
        return f"{used} of {claimed} nodes"
    return units.counted(used, "node") if used > 1 else ""


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
        words = _versions(cell)
        if words and cell.run in (run.name, run.directory):
            found[words] = None
    software = run.provenance.get("software")
    own = software.get("bakeoff") if isinstance(software, dict) else None
    return ", ".join((*found, *([f"bakeoff {own}"] if own else [])))


def _versions(cell: CellResult) -> str:
    """Name a framework's version, and of Keras also that of the framework that computed for it."""
    name = cell.framework.partition("@")[0]
    if not cell.versions.get(name):
        return ""
    below = [
        f"on {other} {cell.versions[other]}"
        for other in framework_names()
        if other != name and other in cell.versions
    ]
    return " ".join([cell.framework, cell.versions[name], *below])


def header(results: Results) -> Sequence[str]:
    """Say of each run on what, with what and when it was measured."""
    titles = [_title(run) for run in results.runs]
    lines = []
    for run, title in zip(results.runs, titles, strict=True):
        machine = machine_in_words(results, run)
        said = (
            run.name if titles.count(title) > 1 else "",  # one machine, measured twice
            title if len(titles) > 1 and not machine.startswith(title) else "",
            machine,
            versions_in_words(results, run),
            numbers.moment(run.started_wall_ns),
        )
        lines.append(" · ".join(one for one in said if one))
    return lines
