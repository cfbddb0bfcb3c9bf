"""Make the environment that workers begin with on a platform, module sets included."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.environments import module_sets
from harness.environments.lock import EnvironmentReference, Lock
from harness.errors import Unavailable
from harness.platform.platform import Platform
from harness.platform.starting import FrameworkThere
from harness.platform.variables import laid_over

_OURS = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYENV_VERSION", "__PYVENV_LAUNCHER__")


@dataclass(frozen=True)
class WorkerVariables:
    """What a platform makes of the environment, and what it says of the framework."""

    there: FrameworkThere
    stated: Mapping[str, str]
    """What the platform and the lock set."""
    env: Mapping[str, str]
    """All of it, for an interpreter that the platform gives."""
    modules: tuple[str, ...] = ()
    changes: Mapping[str, str] | None = None
    """What the modules changed; None without modules."""

    @property
    def own(self) -> dict[str, str]:
        """All of it for one of Bakeoff's own: what modules set for Python is for their Python."""
        return laid_over(isolated(self.env), self.stated)


def worker_variables(
    reference: EnvironmentReference, platform: Platform, lock: Lock | None
) -> WorkerVariables:
    """Lay the platform's modules and variables over this process's environment."""
    there, stated = platform.framework(reference.lock), platform.variables(reference.lock)
    names = (*platform.modules, *there.modules)
    env = laid_over(isolated(os.environ), stated)
    try:
        loaded = module_sets.load(names, env) if names else None
    except module_sets.NotLoaded as problem:
        raise Unavailable(
            f"{problem}\n    {_remedy(problem.name, reference, platform)}"
        ) from problem
    if loaded is not None:
        env = laid_over(loaded.env, loaded.unset(stated))
    if lock is not None:
        env, stated = laid_over(env, lock.environment), laid_over(stated, lock.environment)
    return WorkerVariables(there, stated, env, names, None if loaded is None else loaded.changes)


def _remedy(module: str, reference: EnvironmentReference, platform: Platform) -> str:
    """Say where a module that does not load is named, and how to find one that does."""
    place = "modules"
    if module not in platform.modules:
        own = reference.lock in platform.frameworks
        place = f"frameworks.{reference.lock if own else reference.framework}.modules"
    name = module.partition("/")[0]
    return f"`module avail {name}` shows what there is; mend {place} in {platform.name}."


def isolated(environ: Mapping[str, str]) -> dict[str, str]:
    """Take out what would lead a worker to the harness's or the user's own packages."""
    variables = {
        name: value
        for name, value in environ.items()
        if not name.startswith("PYTHON") and name not in _OURS
    }
    own = str(Path(sys.prefix) / "bin")
    if sys.prefix != sys.base_prefix and "PATH" in variables:
        folders = variables["PATH"].split(os.pathsep)
        variables["PATH"] = os.pathsep.join(
            folder for folder in folders if folder.rstrip("/") != own
        )
    return {**variables, "PYTHONNOUSERSITE": "1"}
