"""This file builds a framework's environment for nodes that a launcher reaches, be they offline.

Wheels for the node's Python are fetched here into a folder that both see; the environment is made,
filled and imported there. Its marker is the same as that of one built here.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from harness.errors import BakeoffError, Unavailable
from harness.run import inspection, shelf, target
from harness.run.installer import Item, NotOffered
from harness.run.lock import Lock, Reference, load_lock
from harness.run.reached import NodeThere
from harness.run.shelf import Environment
from harness.run.target import Target
from harness.run.venv import Listener, held
from harness.run.wheels import amount, size

_LONG_S = 1800.0


def create(
    reference: Reference,
    listener: Listener,
    node: NodeThere,
    *,
    python: Path | None = None,
    device: str | None = None,
) -> Environment:
    """Build an environment that a node's Python runs, or hand back the one that is there."""
    lock = load_lock(reference.lock)
    if not lock.is_built:
        raise BakeoffError(f"{reference}: there is nothing to build; a Python is used as it is.")
    if lock.sources:
        raise BakeoffError(
            f"{reference} is built from its source, which needs a node's own compiler.\n"
            f"    On a node with a network: bakeoff env create {reference}"
        )
    listener.doing(f"{reference}: looking for Python {lock.python} on {node}")
    there = target.find(node, lock.python, explicit=python, purpose=str(reference))
    _require_shared(node)
    device = device or ("gpu" if _has_gpu(node) else "cpu")
    content = shelf.content_hash(lock, reference, device)
    root = shelf.place(lock, reference, content, there.python.tag)
    root.parent.mkdir(parents=True, exist_ok=True)
    with held(root, reference, listener):
        built = shelf.read(root)
        if built is not None and node.ask(str(built.executable), "-c", "").returncode == 0:
            listener.say(f"{reference}: already built, {root}")
            return built
        started = time.monotonic()
        node.run(str(there.python.path), "-I", "-m", "venv", "--clear", "--without-pip", str(root))
        _fill(lock, reference, device, there, node, root, listener)
        found = inspection.packages(root)
        faults, notes = inspection.differences(lock, reference, device, found)
        if faults:
            raise Unavailable(f"{reference} was installed, but " + "; ".join(faults))
        environment = Environment(
            reference=str(lock.owner(reference)),
            device=device if lock.choices else "any",
            content=content,
            python=there.python.tag,
            packages=found,
            notes=tuple(notes),
            size_bytes=inspection.disk_bytes(root),
            seconds=round(time.monotonic() - started, 1),
            created_wall_ns=time.time_ns(),
            root=root,
            through=node.launcher,
        )
        shelf.write(environment)
    listener.say(
        f"{reference}: done in {environment.seconds:.0f} s, {size(environment.size_bytes)}, {root}"
    )
    return environment


def _fill(
    lock: Lock,
    reference: Reference,
    device: str,
    there: Target,
    node: NodeThere,
    root: Path,
    listener: Listener,
) -> None:
    listener.doing(f"{reference}: asking the package index for {there.python.tag}")
    items = _choose(there, lock, reference, device)
    wheels = shelf.home() / "wheels" / there.python.tag
    wheels.mkdir(parents=True, exist_ok=True)
    listener.say(
        f"{reference}: {lock.title} for {node} ({there.python.tag}), {amount(items, None)}"
    )
    pinned = [f"{item.name}=={item.version}" for item in items]
    there.fetch(pinned, wheels, lambda line: listener.doing(f"{reference}: {line[:60]}"))
    listener.doing(f"{reference}: installing {len(items)} packages on {node}")
    log = node.run(
        *(str(root / "bin" / "python"), "-I", _pip(there, node, wheels), "--isolated", "install"),
        *("--no-index", "--find-links", str(wheels), "--no-deps", "--no-input", *pinned),
        timeout_s=_LONG_S,
    )
    (root / "create.log").write_text(log, "utf-8")
    if lock.imports:
        listener.doing(f"{reference}: importing {', '.join(lock.imports)} on {node}")
        imports = "; ".join(f"import {name}" for name in lock.imports)
        node.run(str(root / "bin" / "python"), "-I", "-c", imports, timeout_s=_LONG_S)


def _choose(there: Target, lock: Lock, reference: Reference, device: str) -> list[Item]:
    refusals = []
    for requirements in lock.requirements(reference, device):
        try:
            return there.plan(requirements, lock.pinned(reference))
        except NotOffered as refusal:
            refusals.append(str(refusal))
    raise Unavailable(
        f"{reference}: no package index that pip knows has wheels for {there.python.tag} of what "
        "the lock pins.\n    " + "\n    ".join(refusals)
    )


def _pip(there: Target, node: NodeThere, wheels: Path) -> str:
    """Give a pip that serves the node's Python: the index's newest, or the one it brought along."""
    try:
        there.fetch(["pip"], wheels)
        newest = max(wheels.glob("pip-*.whl"), key=lambda one: one.stat().st_mtime_ns)
        return str(newest / "pip")
    except NotOffered:
        look = (
            "import ensurepip; from pathlib import Path; "
            "own = Path(ensurepip.__file__).parent / '_bundled'; "
            "print(*[*own.glob('pip-*.whl'), *Path('/usr/share/python-wheels').glob('pip-*.whl')])"
        )
        words = node.run(str(there.python.path), "-I", "-c", look).split()
        found = [word for word in words if word.endswith(".whl")]  # login scripts may greet
        if not found:
            raise Unavailable(
                f"No pip serves {there.python} on {node}: the index offers none, and its ensurepip "
                "brings none.\n    On Debian and Ubuntu: apt-get install python3-venv, there."
            ) from None
        return f"{found[0]}/pip"


def _require_shared(node: NodeThere) -> None:
    """Refuse a folder that the node does not see: nothing else than files joins the two."""
    word = secrets.token_hex(8)
    file = shelf.home() / f".seen-{word}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(word)
    try:
        if word not in node.ask("cat", str(file)).stdout:
            raise Unavailable(
                f"{node} does not see {file.parent}.\n"
                "    Set BAKEOFF_HOME to a folder that this machine and the nodes share."
            )
    finally:
        file.unlink()


def _has_gpu(node: NodeThere) -> bool:
    return node.ask("sh", "-c", "ls /dev/nvidia[0-9]*").returncode == 0
