"""This file runs commands on the nodes of an allocation, and keeps an agent on each for trials.

Agents of several nodes run one trial together: the first that ends badly, falls silent or dies ends
it on all others at once, and the outcome names whose rank or node it was.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from harness import providers
from harness.agent.protocol import MemoryEvidence, TrialCommand, TrialEnd
from harness.errors import Unavailable, UsageError, nearest
from harness.launch.launch import Launcher, Node
from harness.launch.meeting import ports_needed
from harness.run.agent import TICK_S, AgentProcess
from harness.run.interrupts import Interrupts
from harness.run.offer import free_ports, read_offered_topology
from harness.run.probe_topology import read_topology
from harness.spec.platform import Platform

HERE = ""
_PATIENCE_S = 60.0
_PORTS = 96
"""Asked for once a node, then taken in turn."""


def launcher(platform: Platform) -> Launcher:
    """Load what a platform starts its ranks with; refuse settings that it would not read."""
    name = platform.launcher.name
    module: Launcher = providers.load("launchers", name)
    if not all(hasattr(module, part) for part in ("SETTINGS", "launch", "nodes", "reach")):
        raise UsageError(f"{platform.name}: launcher.name: '{name}' is no launcher.")
    for setting in platform.launcher.settings:
        if setting not in module.SETTINGS:
            known = ", ".join(module.SETTINGS) or "none"
            raise UsageError(
                f"{platform.name}: launcher.settings: {name} has no '{setting}'."
                f"{nearest(setting, module.SETTINGS)}\n    Known: {known}."
            )
    return module


def names(platform: Platform) -> tuple[str, ...]:
    """Name the nodes at hand; "" is this machine."""
    return launcher(platform).nodes(platform.launcher.settings, os.environ)


def run_on(
    platform: Platform, node: str, argv: Sequence[str], *, timeout_s: float = _PATIENCE_S
) -> str:
    """Run one command on one node of the allocation and give what it printed."""
    command = launcher(platform).reach(node, argv, platform.launcher.settings)
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"node {node or 'here'}: {problem}") from problem
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines()[-3:] or [f"exit code {answer.returncode}"]
        raise Unavailable(f"node {node or 'here'}: {argv[0]} failed: " + "\n    ".join(said))
    return answer.stdout


@dataclass(frozen=True)
class Ended:
    """What the agents of a trial together testify."""

    end: TrialEnd | None
    """None: an agent was lost."""
    hosts: Mapping[int, str]
    """Where each rank ran."""
    lost: str | None = None
    """The node whose agent was lost."""


class Nodes:
    """The nodes of a session, each with its agent, started when first needed."""

    def __init__(self, platform: Platform, errors: Path) -> None:
        self._platform = platform
        self._errors = errors
        self._launcher = launcher(platform)
        self._known: dict[str, Node] = {}
        self._ports: dict[str, Any] = {}
        self._agents: dict[str, AgentProcess] = {}
        self._lost: dict[str, None] = {}

    def gather(self, count: int, each: int) -> tuple[Node, ...]:
        """Choose nodes for a trial: those that were lost come last, for they may be back."""
        wanted = names(self._platform)
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
            told = "".join(f"\n    {problem}" for problem in problems)
            raise Unavailable(
                f"{self._platform.name} offers {len(found)} of {count} nodes here.{told}"
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
            argv = (sys.executable, "-P", "-m", "harness.run.offer", str(_PORTS))
            told = json.loads(run_on(self._platform, name, argv))
            cpus = tuple(told["cpus"][: self._platform.node.cpus])
            topology = read_offered_topology(told["topology"]).within(cpus)
            self._known[name] = Node(cpus, (), name=name, address=name, topology=topology)
            self._ports[name] = cycle(told["ports"])
            self._lost.pop(name, None)
        ports = tuple(islice(self._ports[name], ports_needed(each)))
        return replace(self._known[name], ports=ports)

    def agent(self, name: str) -> AgentProcess:
        """Give a node's agent; it starts with its first trial."""
        if name not in self._agents:
            through = self._launcher.reach(name, (), self._platform.launcher.settings)
            errors = self._errors if name == HERE else self._errors.with_suffix(f".{name}.err")
            self._agents[name] = AgentProcess(errors, through=through)
        return self._agents[name]

    def run(
        self,
        commands: Sequence[tuple[Node, int | None, TrialCommand]],
        *,
        interrupts: Interrupts,
        on_tick: Callable[[], None],
    ) -> Ended:
        """Run one trial on its nodes; each comes with its agent's own core and its commands."""
        if len(commands) == 1:
            ((node, core, command),) = commands
            agent = self.agent(node.name)
            end = agent.run(command, core=core, interrupts=interrupts, on_tick=on_tick)
            hosts = {rank.rank: agent.host for rank in command.ranks}
            if end is None:
                self._lose(node.name)
            return Ended(end, hosts, None if end is not None else agent.host or node.name)
        return self._run_together(commands, interrupts, on_tick)

    def _run_together(
        self,
        commands: Sequence[tuple[Node, int | None, TrialCommand]],
        interrupts: Interrupts,
        on_tick: Callable[[], None],
    ) -> Ended:
        parts = [_Part(self.agent(node.name), core, command) for node, core, command in commands]
        done: queue.Queue[_Part] = queue.Queue()
        for part in parts:
            threading.Thread(target=part.go, args=(done,), daemon=True).start()
        first: _Part | None = None
        passed = 0
        left = len(parts)
        while left:
            with suppress(queue.Empty):
                part = done.get(timeout=TICK_S)
                left -= 1
                if first is None and not part.is_well:
                    first = part
                    for other in parts:
                        other.stop.ask()
            while passed < interrupts.count:
                passed += 1
                for other in parts:
                    other.stop.ask()
            on_tick()
        for part in parts:
            part.stop.close()
        hosts = {rank.rank: part.agent.host for part in parts for rank in part.command.ranks}
        for (node, _, _), part in zip(commands, parts, strict=True):
            if part.end is None:
                self._lose(node.name)
        if any(part.end is None for part in parts):
            lost = [n.name for (n, _, _), p in zip(commands, parts, strict=True) if p.end is None]
            return Ended(None, hosts, " and ".join(lost))
        ends = [part.end for part in parts if part.end is not None]
        guilty = first.end if first is not None else None
        return Ended(joined(ends, guilty, [part.agent.host for part in parts]), hosts)

    def _lose(self, name: str) -> None:
        """Remember that a node is not to be trusted before it answers again."""
        self._lost[name] = None
        self._known.pop(name, None)

    def agents(self) -> tuple[AgentProcess, ...]:
        """Give the agents that were needed so far."""
        return tuple(self._agents.values())

    def close(self) -> None:
        """End every agent."""
        for agent in self._agents.values():
            agent.close()


class _Stop(Interrupts):
    """Asks one agent to end its trial, as a signal asks the host."""

    def ask(self) -> None:
        """Ask once more."""
        self.count += 1
        self._writer.send(b"!")

    def close(self) -> None:
        """Give the descriptors back."""
        self._reader.close()
        self._writer.close()


class _Part:
    """One node's part of a trial, followed by a thread that sleeps."""

    def __init__(self, agent: AgentProcess, core: int | None, command: TrialCommand) -> None:
        self.agent = agent
        self.command = command
        self.stop = _Stop()
        self.end: TrialEnd | None = None
        self._core = core

    def go(self, done: queue.Queue[_Part]) -> None:
        """Run it to its end."""
        try:
            self.end = self.agent.run(
                self.command, core=self._core, interrupts=self.stop, on_tick=lambda: None
            )
        finally:
            done.put(self)

    @property
    def is_well(self) -> bool:
        """Whether the other nodes may go on."""
        end = self.end
        return end is not None and end.cause == "ended" and all(r.exit_code == 0 for r in end.ranks)


def joined(ends: Sequence[TrialEnd], first: TrialEnd | None, hosts: Sequence[str]) -> TrialEnd:
    """Make one testimony of several; ``first`` is the one that ended the others."""
    memories = [end.memory for end in ends]
    unobserved = [
        f"{host}: {end.unobserved}" for host, end in zip(hosts, ends, strict=True) if end.unobserved
    ]
    return TrialEnd(
        token=ends[0].token,
        cause=_cause(first),
        ranks=tuple(sorted((rank for end in ends for rank in end.ranks), key=lambda r: r.rank)),
        memory=MemoryEvidence(
            how=memories[0].how,
            limit_bytes=memories[0].limit_bytes,
            peak_bytes=max((m.peak_bytes for m in memories if m.peak_bytes), default=None),
            oom_kills=_sum(m.oom_kills for m in memories),
        ),
        leftovers=sum(end.leftovers for end in ends),
        survivors=sum(end.survivors for end in ends),
        started_wall_ns=min(end.started_wall_ns for end in ends),
        ended_wall_ns=max(end.ended_wall_ns for end in ends),
        unobserved="; ".join(unobserved) or None,
        stand_ins=tuple(dict.fromkeys(one for end in ends for one in end.stand_ins)),
    )


def _cause(first: TrialEnd | None) -> str:
    """Say why the trial ended; the last rank of a node ends nobody there, but elsewhere."""
    if first is None:
        return "ended"
    return "rank-failed" if first.cause == "ended" else first.cause


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
