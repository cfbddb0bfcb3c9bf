"""Load a set of environment modules once and keep the environment that they make.

The one place where a shell is needed: ``module`` is a shell function. The script is fixed, names
are checked, and nothing of a study is ever interpolated into it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Unavailable, UsageError

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._+/-]*$")
_VOLATILE = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV"})
_NO_MODULE_COMMAND = 96
_TIMEOUT_S = 120


class NotLoaded(Unavailable):
    """Say which module did not load, and what the site said of it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        super().__init__(text)


@dataclass(frozen=True)
class ModuleSet:
    """What loading the modules made of the environment."""

    names: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment afterwards."""
    changes: Mapping[str, str]
    """What the modules set or changed: this decides whether results may be joined."""

    def unset(self, stated: Mapping[str, str]) -> dict[str, str]:
        """Give those of a platform's variables that the modules replaced instead of adding to."""
        return {
            name: value
            for name, value in stated.items()
            if f":{value}:" not in f":{self.env.get(name, '')}:"
        }


def load(names: tuple[str, ...], base: Mapping[str, str]) -> ModuleSet:
    """Load modules on top of an environment, in a shell that reads no start-up files."""
    wrong = [name for name in names if not _NAME.match(name)]
    if wrong:
        raise UsageError(f"'{wrong[0]}' is no module name: letters, digits and . _ + / - only.")
    wanted = " ".join(names)
    script = Path(__file__).with_name("modules.sh")
    try:
        answer = subprocess.run(
            ["bash", "--noprofile", "--norc", str(script), *names],
            env=dict(base),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"`module load {wanted}` took longer than {_TIMEOUT_S} s.") from error
    except FileNotFoundError as error:
        raise Unavailable("Loading modules needs bash, which is not on the PATH.") from error
    said = " ".join(answer.stderr.decode(errors="replace").split())
    if answer.returncode == _NO_MODULE_COMMAND:
        raise Unavailable(
            f"There is no `module` command here to load {wanted} with.\n"
            "    Is this the right machine? Otherwise name an interpreter in the platform."
        )
    if answer.returncode != 0:
        name = next((one for one in names if one in said), names[0])
        raise NotLoaded(name, f"`module load {wanted}` failed: {said}")
    entries = filter(None, answer.stdout.decode(errors="replace").split("\0"))
    env = {name: value for name, _, value in (entry.partition("=") for entry in entries)}
    absent = [name for name in names if not _is_loaded(name, env.get("LOADEDMODULES", ""))]
    if absent:
        # Old Tcl modules report success whatever happens.
        text = f"`module load {wanted}` did not load {', '.join(absent)}: {said}"
        raise NotLoaded(absent[0], text)
    changes = {
        name: value
        for name, value in sorted(env.items())
        if base.get(name) != value and name not in _VOLATILE and not name.startswith("BASH_FUNC_")
    }
    return ModuleSet(names, env, changes)


def _is_loaded(name: str, loaded: str) -> bool:
    return any(one == name or one.startswith(f"{name}/") for one in loaded.split(":"))
