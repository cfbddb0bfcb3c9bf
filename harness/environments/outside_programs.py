"""Identify the programs that an environment needs and no lock can pin.

Two builds of one program may share a version and nothing else, so what counts is the file itself
and the libraries that it loads. Its own (``libcaffe`` of ``caffe``) count by their content; of the
others, BLAS among them, name and size have to do, since some are hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import commands
from harness.environments.lock import Lock, Program
from harness.errors import Unavailable

_LOADED = re.compile(r"^\s*(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_VERSION = re.compile(r"\bversion (\S+)")
_PATIENCE_S = 60.0
_ELF = b"\x7fELF"


def identities(lock: Lock, env: Mapping[str, str]) -> dict[str, str]:
    """Digest each program that a lock needs, by its name."""
    found = {}
    for program in lock.programs:
        named = env.get(program.variable or "") or program.name
        path = shutil.which(named, path=env.get("PATH"))
        if path is not None:
            found[program.name] = _digest(program.name, Path(path).resolve(), env)
    return found


def installed_version(program: Program, env: Mapping[str, str]) -> str:
    """Ask a program for its version, empty if it has none; refuse one that is another."""
    named = env.get(program.variable or "") or program.name
    path = shutil.which(named, path=env.get("PATH"))
    if path is None:
        raise Unavailable(f"{named} is no program here")
    return printed_version(program, (path, "--version"), env)


def printed_version(
    program: Program,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    private: str = "",
) -> str:
    """Run the command that asks for a version, and hold what it prints to the program's name."""
    what = " ".join(argv[-2:])
    answer = commands.run(
        argv, timeout_s=_PATIENCE_S, env=env, what=what, awaited=what, private=private
    )
    text = answer.required() + answer.stderr
    if program.says not in text.lower():
        printed = " ".join(text.split())[:80]
        raise Unavailable(f"{what} says nothing of '{program.says}': {printed or 'it is silent'}")
    version = _VERSION.search(text)
    return version[1] if version else ""


def _digest(name: str, path: Path, env: Mapping[str, str]) -> str:
    content = path.read_bytes()
    whole = hashlib.sha256(content)
    if content.startswith(_ELF):
        for library in _loaded(path, env):
            whole.update(library.name.encode())
            if library.name.startswith(f"lib{name}"):
                whole.update(library.read_bytes())
            else:
                whole.update(str(library.stat().st_size).encode())
    return whole.hexdigest()


def _loaded(path: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """List the libraries that the dynamic linker would load; none where that is unknown."""
    program = shutil.which("ldd", path=env.get("PATH"))
    if program is None:
        return
    result = subprocess.run(
        [program, str(path)], env=dict(env), capture_output=True, text=True, check=False
    )
    for library in sorted(set(_LOADED.findall(result.stdout))):
        yield Path(library).resolve()
