"""Tell which GPUs a rank may use, and whether a process belongs to a rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def visible(setting: str | None, uuids: Sequence[str]) -> list[str]:
    """Map CUDA_VISIBLE_DEVICES to UUIDs, given in PCI order; unset means every GPU.

    As the CUDA programming guide has it: numbers or beginnings of UUIDs, and the first one that
    names no GPU ends the list. A part of a GPU (MIG) is of no GPU in this list.
    """
    if setting is None:
        return list(uuids)
    found: list[str] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdigit():
            match = list(uuids[int(entry) : int(entry) + 1])
        else:
            match = [uuid for uuid in uuids if entry and uuid.startswith(entry)]
        if len(match) != 1 or match[0] in found:
            break
        found += match
    return found


def used_by(settings: Mapping[int, str | None], uuids: Sequence[str]) -> list[str]:
    """Give the GPUs that any rank may use, in PCI order; every GPU where there are no ranks."""
    if not settings:
        return list(uuids)
    used = {uuid for setting in settings.values() for uuid in visible(setting, uuids)}
    return [uuid for uuid in uuids if uuid in used]


_FIRST_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO (include/linux/proc_ns.h): the numbers here are those that a driver gives."""


def strangers(pids: Iterable[int], owners: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """Count the processes of no owner; None where a container hides whose one is."""
    wanted = set(owners)
    found = [pid for pid in pids if not is_within(pid, wanted, proc)]
    if all((proc / str(pid)).exists() for pid in found):
        return len(found)
    return len(found) if str((proc / "self/ns/pid").readlink()) == _FIRST_NAMESPACE else None


def is_within(pid: int, owners: Iterable[int], proc: Path = Path("/proc")) -> bool:
    """Tell whether a process is one of these or descends from one."""
    wanted = set(owners)
    while pid > 1:
        if pid in wanted:
            return True
        try:
            fields = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return False
        pid = int(fields[1])
    return False
