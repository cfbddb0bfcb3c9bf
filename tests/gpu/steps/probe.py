"""What `bakeoff platforms probe` finds of the GPUs, against what `nvidia-smi` lists."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.units import size_bytes
from tests.gpu.answer import Answer, Broken
from tests.gpu.day import Day
from tests.gpu.nvidia_smi import number

LIMIT_S = 120.0
_MIB = 2**20


def probe(day: Day) -> Answer:
    """Write a profile of this machine, hold it against the machine, and against nvidia-smi."""
    written = day.bakeoff("platforms", "probe", "--write", "probed", "--force", limit_s=LIMIT_S / 2)
    if written.code:
        raise Broken(f"bakeoff platforms probe: {written.last}")
    checked = day.bakeoff("platforms", "check", "probed", "--here", "--json", limit_s=LIMIT_S / 2)
    claims = checked.json()["compared"]
    faults = [
        f"the profile claims {one['place']} = {one['claim']}, the machine has {one['fact']}"
        for one in claims
        if one["state"] == "differs"
    ]
    profile = tomllib.loads((day.work / "platforms" / "probed.toml").read_text(encoding="utf-8"))
    found = profile["accelerators"]
    words = [line.strip() for line in written.err.splitlines()]
    has_file = any(Path("/dev").glob("nvidia[0-9]*"))
    if not has_file:
        words.append("no /dev/nvidia* is here, and without one the probe looks for no GPU")
    if has_file or not day.is_dry:
        faults += differences(found, day.gpus.gpus)
    return Answer(tuple(words), {"accelerators": found}, tuple(faults))


def differences(
    found: Sequence[Mapping[str, Any]], listed: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Say in what a profile's accelerators are not those that nvidia-smi lists, by UUID."""
    ours = {uuid: one for one in found for uuid in one["uuids"]}
    wrong = [f"{uuid} is listed by nvidia-smi, not probed" for uuid in listed if uuid not in ours]
    for uuid, one in ours.items():
        theirs = listed.get(uuid)
        if theirs is None:
            wrong.append(f"{uuid} was probed, nvidia-smi does not list it")
            continue
        if one["model"] != theirs["name"]:
            wrong.append(f"{uuid}: {one['model']}, to nvidia-smi {theirs['name']}")
        size = number(theirs["memory.total"])
        ours_bytes = size_bytes(one["memory"]) if "memory" in one else 0
        if size is not None and abs(ours_bytes - size * _MIB) > _MIB:
            memory = one.get("memory", "unknown size")
            wrong.append(f"{uuid}: memory of {memory}, to nvidia-smi {size:.0f} MiB")
    return wrong
