"""Read what adapters say of themselves, and every way of saying it wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import plugins
from harness.errors import UsageError
from harness.study.framework import framework_info, read_framework
from harness.study.requirements import parse_needs

Write = Callable[..., Path]

GOOD = """\
name = "mine"
title = "Mine"
module = "mine"
kinds = ["train"]
devices = ["cpu"]
"""


def test_a_factor_that_is_not_listed_has_only_its_default(write: Write) -> None:
    info = read_framework(write(GOOD))
    assert info.refuses("precision", "fp32") is None
    assert info.refuses("precision", "bf16") == "mine does not offer precision bf16 (it has: fp32)"
    assert info.refuses("batch", 7) is None
    assert info.refuses("device", "gpu") == "mine does not offer device gpu (it has: cpu)"
    assert info.refuses("threads", 2) == "mine does not offer threads 2"


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("kind = 1", "mine.toml:6: kind: unknown key. Did you mean 'kinds'?"),
        ("start_up = 5", "mine.toml:6: start_up: 5 needs a unit, for example"),
        (
            "[strategies.ring]\nseveral_device = true",
            "mine.toml:7: strategies.ring.several_device: unknown key. Did you mean 'several_dev",
        ),
        (
            "[strategies.ring]\nsame_as = 'trch'",
            "strategies.ring.same_as: no framework is called 'trch'. Did you mean 'torch'?",
        ),
        (
            "[strategies.ring]\nsame_as = 'torch'",
            "strategies.ring.same_as: torch has no strategy 'ring'.",
        ),
        (
            "[strategies.ddp]\nsame_as = 'torch'\nenvironment = 'ring'",
            "strategies.ddp.same_as: the rest of the table stands there; leave it out here.",
        ),
        (
            "[strategies.ring.variables]\nsteerin = ['X']",
            "strategies.ring.variables.steerin: unknown key. Did you mean 'steering'?",
        ),
        (
            "[variables]\nsteering = ['MINE-*']",
            "variables.steering[0]: 'MINE-*' is no environment variable, nor the beginning of one",
        ),
        (
            "[variables]\ncaches = { MINE_CACHE = '../mine' }",
            "variables.caches.MINE_CACHE: '../mine' is no path below a folder.",
        ),
        (
            "[variables]\nevery_rank = { MINE_RANK = '$rnk' }",
            "every_rank.MINE_RANK: '$rnk' is nothing that a rank is told. Did you mean 'rank'?",
        ),
        (
            "[variables]\nseveral_ranks = { MINE_RANK = '5$' }",
            "several_ranks.MINE_RANK: '5$': a $ that begins no name is written $$.",
        ),
        (
            "[factors]\nreader = ['own']\n[readers.won]",
            "readers.won: 'won' is not offered here. Did you mean 'own'?",
        ),
        (
            "[strategies.ring]\n[[requires]]\nwhen = { strategy = 'rong' }\nneeds = 'x'\nwhy = 'x'",
            "requires[0].when.strategy: 'rong' is not offered here. Did you mean 'ring'?",
        ),
        (
            "attributes_ranks = ['rong']\n[strategies.ring]",
            "attributes_ranks[0]: 'rong' is not offered here. Did you mean 'ring'?",
        ),
        ("[factors]\nprecison = 'any'", "factors.precison: unknown key. Did you mean 'precision'?"),
        ("[factors]\nprecision = ['bf61']", "precision[0]: 'bf61' is no value of precision. Did"),
        ("[factors]\nthreads = []", 'factors.threads: must be a list of values, or "any".'),
        ("[factors]\nbatch = 'any'", "factors.batch: is carried out by the harness"),
        ("[factors]\ndevice = ['gpu']", "factors.device: stands in 'devices'."),
        ("[defaults]\ncompile = 1", "defaults.compile: 1 must be true or false."),
        (
            "[options.batch]\ntype = 'count'\nmeaning = 'x'",
            "options.batch: has the name of a factor that all frameworks share.",
        ),
        (
            "[options.mode]\ntype = 'choice'\nmeaning = 'x'",
            "options.mode: a choice needs 'allowed'",
        ),
        (
            "[[requires]]\nneeds = 'gpsu >= 1'\nwhy = 'x'",
            (
                "mine.toml:7: requires[0].needs: 'gpsu' is nothing that can be required. "
                "Did you mean 'gpus'?"
            ),
        ),
        ("[[requires]]\nneeds = 'gpus'\nwhy = 'x'", "'gpus' is not a comparison, for example"),
        ("[[requires]]\nneeds = 'gpus > many'\nwhy = 'x'", "compares sizes, but 'many' is not a"),
        ("[[requires]]\nneeds = 'gpus > 0'", "mine.toml:6: requires[0].why: is missing."),
    ],
)
def test_a_fault_is_named_where_it_stands(added: str, message: str, write: Write) -> None:
    path = write(GOOD + added)
    with pytest.raises(UsageError) as caught:
        read_framework(path)
    assert message in str(caught.value)


def test_all_faults_come_together(write: Write) -> None:
    path = write(GOOD.replace('"cpu"', '"cup"') + "[factors]\nprecison = 'any'\nbatch = 'any'\n")
    with pytest.raises(UsageError, match=r"3 faults"):
        read_framework(path)


def test_the_file_has_the_name_of_the_framework(write: Write) -> None:
    path = write(GOOD, "other.toml")
    with pytest.raises(UsageError, match=r"name: 'mine' is not the file's name, 'other'"):
        read_framework(path)


def test_a_requirement_fails_only_on_what_is_known() -> None:
    terms = parse_needs("gpus >= 2 and memory >= 16 GiB and device = gpu and compile != true")
    assert all(term.holds({}) for term in terms)
    known = {"gpus": 1, "memory": 8 * 2**30, "device": "cpu", "compile": True}
    assert not any(term.holds(known) for term in terms)


def test_every_shipped_adapter_says_what_it_can_do() -> None:
    for name, entry in plugins.files("adapters").items():
        assert read_framework(entry.path).name == name


def test_an_unknown_framework_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no framework is called 'trch'. Did you mean 'torch'?"):
        framework_info("trch")


def test_frameworks_that_do_not_compute_blocks_twice_refuse_to() -> None:
    shipped = (read_framework(entry.path) for entry in plugins.files("adapters").values())
    able = {one.name for one in shipped if one.refuses("recompute", True) is None}
    assert able == {"torch", "jax"}
