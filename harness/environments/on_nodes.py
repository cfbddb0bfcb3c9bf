"""Build a framework's environment for nodes that a launcher reaches, be they offline.

Wheels for the node's Python are fetched here into a folder that both see; the environment is made,
filled and imported there. Its marker is the same as that of one built here.
"""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

from harness.environments import cache
from harness.environments.build import BuildListener, BuildOrder, build, lock_to_build
from harness.environments.cache import Environment
from harness.environments.lock import EnvironmentReference
from harness.environments.package_index import pip_for_nodes
from harness.environments.package_index.download_size import amount
from harness.environments.package_index.pip import NotOffered, hashed
from harness.environments.package_index.pip_for_nodes import Target
from harness.errors import BakeoffError, Unavailable
from harness.ranks.remote_node import RemoteNode

_LONG_S = 1800.0


def create(
    reference: EnvironmentReference,
    listener: BuildListener,
    node: RemoteNode,
    *,
    python: Path | None = None,
    device: str | None = None,
) -> Environment:
    """Build an environment that a node's Python runs, or hand back the one that is there."""
    lock = lock_to_build(reference)
    if lock.sources:
        raise BakeoffError(
            f"{reference} is built from its source, which needs a node's own compiler.\n"
            f"    On a node with a network: bakeoff env create {reference}"
        )
    listener.doing(f"{reference}: looking for Python {lock.python} on {node}")
    there = pip_for_nodes.find(node, lock.python, explicit=python, purpose=str(reference))
    _require_shared(node)
    order = BuildOrder(lock, reference, device or ("gpu" if _has_gpu(node) else "cpu"), listener)
    return build(
        order,
        there.python.tag,
        runs=lambda built: node.ask(str(built.executable), "-c", "").code == 0,
        fill=partial(_fill, order, there, node),
        through=node.launcher,
    )


def _fill(order: BuildOrder, there: Target, node: RemoteNode, root: Path) -> list[str]:
    """Make the environment; what is wrong with it, the node's own commands tell."""
    node.run(str(there.python.path), "-I", "-m", "venv", "--clear", "--without-pip", str(root))
    tag = there.python.tag
    items = order.choose(there.plan, f"has wheels for {tag} of what the lock pins")
    wheels = cache.home() / "wheels" / tag
    wheels.mkdir(parents=True, exist_ok=True)
    order.say(f"{order.lock.title} for {node} ({tag}), {amount(items)}")
    there.fetch(items, wheels, lambda line: order.doing(line[:60]))
    (root / "lock.txt").write_text(hashed(items), "utf-8")
    order.doing(f"installing {len(items)} packages on {node}")
    log = node.run(
        *(str(root / "bin" / "python"), "-I", _pip(there, node, wheels), "--isolated", "install"),
        *("--no-index", "--find-links", str(wheels), "--no-deps", "--no-input"),
        *("--require-hashes", "-r", str(root / "lock.txt")),
        timeout_s=_LONG_S,
    )
    (root / "create.log").write_text(log, "utf-8")
    if order.lock.imports:
        order.doing(f"importing {', '.join(order.lock.imports)} on {node}")
        imports = "; ".join(f"import {name}" for name in order.lock.imports)
        variables = [f"{name}={value}" for name, value in order.lock.environment.items()]
        node.run(
            "env", *variables, str(root / "bin" / "python"), "-I", "-c", imports, timeout_s=_LONG_S
        )
    return []


def _pip(there: Target, node: RemoteNode, wheels: Path) -> str:
    """Give a pip that serves the node's Python: the index's newest, or the one it brought along."""
    try:
        there.fetch(there.plan(["pip"], {}), wheels)
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


def _require_shared(node: RemoteNode) -> None:
    """Refuse a folder that the node does not see: nothing else than files joins the two."""
    word = secrets.token_hex(8)
    file = cache.home() / f".seen-{word}"
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


def _has_gpu(node: RemoteNode) -> bool:
    return node.ask("sh", "-c", "ls /dev/nvidia[0-9]*").code == 0
