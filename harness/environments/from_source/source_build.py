"""Build a distribution from its source where no index has a wheel for today's Python.

The source is fetched and checked by its hash, a few substitutions are made, each of which has to
fit exactly, and the wheel is kept by a hash of everything that decided it: a second environment,
or the same one built again, takes it from there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.environments import cache, verify
from harness.environments.from_source.source_recipe import Source, Substitution
from harness.environments.package_index.pip import Installer, started
from harness.errors import Unavailable

_LAST_LINES = 12


def add(
    source: Source,
    framework: str,
    environment: tuple[Path, str],
    pip: Installer,
    doing: Callable[[str], None],
) -> str:
    """Build a wheel, or take the kept one, and install it; say which.

    An environment is its folder and the tag of its Python.
    """
    root, _ = environment
    settings, key = _settings(source, framework, *environment)
    wheel_folder = cache.home() / "wheels" / key
    wheels = sorted(wheel_folder.glob("*.whl"))
    if not wheels:
        _require(source)
        wheel_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
            wheel = _build(source, settings, Path(scratch), pip, root / "source.log", doing)
            beside = wheel_folder / f"{wheel.name}.new"
            shutil.copyfile(wheel, beside)
            wheels = [beside.rename(wheel_folder / wheel.name)]
    doing(f"installing {source.distribution} {source.version}")
    pip.run("install", "--no-deps", "--no-input", str(wheels[0]))
    return f"{source.distribution} {source.version} was built here ({wheels[0].parent.name})"


def _settings(
    source: Source, framework: str, root: Path, python: str
) -> tuple[dict[str, str], str]:
    """Give what the build is told, and the hash of all that decides the wheel."""
    settings = {**source.environment, **source.frameworks.get(framework, {})}
    for program, choice in source.optional.items():
        settings[choice["with" if shutil.which(program) else "without"]] = "1"
    packages = verify.packages(root)
    packages.pop(source.distribution, None)
    versions = {program: _version(program) for program in (*source.programs, *source.optional)}
    key = cache.digest([source.digest, framework, settings, packages, versions, python])
    return settings, f"{source.distribution}-{key}"


def _version(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return (answer.stdout or answer.stderr).partition("\n")[0]


def _require(source: Source) -> None:
    missing = [
        f"{program}: {cure}"
        for program, cure in source.programs.items()
        if not shutil.which(program)
    ]
    if missing:
        raise Unavailable(
            f"{source.distribution} {source.version} has to be compiled, and this machine lacks:\n"
            + "\n".join(f"    {one}" for one in missing)
        )


def _build(
    source: Source,
    environment: Mapping[str, str],
    scratch: Path,
    pip: Installer,
    log: Path,
    doing: Callable[[str], None],
) -> Path:
    named = f"{source.distribution}=={source.version}"
    here = {
        **os.environ,
        **environment,
        "PATH": f"{pip.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "MAKEFLAGS": f"-j{len(os.sched_getaffinity(0))}",
    }
    doing(f"fetching {named}")
    fetch = ("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--quiet")
    _call(pip, (*fetch, "--dest", str(scratch), named), here, log)
    archive = scratch / f"{source.distribution}-{source.version}.tar.gz"
    if hashlib.sha256(archive.read_bytes()).hexdigest() != source.sha256:
        raise Unavailable(f"{archive.name} is not the file that was examined (its hash differs).")
    with tarfile.open(archive) as file:
        file.extractall(scratch, filter="data")
    folder = scratch / archive.name.removesuffix(".tar.gz")
    for one in source.substitutions:
        substitute(folder / one.file, one)
    with_what = [choice["what"] for choice in source.optional.values() if choice["with"] in here]
    extra = f" with {', '.join(with_what)}" if with_what else ""
    doing(f"compiling {named}{extra}, some minutes")
    build = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(scratch / "made"))
    _call(pip, (*build, str(folder)), here, log)
    (wheel,) = (scratch / "made").glob("*.whl")
    return wheel


def substitute(file: Path, one: Substitution) -> None:
    """Write a passage anew; the first is meant, and it has to be there."""
    text = file.read_text("utf-8")
    if one.old not in text:
        raise Unavailable(f"{one.file}: the passage to be changed is not there ({one.why}).")
    file.write_text(text.replace(one.old, one.new, 1), "utf-8")


def _call(pip: Installer, arguments: Any, environment: Mapping[str, str], log: Path) -> None:
    argv = [*pip.argv, *arguments]
    with log.open("a", encoding="utf-8") as file, started(argv, environment) as process:
        assert process.stdout is not None
        file.writelines(process.stdout)
    if process.returncode != 0:
        lines = log.read_text("utf-8", errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower()][:3] or lines[-_LAST_LINES:]
        shown = "\n    ".join(line.strip() for line in errors)
        raise Unavailable(f"pip {arguments[0]} failed:\n    {shown}\n    All it said: {log}")
