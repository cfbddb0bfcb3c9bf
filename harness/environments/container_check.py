"""Ask a framework inside the container that a platform names for it, as a trial would enter it."""

from __future__ import annotations

import os

from harness.environments import verify
from harness.environments.lock import Lock
from harness.environments.outside_programs import printed_version
from harness.environments.worker_python import contained
from harness.errors import Unavailable
from harness.launch.container import Room, enter, handed
from harness.platform.platform import Platform


def complaint(lock: Lock, platform: Platform) -> str | None:
    """Import the framework inside, and ask the programs that it needs; None if all answer."""
    container = platform.framework(lock.name).container
    assert container is not None, "the caller saw that there is one"
    variables = platform.variables(lock.name)
    room = Room(cwd="/", env=variables, stated=tuple(variables))
    outside = {**os.environ, **handed(container, room)}
    try:
        inside = contained(lock.name, platform)
        verify.imported(enter(container, room, inside.argv), lock.imports, outside)
        for program in lock.programs:
            named = variables.get(program.variable or "") or program.name
            printed_version(program, enter(container, room, (named, "--version")), outside)
    except Unavailable as problem:
        return " ".join(str(problem).split())
    return None
