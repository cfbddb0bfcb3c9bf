"""Probe nodes that a launcher reaches, from what they tell of themselves.

Only Python 3.6 is needed there: the node's files and its programs' answers come back as text and
are laid out here, where they are read as this machine's own would be.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import plugins
from harness.errors import Unavailable
from harness.machine.gpus import Gpu, through_switches
from harness.platform.hardware import LINK
from harness.platform.sources import hardware_leaves
from harness.probe.check import facts
from harness.probe.probe import MachineReadings, look, profile
from harness.ranks.remote_node import RemoteNode
from harness.study.framework import framework_info
from harness.units import listed
from harness.worker.facts import node_survey

_PYTHONS = ("python3", "/usr/libexec/platform-python")


def tell(node: RemoteNode) -> dict[str, Any]:
    """Read a node's facts by a command that runs there."""
    text = Path(node_survey.__file__).read_text("utf-8")
    words = []
    for python in _PYTHONS:
        answer = node.ask(python, "-c", text)
        start = answer.stdout.find('{"uname"')  # a login script may greet first
        if answer.code == 0 and start >= 0:
            try:
                told: dict[str, Any] = json.JSONDecoder().raw_decode(answer.stdout[start:])[0]
            except (ValueError, RecursionError) as problem:
                raise Unavailable(f"{node} told what cannot be read: {problem}") from None
            return told
        words += answer.stderr.strip().splitlines()[-2:]
    raise Unavailable(
        f"{node} told nothing through {node.launcher}:\n    " + "\n    ".join(words or ["silence"])
    )


def look_there(told: Mapping[str, Any], frameworks: Sequence[str]) -> MachineReadings:
    """Look at a node through what it told; refuse what it cannot have found."""
    try:
        sizes = {str(path): int(size) for path, size in told["places"].items()}
        return _look({**told, "places": sizes}, frameworks)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        OSError,
    ) as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise Unavailable(f"a node told of itself what cannot be: {what[:200]}") from None


def _look(told: Mapping[str, Any], frameworks: Sequence[str]) -> MachineReadings:
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
        root = Path(scratch)
        for path, text in {**told["files"], **dict.fromkeys(told["devices"], "")}.items():
            file = root / path.lstrip("/")
            if ".." in file.parts:
                raise ValueError(f"{path} is no file of /proc or /sys")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        seen = look(frameworks, root, told)
    system, host, kernel, _, architecture = told["uname"]
    machine = replace(
        seen.machine,
        hostname=host,
        system=system,
        kernel=kernel,
        architecture=architecture,
        gpus=_gpus(told["answers"].get("gpus")) if told["devices"] else (),
    )
    return replace(seen, machine=machine, graph=links(told["answers"].get("links", "")))


def importable(packages: Sequence[str]) -> tuple[str, ...]:
    """Name the frameworks among what a node's own Python could import, with their versions."""
    there = dict(one.lower().partition("-")[::2] for one in packages)
    found = []
    for name in sorted(plugins.adapter_files()):
        distribution = framework_info(name).distribution
        if distribution in there:
            found.append(f"{name} {there[distribution]}")
    return tuple(found)


def odd_ones(every: Mapping[str, MachineReadings]) -> list[str]:
    """Say in what nodes differ from the first of them."""
    (first, own), *others = (
        (name, dict(hardware_leaves(facts(seen).model_dump(exclude_none=True))))
        for name, seen in every.items()
    )
    found = []
    for name, values in others:
        places = [
            place
            for place in {**own, **values}
            if own.get(place) != values.get(place) and "uuids" not in place
        ]
        if places:
            shown = [
                f"{place}: {values.get(place, 'none')} (not {own.get(place, 'none')})"
                for place in places
            ]
            found.append(f"{name} differs from {first}: {listed(shown, 4)}")
    return found


def profile_there(
    seen: MachineReadings, title: str, node: RemoteNode, count: int
) -> dict[str, Any]:
    """Give the profile of nodes like the one seen, started through its launcher."""
    data = profile(seen, title)
    data["nodes"] = count
    data["launcher"] = {"name": node.launcher}
    if node.settings:
        data["launcher"]["settings"] = dict(node.settings)
    return data


def links(matrix: str) -> tuple[tuple[str, str, str], ...]:
    """Read the pairs of `nvidia-smi topo -m`."""
    rows = [line.split() for line in matrix.splitlines() if line.startswith("GPU")]
    rows = [row for row in rows if len(row) > len(rows)]  # the legend's lines are shorter
    return through_switches(
        (str(first), str(second), row[1 + second])
        for first, row in enumerate(rows)
        for second in range(first + 1, len(rows))
        if LINK.match(row[1 + second])
    )


def _gpus(text: str | None) -> tuple[Gpu, ...] | None:
    """Read nvidia-smi's table; None where there are devices, and no answer."""
    if not text:
        return None
    return tuple(_gpu([cell.strip() for cell in line.split(",")]) for line in text.splitlines())


def _gpu(cells: Sequence[str]) -> Gpu:
    uuid, name, driver, memory, persistence, ecc, power = cells
    switches = {"Enabled": True, "Disabled": False}
    return Gpu(
        uuid=uuid,
        name=name,
        driver=driver,
        memory_bytes=int(memory) * 2**20 if memory.isdigit() else None,
        used_bytes=None,
        processes=None,
        persistence=switches.get(persistence),
        ecc=switches.get(ecc),
        power_limit_w=float(power) if power.replace(".", "", 1).isdigit() else None,
    )
