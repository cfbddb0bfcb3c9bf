"""What a cell's key depends on, and what it must not depend on."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.cell import cell_key, fingerprint, label
from harness.study.factors import FACTORS, IN_CELL, Factor


def values(factor: Factor) -> st.SearchStrategy[Any]:
    if factor.allowed:
        return st.sampled_from(factor.allowed)
    if factor.type == "flag":
        return st.booleans()
    if factor.type == "count":
        return st.integers(factor.least, 10**6)
    return st.text(min_size=1, max_size=8)


FACTOR_VALUES = st.fixed_dictionaries(
    {}, optional={name: values(FACTORS[name]) for name in (*IN_CELL, "strategy")}
)
OPTIONS = st.dictionaries(st.text(min_size=1, max_size=5), st.integers() | st.booleans())


def key(factors: dict[str, Any], options: dict[str, Any], framework: str = "torch") -> str:
    return cell_key("alexnet", "0123", framework, factors, options)


@given(FACTOR_VALUES, OPTIONS, st.randoms())
def test_the_order_of_factors_and_options_changes_no_key(
    factors: dict[str, Any], options: dict[str, Any], shuffle: random.Random
) -> None:
    def shuffled(table: dict[str, Any]) -> dict[str, Any]:
        items = list(table.items())
        shuffle.shuffle(items)
        return dict(items)

    assert key(shuffled(factors), shuffled(options)) == key(factors, options)


@given(FACTOR_VALUES, OPTIONS)
def test_a_factor_at_its_default_says_nothing(
    factors: dict[str, Any], options: dict[str, Any]
) -> None:
    defaults = {name: FACTORS[name].default for name in (*IN_CELL, "strategy")}
    assert key({**defaults, **factors}, options) == key(factors, options)


@given(FACTOR_VALUES, FACTOR_VALUES)
def test_different_factors_have_different_keys(one: dict[str, Any], two: dict[str, Any]) -> None:
    def telling(factors: dict[str, Any]) -> dict[str, Any]:
        kept = {name: x for name, x in factors.items() if x != FACTORS[name].default}
        if "global_batch" in kept:
            kept.pop("batch", None)
        return kept

    assert (key(one, {}) == key(two, {})) == (telling(one) == telling(two))


def test_a_label_says_nothing_of_lengths_and_attention_where_there_are_none() -> None:
    asked = ("sequence", "attention")
    given = {"sequence": 64, "attention": "plain"}
    text = label("tinygpt", "torch", given, {}, asked)
    assert text == "tinygpt · torch · sequence 64 · attention plain"
    assert label("tinycnn", "torch", dict.fromkeys(asked), {}, asked) == "tinycnn · torch"


def test_a_key_is_the_same_in_every_interpreter() -> None:
    script = (
        "from harness.plan.cell import cell_key\n"
        "print(cell_key('alexnet', '0123', 'torch@1.13', "
        "{'precision': 'bf16', 'batch': 16, 'compile': True}, {'mode': 'hard'}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    # Written down once: a change of this value orphans every run that exists.
    assert found == {"13464ec8759588db"}


def test_another_workload_identity_or_framework_is_another_cell() -> None:
    keys = {
        cell_key("alexnet", "0123", "torch", {}, {}),
        cell_key("alexnet", "4567", "torch", {}, {}),
        cell_key("resnet50", "0123", "torch", {}, {}),
        cell_key("alexnet", "0123", "torch@1.13", {}, {}),
    }
    assert len(keys) == 4


def test_the_batch_that_follows_from_a_global_batch_is_left_out() -> None:
    assert key({"global_batch": 64, "batch": 32}, {}) == key({"global_batch": 64, "batch": 16}, {})


def test_a_whole_number_is_the_same_however_it_is_written() -> None:
    assert key({"compute_ms": 20.0}, {}) == key({"compute_ms": 20}, {})
    assert key({"compute_ms": 20.5}, {}) != key({"compute_ms": 20}, {})


@given(st.text(), st.text(), st.text())
def test_a_fingerprint_tells_its_parts_apart(payload: str, environment: str, platform: str) -> None:
    whole = fingerprint(payload, environment, platform)
    assert whole == fingerprint(payload, environment, platform)
    assert whole != fingerprint(payload + "x", environment, platform)
    assert whole != fingerprint(payload, environment, platform + "x")
    assert whole != fingerprint(payload + environment, "", platform) or not environment


def test_a_label_shows_only_what_varies() -> None:
    factors = {"nodes": 2, "strategy": "horovod", "batch": 64, "precision": "bf16"}
    assert label("resnet50", "torch", factors, {}, ()) == "resnet50 · torch"
    assert (
        label("resnet50", "torch", factors, {}, ("workload", "strategy", "nodes", "precision"))
        == "resnet50 · torch · horovod · 2 nodes · bf16"
    )
    assert label("resnet50", "torch", factors, {}, ("batch",)) == "resnet50 · torch · batch 64"
