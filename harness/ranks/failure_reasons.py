"""Decide how a trial's ranks ended, from evidence alone, with advice for the user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import Signals

from harness.agent.protocol import TrialEnd
from harness.commands import signal_text
from harness.ranks.on_nodes import AgentLost
from harness.ranks.stuck_ranks import who_waited
from harness.store.events.rank_tail import RankTail
from harness.store.layout import TrialPaths
from harness.store.outcome import Ended, RankEnd
from harness.units import size_text
from harness.worker.last_words import last_words

AGENT_LOST = (
    "The agent on {} that watched the ranks was lost (killed, its machine stood still, went down "
    "or was cut off)."
)
_AGAIN = "`bakeoff resume` runs it again."

_MEMORY_WORDS = re.compile(  # TensorFlow calls a full disk an exhausted resource as well
    r"^(?!.*No space left on device).*"
    r"(CUDA out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|std::bad_alloc|MemoryError\b"
    r"|DefaultCPUAllocator: (?:can't|not enough)|[Cc]annot allocate memory|Out of memory"
    r"|failed to allocate|CUDA_ERROR_OUT_OF_MEMORY|out of memory on device).*$",
    re.MULTILINE,
)
_REFUSED = "refused"
"""A rank's own word for what was timed and is not what it is called: its sentence says all."""
_OF_A_GPU = re.compile(r"CUDA|HIP|GPU")
_LAST_LINES = 5


@dataclass(frozen=True)
class Judgement:
    """How ranks ended, in one word and one message."""

    ended: Ended
    reason: str


def judge(
    end: TrialEnd | AgentLost, tails: Mapping[int, RankTail], *, trial: TrialPaths, timeout_s: float
) -> Judgement:
    """Decide how a trial ended; the first rule that applies holds.

    What the host or a user ended comes first, then what a node could not start: neither says
    anything of the cell. A cause that a rank states goes before a timeout
    (the other ranks wait for the failed one), and a timeout before what ranks ended with. Memory
    is recognised by words of frameworks, then by the kernel's own count of kills.
    """
    if isinstance(end, AgentLost):
        reason = f"{AGENT_LOST.format(end.nodes or 'this machine')} {end.said}"
        return Judgement(Ended.NODE_LOST, reason.rstrip())
    if end.cause == "cancel":
        return Judgement(Ended.CANCELLED, f"The trial was cancelled; {_AGAIN}")
    if end.cause == "closed":
        return Judgement(Ended.CANCELLED, f"The agent was told to end; {_AGAIN}")
    refused = next((rank for rank in end.ranks if rank.refused), None)
    if refused is not None:
        why = _sentence(refused.problem or "")
        return Judgement(Ended.NODE_LOST, f"Rank {refused.rank} on {refused.host}: {why} {_AGAIN}")
    for rank, tail in sorted(tails.items()):
        if tail.failed_kind == Ended.UNSUPPORTED:
            return Judgement(Ended.UNSUPPORTED, _sentence(tail.failed_message))
        if tail.failed_kind == _REFUSED:
            who = f"Rank {rank}: " if len(end.ranks) > 1 else ""
            return Judgement(Ended.FAILED, who + _sentence(tail.failed_message))
        if tail.failed_kind == Ended.OUT_OF_MEMORY:
            return Judgement(Ended.OUT_OF_MEMORY, _memory(end, rank, tail.failed_message))
    guilty = _guilty(end.ranks, tails)
    if end.cause == "timeout":
        return Judgement(Ended.TIMED_OUT, _timeout(end, tails, trial, timeout_s))
    if guilty is None:
        return Judgement(Ended.OK, "")
    tail = tails.get(guilty.rank, RankTail())
    memory_error = _MEMORY_WORDS.search(tail.failed_message) or _MEMORY_WORDS.search(tail.stderr)
    if memory_error is not None:
        return Judgement(Ended.OUT_OF_MEMORY, _memory(end, guilty.rank, memory_error[0].strip()))
    if end.memory.oom_kills and guilty.signal is not None:
        return Judgement(Ended.OUT_OF_MEMORY, _memory(end, guilty.rank, "the kernel killed it"))
    return Judgement(Ended.FAILED, _failure(guilty, tail, trial, has_peers=len(end.ranks) > 1))


def _guilty(ranks: Sequence[RankEnd], tails: Mapping[int, RankTail]) -> RankEnd | None:
    """Find the rank to blame: one that failed by itself goes before those stopped with it."""
    bad = [
        end for end in ranks if end.exit_code != 0 or not tails.get(end.rank, RankTail()).finished
    ]
    alone = [end for end in bad if not end.stopped]
    # A rank whose peer was killed fails by itself as well, and the order is unknown.
    killed = [end for end in alone if end.signal is not None]
    return next(iter(killed or alone or bad), None)


def _failure(end: RankEnd, tail: RankTail, trial: TrialPaths, *, has_peers: bool) -> str:
    rank = f"Rank {end.rank} on {end.host}" if has_peers else f"Rank {end.rank}"
    where = f" in phase {tail.phase}" if tail.phase else " before its first event"
    if end.problem is not None:
        return f"{rank}: {_sentence(end.problem)} Check the environment with `bakeoff env check`."
    if tail.failed_kind is not None:
        message = f"{rank} failed{where}: {_sentence(tail.failed_message)}"
    elif end.signal is not None:
        message = f"{rank} was ended by {signal_text(end.signal)}{where}."
        if end.signal == Signals.SIGKILL:
            message += " Neither Bakeoff nor the kernel's memory killer did that: somebody else."
            return f"{message} Log: {trial.stderr(end.rank)}"  # its last line is no reason
    elif end.exit_code == 0:
        message = f"{rank} ended{where} with exit code 0 but without finishing its trial."
    else:
        message = f"{rank} ended with exit code {end.exit_code}{where}."
    return message + _stderr_quote(tail) + f" Log: {trial.stderr(end.rank)}"


def _memory(end: TrialEnd, rank: int, words: str) -> str:
    limit = ""
    if end.memory.limit_bytes is not None:
        limit = f" (limit {size_text(end.memory.limit_bytes)}, {end.memory.how}"
        peak = end.memory.peak_bytes
        limit += f", peak {size_text(peak)})" if peak is not None else ")"
    return f"Rank {rank} ran out of memory{limit}: {_sentence(words)} {_memory_advice(end, words)}"


def _memory_advice(end: TrialEnd, words: str) -> str:
    if _OF_A_GPU.search(words):
        return "Try a smaller batch: it was a GPU's memory, which measure.memory does not limit."
    if end.memory.limit_bytes is None:
        return "Try a smaller batch: no measure.memory is set, this is all that the machine gives."
    return "Try a smaller batch, or a larger measure.memory."


def _timeout(
    end: TrialEnd, tails: Mapping[int, RankTail], trial: TrialPaths, timeout_s: float
) -> str:
    late = [rank.rank for rank in end.ranks if rank.stopped]
    first = late[0] if late else 0
    tail = tails.get(first, RankTail())
    ranks = "Rank" if len(late) == 1 else "Ranks"
    where = f"in phase {tail.phase}" if tail.phase else "before its first event"
    hosts = {rank.rank: rank.host for rank in end.ranks}
    reason = who_waited(end.waits, hosts) or "If that is how long it takes, raise measure.timeout."
    return (
        f"{ranks} {', '.join(map(str, late))} had not ended after {timeout_s:g} s, {where}. "
        f"{reason}{_stderr_quote(tail)} Log: {trial.stderr(first)}"
    )


def _stderr_quote(tail: RankTail) -> str:
    """Quote the last lines of stderr that matter."""
    lines = last_words(tail.stderr.splitlines(), _LAST_LINES)
    return "\n    " + "\n    ".join(lines) + "\n   " if lines else ""


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."
