"""Run commands on the nodes of an allocation, and keep an agent on each for trials."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from harness import plugins
from harness.agent.protocol import TrialCommand, TrialEnd
from harness.errors import Unavailable
from harness.launch.contract import Launcher, Node
from harness.launch.rendezvous import ports_needed
from harness.machine.small_files import boot_id
from harness.machine.sysfs_topology import read_topology
from harness.platform.platform import Platform
from harness.ranks import on_nodes
from harness.ranks.agent_client import AgentProcess
from harness.ranks.interrupts import Interrupts
from harness.ranks.node_offer import free_ports, read_offer
from harness.ranks.on_nodes import AgentLost, NodeTrial
from harness.ranks.remote_node import RemoteNode

HERE = ""
_PORTS = 96
"""Asked for once a node, then taken in turn."""


def launcher(platform: Platform) -> Launcher:
    """Load what a platform starts its ranks with."""
    module: Launcher = plugins.load("launchers", platform.launcher.name)
    return module


def reached(platform: Platform, node: str) -> RemoteNode:
    """Give a node of the allocation, to run commands on."""
    settings = platform.launcher.settings
    return RemoteNode(node, platform.launcher.name, settings, launcher(platform).reach)


class TooFewNodes(Unavailable):
    """Fewer nodes answer than a trial needs."""

    def __init__(self, message: str, found: int) -> None:
        super().__init__(message)
        self.found = found


class Nodes:
    """The nodes of a session, each with its agent, started when first needed."""

    def __init__(self, platform: Platform, errors: Path, *, run: str | None = None) -> None:
        self._platform = platform
        self._run = run
        """Its id, which marks what killed sessions of it left on nodes; None: there is no run."""
        self._swept = {boot_id()}
        self._errors = errors
        self.launcher = launcher(platform)
        """Found once: finding one lists a folder."""
        self._known: dict[str, Node] = {}
        self._ports: dict[str, Any] = {}
        self._agents: dict[tuple[str, int], AgentProcess] = {}
        self._lost: dict[str, None] = {}

    def gather(self, count: int, each: int, first: int | None = None) -> tuple[Node, ...]:
        """Choose nodes for a trial: those that were lost come last, for they may be back.

        With ``first`` these and no others: that one, counted from 1, and those that follow it in
        the ring of all.
        """
        wanted = self.launcher.nodes(self._platform.launcher.settings, os.environ)
        if first is not None:
            wanted = _following(wanted, first)[:count]
        order = [name for name in wanted if name not in self._lost]
        order += [name for name in self._lost if name in wanted]
        found: list[Node] = []
        problems = []
        for name in order:
            if len(found) == count:
                break
            try:
                found.append(self._node(name, each))
            except Unavailable as problem:
                self._lost[name] = None
                problems.append(str(problem))
        if len(found) < count:
            listed = "".join(f"\n    {problem}" for problem in problems)
            raise TooFewNodes(
                f"{self._platform.name} offers {len(found)} of {count} nodes here.{listed}",
                len(found),
            )
        return tuple(sorted(found, key=lambda node: wanted.index(node.name)))

    def _node(self, name: str, each: int) -> Node:
        if name == HERE:
            cpus = tuple(sorted(os.sched_getaffinity(0))[: self._platform.node.cpus])
            if name not in self._known:
                self._known[name] = Node(cpus, (), topology=read_topology(cpus))
            # Found anew for each trial: it costs nothing here.
            return replace(self._known[name], ports=free_ports(ports_needed(each), "127.0.0.1"))
        if name not in self._known:
            argv = (sys.executable, "-P", "-m", "harness.ranks.node_offer", str(_PORTS))
            left = () if self._run is None else (self._run, *sorted(self._swept))
            offer = read_offer(reached(self._platform, name).run(*argv, *left), name)
            self._swept.add(offer.boot)
            cpus = offer.cpus[: self._platform.node.cpus]
            topology = offer.topology.within(cpus)
            self._known[name] = Node(cpus, (), name=name, address=name, topology=topology)
            self._ports[name] = cycle(offer.ports)
            self._lost.pop(name, None)
        ports = tuple(islice(self._ports[name], ports_needed(each)))
        return replace(self._known[name], ports=ports)

    def agent(self, name: str, seat: int = 0) -> AgentProcess:
        """Give a node's agent; it starts with its first trial.

        Trials that live at the same time have agents of their own, by their seats.
        """
        if (name, seat) not in self._agents:
            through = self.launcher.reach(name, (), self._platform.launcher.settings)
            suffix = "".join(f".{one}" for one in (name, seat) if one) + ".err"
            self._agents[name, seat] = AgentProcess(
                self._errors.with_suffix(suffix), through=through
            )
        return self._agents[name, seat]

    def run(
        self,
        commands: Sequence[tuple[Node, int | None, TrialCommand]],
        *,
        interrupts: Interrupts,
        on_tick: Callable[[], None],
    ) -> TrialEnd | AgentLost:
        """Run one trial on its nodes; each comes with its agent's own core and its commands."""
        parts = [
            NodeTrial(node.name, self.agent(node.name), core, command)
            for node, core, command in commands
        ]
        ended = on_nodes.run(parts, interrupts=interrupts, on_tick=on_tick)
        for part in parts:
            if part.end is None:
                self._lose(part.node)
        return ended

    def _lose(self, name: str) -> None:
        """Record that a node is lost until it answers again."""
        self._lost[name] = None
        self._known.pop(name, None)

    def agents(self) -> tuple[AgentProcess, ...]:
        """Give the agents started so far."""
        return tuple(self._agents.values())

    def close(self) -> None:
        """End every agent."""
        for agent in self._agents.values():
            agent.close()


def _following(names: tuple[str, ...], first: int) -> tuple[str, ...]:
    """Give all nodes from one on, around the ring; none where there are not so many."""
    return (*names[first - 1 :], *names[: first - 1]) if first <= len(names) else ()
