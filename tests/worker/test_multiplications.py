"""Count what an optimised step of XLA multiplies, as its network is counted."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from harness.worker.facts.hlo_multiplications import tally
from harness.worker.facts.multiplications import Count, Tally, Uncounted, calls_per_step, counted
from harness.worker.network.layers import Dense, Dropout, Network, Residual, Tanh
from harness.worker.scale import Scale
from workloads import nothing, tinycnn

ALONE = Scale(batch_per_device=8)
BODY = (Dense("first", 4), Tanh("tanh"), Dense("second", 4), Dropout("drop", 0.5))
DROPPING = replace(
    tinycnn.WORKLOAD, network=Network((4,), (Dense("in", 4), Residual("block", BODY)))
)


def macs(text: str) -> int:
    return tally(text).macs


class Stepping:
    """Counts its steps, and runs what was compiled in as many as it is told."""

    def __init__(self, every: int) -> None:
        self.taken, self.every = 0, every
        self.compiled = int

    def step(self) -> None:
        """Step, or leave it out."""
        self.taken += 1
        if self.taken % self.every == 0:
            self.compiled()

    def sync(self) -> None:
        """Wait for nothing."""


class Refusing(Stepping):
    """Cannot count."""

    def multiplications(self) -> None:
        """Say why."""
        raise Uncounted("it replays a graph")


SHAPES = """
  %x = f32[2,9,9,3]{3,2,1,0} parameter(0)
  %w = f32[3,3,3,8]{3,2,1,0} parameter(1)
  %slope = f32[2,5,5,8]{3,2,1,0} parameter(2)
"""


@pytest.mark.parametrize(
    ("call", "window", "labels"),
    [
        ("f32[2,5,5,8] convolution(%x, %w)", "3x3 stride=2x2 pad=1_1x1_1", "b01f_01io->b01f"),
        (
            "f32[2,9,9,3] convolution(%slope, %w)",
            "3x3 pad=1_1x1_1 lhs_dilate=2x2",
            "b01f_01oi->b01f",
        ),
        (
            "f32[3,3,3,8] convolution(f32[2,9,9,3] %x, %slope)",
            "5x5 pad=1_1x1_1 rhs_dilate=2x2",
            "f01b_i01o->01bf",
        ),
    ],
)
def test_a_strided_convolution_and_its_gradients_multiply_equally_often(
    call: str, window: str, labels: str
) -> None:
    line = f"  ROOT %y = {call}, window={{size={window}}}, dim_labels={labels}"
    assert macs(SHAPES + line) == 2 * 5 * 5 * 8 * 3 * 3 * 3


def test_the_gradient_of_an_unpadded_convolution_multiplies_no_more_than_it() -> None:
    text = """
  %slope = f32[2,7,7,8]{3,2,1,0} parameter(0)
  %w = f32[3,3,3,8]{3,2,1,0} parameter(1)
  %y = f32[2,9,9,3] convolution(%slope, %w), window={size=3x3 pad=2_2x2_2}, LABELS
""".replace("LABELS", "dim_labels=b01f_01oi->b01f")
    assert macs(text) == 2 * 7 * 7 * 8 * 3 * 3 * 3


def test_a_grouped_convolution_multiplies_within_its_groups() -> None:
    text = """
  %x = f32[2,6,6,4]{3,2,1,0} parameter(0)
  %w = f32[3,3,2,8]{3,2,1,0} parameter(1)
  %y = f32[2,6,6,8]{3,2,1,0} convolution(%x, %w), dim_labels=b01f_01io->b01f, feature_group_count=2
"""
    assert macs(text) == 2 * 6 * 6 * 8 * 3 * 3 * 2


def test_groups_that_xla_makes_a_dilated_dimension_of_multiply_within_themselves() -> None:
    text = """
  %x = f32[192,13,13,2,2]{4,3,2,1,0} parameter(0)
  %slope = f32[13,13,2,2,128]{4,3,2,1,0} parameter(1)
  %y = f32[192,3,3,2,128]{4,3,2,1,0} convolution(%x, %slope), WINDOW
""".replace(
        "WINDOW",
        "window={size=13x13x2 pad=1_1x1_1x0_0 lhs_dilate=1x1x2}, dim_labels=b012f_012io->b012f",
    )
    assert macs(text) == 2 * 13 * 13 * 256 * 3 * 3 * 192


def test_a_product_multiplies_what_it_contracts() -> None:
    text = """
  %x = f32[4,9]{1,0} parameter(0)
  %w = f32[9,5]{1,0} parameter(1)
  %y = f32[4,5]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
    assert macs(text) == 4 * 9 * 5


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cudnn$fmhaSoftmax"])
def test_what_a_library_multiplies_is_not_counted(target: str) -> None:
    call = f'  %g = bf16[4,5]{{1,0}} custom-call(%x, %w), custom_call_target="{target}"'
    with pytest.raises(Uncounted, match=re.escape(f"XLA leaves products to a library: {target}")):
        macs(call)


LOOPED = """HloModule step

%fused (a: f32[4,5], b: f32[5,4]) -> f32[4,4] {
  %a = f32[4,5]{1,0} parameter(0)
  %b = f32[5,4]{1,0} parameter(1)
  ROOT %d = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (s: (s32[], f32[4,5], f32[5,4])) -> (s32[], f32[4,5], f32[5,4]) {
  %x = f32[4,5]{1,0} get-tuple-element(%s), index=1
  %w = f32[5,4]{1,0} get-tuple-element(%s), index=2
  %y = f32[4,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %z = f32[4,4]{1,0} fusion(%x, %w), kind=kOutput, calls=%fused
}

%condition (s: (s32[], f32[4,5], f32[5,4])) -> pred[] {
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (p: f32[4,5], q: f32[5,4]) -> f32[4,4] {
  %p = f32[4,5]{1,0} parameter(0)
  %q = f32[5,4]{1,0} parameter(1)
  %r = (s32[], f32[4,5]{1,0}) while(%t), condition=%condition, body=%body, backend_config={TRIPS}
  ROOT %o = f32[4,4]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(("every", "calls"), [(1, 1.0), (2, 0.5), (99, 0.0)])
def test_a_step_that_does_not_run_what_was_compiled_counts_less(every: int, calls: float) -> None:
    activity = Stepping(every)
    assert calls_per_step(activity, "compiled") == calls
    assert activity.compiled is int


@pytest.mark.parametrize(
    ("activity", "scale", "why"),
    [
        (Refusing(1), ALONE, "it replays a graph"),
        (Stepping(1), ALONE, "its adapter counts none"),
        (Refusing(1), Scale(), "a step of one sample is compiled to something else than products"),
        (Refusing(1), Scale(nodes=2, batch_per_device=8), "it is one of several ranks or devices"),
    ],
)
def test_what_cannot_be_counted_says_why(activity: Stepping, scale: Scale, why: str) -> None:
    told = counted(activity, tinycnn.WORKLOAD, scale, {})["multiplications"]
    assert told["uncounted"].startswith(why)
    assert told["asked"] > 0


def test_a_product_in_a_loop_multiplies_as_often_as_the_loop_runs() -> None:
    assert macs(LOOPED.replace("TRIPS", '"known_trip_count":{"n":"3"}')) == 4 * 4 * 5 * (1 + 3 + 3)
    with pytest.raises(Uncounted, match="does not tell how often a loop of products runs"):
        macs(LOOPED.replace("TRIPS", ""))


def test_micro_batches_of_one_sample_are_not_counted() -> None:
    told = counted(Refusing(1), tinycnn.WORKLOAD, ALONE, {"accumulate": 8})["multiplications"]
    assert told["uncounted"].startswith("a step of one sample is compiled to something else")


@pytest.mark.parametrize(
    ("times", "parts"), [({}, 0), ({"a": 4}, 4), ({"a": 4, "b": 8}, 4), ({"a": 1, "b": 4}, 1)]
)
def test_micro_batches_are_as_many_as_all_products_come(times: dict[str, int], parts: int) -> None:
    found = Tally()
    found.add("a sum", 0, 3)
    for form, count in times.items():
        found.add(form, 5, count)
    assert found.of_step(1, "itself") == Count(5 * sum(times.values()), "itself", parts=parts)
    assert found.of_step(2, "itself").parts == 2 * parts


def test_products_of_a_loop_come_as_often_as_it_runs() -> None:
    looped = LOOPED.replace("TRIPS", '"known_trip_count":{"n":"3"}')
    assert tally(looped).of_step(1, "XLA").parts == 7  # all three products are of one form
    alone = "\n".join(line for line in looped.splitlines() if "ROOT %o" not in line)
    assert tally(alone).of_step(1, "XLA").parts == 6


class Knowing(Stepping):
    """Says what it multiplies."""

    def __init__(self, made: Count) -> None:
        super().__init__(1)
        self.made = made

    def multiplications(self) -> Count:
        """Say it."""
        return self.made


@pytest.mark.parametrize("in_order", [False, True])
def test_blocks_that_are_computed_twice_are_asked_for_twice(in_order: bool) -> None:
    factors = {"recompute": True}
    told = counted(Knowing(Count(7, "itself", in_order)), DROPPING, ALONE, factors)
    drawn_behind = 4 * 4 if in_order else 0
    again = 8 * (4 * 4 + drawn_behind)
    once = 8 * (3 * 3 * 4 * 4 - 4 * 4)
    made = {"asked": once + again, "again": again, "counted": 7, "by": "itself"}
    assert told == {"multiplications": made}


def test_blocks_that_nobody_computes_twice_are_asked_for_once() -> None:
    told = counted(Knowing(Count(7, "itself")), DROPPING, ALONE, {"recompute": False})
    assert told["multiplications"].keys() == {"asked", "counted", "by"}


def test_in_how_many_parts_a_step_ran_is_said_where_micro_batches_are_asked() -> None:
    knowing = Knowing(Count(7, "itself", parts=1))
    asked = counted(knowing, DROPPING, ALONE, {"accumulate": 4})["multiplications"]
    assert asked["parts"] == 1
    assert "parts" not in counted(knowing, DROPPING, ALONE, {})["multiplications"]


def test_what_trains_nothing_says_nothing_of_multiplications() -> None:
    assert counted(Stepping(1), nothing.WORKLOAD, ALONE, {}) == {}
