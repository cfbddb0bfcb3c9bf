"""List what the gate examines of each network in each framework, from the code that decides it.

python -m tests.contracts.gate_coverage     writes it into docs/gate.md
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import plugins
from harness.gate.proof import proofs, request
from harness.gate.tensors import requests
from harness.ranks import payload
from harness.study.factors import FACTORS
from harness.study.framework import ALONE, FrameworkInfo, framework_info, framework_names
from harness.worker.contracts import Unsupported
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Training
from tests.contracts import vocabulary

PAGE = Path(__file__).parents[2] / "docs/gate.md"
BEGIN, END = "<!-- what is examined: python -m tests.contracts.gate_coverage -->", "<!-- end -->"
BATCH = 16
NOW = vocabulary.Sources()
SEMANTICS, TIMED, ACTIVITY, FEED, RANKS = "s", "l", "t", "f", "r"


def text() -> str:
    """Give the part of the page."""
    frameworks = [framework_info(name) for name in framework_names()]
    frameworks = [one for one in frameworks if "train" in one.kinds and one.computes]
    header = ["network", *(f"`{one.name}`" for one in frameworks)]
    lines = [_row(header), _row(["---"] * len(header))]
    for network in networks():
        cells = (" ".join(examined(network, one)) for one in frameworks)
        lines.append(_row([f"`{network.name}`", *cells]))
    return "\n".join([*lines, "", *_reasons(frameworks)])


def networks() -> list[Training]:
    """Give every network that ships."""
    found = (plugins.workload(name) for name in plugins.workload_names())
    return [one for one in found if isinstance(one, Training)]


def examined(network: Training, framework: FrameworkInfo) -> Iterator[str]:
    """Give a letter for each examination that a network gets in a framework."""
    if words(network) & vocabulary.refused(NOW, f"{vocabulary.ADAPTERS}/{framework.name}"):
        yield "–"
        return
    if refuses_float64(network, framework) is None:
        yield SEMANTICS
    yield TIMED
    if framework.proves and not request.no_start(network, BATCH):
        yield ACTIVITY
    if readers(framework):
        yield FEED
    if strategies(framework):
        yield RANKS


def words(network: Training) -> set[str]:
    """Give the words that a network is stated in."""
    layers = {type(site.layer).__name__ for site in sites(network.network)}
    return {*layers, network.loss, type(network.optimiser).__name__}


def refuses_float64(network: Training, framework: FrameworkInfo) -> str | None:
    """Say with which words an adapter refuses float64, before it asks for its framework."""
    module = importlib.import_module(framework.module)
    (adapter,) = (
        one
        for one in vars(module).values()
        if isinstance(one, type) and hasattr(one, "examine") and one.__module__ == framework.module
    )
    try:
        object.__new__(adapter).examine(network, "float64")
    except Unsupported as refusal:
        return str(refusal)
    except (ImportError, AttributeError):  # no framework here, and no settings
        return None
    raise AssertionError(f"{framework.name} examines without its framework")


def readers(framework: FrameworkInfo) -> list[str]:
    """Name the readers whose feed is examined: those of an adapter that shows its batches."""
    shows = any("def fed(" in source for source in _sources(framework))
    takes_files = "files" in (framework.factors.get("input") or ())
    return [str(one) for one in framework.factors["reader"] or ()] if shows and takes_files else []


def strategies(framework: FrameworkInfo) -> list[str]:
    """Name the strategies whose ranks are examined together."""
    package = framework.module.rpartition(".")[0]
    has_door = any(file.name == "rank_equality.py" for file in _folder(package))
    return exchanging(framework) if has_door else []


def exchanging(framework: FrameworkInfo) -> list[str]:
    """Name the strategies of several ranks or devices."""
    return [name for name in framework.strategies if name != ALONE]


def _reasons(frameworks: list[FrameworkInfo]) -> Iterator[str]:
    """Say what is examined of which readers, strategies and precisions, and why not the rest."""
    for one in frameworks:
        known = [f"readers {_listed(readers(one))}"] if readers(one) else []
        known += [f"strategies {_listed(strategies(one))}"] if strategies(one) else []
        lacking = [name for name in exchanging(one) if name not in strategies(one)]
        refusal = refuses_float64(networks()[0], one)
        not_seen = [f"semantics ({refusal})"] if refusal else []
        not_seen += [] if one.proves else ["what was timed"]
        takes_files = "files" in (one.factors.get("input") or ())
        not_seen += ["what it is fed"] if takes_files and not readers(one) else []
        not_seen += [f"strategies {_listed(lacking)}"] if lacking else []
        told = [f"Examined: {'; '.join(known)}"] if known else []
        told += [f"Not examined: {'; '.join(not_seen)}"] if not_seen else []
        if told:
            yield f"- `{one.name}`. {'. '.join(told)}."
    for network in networks():
        if why := request.no_start(network, BATCH):
            yield f"- `{network.name}`: what was timed is not examined: {why}."
    smaller = [(one, requests.examined(one)) for one in networks()]
    sizes = [f"`{one.name}` at {_size(small)}" for one, small in smaller if small is not one]
    yield f"- Semantics and layers are examined at a smaller sample: {', '.join(sizes)}."
    proved = (*proofs.PRECISIONS, *FACTORS["precision"].declined)
    others = [one for one in FACTORS["precision"].allowed or () if one not in proved]
    yield f"- What was timed in {_listed([str(one) for one in others])}: not examined."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _size(network: Training) -> str:
    return "×".join(map(str, network.network.input))


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _sources(framework: FrameworkInfo) -> Iterator[str]:
    """Give the sources of an adapter and of the adapters whose activity it shares."""
    closures = payload.Closures(found := payload.gather())
    for file in closures.files("workloads.tinycnn", framework.module):
        if "/adapters/" in file:
            path = found.files[file]
            yield path.read_text(encoding="utf-8") if path else ""


def _folder(package: str) -> Iterator[Path]:
    found: Any = importlib.import_module(package)
    return Path(found.__file__).parent.iterdir()


def main() -> None:
    """Write the part into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
