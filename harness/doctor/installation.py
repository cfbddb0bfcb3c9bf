"""Look whether Bakeoff is whole: its packages, libraries, plug-ins and programs."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import harness
from harness import plugins
from harness.doctor.finding import DoctorFinding
from harness.environments import cache, pythons
from harness.environments.inventory import PackageEntry, inventory
from harness.environments.lock import Lock, load_lock, lock_files
from harness.errors import Unavailable
from harness.platform.platform import load_platform
from harness.units import decimal_size

PACKAGES = ("bakeoff", "harness", "workloads", "platforms", "reports")

_MUST_HAVE_MEMBERS = ("workloads", "adapters", "launchers", "sections", "platforms")
_PROGRAMS = (
    ("mpirun", "ranks across nodes without a scheduler", "install Open MPI or MPICH"),
    ("sbatch", "studies on a Slurm cluster", "run on a login node of the cluster"),
    ("chromium", "pictures of pages, in tests only", "install Debian's package chromium"),
)
_ROOM_BYTES = 5 * 10**9


def look(platform: str = "local") -> list[DoctorFinding]:
    """Look at everything; of plug-ins, what a plan, a run or a report would import."""
    entries = _entries(platform)
    return [
        _python(),
        *_origins(),
        _libraries(),
        *_plug_ins(),
        *_environments(entries),
        *_pythons(),
        _room(),
        *_programs(entries),
    ]


def _python() -> DoctorFinding:
    version = ".".join(map(str, sys.version_info[:3]))
    return DoctorFinding("python", "fine", f"{version}, {sys.executable}")


def _origins() -> list[DoctorFinding]:
    """Our import names are plain words; somebody else's package of that name may come first."""
    home = Path(harness.__path__[0]).parent
    findings = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not places:
            remedy = f"Install it again: {sys.executable} -m pip install -e . in the project."
            findings.append(DoctorFinding(f"package {name}", "fault", "not found", remedy))
        elif Path(places[0]).parent != home:
            remedy = f"Another distribution shadows ours in {home}: remove it, or use a venv."
            findings.append(DoctorFinding(f"package {name}", "fault", places[0], remedy))
    return findings or [DoctorFinding("packages", "fine", f"{', '.join(PACKAGES)} in {home}")]


def _libraries() -> DoctorFinding:
    try:
        required = metadata.distribution("bakeoff").requires or []
    except metadata.PackageNotFoundError:
        remedy = f"Run `make setup`, or: {sys.executable} -m pip install -e . in the project."
        return DoctorFinding(
            "libraries", "fault", "bakeoff is not installed in this Python", remedy
        )
    wrong, count = [], 0
    for text in required:
        match = re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", text)
        if match is None or "extra ==" in text:
            continue
        count += 1
        try:
            found = metadata.version(match[1])
        except metadata.PackageNotFoundError:
            wrong.append(f"{match[1]} is missing")
            continue
        if _numbers(found) < _numbers(match[2]):
            wrong.append(f"{match[1]} is {found}, {match[2]} is needed")
    if wrong:
        remedy = f"Run `make setup`, or: {sys.executable} -m pip install -U bakeoff."
        return DoctorFinding("libraries", "fault", "; ".join(wrong), remedy)
    return DoctorFinding("libraries", "fine", f"{count} of {count} as required")


def _plug_ins() -> list[DoctorFinding]:
    findings = []
    counts = []
    for group in plugins.GROUPS:
        try:
            entries = [*_modules(group), *plugins.files(group).values()]
        except Unavailable as error:
            first, _, remedy = str(error).partition("\n")
            return [DoctorFinding("plug-ins", "fault", first, remedy.strip())]
        for entry in entries:
            if entry.problem is not None:
                remedy = f"Repair or uninstall {entry.origin}; the rest works without it."
                seen = f"{entry.name} of {entry.origin}: {entry.problem}"
                findings.append(DoctorFinding(f"plug-ins {group}", "warning", seen, remedy))
        names = {entry.name for entry in entries if entry.problem is None}
        if not names and group in _MUST_HAVE_MEMBERS:
            remedy = "The installation is not whole; install Bakeoff again."
            findings.append(DoctorFinding(f"plug-ins {group}", "fault", "none found", remedy))
        if names:
            counts.append(f"{group}: {len(names)}")
    return [DoctorFinding("plug-ins", "fine", ", ".join(counts)), *findings]


def _modules(group: str) -> list[plugins.Entry]:
    """Import those that this interpreter reads; an adapter is its framework's interpreter's."""
    if group not in plugins.PARTS:
        return list(plugins.modules(group).values())
    return [entry for entry, _ in plugins.loaded(group)]


def _entries(platform: str) -> list[PackageEntry]:
    try:
        return inventory(load_platform(platform))
    except Unavailable:  # there are no plug-ins, so no platforms: said above
        return []


def _environments(entries: Sequence[PackageEntry]) -> list[DoctorFinding]:
    findings = []
    ready = [f"{one.name} {one.version}" for one in entries if one.version and one.state == "ready"]
    if ready:
        findings.append(DoctorFinding("environments", "fine", ", ".join(ready)))
    else:
        findings.append(
            DoctorFinding("environments", "warning", "none is built", "bakeoff env create torch")
        )
    for entry in entries:
        if entry.named_by and entry.state == "ready":
            seen = f"{entry.version or 'it answers'}, where {entry.named_by} says"
            findings.append(DoctorFinding(f"environment {entry.name}", "fine", seen))
        if entry.state == "broken":
            remedy = f"bakeoff env create {shlex.quote(entry.name)}"
            if entry.named_by:
                remedy = f"It stands so in {entry.named_by}: name one that has the framework."
            findings.append(
                DoctorFinding(f"environment {entry.name}", "fault", entry.detail, remedy)
            )
    spoilt = [one for one in entries if one.state in ("old", "unfinished")]
    if spoilt:
        total = decimal_size(sum(one.size_bytes or 0 for one in spoilt))
        seen = f"{len(spoilt)} old or unfinished, {total}"
        findings.append(
            DoctorFinding("environments left over", "warning", seen, "bakeoff env remove --old")
        )
    return findings


def _pythons() -> list[DoctorFinding]:
    """Look for each Python that an environment asks for and that this one is not."""
    wanted: dict[str, list[str]] = {}
    for name, lock in _locks().items():
        if lock.python and not pythons.satisfies(sys.version_info[:3], lock.python):
            wanted.setdefault(lock.python, []).append(name)
    findings = []
    for versions, names in wanted.items():
        check = f"python {versions}"
        try:
            python = pythons.find(versions, purpose=", ".join(names))
        except Unavailable as error:
            _, _, remedy = str(error).partition("\n")
            seen = f"none; for {', '.join(names)}"
            findings.append(DoctorFinding(check, "unknown", seen, remedy.strip()))
        else:
            findings.append(DoctorFinding(check, "fine", str(python)))
    return findings


def _locks() -> dict[str, Lock]:
    return {name: load_lock(name) for name in lock_files()}


def _room() -> DoctorFinding:
    folder = cache.home()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free
    seen = f"{decimal_size(free)} free for environments in {folder}"
    if free >= _ROOM_BYTES:
        return DoctorFinding("disk", "fine", seen)
    return DoctorFinding(
        "disk", "warning", seen, "Make room, or set BAKEOFF_HOME to a larger disk."
    )


def _programs(entries: Sequence[PackageEntry]) -> list[DoctorFinding]:
    findings = [_program(name, name, purpose, cure) for name, purpose, cure in _PROGRAMS]
    # What a platform or a variable names was asked as an environment already.
    listed = {name for name, _, _ in _PROGRAMS}
    named = {entry.name for entry in entries if entry.named_by}
    for lock in _locks().values():
        for program in lock.programs:
            check = program.variable or program.name
            if check not in listed and lock.name not in named:
                listed.add(check)
                wanted = os.environ.get(program.variable or "") or program.name
                purpose = f"the environment {lock.name}"
                findings.append(_program(check, wanted, purpose, program.cure))
    return findings


def _program(check: str, wanted: str, purpose: str, cure: str) -> DoctorFinding:
    path = shutil.which(wanted)
    if path is not None:
        return DoctorFinding(check, "fine", path)
    remedy = f"{cure[:1].upper()}{cure[1:]}."
    return DoctorFinding(check, "unknown", f"not found; only for {purpose}", remedy)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
