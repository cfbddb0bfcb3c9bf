"""Ask a framework inside the container that a platform names for it, as a trial would enter it."""

from __future__ import annotations

import os

from harness.environments import verify
from harness.environments.lock import Lock
from harness.environments.outside_programs import printed_version
from harness.environments.worker_python import contained
from harness.errors import Unavailable
from harness.launch.container.engines import enter, handed, private_words
from harness.launch.container.room import Room
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
        words = private_words(container, room)
        command = enter(container, room, inside.argv)
        verify.imported(command, lock.imports, outside, private=words)
        for program in lock.programs:
            named = variables.get(program.variable or "") or program.name
            command = enter(container, room, (named, "--version"))
            printed_version(program, command, outside, private=words)
    except Unavailable as problem:
        return " ".join(str(problem).split())
    return None
