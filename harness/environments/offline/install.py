"""Install Bakeoff from the folder that this file lies in, without a network.

    python3.12 install.py WHERE

Standard library only: nothing else is on the machine yet. Every file is held to its SHA-256 first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import stat
import subprocess
import sys
from typing import Any

VERSION = 1  # 1: first
MANIFEST = "pack.json"
MOST_MANIFEST_BYTES = 16_000_000
# At most one folder deep, and no name begins with a dot: nothing leads out of the folder.
NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.+@-]*/)?[A-Za-z0-9_][A-Za-z0-9_.+!@-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20


class Refused(Exception):
    """Say what is wrong with an archive, or with the machine that it is for."""


def read_manifest(data: bytes) -> dict[str, Any]:
    """Read what an archive says that it holds; refuse what cannot be."""
    try:
        told: dict[str, Any] = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise Refused("{} cannot be read: {}".format(MANIFEST, problem)) from None
    if not isinstance(told, dict) or told.get("version") != VERSION:
        raise Refused("{} is not of version {}".format(MANIFEST, VERSION))
    files = told.get("files")
    if not isinstance(files, dict) or not all(map(_is_file, files.items())):
        raise Refused("{} does not state its files by size and SHA-256".format(MANIFEST))
    target, without = told.get("target"), told.get("without")
    if not _all_texts(target, dict) or sorted(target or ()) != ["libc", "machine", "python"]:
        raise Refused("{} does not state what it is for".format(MANIFEST))
    texts = [told.get("bakeoff"), told.get("pip")]
    if not _all_texts(without, list) or not _all_texts(texts, list) or told["pip"] not in files:
        raise Refused("{} does not state what it holds".format(MANIFEST))
    return told


def _all_texts(value: Any, kind: type) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, kind) and all(isinstance(one, str) for one in inner)


def _is_file(item: tuple[Any, Any]) -> bool:
    name, facts = item
    return bool(
        NAME.fullmatch(name)
        and name != MANIFEST
        and isinstance(facts, dict)
        and type(facts.get("bytes")) is int
        and 0 <= facts["bytes"] < 1 << 50
        and isinstance(facts.get("sha256"), str)
        and _SHA256.fullmatch(facts["sha256"])
    )


def checked(folder: str) -> dict[str, Any]:
    """Hold every file of an unpacked archive to its hash; give what the archive says of itself."""
    try:
        with open(_plain(os.path.join(folder, MANIFEST)), "rb") as file:
            told = read_manifest(file.read(MOST_MANIFEST_BYTES))
        for name, facts in sorted(told["files"].items()):
            _hold(os.path.join(folder, name), name, facts)
    except OSError as problem:
        raise Refused("{}: {}".format(problem.filename or folder, problem.strerror)) from None
    return told


def _plain(path: str) -> str:
    """Refuse a link, a pipe or a folder where a file should lie."""
    for one, is_right in ((os.path.dirname(path), stat.S_ISDIR), (path, stat.S_ISREG)):
        if not is_right(os.lstat(one).st_mode):
            raise Refused("{} is no plain {}".format(one, "file" if one == path else "folder"))
    return path


def _hold(path: str, name: str, facts: dict[str, Any]) -> None:
    digest, size = hashlib.sha256(), 0
    with open(_plain(path), "rb") as file:
        for data in iter(lambda: file.read(_CHUNK), b""):
            digest.update(data)
            size += len(data)
            if size > facts["bytes"]:
                break
    if (size, digest.hexdigest()) != (facts["bytes"], facts["sha256"]):
        raise Refused("{} is not the file that was packed (its SHA-256 differs)".format(name))


def misfit(target: dict[str, str]) -> str | None:
    """Say why this machine is not what an archive is for; None where it is."""
    here = "{}.{}".format(*sys.version_info[:2])
    if here != target["python"]:
        return "it is for Python {}, and this is {}: run install.py with that".format(
            target["python"], here
        )
    if platform.machine() != target["machine"]:
        return "it is for {}, and this machine is {}".format(target["machine"], platform.machine())
    kind, version = platform.libc_ver()
    wanted = target["libc"].split(" ")
    if wanted[0] == "glibc" and (kind != "glibc" or _numbers(version) < _numbers(wanted[-1])):
        found = "{} {}".format(kind, version).strip() or "another C library"
        return "it is for {} or newer, and here is {}".format(target["libc"], found)
    return None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))
    }
    kept.update(PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")
    return kept


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-3:]
        what = "this Python cannot make a virtual environment" if "venv" in argv else "pip"
        raise Refused("{}: {}".format(what, "\n    ".join(errors)))


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)


def install(folder: str, where: str) -> dict[str, Any]:
    """Make a virtual environment and install Bakeoff there, from the archive's wheels alone."""
    told = checked(folder)
    problem = misfit(told["target"])
    if problem is not None:
        raise Refused(problem)
    earlier = os.path.join(where, "bin", "bakeoff")
    if os.path.lexists(where) and not os.path.exists(earlier) and not _is_empty(where):
        raise Refused("{} holds other things than Bakeoff; name a new folder".format(where))
    wheels = os.path.join(folder, "wheels")
    shared = ["--system-site-packages"] if told["without"] else []
    _run(sys.executable, "-I", "-m", "venv", "--clear", "--without-pip", *shared, where)
    pip = [os.path.join(where, "bin", "python"), os.path.join(folder, told["pip"], "pip")]
    call = [*pip, "install", "--no-input", "--no-deps", "--no-index", "--find-links", wheels]
    if told["without"]:
        _run(*call, "--dry-run", *told["without"])
    _run(*call, "--require-hashes", "-r", os.path.join(folder, "bakeoff.txt"))
    return told


def main() -> None:
    """Install, then let the Bakeoff that was installed build the frameworks' environments."""
    parser = argparse.ArgumentParser(description="Install Bakeoff here, without a network.")
    parser.add_argument("where", help="the folder of the new virtual environment")
    where = os.path.abspath(parser.parse_args().where)
    folder = os.path.dirname(os.path.realpath(__file__))
    try:
        told = install(folder, where)
    except Refused as problem:
        sys.exit("install.py: {}.".format(str(problem).rstrip(".")))
    command = os.path.join(where, "bin", "bakeoff")
    print("Bakeoff {} is installed: {}".format(told["bakeoff"], command), flush=True)
    sys.exit(subprocess.call([command, "unpack", folder]))


if __name__ == "__main__":
    main()
