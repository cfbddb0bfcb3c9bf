"""Carry out a group of trials that take turns: one at work, the others stopped.

They start one after the other, so that each warms up alone. Then come the rounds; in each every
trial has one turn, in an order of its own. A turn in which others used the cores is repeated at
once, a few times. A trial that ends before its time leaves the others going on. The reference is
ended first: were the session killed among the ends, the others could be made again beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.plan.order import shuffled
from harness.plan.rounds import Rounds, rounds
from harness.run.turns.groups import Group
from harness.run.turns.known_bias import KnownBias
from harness.run.turns.live_trial import LiveTrial
from harness.store.outcome import Outcome, TurnsRecord
from harness.study.measure import Measure
from harness.verdicts.thresholds import THRESHOLDS

MOST_ATTEMPTS = 3
"""At one turn."""
_MOST_REPEATED = 0.5
"""Turns repeated for each round: a neighbour may never leave."""


@dataclass(frozen=True)
class TakingTurns:
    """What the groups of a session have in common."""

    measure: Measure
    tick: Callable[[LiveTrial, str], None]
    """Called at each turn and about once a second: the trial at work, and what it does."""
    bias: KnownBias
    is_stopped: Callable[[], bool]
    """Tells whether somebody asked to end the session."""

    def run(
        self, group: Group, block: int, begin: Callable[[str, int], LiveTrial]
    ) -> Iterator[Outcome]:
        """Run a group to its end; give the outcomes.

        ``begin`` makes the trial of a cell, given the cell's number in the group.
        """
        trials: list[LiveTrial] = []
        for seat, key in enumerate(group.keys):
            if self.is_stopped():
                break
            trials.append(begin(key, seat))
            trials[-1].warm_up(partial(self.tick, trials[-1], "warming up"))
        planned = self._take_rounds(trials, block)
        if self.is_stopped():
            for trial in trials:
                trial.cancel()
        together = {trial.key: trial.name for trial in trials}
        for trial in sorted(trials, key=lambda one: one.key != group.reference):
            trial.finish(partial(self.tick, trial, "ending"))
            yield trial.conclude(
                TurnsRecord(
                    together=together,
                    reference=group.reference,
                    rounds=planned,
                    at_work_s=trial.at_work_s,
                    known=self.bias.known(trial.key, len(trials)),
                )
            )

    def _take_rounds(self, trials: Sequence[LiveTrial], block: int) -> int:
        """Give every trial its turns, round after round; tell how many rounds were planned."""
        steps_s = [trial.step_s for trial in trials if trial.is_alive]
        if not steps_s or self.is_stopped():
            return 0
        planned = rounds(self.measure.until, turn_s=self.measure.turn_s, steps_s=steps_s)
        by_key = {trial.key: trial for trial in trials}
        left = dict.fromkeys(by_key, int(planned.count * _MOST_REPEATED))
        for number in range(1, planned.count + 1):
            for key in shuffled(by_key, self.measure.seed, block, number):
                if by_key[key].is_alive and not self.is_stopped():
                    left[key] -= self._take_turn(by_key[key], trials, planned, number, left[key])
        return planned.count

    def _take_turn(
        self,
        trial: LiveTrial,
        trials: Sequence[LiveTrial],
        planned: Rounds,
        number: int,
        most_repeats: int,
    ) -> int:
        """Let a trial measure its turn, again where others disturbed it; tell how often again."""
        tick = partial(self.tick, trial, f"round {number} of {planned.count}")
        tick()
        turn = partial(
            trial.take_turn,
            number,
            span=planned.span(number),
            helpers=[one.agent_pid for one in trials if one is not trial],
            most_foreign=self._most_foreign,
            on_tick=tick,
        )
        repeats = 0
        while turn(1 + repeats) and 1 + repeats < MOST_ATTEMPTS:
            if repeats >= most_repeats or self.is_stopped():
                break
            repeats += 1
        return repeats

    @property
    def _most_foreign(self) -> Mapping[str, float] | None:
        """Give what others may use in a turn, as the verdict on trials has it."""
        if "contended" in self.measure.tolerate:
            return None
        cores, share = (THRESHOLDS[name].value for name in ("foreign", "foreign share"))
        return {"cores": cores, "share": share}
