"""Hold the gate's answers to their words, and what is kept to being found again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.gate import cell_gate, gate
from harness.gate.processes import side_by_side
from harness.gate.result import WITHOUT_FLOAT64, WITHOUT_UPDATES, GatePart, Result, joined
from harness.gate.semantics import TensorComparison
from harness.plan.cell import Cell
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.ranks.payload import gather
from harness.store.records import DIFFERS, EQUIVALENT, EXAMINATION_FAILED, IN_PART, NAMED
from harness.study.study import load_study
from tests.adapters.interpreter import python
from tests.needs import framework

STUDY = """
title = "One cell"
[matrix]
workload = ["WORKLOAD"]
framework = "FRAMEWORK"
[measure]
trials = 1
warmup = "3 steps"
until = "5 steps"
"""


def plan_of(place: Path, workload: str, name: str, *overrides: str) -> Plan:
    path = place / "study.toml"
    path.write_text(STUDY.replace("WORKLOAD", workload).replace("FRAMEWORK", name))
    return make_plan(load_study(str(path), overrides=overrides), load_platform("local"))


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return plan_of(tmp_path, "tinycnn", "torch").cells[0]


GOOD = GatePart(TensorComparison(3e-11))
TIMED = GatePart(TensorComparison(2e-6))


def test_an_equivalent_cell_says_how_close_and_at_which_size(cell) -> None:
    result = joined(GOOD, TIMED, cell, " at 3×64×64")
    expected = "equivalent (float64, 3e-11; fp32 layer by layer, 2e-06 at 3×64×64)"
    assert str(result) == expected


def test_a_compiled_cell_says_what_its_float64_step_was(cell) -> None:
    compiled = replace(cell, factors={**cell.factors, "compile": True})
    assert str(joined(GOOD, TIMED, compiled, "")).startswith("equivalent (float64 compiled, 3e-11;")
    eager = replace(GOOD, facts={"eager": "no kernel for Conv"})
    assert "(float64 eager (no kernel for Conv), 3e-11;" in str(joined(eager, TIMED, compiled, ""))


def test_what_differs_comes_before_everything_else(cell) -> None:
    wrong = GatePart(TensorComparison(0.0, "block/conv2: output is 3.1e-02 off"))
    assert str(joined(wrong, TIMED, cell, "")).startswith("differs at block/conv2: output")
    assert joined(GOOD, wrong, cell, "").state == DIFFERS
    assert joined(wrong, GatePart(None, "it crashed"), cell, "").state == DIFFERS


def test_a_framework_without_float64_is_proved_in_part_and_says_what_is_not_shown(cell) -> None:
    narrow = GatePart(None, "it computes in float32 only", is_unsupported=True)
    result = joined(narrow, TIMED, cell, "")
    assert result.state == IN_PART
    assert "not in float64: it computes in float32 only" in result.detail
    assert result.not_shown == (WITHOUT_FLOAT64, WITHOUT_UPDATES)


def test_what_a_framework_without_float64_declares_is_said_where_it_matters(cell) -> None:
    caffe = replace(cell, adapter="caffe")
    narrow = GatePart(None, "Caffe computes in fp32 only", is_unsupported=True)
    result = joined(narrow, TIMED, caffe, "")
    assert result.state == IN_PART
    assert result.detail.count("averages since the start") == 1
    elsewhere = joined(narrow, TIMED, replace(caffe, workload="alexnet"), "")
    assert "declared to differ" not in elsewhere.detail


def test_an_examination_that_failed_is_no_pass(cell) -> None:
    failed = GatePart(None, "it crashed", log="Segmentation fault")
    assert joined(failed, TIMED, cell, "").state == EXAMINATION_FAILED
    assert joined(GOOD, failed, cell, "").state == EXAMINATION_FAILED
    assert joined(GOOD, failed, cell, "").log == "Segmentation fault"


def test_an_examination_that_crashes_keeps_its_log_and_is_made_again(tmp_path: Path) -> None:
    null = Path("harness/worker/adapters/null.py")
    payload = gather()
    dying = tmp_path / "null.py"
    source = payload.files[null.as_posix()]
    assert source is not None
    words = '    sys.stderr.write("the library fell over\\n")\n    sys.exit(7)\n'
    text = source.read_text()
    dying.write_text(text.replace("    return NullAdapter(is_saving)\n", words))
    broken = replace(payload, files={**payload.files, null.as_posix(): dying})
    plan = plan_of(tmp_path, "tinycnn", "null")
    (result,) = gate.ensure(plan, payload=broken, kept=tmp_path / "kept").values()
    log = tmp_path / "kept" / "logs" / f"{plan.cells[0].key}.log"
    assert result.state == EXAMINATION_FAILED
    assert result.detail.endswith(f"its log: {log}")
    assert "rank.0.err" not in result.detail, "a log that is removed with the scratch folder"
    assert "the library fell over" in log.read_text()
    assert not (tmp_path / "kept" / "results").exists()


def test_a_named_difference_is_told_in_the_framework_s_own_words(cell) -> None:
    keras = replace(cell, adapter="keras")
    result = joined(GatePart(TensorComparison(3e-11, named=True)), TIMED, keras, "")
    assert result.state == NAMED
    assert "biased variance" in result.detail


def test_a_cell_that_trains_nothing_is_not_checked(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "nothing", "null")
    (result,) = gate.ensure(plan, kept=tmp_path / "kept").values()
    assert str(result) == "not checked: it trains no network"


def test_a_kept_result_that_was_changed_by_hand_is_not_believed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "tinycnn", "null")
    (first,) = gate.ensure(plan, kept=tmp_path / "kept").values()
    for file in (tmp_path / "kept" / "results").iterdir():
        file.write_text(file.read_text().replace("cannot be examined", "is the best of all"))
    (again,) = gate.ensure(plan, kept=tmp_path / "kept").values()
    why = "examined anew, since what was kept had been changed by hand"
    assert again.detail == f"{first.detail}; {why}"
    assert list(gate.ensure(plan, kept=tmp_path / "kept").values()) == [first]


def test_cells_that_have_nothing_in_common_are_examined_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, 'tinycnn", "tinygpt', "null")
    alone = gate.ensure(plan, kept=tmp_path / "alone")
    monkeypatch.setattr(side_by_side, "lanes", lambda groups: min(2, groups))
    watched: list[str] = []
    both = gate.ensure(plan, kept=tmp_path / "both", watch=watched.append)
    assert both == alone
    assert {one.partition("]")[0] for one in watched} == {"[1/2", "[2/2"}
    monkeypatch.setattr(side_by_side, "heard", None)  # all is kept: no lane is asked
    assert gate.ensure(plan, kept=tmp_path / "both") == alone


@pytest.mark.framework
def test_a_second_examination_starts_nothing(tmp_path, monkeypatch) -> None:
    framework("torch")
    plan = plan_of(tmp_path, "tinycnn", "torch")
    told: dict[str, Result] = {}
    watched: list[str] = []
    ensured = gate.ensure(plan, kept=tmp_path / "kept", keep=told.__setitem__, watch=watched.append)
    (first,) = ensured.values()
    assert first.state == EQUIVALENT
    assert all(re.search(r"\(.* s of about .* s\)$", one) for one in watched), watched
    monkeypatch.setattr(cell_gate, "Examiner", None)
    assert list(gate.ensure(plan, kept=tmp_path / "kept").values()) == [first]
    assert told == {plan.cells[0].key: first}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one place for the reference, which all frameworks are held to."""
    return tmp_path_factory.mktemp("kept")


@pytest.mark.framework
@pytest.mark.timeout(900)  # tinygrad compiles a program for each operation of each layer
@pytest.mark.parametrize(
    "name",
    [
        *("tensorflow", "tensorflow@1.15", "keras", "jax"),
        # whose halves hold other networks in the short form: tests/adapters/tinygrad, test_timed.py
        pytest.param("tinygrad", marks=pytest.mark.long),
    ],
)
def test_frameworks_pass_the_whole_gate_on_tinycnn(name: str, tmp_path, kept) -> None:
    python(name)
    (result,) = gate.ensure(plan_of(tmp_path, "tinycnn", name), kept=kept).values()
    assert result.state == (NAMED if name == "keras" else EQUIVALENT), result


@pytest.mark.framework
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workload", ["tinygpt", "tinyllama", "tinyvit"])
@pytest.mark.parametrize("name", ["keras@jax", "keras@torch"])
def test_keras_passes_the_whole_gate_on_its_other_backends(
    name: str, workload: str, tmp_path, kept
) -> None:
    """Keras holds a model's weights in the order in which it met their layers, not in ours."""
    python(name)
    compiled = f"matrix.compile={'true' if name == 'keras@jax' else 'false'}"
    (result,) = gate.ensure(plan_of(tmp_path, workload, name, compiled), kept=kept).values()
    assert result.state == EQUIVALENT, result
