"""Say what holds a cell back: each cause, planted in a step of a known network, is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.evidence import Evidence
from harness.analysis.floors.kept_floors import floors_of
from harness.analysis.limits.floors import floors
from harness.analysis.limits.holding_back import Limit, limits
from harness.analysis.limits.seen_in_steps import lowered
from harness.analysis.limits.words import sentence, short
from harness.analysis.results import Results
from harness.store.record_readers.attribution import NOT_MADE, Attribution, Operation, Part
from harness.store.record_readers.ceilings import Ceiling, Conditions, Reached
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult, Reading
from harness.worker.network.alone import BOTH, multiplying
from harness.worker.network.blocks import macs_computed_again
from harness.worker.network.shapes import macs_of_step
from harness.worker.scale import Scale
from tests.reports.samples import cell, demo
from workloads.tinycnn import WORKLOAD
from workloads.tinygpt import WORKLOAD as PRODUCTS

BATCH, STEP_S = 16, 0.01
OPERATIONS = 2 * macs_of_step(WORKLOAD.network) * BATCH
Key = tuple[str, str]


def timed(**changes: Any) -> CellResult:
    one = cell("tinycnn", "torch", "fp32", BATCH / STEP_S, None, noise=0.0)
    exact = {"parameters": WORKLOAD.parameters, "macs": WORKLOAD.macs}
    return replace(one, **{**exact, **changes})


def traced(shares: Mapping[Key, float], slowed: float = 1.0) -> Attribution:
    """Divide three steps that took as long as those that were timed."""
    parts = tuple(
        Part(*key, (share,) * 3, (Operation(f"op of {key[0]}", "float32", "", 1.0, 0.75),), 2)
        for key, share in shares.items()
    )
    return Attribution("a trace", (STEP_S * slowed,) * 3, parts)


def reached(kernel: str, unit: str, per_s: float, cache: int | None = 2**25) -> Ceiling:
    under = Conditions("torch", "digest", "cpu", "fp32", None)
    return Ceiling(under, Reached(kernel, unit, per_s, cache), "a run/cells/k/ceilings", 1)


def computing(share: float) -> Ceiling:
    """Give the ceiling at which the multiplications need so much of the step."""
    return reached("gemm", "FLOP", OPERATIONS / (share * STEP_S))


MEMORY = reached("triad", "bytes", 1e10)
KERNELS = {("conv1", "forward"): 0.3, ("conv1", "backward"): 0.62, ("", "update"): 0.05}
RAN = {**KERNELS, ("", "host gaps"): 0.03}


def held(
    of: CellResult,
    divided: Attribution | str,
    *ceilings: Ceiling,
    others: tuple[CellResult, ...] = (),
) -> Limit:
    results = replace(demo(), cells=(of, *others), varied=("framework", "communicate"))
    known = floors_of(results, ceilings)
    evidence = Evidence(attributions={of.key: divided}, ceilings=ceilings, floors=known)
    return limits(results, evidence)[of.key]


def waiting(of: CellResult, share: float, **changes: Any) -> CellResult:
    told = InputResult("cold", wait_share=share, **changes)
    return replace(of, trials=tuple(replace(one, input=told) for one in of.trials))


def add_up(of: Limit) -> bool:
    """Tell whether the causes and what carries no mark are the whole step."""
    unmarked = sum(share for name, share in of.anatomy.phases.items() if name == "other")
    undivided = of.anatomy.unknown - sum(
        one for name, one in of.shares.items() if name in ("computing", "memory")
    )
    rest = undivided if of.anatomy.undivided else unmarked
    return sum(of.shares.values()) + rest == pytest.approx(1.0)


def test_multiplications_that_need_most_of_the_step_make_it_compute_bound() -> None:
    found = held(timed(), traced(RAN), computing(0.7), MEMORY)
    assert found.verdict == "compute-bound"
    assert found.shares["computing"] == pytest.approx(0.7, rel=0.01)
    assert found.shares["kernels"] == pytest.approx(0.27, rel=0.05)
    assert add_up(found)
    assert short(found) == "compute-bound 70 %"
    assert "70 % (7.00 ms) is what its multiplications need at" in sentence(found)
    assert "the most seen here (torch's gemm)" in sentence(found)


def test_layers_timed_alone_are_held_to_their_own_shapes_and_not_to_the_highest_rate() -> None:
    words = {
        (one.site.site.path, one.passes): one.words
        for one in multiplying(WORKLOAD.network, BATCH, {**timed().factors, "threads": None})
    }
    alone = {words["conv1", "forward"]: 0.2 * STEP_S, words["conv1", BOTH]: 0.6 * STEP_S}
    ceilings = [reached(one, "passes", 1 / seconds) for one, seconds in alone.items()]
    at_most = held(timed(), traced(RAN), computing(0.1), MEMORY)
    found = held(timed(), traced(RAN), computing(0.1), MEMORY, *ceilings)
    assert (at_most.verdict, found.verdict) == ("kernel-bound", "compute-bound")
    others = at_most.shares["computing"] - sum(
        one.seconds / STEP_S
        for key, one in floors(timed(), at_most.roof).items()
        if key[0] == "conv1"
    )
    assert found.shares["computing"] == pytest.approx(0.2 + 0.4 + others)
    assert add_up(found)
    assert (
        "multiplications need, by the quickest times of its layers, alone or in a step"
        in sentence(found)
    )


def test_a_step_that_beats_its_layer_alone_needs_no_more_than_it_took() -> None:
    words = next(multiplying(WORKLOAD.network, BATCH, {**timed().factors, "threads": None}))
    assert words.site.site.path == "block/conv1"
    slow = reached(words.words, "passes", 1 / (5 * STEP_S))
    ran = {**RAN, ("conv1", "forward"): 0.2, ("block/conv1", "forward"): 0.1}
    without, found = (
        held(timed(), traced(ran), computing(0.1), MEMORY, *more) for more in ((), (slow,))
    )
    own = floors(timed(), without.roof)["block/conv1", "forward"].seconds / STEP_S
    assert found.shares["computing"] == pytest.approx(without.shares["computing"] - own + 0.1)


def test_what_a_step_took_for_a_layer_lowers_what_the_layer_alone_needed() -> None:
    forward = next(
        one.words
        for one in multiplying(WORKLOAD.network, BATCH, {**timed().factors, "threads": None})
        if (one.site.site.path, one.passes) == ("conv1", "forward")
    )
    ceilings = computing(0.1), MEMORY, reached(forward, "passes", 1 / STEP_S)
    known = floors_of(replace(demo(), cells=(timed(),)), ceilings)

    def least_s(*shares: float) -> float:
        cells = [replace(timed(), key=f"{share}") for share in shares]
        ran = {
            f"{share}": traced({("conv1", "forward"): share, ("conv1", "backward"): 1 - share})
            for share in shares
        }
        found = lowered(known, replace(demo(), cells=tuple(cells)), ran, ceilings)
        (one,) = (one for one in found.layers.values() if one.layer == forward)
        return one.seconds

    assert least_s(0.3, 0.5) == pytest.approx(0.5 * STEP_S)  # which two cells did
    assert least_s(0.2, 0.7, 0.4) == pytest.approx(0.4 * STEP_S)
    assert least_s(0.3) == pytest.approx(STEP_S)  # a step is no measure of itself
    assert least_s(1e-4, 0.5) == pytest.approx(STEP_S)  # one multiplied elsewhere
    untraced = replace(demo(), cells=(timed(),))
    assert lowered(known, untraced, {timed().key: "not traced"}, ceilings) == known


def test_operations_far_above_what_the_machine_needs_make_it_kernel_bound() -> None:
    found = held(timed(), traced(RAN), computing(0.1), MEMORY)
    assert found.verdict == "kernel-bound"
    assert found.shares["kernels"] == pytest.approx(0.87, rel=0.01)
    assert "most in conv1 backward" in sentence(found)


def test_gaps_in_which_nothing_ran_make_it_host_bound_and_tell_the_busy_cores() -> None:
    ran = {key: share * 0.4 for key, share in KERNELS.items()}
    of = timed(readings=used(1.02))
    found = held(of, traced({**ran, ("", "host gaps"): 1 - 0.4 * 0.97}), computing(0.1), MEMORY)
    assert found.verdict == "host-bound"
    assert "for 61 % (6.12 ms) no operation ran (host gaps)" in sentence(found)
    assert sentence(found).endswith("its ranks used 1.02 cores")


def used(cores: float) -> tuple[Reading, ...]:
    return (Reading("vm", "rank:0", "cores used", "1", cores),)


def test_operations_that_had_no_processor_are_not_slow_kernels() -> None:
    """Beside others a thread waits, in the middle of an operation, for a core."""
    found = held(timed(readings=used(0.25)), traced(RAN), computing(0.1), MEMORY)
    assert found.verdict == "starved"
    assert found.shares["no processor"] == pytest.approx(0.72)
    assert found.shares["kernels"] == pytest.approx(0.15, rel=0.01)
    assert add_up(found)
    assert short(found) == "starved 72 %"
    assert "for at least 72 % (7.20 ms) its operations waited without a processor" in sentence(
        found
    )


def test_what_disturbed_its_trials_is_said_beside_the_parts_that_it_is_in() -> None:
    of = timed()
    first, *others = (replace(one, counted=True) for one in of.trials)
    beside = replace(of, trials=(replace(first, verdict="contended"), *others))
    words = f"something disturbed 1 of its {len(of.trials)} trials"
    assert words in sentence(held(beside, traced(RAN), computing(0.7), MEMORY))
    assert "something disturbed" not in sentence(held(of, traced(RAN), computing(0.7), MEMORY))


def test_of_operations_on_a_gpu_the_cores_tell_nothing() -> None:
    factors = {**timed().factors, "device": "gpu"}
    found = held(timed(readings=used(0.25), factors=factors), traced(RAN), computing(0.1), MEMORY)
    assert "no processor" not in found.shares


def test_waiting_for_input_makes_it_input_bound() -> None:
    found = held(waiting(timed(), 0.6), traced(RAN, slowed=0.4), computing(0.1), MEMORY)
    assert found.verdict == "input-bound"
    assert found.shares["waiting for input"] == pytest.approx(0.6)
    assert add_up(found)
    assert short(found) == "input-bound 60 %"


def ladder(busy: float, bytes_rate: float) -> tuple[CellResult, tuple[CellResult, ...]]:
    """Give a cell that waits for a loader, and the rungs below: bytes alone, then the loader."""
    files = {"format": "raw", "samples": 256, "cache": "cold", "tier": "hdd", "shuffle": "none"}
    told = {"busy_cores": busy * 2, "cpus": 2.0, "bytes_per_s": 1e6}

    def rung(of: CellResult, key: str, **factors: Any) -> CellResult:
        given = {**of.factors, **files, "reader_threads": 2, **factors}
        return replace(of, key=key, content="small-pictures", factors=given)

    loader = cell("read-small-pictures", "null", "", 1650.0, None, unit="samples/s", noise=0.0)
    alone = cell("read-small-pictures", "null", "", bytes_rate, None, unit="samples/s", noise=0.0)
    lower = (
        rung(waiting(alone, 0.9, **told), "bytes", reader="pread"),
        rung(waiting(loader, 0.9, **told), "loader", reader="threads", prefetch=2),
    )
    top = rung(waiting(timed(), 0.6, **told), "top", reader="threads", input="files", prefetch=2)
    synthetic = replace(timed(), key="alone", factors={**timed().factors, "input": "synthetic"})
    faster = replace(synthetic.rate, value=BATCH / STEP_S * 2.5) if synthetic.rate else None
    return top, (*lower, replace(synthetic, rate=faster))


@pytest.mark.parametrize(
    ("busy", "bytes_rate", "verdict"),
    [(0.2, 1700.0, "storage-bound"), (0.2, 9000.0, "harness-bound"), (0.9, 9000.0, "input-bound")],
)
def test_a_ladder_tells_what_is_waited_for(busy: float, bytes_rate: float, verdict: str) -> None:
    of, others = ladder(busy, bytes_rate)
    found = held(of, traced(RAN, slowed=0.4), computing(0.1), MEMORY, others=others)
    assert found.verdict == verdict


def test_an_exposed_exchange_makes_it_exchange_bound_and_the_rest_stays_unknown() -> None:
    scale = Scale(batch_per_device=BATCH // 2, nodes=2)
    both = timed(scale=scale)
    quick = tuple(replace(one, rate=one.rate and one.rate * 4) for one in both.trials)
    apart = replace(both, key="apart", factors={**both.factors, "communicate": False}, trials=quick)
    found = held(both, NOT_MADE, computing(0.1), MEMORY, others=(apart,))
    assert found.verdict == "exchange-bound"
    assert found.shares["exchange"] == pytest.approx(0.75)
    assert found.shares["computing"] == pytest.approx(0.05)  # of half the batch on each node
    assert found.unknown == pytest.approx(0.2)
    assert "nothing attributed its step" in sentence(found)


def test_cores_of_several_ranks_are_those_of_all_together() -> None:
    used = tuple(Reading("here", f"rank:{one}", "cores used", "1", 0.5) for one in range(2))
    both = timed(scale=Scale(batch_per_device=BATCH // 2, ranks_per_node=2), readings=used)
    assert "its 2 ranks together used 1.00 cores" in sentence(held(both, NOT_MADE, computing(0.1)))


def test_an_exchange_that_a_trace_tells_needs_no_twin() -> None:
    both = timed(scale=Scale(batch_per_device=BATCH // 2, nodes=2))
    both = replace(both, factors={**both.factors, "communicate": True})
    shares = {("conv1", "backward"): 0.3, ("", "exchange"): 0.6}
    found = held(both, traced(shares), computing(0.1), MEMORY)
    assert found.verdict == "exchange-bound"
    assert [key for key, _ in found.slow] == [("conv1", "backward")]
    assert all(one.key[1] != "exchange" for one in found.anatomy.sites)
    assert found.shares["exchange"] == pytest.approx(0.6)
    assert dict(found.anatomy.idle)["exchange"] == pytest.approx(0.6)
    assert "communicate" not in sentence(found)


def test_where_a_trace_names_no_exchange_it_stays_unknown() -> None:
    both = timed(scale=Scale(batch_per_device=BATCH // 2, nodes=2))
    found = held(both, traced({("conv1", "backward"): 0.9}), computing(0.1), MEMORY)
    assert "what the exchange of gradients costs: its trace names none" in sentence(found)


def test_of_several_ranks_with_threads_of_their_own_each_needs_what_one_alone_does() -> None:
    both = timed(scale=Scale(batch_per_device=BATCH // 2, ranks_per_node=2))
    shared = held(both, NOT_MADE, computing(0.1))
    assert shared.shares == {}
    assert "its 2 devices share cores" in sentence(shared)  # as many threads as they find
    found = held(
        replace(both, factors={**both.factors, "threads": 1}),
        NOT_MADE,
        in_one_thread(computing(0.1)),
    )
    assert found.shares["computing"] == pytest.approx(0.05)  # of half the batch on each
    assert found.unknown == pytest.approx(0.95)
    assert found.verdict == "not known"


def in_one_thread(of: Ceiling) -> Ceiling:
    return replace(of, under=replace(of.under, threads=1))


def test_of_several_ranks_without_a_twin_the_exchange_is_not_known() -> None:
    found = held(timed(scale=Scale(batch_per_device=BATCH // 2, nodes=2)), "two ranks")
    assert (found.verdict, found.shares) == ("not known", {})
    assert "needs the same cell with communicate = false" in sentence(found)


CRAWLING = reached("triad", "bytes", 1e7, cache=1_600_000)  # which moves a third more
"""Of tinycnn at this batch only bn1's and relu1's tensors do not fit into such a cache."""
PASSES = ("forward", "backward")


def test_a_step_that_memory_needs_for_itself_is_memory_bound() -> None:
    moving = {(site, phase): 0.15 for site in ("bn1", "relu1") for phase in PASSES}
    found = held(timed(), traced({**moving, ("conv1", "backward"): 0.4}), computing(0.1), CRAWLING)
    assert found.verdict == "memory-bound"
    assert found.shares["memory"] == pytest.approx(0.6)
    assert "is what its tensors need through memory at 0.0133 GB/s" in sentence(found)


def test_where_nothing_is_above_a_fifth_no_single_cause_is_named() -> None:
    shares = {("relu1", phase): 0.095 for phase in PASSES}
    shares |= {("conv1", "forward"): 0.38, ("", "host gaps"): 0.19, ("", "other"): 0.05}
    divided = traced({key: one / 0.81 for key, one in shares.items()}, slowed=0.81)
    found = held(waiting(timed(), 0.19), divided, computing(0.19), CRAWLING)
    assert found.verdict == "no single cause"
    causes = ("computing", "memory", "kernels", "host gaps", "waiting for input")
    assert found.shares == pytest.approx(dict.fromkeys(causes, 0.19), rel=0.01)
    assert short(found) == "no single cause > 20 %"
    assert sentence(found).startswith("no single cause above 20 %: ")
    assert add_up(found)


def test_no_layer_needs_more_of_memory_than_it_took() -> None:
    """A fused layer moves nothing: its time is that of the layer that it is fused with."""
    crawling = reached("triad", "bytes", 1e6, cache=1)
    fused = {("conv1", "forward"): 0.5, ("conv1", "backward"): 0.4, ("", "host gaps"): 0.1}
    found = held(timed(), traced(fused), computing(0.2), crawling)
    assert add_up(found)
    assert all(share >= 0 for share in found.shares.values())


def test_what_fits_into_the_cache_needs_no_memory() -> None:
    found = held(timed(), traced(RAN), computing(0.1), reached("triad", "bytes", 1.0, 2**40))
    assert "memory" not in found.shares


def test_without_an_attribution_only_what_was_measured_is_said() -> None:
    found = held(timed(), "torch compiles its steps", computing(0.3), MEMORY)
    assert found.verdict == "not known"
    assert found.shares["computing"] == pytest.approx(0.3, rel=0.01)
    assert found.unknown == pytest.approx(0.7, rel=0.01)
    assert "of 70 % no cause is known" in sentence(found)
    assert "torch compiles its steps" in sentence(found)


def test_a_ceiling_alone_names_a_cell_that_is_close_to_it() -> None:
    assert held(timed(), NOT_MADE, computing(0.8), MEMORY).verdict == "compute-bound"


def test_without_ceilings_operations_are_not_divided_and_say_why() -> None:
    found = held(timed(), traced(RAN))
    assert found.verdict == "not known"
    assert found.shares["operations"] == pytest.approx(0.97)
    assert "nothing measured what kernels reach here at most" in sentence(found)
    ran = {key: share * 0.4 for key, share in KERNELS.items()}
    gaps = held(timed(), traced({**ran, ("", "host gaps"): 1 - 0.4 * 0.97}))
    assert gaps.verdict == "host-bound"


def test_ceilings_of_another_precision_or_other_threads_are_not_the_cells_own() -> None:
    one = computing(0.7)
    for under in (
        replace(one.under, precision="bf16"),
        replace(one.under, threads=1),
        replace(one.under, device="gpu"),
    ):
        assert held(timed(), traced(RAN), replace(one, under=under)).verdict == "not known"


def test_a_trace_that_disturbs_the_step_divides_nothing() -> None:
    found = held(timed(), traced(RAN, slowed=1.4), computing(0.1), MEMORY)
    assert "disturbed" in sentence(found)
    assert found.anatomy.sites == ()


def test_what_convolutions_reached_is_no_ceiling_of_products_alone() -> None:
    ceilings = (reached("gemm", "FLOP", 1e11), reached("convolution", "FLOP", 2.5e11), MEMORY)
    assert "torch's convolution" in sentence(held(timed(), traced(RAN), *ceilings))
    exact = {"parameters": PRODUCTS.parameters, "macs": PRODUCTS.macs, "workload": "tinygpt"}
    found = held(timed(**exact), traced(RAN), *ceilings)
    assert "torch's gemm" in sentence(found)


def test_another_network_than_the_one_known_here_has_no_floor() -> None:
    found = held(timed(parameters=7), traced(RAN), computing(0.1), MEMORY)
    assert "not the one that this bakeoff knows" in sentence(found)


def test_a_gpu_in_which_no_kernel_ran_tells_the_least_that_the_host_took() -> None:
    of = timed(utilisation={"gpu": 0.3})
    of = replace(of, factors={**of.factors, "device": "gpu"})
    found = held(of, "steps on a GPU are not attributed yet")
    assert found.verdict == "host-bound"
    assert "for at least 70 %" in sentence(found)
    assert "not known" in found.anatomy.of_device


def on_gpu(**waited: float) -> Limit:
    """Hold a cell to a GPU's trace: three fifths of the step are gaps, divided as told."""
    of = timed()
    ran = {("conv1", "forward"): 0.1, ("conv1", "backward"): 0.25, ("", "update"): 0.05}
    found = traced({**ran, ("", "host gaps"): 0.6})
    whys = [Operation(name.replace("_", " "), "", "", 9.0, share) for name, share in waited.items()]
    parts = (
        one if one.phase != "host gaps" else replace(one, operations=tuple(whys))
        for one in found.parts
    )
    ceilings = (
        replace(one, under=replace(one.under, device="gpu")) for one in (computing(0.1), MEMORY)
    )
    of = replace(of, factors={**of.factors, "device": "gpu"})
    return held(of, replace(found, parts=tuple(parts)), *ceilings)


def test_a_gpu_s_gaps_are_told_by_what_it_waited_for() -> None:
    body = on_gpu(not_launched_yet=0.8, launched_and_not_begun=0.2).anatomy
    assert body.phases["host gaps"] == pytest.approx(0.6)
    assert dict(body.idle) == {
        "host gaps, not launched yet": pytest.approx(0.48),
        "host gaps, launched and not begun": pytest.approx(0.12),
    }
    assert not body.of_device


def test_gaps_on_a_cpu_are_told_by_what_came_next_the_longest_alone() -> None:
    shares = {"fc backward": 0.1, "conv1 forward": 0.4, "bn1 forward": 0.2, "fc forward": 0.3}
    came = [Operation(f"before {one}", "", "", 1.0, share) for one, share in shares.items()]
    found = traced(RAN)
    parts = (
        one if one.phase != "host gaps" else replace(one, operations=tuple(came))
        for one in found.parts
    )
    assert dict(held(timed(), replace(found, parts=tuple(parts))).anatomy.idle) == {
        "host gaps, before conv1 forward": pytest.approx(0.012),
        "host gaps, before fc forward": pytest.approx(0.009),
        "host gaps, before bn1 forward": pytest.approx(0.006),
        "host gaps, elsewhere": pytest.approx(0.003),
    }


def test_the_host_is_blamed_for_no_pause_of_a_device_s_own() -> None:
    by_host = on_gpu(not_launched_yet=0.8, launched_and_not_begun=0.2)
    assert (by_host.verdict, by_host.shares["host gaps"]) == ("host-bound", pytest.approx(0.48))
    by_device = on_gpu(not_launched_yet=0.2, launched_and_not_begun=0.8)
    assert by_device.verdict != "host-bound"
    assert by_device.shares["host gaps"] == pytest.approx(0.12)
    untold = on_gpu(launch_not_traced=1.0)
    assert "host gaps" not in untold.shares
    assert untold.unknown == pytest.approx(0.6)
    assert any("launches were not traced" in one for one in untold.why_unknown)


def test_kinds_of_operations_add_up_to_what_ran() -> None:
    body = held(timed(), traced(RAN)).anatomy
    assert sum(one.share for one in body.kinds) == pytest.approx(0.97)
    named = {one.name: one for one in body.kinds}
    assert named["op of conv1"].share == pytest.approx(0.75 * 0.92)
    assert named["op of conv1"].times == 2
    assert body.kinds[-1].name == ""  # what the trace did not list


def test_pages_of_several_runs_and_runs_without_evidence_say_nothing() -> None:
    here: Results = demo()
    assert limits(here, Evidence()) == {}
    two = replace(here, runs=(here.runs[0], here.runs[0]))
    assert limits(two, Evidence(attributions={}, ceilings=())) == {}


def test_of_a_run_in_which_nothing_was_asked_nothing_is_said() -> None:
    results = replace(demo(), cells=(timed(),))
    assert limits(results, Evidence(attributions={}, ceilings=())) == {}


def test_blocks_that_are_computed_twice_need_their_multiplications_twice() -> None:
    again = 2 * BATCH * macs_computed_again(WORKLOAD.network, in_order=False)
    twice = timed(factors={**timed().factors, "recompute": True})
    found = held(twice, traced(RAN), computing(0.5))
    assert found.shares["computing"] == pytest.approx(0.5 * (1 + again / OPERATIONS))
