"""Plan turns: who lives with whom, how many rounds there are, how long a turn is."""

from __future__ import annotations

import pytest

from harness.plan.rounds import FEWEST_PLANNED_ROUNDS, rounds
from harness.run.turns.groups import MOST_TOGETHER, Division, Group, divide
from harness.worker.job import Span

NEEDS = {"a": 2, "b": 2, "c": 2, "large": 9}


def groups(due: str, everybody: str, *, reference: str | None, room: int | None) -> Division:
    return divide(tuple(due), tuple(everybody), reference=reference, needs=NEEDS, room=room)


def test_all_that_fit_live_together() -> None:
    assert groups("abc", "abc", reference="b", room=6).groups == (Group(("a", "b", "c"), "b"),)
    assert groups("abc", "abc", reference=None, room=None).groups == (Group(("a", "b", "c")),)


def test_the_reference_joins_every_group_where_not_all_fit() -> None:
    made = groups("abc", "abc", reference="b", room=4)
    assert made.groups == (Group(("a", "b"), "b"), Group(("b", "c"), "b"))
    assert made.too_large == ()


def test_many_cells_form_groups_so_that_a_round_stays_short() -> None:
    keys = [f"cell-{number}" for number in range(2 * MOST_TOGETHER)]
    needs = dict.fromkeys(keys, 1)
    made = divide(keys, keys, reference="cell-0", needs=needs, room=None).groups
    assert {key for group in made for key in group.keys} == set(keys)
    assert all("cell-0" in group.keys for group in made)
    assert [len(group.keys) for group in made] == [6, 6, 6]
    free = divide(keys[: MOST_TOGETHER + 1], keys, reference=None, needs=needs, room=None)
    assert [len(group.keys) for group in free.groups] == [5, 4]
    assert free.too_large == ()


def test_what_fits_beside_nobody_is_left_alone() -> None:
    made = divide(("a", "large", "b"), ("a", "large", "b"), reference="a", needs=NEEDS, room=10)
    assert made.groups == (Group(("a", "b"), "a"),)
    assert made.too_large == ("large",)


def test_a_cell_that_is_made_again_gets_the_reference_beside_it() -> None:
    assert groups("c", "abc", reference="a", room=6).groups == (Group(("a", "c"), "a"),)


def test_a_reference_that_is_made_again_takes_all_others_along() -> None:
    assert groups("a", "abc", reference="a", room=6).groups == (Group(("a", "b", "c"), "a"),)


def test_a_cell_that_is_left_without_anybody_is_in_no_group() -> None:
    assert groups("c", "abc", reference=None, room=6) == Division()
    assert groups("a", "a", reference="a", room=6) == Division()


def test_nothing_due_makes_no_group() -> None:
    assert groups("", "abc", reference="a", room=6) == Division()


@pytest.mark.parametrize(
    ("until_s", "steps_s", "count"),
    [
        (60.0, [0.01, 0.02], 60),
        (60.0, [0.01, 1.0], 20),
        (3.0, [0.01], FEWEST_PLANNED_ROUNDS),
        (3.0, [0.01, 0.5], 2),
        (1.0, [4.0], 1),
        (1.0, [0.0], FEWEST_PLANNED_ROUNDS),
    ],
)
def test_rounds_of_about_a_turn_hold_a_few_steps_of_each_cell(
    until_s: float, steps_s: list[float], count: int
) -> None:
    planned = rounds(Span(seconds=until_s), turn_s=1.0, steps_s=steps_s)
    assert planned.count == count
    assert planned.span(1) == Span(seconds=until_s / count)


@pytest.mark.parametrize(
    ("steps", "steps_s", "count"),
    [(1000, [0.01, 0.02], 10), (100, [0.01], FEWEST_PLANNED_ROUNDS), (6, [1.0], 2), (1, [1.0], 1)],
)
def test_turns_of_steps_add_up_to_all_of_them(steps: int, steps_s: list[float], count: int) -> None:
    planned = rounds(Span(steps=steps), turn_s=1.0, steps_s=steps_s)
    assert planned.count == count
    each = [planned.span(number).steps or 0 for number in range(1, count + 1)]
    assert sum(each) == steps
    assert min(each) >= min(3, steps)
