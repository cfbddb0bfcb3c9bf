"""Decide which interpreter a framework's workers run in on a platform, and prove it.

A platform may name an interpreter or a module set for a framework; otherwise the environment that
``bakeoff env create`` built is used. Either way nothing of the harness's own packages, nor of the
user's site folder, reaches a worker.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import commands
from harness.environments import cache, outside_programs, pythons
from harness.environments.cache import Environment
from harness.environments.identity.contents import Contents, built_contents, foreign_contents
from harness.environments.lock import (
    EnvironmentReference,
    Lock,
    load_lock,
    lock_files,
    missing_program,
)
from harness.environments.worker_variables import WorkerVariables, isolated, worker_variables
from harness.errors import Unavailable
from harness.machine import gpus
from harness.platform.platform import Platform
from harness.platform.variables import laid_over
from harness.store.json_text import parse
from harness.study.recorded_variables import steering

# Reads names only: importing a package to learn its version would take seconds.
_CONTENT = """
import json, os, sys
names = set()
for folder in sys.path[1:]:  # the first is the current folder
    if os.path.isdir(folder):
        names.update(n for n in os.listdir(folder) if n.endswith((".dist-info", ".egg-info")))
sites = [f for f in sys.path[1:] if os.path.basename(f) in ("site-packages", "dist-packages")]
sys.stdout.write("\\n" + json.dumps([sys.version, sorted(names), sites]))
"""
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Interpreter:
    """How a framework's workers start."""

    argv: tuple[str, ...]
    """The interpreter; ``-m harness.worker`` and a job follow."""
    env: Mapping[str, str]
    """The whole environment that a rank begins with; the launcher adds its own to it."""
    fingerprint: str
    """Which packages and which Python, by name and version; not where they lie."""
    description: str
    """For people."""
    packages: Mapping[str, str]
    """Versions by distribution, where they are known without starting anything."""
    sites: tuple[Path, ...] = ()
    """Its package folders; of an environment that we built, its root."""
    is_ours: bool = False
    """Whether we built it: then its files are what their wheels said."""
    device: str = "any"
    """What it was built for, cpu or gpu, where we built it and that is a choice."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """A digest of the files of each package, once ``identified``."""
    edited: tuple[str, ...] = ()
    """Files that changed since they were installed, once ``identified``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of those it begins with, what steers libraries, without secrets; once ``identified``."""

    @property
    def identity(self) -> str:
        """What decides whether a trial may be reused: packages, their files, and variables."""
        return cache.digest([self.fingerprint, dict(self.contents), dict(self.variables)])

    def record(self) -> dict[str, Any]:
        """Give what the run's ``environments/NAME.json`` keeps."""
        return {
            "version": 1,  # 1: first
            "argv": list(self.argv),
            "fingerprint": self.fingerprint,
            "description": self.description,
            "packages": dict(self.packages),
            "contents": dict(self.contents),
            "edited": list(self.edited),
            "variables": dict(self.variables),
        }


SIMULATED = Interpreter((), {}, "simulated", "none: a model says what ranks would have said", {})


def identified(found: Interpreter) -> Interpreter:
    """Read the files of an interpreter's packages and the variables that it begins with."""
    held = Contents({})
    if found.sites:
        held = built_contents(found.sites[0]) if found.is_ours else foreign_contents(found.sites)
    variables = steering(found.env)
    return replace(found, contents=held.packages, edited=held.edited, variables=variables)


def resolve(framework_ref: str, platform: Platform) -> Interpreter:
    """Find a framework's interpreter on a platform, or say with which command to get one."""
    if platform.is_simulated:
        return SIMULATED
    reference = EnvironmentReference.parse(framework_ref)
    found = _resolve(reference, platform)
    lock = load_lock(reference.lock) if reference.lock in lock_files() else None
    outside = outside_programs.identities(lock, found.env) if lock is not None else {}
    if not outside:
        return found
    return replace(found, fingerprint=cache.digest([found.fingerprint, outside]))


def _resolve(reference: EnvironmentReference, platform: Platform) -> Interpreter:
    lock = load_lock(reference.lock) if reference.lock in lock_files() else None
    given = worker_variables(reference, platform, lock)
    if lock is not None:
        _require_programs(lock, given.env)
    needs = "" if lock is None else _needed_python(lock, platform)
    if given.there.interpreter is not None:
        named_by = f"named by {platform.name}"
        return _foreign(reference, given.there.interpreter, given, named_by, needs=needs)
    if given.there.modules:
        named_by = f"modules {' '.join(given.modules)}"
        return _foreign(reference, "python3", given, named_by, needs=needs)
    if lock is None:
        load_lock(reference.lock)
        raise AssertionError("load_lock refuses an unknown name")
    if lock.variable is not None:
        named = given.env.get(lock.variable)
        if not named:
            raise Unavailable(
                f"{reference} needs an interpreter of its own; {lock.variable} does not name it.\n"
                f"    export {lock.variable}=/path/to/python, or name one in the platform:\n"
                f'    [frameworks.{reference.framework}]  interpreter = "/path/to/python"'
            )
        return _foreign(reference, named, given, f"named by {lock.variable}")
    if not lock.is_built_for(reference):
        return _bare(lock, reference, given.own)
    return _managed(lock, reference, platform, given)


def contained(framework_ref: str, platform: Platform) -> Interpreter:
    """Give what starts a framework that a platform has in a container, and nowhere else."""
    if platform.is_simulated:
        return SIMULATED
    reference = EnvironmentReference.parse(framework_ref)
    container = platform.framework(reference.lock).container
    if container is None:
        raise Unavailable(f"{reference}: {platform.name} names no container for it.")
    program = {"charliecloud": "ch-run", "pyxis": "srun"}.get(container.engine, container.engine)
    if shutil.which(program) is None:
        raise Unavailable(f"{reference}: {program} is no program on this machine.")
    return Interpreter(
        argv=(container.interpreter,),
        env=laid_over(isolated(os.environ), platform.variables(reference.lock)),
        fingerprint=cache.digest([container.engine, container.image, container.interpreter]),
        description=f"{container.image} in {container.engine}",
        packages={},
    )


def _managed(
    lock: Lock,
    reference: EnvironmentReference,
    platform: Platform,
    given: WorkerVariables,
) -> Interpreter:
    env = given.own
    wanted, other = ("gpu", "cpu") if platform.accelerators else ("cpu", "gpu")
    elsewhere = platform.launcher.name != "local"
    architecture = platform.node.architecture if elsewhere else None
    built = cache.find(lock, reference, wanted, architecture) or cache.find(
        lock, reference, other, architecture
    )
    if built is None:
        raise Unavailable(_cure(lock, reference, wanted))
    path = f"{built.root / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    changes = given.changes or {}
    fingerprint = cache.digest([built.fingerprint, dict(changes)]) if changes else built.fingerprint
    return Interpreter(
        argv=(str(built.executable),),
        env={**env, "PATH": path},
        fingerprint=fingerprint,
        description=_title(lock, built),
        packages=built.packages,
        sites=(built.root,),
        is_ours=True,
        device=built.device,
    )


def _cure(lock: Lock, reference: EnvironmentReference, device: str) -> str:
    flag = f" --device {device}" if (device == "gpu") != gpus.has_gpu() else ""
    named = f"'{reference}'" if reference.groups else f"{reference}"
    command = f"bakeoff env create {named}{flag}"
    stem = cache.place(lock, reference, "", "").name.rpartition("-")[0]
    old = [one for one in cache.folders() if one.name.rpartition("-")[0] == stem]
    if not old:
        return f"{reference} has no environment here yet.\n    Build it: {command}"
    if any(cache.read(one) is None for one in old):
        return f"{reference}'s environment is not finished.\n    Go on with it: {command}"
    if not all(one.is_whole for one in map(cache.read, old) if one is not None):
        return f"{reference}'s environment lost its Python.\n    Build it again: {command}"
    return (
        f"{reference}'s environment was built from another lock or for another device or machine.\n"
        f"    Build this one: {command}"
    )


def _title(lock: Lock, built: Environment) -> str:
    python = built.python.split("-")[1]
    build = f", {built.device} build" if built.device != "any" else ""
    return f"{lock.title} {lock.version(built.packages)} (Python {python}{build})"


def _bare(lock: Lock, reference: EnvironmentReference, env: dict[str, str]) -> Interpreter:
    python = pythons.find(lock.python, purpose=str(reference))
    return Interpreter(
        # Without site there is no site-packages at all: the standard library and the payload.
        argv=(str(python.path), "-s", "-S"),
        env=env,
        fingerprint=cache.digest(python.tag),
        description=f"{python}, standard library only",
        packages={},
    )


def _foreign(
    reference: EnvironmentReference,
    program: str,
    given: WorkerVariables,
    origin: str,
    *,
    needs: str = "",
) -> Interpreter:
    env = given.env
    path = shutil.which(program, path=env.get("PATH"))
    if path is None:
        raise Unavailable(f"{reference}: {program} ({origin}) is no program on this machine.")
    what = f"{reference}: {path} ({origin})"
    answer = commands.run(
        [path, "-c", _CONTENT],
        timeout_s=_PATIENCE_S,
        env=env,
        what=f"{what}, asked for its version,",
        awaited=f"{path} to say its version",
    )
    try:
        content = parse(answer.required().rpartition("\n")[2].encode(errors="replace"))
        version, packages = str(content[0]).split()[0], dict(sorted(map(_named, content[1])))
        sites = tuple(Path(str(one)) for one in content[2])
        numbers = tuple(map(int, re.findall("[0-9]+", version)[:3]))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise Unavailable(f"{what} is no Python: asked for its version, it said none.") from None
    if not pythons.satisfies(numbers, needs):
        raise Unavailable(
            f"{what} is Python {version.split()[0]}; {reference} stands for Python {needs}.\n"
            f'    Name one: [frameworks."{reference.lock}"]  interpreter = "/path/to/python"'
        )
    changes = dict(given.changes or {})
    return Interpreter(
        argv=(path,),
        env=env,
        fingerprint=cache.digest([content[:2], changes]),
        description=f"{path} (Python {version}, {origin})",
        packages=packages,
        sites=sites,
    )


def _needed_python(lock: Lock, platform: Platform) -> str:
    """Give the Python that a platform's interpreter must be; any, where it is named for this lock.

    What is said of a framework holds for its variants too, and some of them are a Python's. A lock
    that installs nothing is nothing but its Python.
    """
    is_bare = not lock.is_built and lock.variable is None and not lock.programs
    return lock.python if is_bare or lock.name not in platform.frameworks else ""


def _named(folder: str) -> tuple[str, str]:
    name, _, version = folder.rpartition(".")[0].partition("-")
    return name.lower().replace("_", "-"), version.partition("-")[0]


def _require_programs(lock: Lock, env: Mapping[str, str]) -> None:
    program = missing_program(lock, env)
    if program is not None:
        named = env.get(program.variable, "") if program.variable else ""
        missing = f"{program.variable}={named}" if named else program.name
        cure = program.cure[:1].upper() + program.cure[1:]
        raise Unavailable(f"{lock.name} needs the program {missing}: {program.why}.\n    {cure}.")
