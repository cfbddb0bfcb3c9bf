"""The messages between the host and an agent: one JSON object a line, each way.

Host to agent: ``trial`` (a TrialCommand), ``cancel`` (grace_s), ``clock`` (number); of a trial that
takes turns also ``turn`` (round, attempt, span; helpers: Bakeoff's own processes on this node;
most_foreign: what others may use, in cores and as a share of the trial's; null: anything) and
``finish``. Closing the pipe ends the agent.
Agent to host: ``ready`` (pid, host, clock: its identity), ``started``, ``beat``, ``waits`` (the
trial stands still; step_s at first, then disturbed, foreign_cores of its turn), ``ended`` (a
TrialEnd), ``clock`` (number, received_ns, answered_ns: its monotonic clock when that question came
and when this answer goes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.store.outcome import MemoryEvidence, RankEnd

STARTER = -1
"""The rank of an engine's command that starts the shims of all ranks."""

BEAT_S = 5.0
"""How often an agent says that it lives while a trial runs."""


@dataclass(frozen=True)
class RankCommand:
    """One rank's complete command: argv, environment, CPUs and output files."""

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment; nothing is inherited."""
    cwd: str
    cpus: tuple[int, ...]
    node: int = 0
    """Which of the job's nodes it runs on."""
    private: str = ""
    """What a private file holds, whose number stands in ``argv``; empty: it needs none."""


@dataclass(frozen=True)
class TrialCommand:
    """The ranks of one trial on this agent's node, with their timeout."""

    token: str
    directory: str
    """The trial's, in which its ranks' output and the node's samples are kept."""
    ranks: tuple[RankCommand, ...]
    timeout_s: float
    grace_s: float
    memory_bytes: int | None
    output_bytes: int
    """What is kept of each stream: the first half of it and the last."""
    observe: Mapping[str, float] | None = None
    """Readings per second by source, where not as it says itself; None: nothing is observed."""
    door: str | None = None
    """Where an engine's shims come in, one a rank; None: the agent starts the ranks by itself."""
    starter: RankCommand | None = None
    """What starts the shims on all nodes; one agent has it, as rank ``STARTER``."""
    turns: bool = False
    """Whether it takes turns with trials of other agents."""
    inode: int | None = None
    """Of the directory: by now another one may lie at its path; None: any will do."""
    job: str | None = None
    """The digest of the ``job.json`` that lies there; None: any will do."""


@dataclass(frozen=True)
class TrialEnd:
    """Everything an agent reports about a trial that has ended."""

    token: str
    cause: str
    """ended; or what made the agent end it: rank-failed, timeout, cancel, closed."""
    ranks: tuple[RankEnd, ...]
    memory: MemoryEvidence
    leftovers: int
    """Processes that outlived their rank and were killed."""
    survivors: int
    """Processes that even SIGKILL did not end in time."""
    started_wall_ns: int
    ended_wall_ns: int
    unobserved: str | None = None
    """Why nothing was recorded of the hardware."""
    stand_ins: tuple[str, ...] = ()
    """Devices that only pretend to be what was asked for."""
    waits: tuple[Mapping[str, Any], ...] = ()
    """For a trial that was given up: each rank's connections, as ``waits.py`` describes them."""


def trial_line(command: TrialCommand) -> bytes:
    """Write the command that starts a trial."""
    ranks = [vars(rank) for rank in command.ranks]
    starter = None if command.starter is None else vars(command.starter)
    return line("trial", **{**vars(command), "ranks": ranks, "starter": starter})


def line(what: str, **fields: Any) -> bytes:
    """Write one message."""
    return json.dumps({"say": what, **fields}, separators=(",", ":")).encode() + b"\n"


def end_line(end: TrialEnd) -> bytes:
    """Write how a trial ended."""
    fields = {**vars(end), "memory": vars(end.memory), "ranks": [vars(one) for one in end.ranks]}
    return line("ended", **fields)


def read_trial(message: Mapping[str, Any]) -> TrialCommand:
    """Read a trial command from its message."""
    fields = {name: value for name, value in message.items() if name != "say"}
    ranks = tuple(map(_read_rank, fields.pop("ranks")))
    starter = fields.pop("starter")
    return TrialCommand(
        ranks=ranks, starter=None if starter is None else _read_rank(starter), **fields
    )


def _read_rank(raw: Mapping[str, Any]) -> RankCommand:
    return RankCommand(**{**raw, "argv": tuple(raw["argv"]), "cpus": tuple(raw["cpus"])})


def read_end(message: Mapping[str, Any]) -> TrialEnd:
    """Read how a trial ended from its message."""
    fields = {name: value for name, value in message.items() if name != "say"}
    ranks = tuple(RankEnd(**rank) for rank in fields.pop("ranks"))
    memory = MemoryEvidence(**fields.pop("memory"))
    fields |= {name: tuple(fields[name]) for name in ("stand_ins", "waits")}
    return TrialEnd(ranks=ranks, memory=memory, **fields)


class Lines:
    """Cut a stream of bytes into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Take what was read; give the messages that are complete."""
        *complete, self._rest = (self._rest + data).split(b"\n")
        return [one for one in map(_message, complete) if one is not None]


def _message(text: bytes) -> dict[str, Any] | None:
    """Read one line; None of what a login script on the way said."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "say" in value else None
