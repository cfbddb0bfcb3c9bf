"""Hold tokens and their operations to the conventions that they are named by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.analysis.evidence import Evidence
from harness.analysis.floors.kept_floors import MachineFloors
from harness.analysis.floors.layer_times import keys_of_products
from harness.analysis.floors.run_floors import LayerFloor
from harness.analysis.limits.model_flops import causal_macs, model_flops
from harness.sections.tokens import SECTION
from harness.worker.network.asked_workload import at_length
from harness.worker.network.blocks import macs_computed_again
from harness.worker.network.shapes import count
from tests.reports.samples import cell
from workloads import gpt2_124m, llama_3_1_8b, llama_3_2_1b, tinygpt

# Training FLOP a token, from the definitions: full and causal.
TABLE = {
    "gpt2-124m": (gpt2_124m.WORKLOAD, 854_438_400, 797_870_592),
    "llama-3-2-1b": (llama_3_2_1b.WORKLOAD, 10_635_706_368, 9_025_290_240),
    "llama-3-1-8b": (llama_3_1_8b.WORKLOAD, 57_912_852_480, 51_471_187_968),
}


@pytest.mark.parametrize("name", TABLE)
def test_operations_of_a_token_equal_the_published_ones_to_the_unit(name) -> None:
    workload, full, causal = TABLE[name]
    (length,) = workload.network.input
    assert 6 * count(workload.network).macs == full * length
    assert 6 * causal_macs(workload.network) == causal * length


def of_tokens(**changes):
    counts = {"parameters": tinygpt.WORKLOAD.parameters, "macs": tinygpt.WORKLOAD.macs}
    made = {"unit": "tokens", **counts, **changes}
    found = cell("tinygpt", "torch", "fp32", 6400.0, None, **made)
    return replace(found, factors={**found.factors, "sequence": 64})


def test_operations_of_a_sample_are_those_of_its_tokens() -> None:
    found = model_flops(of_tokens(), ())
    assert found.tokens.value == pytest.approx(6400, rel=0.1)
    assert found.full == pytest.approx(found.tokens.value / 64 * 6 * 9_437_184)
    assert found.causal == pytest.approx(found.tokens.value / 64 * 6 * 8_921_088)


def test_a_run_that_counted_sequences_is_told_in_tokens_too() -> None:
    older = replace(of_tokens(unit="sequences"), factors={})
    found, now = model_flops(older, ()), model_flops(of_tokens(), ())
    assert found.tokens.value == pytest.approx(64 * now.tokens.value)
    assert found.full == pytest.approx(64 * now.full)


def test_a_cell_at_another_length_multiplies_more_or_less_a_token() -> None:
    short = at_length(tinygpt.WORKLOAD, 16)
    cell = of_tokens(macs=short.macs)
    found = model_flops(replace(cell, factors={**cell.factors, "sequence": 16}), ())
    assert found.full == pytest.approx(found.tokens.value / 16 * 6 * short.macs)


def test_without_a_measured_ceiling_there_is_no_share() -> None:
    found = model_flops(of_tokens(), ())
    assert found.roof is None
    assert found.share(found.full) is None


def test_layers_that_were_all_timed_alone_are_a_ceiling_of_the_network_s_own_shapes() -> None:
    cell = of_tokens()
    keys = keys_of_products(cell)
    kept = {key.words: LayerFloor(1e-3, 1e-3, 1e-3, 1, False, "", "", "", "", 0) for key in keys}
    found = model_flops(cell, (), MachineFloors(kept))
    step_s = cell.work_per_step / cell.rate.value
    assert found.full / found.alone == pytest.approx(1e-3 * len(keys) / step_s)
    kept.popitem()
    assert model_flops(cell, (), MachineFloors(kept)).alone is None


def test_what_is_computed_twice_counts_by_the_convention_of_hardware_alone() -> None:
    once = 3 * count(tinygpt.WORKLOAD.network).macs
    again = macs_computed_again(tinygpt.WORKLOAD.network, in_order=True)
    batch = of_tokens().scale.batch_per_rank
    found = [
        model_flops(multiplying(batch * (once + more), recompute=more > 0), ())
        for more in (0, again)
    ]
    plain, recomputing = found
    assert recomputing.full == plain.full == pytest.approx(plain.hardware)
    assert recomputing.hardware == pytest.approx(plain.hardware * (once + again) / once)


def multiplying(counted: int, *, recompute: bool):
    made = of_tokens()
    facts = {"multiplications": {"asked": counted, "counted": counted, "by": "its text"}}
    trials = tuple(replace(one, facts={**one.facts, **facts}) for one in made.trials)
    return replace(made, trials=trials, factors={**made.factors, "recompute": recompute})


def test_a_network_of_another_identity_than_today_s_is_not_counted() -> None:
    assert model_flops(of_tokens(macs=1), ()) is None


def test_networks_that_are_fed_no_tokens_have_no_such_section() -> None:
    assert model_flops(cell("resnet50", "torch", "fp32", 100.0, None), ()) is None
    assert SECTION.needs <= Evidence(attributions={}, ceilings=()).gathered
