"""Judge a trial that took turns with others of its block: each turn by itself.

While others had their turns it stood still, and what the machine did then was theirs. Which rounds
count is told by its ``turn`` events: where others used its cores, a turn is repeated, and dropped
where that did not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

from harness.stats.estimate import median
from harness.stats.rounds import FEWEST_ROUNDS
from harness.store.events.rank_streams import Stream
from harness.store.events.turn_events import Turn
from harness.store.outcome import TurnsRecord
from harness.verdicts.results import Round, TurnsTaken
from harness.verdicts.thresholds import Finding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.stats.windows.shape import Shape


_FEWEST_HALF = 3
"""Windows; fewer say nothing of half a turn."""


def took_turns(streams: Sequence[Stream]) -> bool:
    """Tell whether every rank told of turns."""
    return bool(streams) and all(stream.turns for stream in streams)


def counted(stream: Stream) -> dict[int, Turn]:
    """Give the turn of each round that counts; a round may have none."""
    found: dict[int, Turn] = {}
    for turn in stream.turns:
        if (
            not (turn.disturbed or turn.is_check)
            and _place(stream, turn).stop > _place(stream, turn).start
        ):
            found.setdefault(turn.round, turn)
    return found


def _place(stream: Stream, turn: Turn) -> slice:
    """Say which of the measured windows are of a turn."""
    first, last = stream.start_ns.searchsorted([turn.start_ns, turn.end_ns]).tolist()
    return slice(first, last)


def taken(outcome: TurnsRecord | None, streams: Sequence[Stream], unit: str) -> TurnsTaken | None:
    """Sum up a trial's turns; None in a study without them."""
    if outcome is None:
        return None
    if outcome.alone or not took_turns(streams):
        return TurnsTaken(alone=outcome.alone or "it took none")
    rounds = tuple(_rounds(streams, unit))
    first = streams[0]
    return TurnsTaken(
        together=outcome.together,
        reference=outcome.reference,
        planned=outcome.rounds,
        disturbed=sum(bool(turn.disturbed) for turn in first.turns if not turn.is_check),
        turn_s=median([one.seconds for one in rounds]) if rounds else None,
        rounds=rounds,
        alternations=tuple(_alternations(first)),
        changes=tuple(_changes(first)),
        settled=all(turn.settling_steps_per_s for turn in counted(first).values()),
        known=outcome.known,
    )


def _alternations(stream: Stream) -> Iterator[float]:
    """Compare what came right after another trial's turn with what came next of its own.

    That is how it settled beside what it measured; in older runs, the turn beside its check. What
    was repeated followed a turn of its own. Ranks measure the same steps.
    """
    turns = counted(stream)
    for turn in turns.values():
        if turn.attempt == 1 and turn.settling_steps_per_s and turn.steps_per_s:
            yield log(turn.settling_steps_per_s / turn.steps_per_s)
    for check in stream.turns:
        before = turns.get(check.round)
        if not check.is_check or check.disturbed or before is None:
            continue
        if before.steps_per_s and check.steps_per_s:
            yield log(before.steps_per_s / check.steps_per_s)


def _changes(stream: Stream) -> Iterator[float]:
    """Compare the first half of what counts in each turn with the second, for one of the ranks."""
    each_ns = stream.elapsed_ns / stream.steps
    for turn in counted(stream).values():
        place = _place(stream, turn)
        half = (place.stop - place.start) // 2
        if half >= _FEWEST_HALF:
            early = each_ns[place.start : place.start + half]
            late = each_ns[place.stop - half : place.stop]
            yield log(float(late.mean()) / float(early.mean()))


def _rounds(streams: Sequence[Stream], unit: str) -> Iterator[Round]:
    """Give each round's rate, added up over ranks."""
    turns = [counted(stream) for stream in streams]
    for number in sorted(set.intersection(*map(set, turns))):
        total, longest = 0.0, 0.0
        for stream, own in zip(streams, turns, strict=True):
            place = _place(stream, own[number])
            seconds = int(stream.elapsed_ns[place].sum()) / 1e9
            work = stream.units.get(unit, 0.0) * int(stream.steps[place].sum())
            total += work / seconds if seconds > 0 else 0.0
            longest = max(longest, seconds)
        if total > 0:
            yield Round(number, total, longest)


def within(streams: Sequence[Stream], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take out of window times what sets turns apart: the machine's changes between them."""
    usual = median(times.tolist())
    even = times.copy()
    for turn in counted(streams[0]).values():
        place = _place(streams[0], turn)
        part = times[place]
        if len(part):
            even[place] = part / median(part.tolist()) * usual
    return even


def within_turns(shape: Shape, streams: Sequence[Stream]) -> Shape:
    """Leave out of a trial's shape what rounds take out of ratios, and what they show themselves.

    What is slower than turns cancels in a round; a mean over an eighth of the trial is that of
    about one turn, and so is a long rhythm. How far windows spread moves a turn's mean, and so the
    scatter of rounds, by which a block is judged.
    """
    turns = len(counted(streams[0]))
    windows_a_turn = shape.windows / turns if turns else shape.windows
    is_quick = shape.period is not None and 2 * shape.period <= windows_a_turn
    period = shape.period if is_quick else None
    even = replace(shape, spread=0.0, hiccups=0.0, drift=0.0, drift_clear=0.0, wander=0.0)
    return replace(even, period=period)


def foreign_cores(streams: Sequence[Stream]) -> float | None:
    """Average what others used of the ranks' cores in the turns that count."""
    known = [
        (turn.seconds, turn.foreign_cores)
        for turn in counted(streams[0]).values()
        if turn.foreign_cores is not None
    ]
    whole = sum(seconds for seconds, _ in known)
    return sum(seconds * cores for seconds, cores in known) / whole if whole else None


def judge_turns(told: TurnsTaken | None, streams: Sequence[Stream]) -> tuple[Finding, ...]:
    """Find a neighbour that never left: too few rounds are left that nobody disturbed."""
    if told is None or told.alone or not told.disturbed:
        return ()
    count = len(told.rounds)
    if count >= max(min(FEWEST_ROUNDS, told.planned), told.planned / 2):
        return ()
    own = [turn for turn in streams[0].turns if not turn.is_check]
    example = next(turn.disturbed for turn in own if turn.disturbed)
    text = (
        f"{told.disturbed} of {len(own)} turns were disturbed ({example}): "
        f"{count} of {told.planned} rounds count"
    )
    return (Finding("contended", text),)
