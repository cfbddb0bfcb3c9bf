"""Tell which trials of a block take turns, with whom, and why the others run alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.plan.plan import Plan
from harness.plan.turn_rules import companies, has_two_sides, reasons
from harness.run.turns import pilot
from harness.run.turns.groups import Group, divide
from harness.run.turns.known_bias import KnownBias
from harness.run.turns.memory import MemoryUse, available_bytes
from harness.store.layout import PILOT, RunPaths, TrialName
from harness.store.outcome import Outcome, TurnsRecord
from harness.store.run_directory.due import Due
from harness.store.run_directory.trial_folders import outcomes

TOO_LARGE = "beside another trial it does not fit into memory"
LEFT_ALONE = "no trial of its work was left to take turns with"


class Blocks:
    """The blocks of one session, as far as their trials live at the same time."""

    def __init__(self, plan: Plan, paths: RunPaths, due: Due, bias: KnownBias) -> None:
        self._plan = plan
        self._paths = paths
        self._due = due
        self.bias = bias
        self._why = dict(reasons(plan, plan.platform))
        self._companies = companies(plan)
        ended = (one for trials in outcomes(paths).values() for one in trials.values())
        self.memory = MemoryUse(ended)
        self._too_large: set[str] = set()
        """Of the last division: what is known of memory changes with each trial that ends."""
        self._references: Mapping[str, str] | None = None

    def why_alone(self, key: str, block: int) -> TurnsRecord | None:
        """Say what the outcome of a trial that runs alone holds of it; nothing of pilots."""
        if block == PILOT:
            return None
        if key in self._too_large:
            return TurnsRecord(alone=TOO_LARGE)
        return TurnsRecord(alone=self._why.get(key, LEFT_ALONE))

    def learn(self, outcome: Outcome) -> None:
        """Keep how far the rate right after another trial's turn differed, for later runs."""
        key, name = outcome.cell_key, TrialName.parse(outcome.trial)
        together = len(outcome.turns.together) if outcome.turns is not None else 0
        if outcome.is_ok and name is not None and self.bias.is_wanted(key, together):
            from harness.verdicts.ended_trial import alternations  # loads what statistics load

            self.bias.learn(key, together, alternations(self._paths.trial(key, name)))

    def groups(
        self, block: int, keys: Sequence[str], is_left: Callable[[str], bool]
    ) -> list[Group]:
        """Divide what a block still needs into groups; what is in none runs alone.

        ``is_left`` tells which cells this session has given up for now.
        """
        if block == PILOT:
            return []
        able = [key for key in keys if self._is_able(key) and not is_left(key)]
        due = [key for key in able if self._due.needs(key, block) is not None]
        self._too_large.clear()
        found: list[Group] = []
        for company in dict.fromkeys(self._companies[key] for key in due):
            everybody = [key for key in able if self._companies[key] == company]
            division = divide(
                [key for key in due if key in everybody],
                everybody,
                reference=self._reference(company),
                needs={key: self.memory.needed_bytes(self._plan.cell(key)) for key in everybody},
                room=available_bytes(),
            )
            found += division.groups
            self._too_large.update(division.too_large)
        return found

    def _is_able(self, key: str) -> bool:
        return key not in self._why and self._due.given_up(key) is None

    def _reference(self, company: str) -> str | None:
        if has_two_sides(self._plan):
            return company
        if self._references is None:
            has_pilot = any(block == PILOT for _, block in self._plan.order)
            own = self._plan.reference
            self._references = pilot.references(self._plan, self._paths) if has_pilot else own
        return self._references.get(company)
