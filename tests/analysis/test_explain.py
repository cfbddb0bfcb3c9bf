"""Account for the difference of two cells: planted causes come first, equal cells have none."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from harness.analysis.evidence import Evidence
from harness.analysis.explain.cells import cell_called, pair_called
from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.explain.kinds import Kind, kinds
from harness.analysis.explain.step_shares import UNEXPLAINED, step_shares
from harness.analysis.explain.words import beside, causes, headline, operations_words, part_name
from harness.errors import UsageError
from harness.sections import why
from harness.sections.contract.blocks import Fold, Note, tables
from harness.store.record_readers.attribution import Attribution, Operation, Part
from harness.store.records import Gate
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import (
    CellResult,
    Comparison,
    Contradiction,
    Interval,
    Reading,
    WhatRan,
)
from harness.worker.scale import Scale
from reports.text.explanation import render
from tests.reports import samples
from tests.reports.samples import cell
from workloads.tinycnn import WORKLOAD

BATCH, STEPS = 16, 20
KNOWN = {"parameters": WORKLOAD.parameters, "macs": WORKLOAD.macs}
CLEAN_MS = {
    ("conv1", "forward"): 3.0,
    ("conv1", "backward"): 5.0,
    ("", "update"): 1.0,
    ("conv1", "layout copy"): 0.5,
    ("", "host gaps"): 0.4,
    ("", "other"): 0.1,
}


def timed(framework: str, step_ms: float, **changes: Any) -> CellResult:
    return cell("tinycnn", framework, "fp32", BATCH / step_ms * 1e3, None, noise=0.01, **changes)


def attributed(
    milliseconds: Mapping[tuple[str, str], float],
    slowed: float = 1.05,
    seed: int = 0,
    job: float = 1.0,
) -> Attribution:
    """Trace steps in which each part takes about so long, in a job that is slower by a factor."""
    draw = random.Random(seed)
    rows = [
        {key: value * draw.gauss(1, 0.02) for key, value in milliseconds.items()}
        for _ in range(STEPS)
    ]
    parts = tuple(
        Part(
            *key,
            tuple(row[key] / sum(row.values()) for row in rows),
            (Operation(f"work of {key[1]}", "float32", "16x3", 1.0, 1.0),),
            0,
        )
        for key in milliseconds
    )
    steps_s = [sum(row.values()) * job / 1e3 for row in rows]
    return Attribution("a trace", tuple(one * slowed for one in steps_s), parts, tuple(steps_s))


def explained(
    first: Mapping[tuple[str, str], float],
    second: Mapping[tuple[str, str], float] = CLEAN_MS,
    slowed: float = 1.05,
    **changes: Any,
) -> Explanation:
    one = timed("jax", sum(first.values()), **changes)
    other = timed("torch", sum(second.values()))
    read = {one.key: attributed(first, slowed), other.key: attributed(second, 1.05, seed=1)}
    return explain(one, other, read, seed=1)


def planted(key: tuple[str, str], more_ms: float) -> dict[tuple[str, str], float]:
    return {**CLEAN_MS, key: CLEAN_MS.get(key, 0.0) + more_ms}


def test_layers_that_one_cell_computes_as_one_are_told_together() -> None:
    apart = {**CLEAN_MS, ("bn1", "forward"): 0.5, ("relu1", "forward"): 0.2}
    fused = {
        **apart,
        ("conv1", "forward"): 0.005,
        ("bn1", "forward"): 0.0,
        ("relu1", "forward"): 2.5,
    }
    found = explained(apart, fused, **KNOWN)
    told = {part_name(one): one for one in found.terms}
    joined = told["conv1 to relu1, forward"]
    assert joined.difference_s == pytest.approx((3.7 - 2.505) / 1e3, rel=0.1)
    assert len(joined.first_operations) == 3
    assert not {"conv1, forward", "relu1, forward"} & told.keys()
    total = sum(one.difference_s for one in found.terms)
    assert total == pytest.approx(found.difference_s)
    other_way = {part_name(one) for one in explained(fused, {**apart, ("", "update"): 3.0}).terms}
    assert "conv1, forward" in other_way  # of a network that nobody here knows


def test_a_layer_that_takes_longer_is_not_taken_for_one_that_others_compute() -> None:
    layers = {("bn1", "forward"): 0.5, ("relu1", "forward"): 0.2}
    slow = {**planted(("conv1", "forward"), 60.0), **layers}
    found = explained(slow, {**CLEAN_MS, **layers}, **KNOWN)
    assert part_name(found.terms[0]) == "conv1, forward"
    slow = {**CLEAN_MS, **layers, ("relu1", "forward"): 20.0}
    found = explained(slow, {**CLEAN_MS, **layers}, **KNOWN)
    assert part_name(found.terms[0]) == "relu1, forward"


def test_a_slow_layer_behind_those_that_were_computed_as_one_keeps_its_name() -> None:
    layers = {("bn1", "forward"): 0.5, ("relu1", "forward"): 0.2, ("pool1", "forward"): 0.5}
    fused = {("bn1", "forward"): 0.0, ("relu1", "forward"): 2.0, ("pool1", "forward"): 20.0}
    found = explained(
        {**CLEAN_MS, **fused, ("conv1", "forward"): 0.005}, {**CLEAN_MS, **layers}, **KNOWN
    )
    assert [part_name(one) for one in found.terms[:2]] == [
        "pool1, forward",
        "conv1 to relu1, forward",
    ]


def test_layers_that_are_each_slower_or_quicker_are_told_one_by_one() -> None:
    mine = {("pool1", "backward"): 23.0, ("relu1", "backward"): 0.3, ("bn1", "backward"): 0.3}
    theirs = {("pool1", "backward"): 0.8, ("relu1", "backward"): 4.0, ("bn1", "backward"): 0.5}
    found = explained({**CLEAN_MS, **mine}, {**CLEAN_MS, **theirs}, **KNOWN)
    assert part_name(found.terms[0]) == "pool1, backward"
    assert not any(" to " in part_name(one) for one in found.terms)


def test_backward_it_is_the_layer_before_that_has_what_was_computed_as_one() -> None:
    apart = {("relu1", "backward"): 1.0, ("bn1", "backward"): 1.0}
    fused = {("relu1", "backward"): 0.0, ("bn1", "backward"): 1.5}
    found = explained({**CLEAN_MS, **apart}, {**CLEAN_MS, **fused}, **KNOWN)
    assert "bn1 to relu1, backward" in {part_name(one) for one in found.terms}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (("conv1", "backward"), "conv1, backward"),
        (("conv1", "forward"), "conv1, forward"),
        (("", "update"), "update"),
        (("fc", "layout copy"), "layout copy"),
        (("", "host gaps"), "host gaps"),
    ],
)
def test_a_planted_cause_comes_first_and_has_its_size(key: tuple[str, str], name: str) -> None:
    found = explained(planted(key, 4.0))
    first = found.terms[0]
    assert part_name(first) == name
    assert first.difference_s == pytest.approx(4e-3, rel=0.2)
    assert first.interval is not None
    assert first.interval.low < 4e-3 < first.interval.high
    assert found.causes[0] == first


def test_the_slower_cell_is_explained_whichever_is_named_first() -> None:
    slow, fast = planted(("conv1", "forward"), 4.0), CLEAN_MS
    told = explained(fast, slow)
    assert (told.first.framework, told.second.framework) == ("torch", "jax")
    assert told.ratio == pytest.approx(1.4, rel=0.03)
    assert told.ratio_interval is not None
    assert told.ratio_interval.low < told.ratio < told.ratio_interval.high


def test_the_parts_add_up_to_the_difference() -> None:
    found = explained(planted(("conv1", "backward"), 4.0))
    assert sum(one.difference_s for one in found.terms) == pytest.approx(found.difference_s)
    assert found.terms[-1].key == UNEXPLAINED


def test_the_steps_that_are_divided_have_the_ratio_that_is_told() -> None:
    slow = planted(("conv1", "forward"), 4.0)
    one, other = timed("jax", sum(slow.values())), timed("torch", sum(CLEAN_MS.values()))
    assert one.rate is not None
    # Its blocks that the other lacks were quicker, and count in its rate.
    one = replace(one, rate=replace(one.rate, value=1.2 * one.rate.value))
    read = {one.key: attributed(slow), other.key: attributed(CLEAN_MS, seed=1)}
    found = explain(one, other, read, seed=1)
    assert found.first_step_s / found.second_step_s == pytest.approx(found.ratio)


def test_small_parts_beyond_those_listed_are_one_with_an_interval() -> None:
    many = {(f"conv{number}", "forward"): 0.01 for number in range(2, 30)}
    found = explained({**planted(("conv1", "backward"), 4.0), **many})
    assert [part_name(one) for one in found.terms[-2:]] == ["21 smaller parts", "unexplained"]
    rest = found.terms[-2]
    assert rest.first_s == pytest.approx(0.2e-3 + 4.4e-3, rel=0.1)
    assert rest.interval is not None
    assert rest.interval.low < rest.difference_s < rest.interval.high
    assert sum(one.difference_s for one in found.terms) == pytest.approx(found.difference_s)


def test_small_parts_that_are_slow_for_one_reason_are_sorted_by_what_runs_in_them() -> None:
    many = {(f"conv{number}", "forward"): 0.3 for number in range(2, 40)}
    found = explained({**CLEAN_MS, **many, ("fc", "backward"): 2.0})
    (rest,) = [one for one in found.terms if one.key == ("", "smaller parts")]
    assert [one.operation for one in rest.kinds][:1] == ["work of forward"]
    assert sum(one.parts for one in rest.kinds) == rest.parts - 1  # in host gaps nothing runs
    (told,) = [one for one in causes(found, "JAX", "torch") if "smaller parts" in one]
    assert f"in the {rest.kinds[0].parts} in which JAX mostly runs work of forward." in told


def test_parts_are_sorted_by_what_takes_most_in_all_of_its_shapes() -> None:
    def named(name: str, share: float) -> Operation:
        return Operation(name, "float32", str(share), 1.0, share)

    mixed = (named("mm", 0.35), named("mm", 0.25), named("add", 0.4))
    found = kinds([(2.0, mixed), (1.0, (named("add", 1.0),)), (0.5, mixed), (3.0, ())])
    assert found == (Kind("mm", 2, 2.5), Kind("add", 1, 1.0))


def test_where_ranks_exchange_every_step_counts_by_its_length() -> None:
    steps = (0.01, 0.04)
    parts = (
        Part("conv1", "forward", (0.8, 0.2), (), 0),
        Part("", "exchange", (0.2, 0.8), (), 0),
    )
    found = step_shares(Attribution("a trace", steps, parts, (0.01, 0.01)))
    assert found.parts["", "exchange"].mean == pytest.approx((0.002 + 0.032) / 0.05)
    assert sum(one.mean for one in found.parts.values()) == pytest.approx(1)
    assert found.slowed == pytest.approx(1.5)
    assert (found.traced_step_s, found.untraced_step_s) == pytest.approx((0.025, 0.01))
    assert found.steps == 2


def test_what_carries_no_mark_is_unexplained_and_no_cause() -> None:
    found = explained(planted(("", "other"), 4.0))
    assert found.unexplained is not None
    assert found.unexplained.difference_s == pytest.approx(4e-3, rel=0.2)
    assert UNEXPLAINED not in [one.key for one in found.causes]
    assert "unexplained" in list(causes(found, "jax", "torch"))[-1]


def test_waiting_for_input_is_a_part_of_its_own() -> None:
    one = timed("jax", 20.0)
    waits = InputResult("warm", wait_share=0.5)
    one = replace(one, trials=tuple(replace(trial, input=waits) for trial in one.trials))
    other = timed("torch", 10.0)
    read = {one.key: attributed(CLEAN_MS), other.key: attributed(CLEAN_MS, seed=1)}
    found = explain(one, other, read, seed=1)
    assert part_name(found.terms[0]) == "input"
    assert found.terms[0].difference_s == pytest.approx(10e-3, rel=0.05)


def test_waiting_that_differs_from_block_to_block_is_as_unsure_as_it_differs() -> None:
    one, other = timed("jax", 20.0), timed("torch", 10.0)
    found = {}
    for name, shares in (("steady", [0.5] * 6), ("ragged", [0.3, 0.7, 0.4, 0.6, 0.45, 0.55])):
        trials = zip(one.trials, cycle(shares), strict=False)
        waiting = tuple(
            replace(trial, input=InputResult("warm", wait_share=share)) for trial, share in trials
        )
        waits = replace(one, trials=waiting)
        read = {one.key: attributed(CLEAN_MS), other.key: attributed(CLEAN_MS, seed=1)}
        found[name] = widths(explain(waits, other, read, seed=1))
    assert found["ragged"]["input"] > 3 * found["steady"]["input"]


def widths(of: Explanation) -> dict[str, float]:
    """Give how wide the interval of each part is."""
    return {
        part_name(one): one.interval.high - one.interval.low
        for one in of.terms
        if one.interval is not None
    }


def test_the_page_and_the_account_agree_on_what_can_be_told_apart() -> None:
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    slow = planted(("conv1", "forward"), 4.0)
    read = {one.key: attributed(slow), other.key: attributed(CLEAN_MS, seed=1)}
    assert not explain(one, other, read, seed=1).refusal
    open_ = Comparison(other.key, 0.71, None, "cannot tell", 6, None, "others share its error")
    held = replace(one, comparison=open_)
    for pair in ((held, other), (other, held)):
        refusal = explain(*pair, read, seed=1).refusal
        assert refusal == (
            "nothing to explain: their rates cannot be told apart: others share its error"
        )
    slower = replace(open_, answer="slower", interval=Interval(0.5, 0.8, 0.95, "joint"))
    held = replace(one, comparison=slower)
    for pair in ((held, other), (other, held)):
        told = explain(*pair, read, seed=1)
        assert told.first is held
        assert told.ratio == pytest.approx(1 / 0.71)
        assert told.ratio_interval is not None
        ends = told.ratio_interval.low, told.ratio_interval.high
        assert ends == pytest.approx((1.25, 2.0))


def test_what_the_hardware_did_stands_beside_the_account() -> None:
    busy = (
        Reading("here", "rank:0", "cores used", "1", 0.98),
        Reading("here", "rank:0", "cores used by the operating system", "1", 0.01),
        Reading("here", "node", "page faults", "1/s", 900.0),
        Reading("here", "core:0", "clock", "Hz", 2.5e9),
    )
    slow = planted(("conv1", "backward"), 4.0)
    found = explained(slow, readings=busy, utilisation={"power_w": 41.0})
    assert next(beside(found, "jax", "torch")) == "jax: 0.980 cores used, clock 2.50 GHz, 41.0 W."


def test_what_memory_taken_anew_costs_stands_beside_the_account_where_it_is_much() -> None:
    busy = (
        Reading("here", "rank:0", "cores used", "1", 1.0),
        Reading("here", "rank:0", "cores used by the operating system", "1", 0.3),
        Reading("here", "node", "page faults", "1/s", 300_000.0),
    )
    found = explained(planted(("conv1", "backward"), 4.0), readings=busy)
    told = next(beside(found, "jax", "torch"))
    assert told.startswith("jax: 1.00 cores used, 30 % of that by the operating system, 4,")
    assert told.endswith(" page faults a step on its nodes.")


def test_of_cells_that_cannot_be_told_apart_there_is_nothing_to_explain() -> None:
    """The same step twice, twenty times: at most one has anything explained."""
    told = 0
    for number in range(20):
        one = timed("jax", 10.0, run=f"run {number}")
        other = timed("torch", 10.0, run=f"run {number}")
        read = {one.key: attributed(CLEAN_MS), other.key: attributed(CLEAN_MS, seed=1)}
        found = explain(one, other, read, seed=number)
        told += not found.refusal.startswith("nothing to explain")
    assert told <= 1


def test_a_sentence_says_the_share_and_what_both_do() -> None:
    found = explained(planted(("conv1", "backward"), 4.0))
    assert headline(found, "jax", "torch").startswith("jax takes ")
    first, *_ = causes(found, "jax", "torch")
    assert "of it is conv1, backward" in first
    assert "jax: work of backward; torch: work of backward." in first
    assert "16x3" not in first  # the table beside it has the shapes


def test_what_was_asked_for_and_did_not_happen_is_told_before_any_part() -> None:
    idle = WhatRan(contradictions=(Contradiction("2 threads", "ran 1", "the size of its pool"),))
    found = explained(planted(("conv1", "backward"), 4.0), ran=idle)
    first, second, *_ = causes(found, "jax", "torch")
    assert first == "jax asked for 2 threads, ran 1 (the size of its pool)."
    assert "of it is conv1, backward" in second


def test_it_is_told_of_cells_too_whose_traces_explain_nothing() -> None:
    idle = WhatRan(contradictions=(Contradiction("2 threads", "ran 1", "the size of its pool"),))
    found = explained(planted(("conv1", "forward"), 4.0), slowed=1.4, ran=idle)
    assert "disturbed" in found.refusal
    told = "jax asked for 2 threads, ran 1 (the size of its pool)."
    assert list(causes(found, "jax", "torch")) == [told]
    assert render(found, "jax", "torch").splitlines()[1:] == [told]


def test_a_trace_that_disturbs_the_step_explains_nothing() -> None:
    found = explained(planted(("conv1", "forward"), 4.0), slowed=1.4)
    assert "disturbed" in found.refusal
    assert "longer" in found.refusal
    assert found.terms == ()


def test_what_a_trace_costs_is_told_by_the_untraced_steps_beside_it() -> None:
    """Trials of another time were quicker by a fifth; the trace took a twentieth."""
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    slow = planted(("conv1", "forward"), 4.0)
    read = {one.key: attributed(slow, job=1.2), other.key: attributed(CLEAN_MS, job=1.2)}
    found = explain(one, other, read, seed=1)
    assert not found.refusal
    assert "5 % longer than untraced ones beside them" in found.traced[0].replace("5.0", "5")


def test_traced_steps_that_other_work_made_longer_do_not_count_as_the_trace_s_cost() -> None:
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    read = {
        one.key: attributed(planted(("conv1", "backward"), 4.0)),
        other.key: attributed(CLEAN_MS),
    }
    half = [*range(0, STEPS, 2), 1]
    busy = replace(
        read[one.key],
        step_s=tuple(
            step_s * (2 if number in half else 1)
            for number, step_s in enumerate(read[one.key].step_s)
        ),
    )
    found = explain(one, other, {**read, one.key: busy}, seed=1)
    assert not found.refusal
    assert found.causes[0].key == ("conv1", "backward")


def test_a_part_in_which_nothing_ran_names_no_operations() -> None:
    gaps = planted(("", "host gaps"), 4.0)
    one, other = timed("jax", sum(gaps.values())), timed("torch", sum(CLEAN_MS.values()))
    read = {one.key: attributed(gaps), other.key: attributed(CLEAN_MS, seed=1)}
    idle = {
        key: replace(
            of,
            parts=tuple(
                replace(part, operations=()) if part.phase == "host gaps" else part
                for part in of.parts
            ),
        )
        for key, of in read.items()
    }
    sentence = next(causes(explain(one, other, idle, seed=1), "jax", "torch"))
    assert "host gaps" in sentence
    assert "nothing" not in sentence


def test_a_job_whose_untraced_steps_are_unlike_the_timed_ones_explains_nothing() -> None:
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    slow = planted(("conv1", "forward"), 4.0)
    read = {one.key: attributed(slow, job=1.5), other.key: attributed(CLEAN_MS)}
    found = explain(one, other, read, seed=1)
    assert "in the job that traced some of them than in the trials" in found.refusal


def test_steps_many_times_as_long_are_not_told_in_per_cent() -> None:
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    slow = planted(("conv1", "forward"), 4.0)
    read = {one.key: attributed(slow, job=4.0), other.key: attributed(CLEAN_MS)}
    assert (
        "its steps took 4.01 times as long in the job that traced some of them as in the trials"
    ) in explain(one, other, read, seed=1).refusal


def test_of_a_run_that_made_no_untraced_steps_the_timed_ones_stand_for_them() -> None:
    one, other = timed("jax", 14.0), timed("torch", 10.0)
    bare = replace(attributed(planted(("conv1", "forward"), 4.0), 1.4), untraced_s=())
    found = explain(one, other, {one.key: bare, other.key: attributed(CLEAN_MS)}, seed=1)
    assert "longer while they were traced" in found.refusal


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gate": "differs"}, "computes something else"),
        ({"gate": "not checked"}, "the gate says not checked"),
        ({"workload": "alexnet"}, "they do different work"),
        ({"scale": Scale(batch_per_device=64)}, "their steps differ in size: 64 and 16 images"),
        ({"scale": Scale(batch_per_device=16, ranks_per_node=2)}, "differ in size: 32 and 16"),
        ({"communicate": False}, "its ranks keep their gradients"),
    ],
)
def test_cells_that_are_not_proved_to_compute_the_same_are_refused(
    changes: dict[str, Any], why: str
) -> None:
    one, other = timed("jax", 20.0), timed("torch", 10.0)
    if "gate" in changes:
        changes = {"gate": Gate(changes["gate"], "")}
    if "communicate" in changes:
        changes = {"factors": {**one.factors, **changes}}
    one = replace(one, **changes)
    assert why in explain(one, other, {}, seed=1).refusal


def test_a_cell_that_nothing_attributed_is_named_with_the_reason() -> None:
    one, other = timed("jax", 20.0), timed("torch", 10.0)
    found = explain(one, other, {one.key: attributed(CLEAN_MS, job=2.0)}, seed=1)
    assert found.refusal == "tinycnn · torch · fp32: nothing attributed its step"


def test_a_difference_that_stays_unexplained_is_refused_and_none_is_not() -> None:
    one, other = timed("jax", 20.0), timed("torch", 10.0)
    assert explain(one, other, {}, seed=1).is_refused
    alike = Explanation(one, other, "nothing to explain: ± 1 % with cuDNN")
    assert headline(alike, "jax", "torch") == "Nothing to explain: ± 1 % with cuDNN."
    told = [timed("jax", 10.0, run="run 1"), timed("torch", 10.0, run="run 1")]
    assert not explain(*told, {}, seed=1).is_refused


def test_what_took_less_is_said_where_parts_add_up_to_more_than_all() -> None:
    quicker = {**planted(("conv1", "forward"), 6.0), ("conv1", "backward"): 2.0}
    (told,) = (one for one in causes(explained(quicker), "jax", "torch") if "made up" in one)
    found = re.fullmatch(
        r"(\d+) % of it is made up for by what took less, most by conv1, backward\.", told
    )
    assert found is not None
    assert 85 <= int(found[1]) <= 115  # 3 of 3 ms
    assert not any(
        "made up for" in one
        for one in causes(explained(planted(("conv1", "forward"), 6.0)), "jax", "torch")
    )


def test_what_did_not_happen_is_said_where_there_is_nothing_to_explain_too() -> None:
    idle = WhatRan(contradictions=(Contradiction("2 threads", "ran 1", "the size of its pool"),))
    alike = [timed("jax", 10.0), replace(timed("torch", 10.0), ran=idle)]
    found = explain(*alike, {one.key: attributed(CLEAN_MS) for one in alike}, seed=1)
    assert found.refusal.startswith("nothing to explain")
    assert list(causes(found, "jax", "torch")) == [
        "torch asked for 2 threads, ran 1 (the size of its pool)."
    ]


def test_shares_are_those_of_the_quicker_half_of_the_traced_steps() -> None:
    slow = attributed(planted(("", "host gaps"), 20.0))
    quick = attributed(CLEAN_MS)
    mixed = Attribution(
        "a trace",
        (*slow.step_s[:5], *quick.step_s),
        tuple(
            replace(one, shares=(*two.shares[:5], *one.shares))
            for one, two in zip(quick.parts, slow.parts, strict=True)
        ),
    )
    one, other = timed("jax", 10.0), timed("torch", 6.0)
    less = {key: value * 0.6 for key, value in CLEAN_MS.items()}
    found = explain(one, other, {one.key: mixed, other.key: attributed(less)}, seed=1)
    gaps = next(term for term in found.terms if term.key == ("", "host gaps"))
    assert gaps.first_s == pytest.approx(0.4e-3, rel=0.2)


def test_of_cells_that_a_name_fits_the_one_most_like_the_other_is_meant():
    demo = samples.demo()
    one, other = pair_called(demo, "jax bf16", "torch")
    assert (one.label, other.label) == ("alexnet · jax · bf16", "alexnet · torch · bf16")
    with pytest.raises(UsageError, match="'jax' fits several cells"):
        pair_called(demo, "jax", "torch")


def test_a_name_that_is_all_of_one_cell_s_words_is_that_cell() -> None:
    demo = samples.demo()
    one, *_ = demo.cells
    compiled = replace(one, key="compiled", label=f"{one.label} · compile")
    both = replace(demo, cells=(one, compiled))
    assert cell_called(both, both.names[one.run, one.key].replace(" ·", "")) is one


@pytest.mark.parametrize(("kinds", "told"), [(3, "; 1 more kind"), (4, "; 2 more kinds")])
def test_operations_that_are_not_named_are_counted(kinds: int, told: str) -> None:
    every = [Operation(f"work {n}", "", "", 1.0, 1.0 / (n + 1)) for n in range(kinds)]
    assert operations_words(every) == f"1 × work 0; 1 × work 1{told}"


def test_the_columns_of_the_page_s_table_have_titles_of_their_own() -> None:
    results = samples.demo()
    divided = {}
    for one in results.cells:
        step_ms = BATCH * 1e3 / (one.rate.value if one.rate else 1.0)
        share = step_ms / sum(CLEAN_MS.values())
        divided[one.key] = attributed({key: of * share for key, of in CLEAN_MS.items()})
    made = list(tables(why.SECTION.make(results, Evidence(attributions=divided))))
    titles = [column.title for column in made[0].columns]
    assert "part of the step" in titles
    assert len(set(titles)) == len(titles)


def test_of_many_pairs_a_page_takes_the_first_apart_in_a_fold() -> None:
    few = samples.factorial(2, 2, 4)
    read = {}
    for one in few.cells:
        step_ms = one.factors["batch"] * 1e3 / (one.rate.value if one.rate else 1.0)
        share = step_ms / sum(CLEAN_MS.values())
        read[one.key] = attributed({key: of * share for key, of in CLEAN_MS.items()})
    made = list(why.SECTION.make(few, Evidence(attributions=read)))
    (fold,) = (block for block in made if isinstance(block, Fold))
    assert len(list(tables(made))) == len(fold.blocks) == 10
    said = " ".join(block.text for block in made if isinstance(block, Note))
    assert re.search(r"Of \d\d pairs the first 10 are taken apart here", said)
