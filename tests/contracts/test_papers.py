"""Hold the papers' claims to the studies: each has a finding whose cells some size contains."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.papers.finding_cells import differing
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.claims import CLAIMS, PAPERS
from harness.study.factors import OF_INPUT
from harness.study.study import Study, built_study, load_study, study_files
from reports.exports import paper_answers, papers_page
from tests.papers.played_runs import PLAYED, PROFILES
from tests.runs import RecordedCell, Recording, write_run

FOLLOWS = frozenset({"strategy", "buffers", "samples"})
"""What several ranks need; buffers of a reader that has none; more samples for more nodes."""


def test_every_claim_of_the_papers_has_a_finding_with_cells() -> None:
    answered = {
        finding.claim
        for study in papers_page.studies()
        for finding, sizes in zip(study.findings, papers_page.sizes_of(study), strict=True)
        if sizes
    }
    assert answered == set(CLAIMS)
    assert Counter(name.partition("/")[0] for name in CLAIMS) == {
        "bae2019": 9,
        "lee2021": 8,
        "shams2017": 11,
        "chien2018": 7,
        "wang2018": 5,
    }
    assert set(PAPERS) == {name.partition("/")[0] for name in CLAIMS}


@pytest.mark.parametrize("study", papers_page.studies(), ids=lambda study: study.name)
def test_a_finding_names_cells_that_some_size_contains(study: Study) -> None:
    sizes = papers_page.sizes_of(study)
    lacking = [
        finding.question
        for finding, own in zip(study.findings, sizes, strict=True)
        if not own or not finding.claim
    ]
    assert lacking == []
    asked = Counter((one.question, one.measure) for one in study.findings)
    assert [one for one, times in asked.items() if times > 1] == []


@pytest.mark.parametrize("size", papers_page.SIZES)
@pytest.mark.parametrize("study", papers_page.studies(), ids=lambda study: study.name)
def test_a_finding_means_one_cell_or_pair_at_each_size(study: Study, size: str) -> None:
    """Where several are as good, the fastest would stand for them: a choice that nobody made."""
    plan = make_plan(load_study(study.path, size=size), load_platform(papers_page.ALL_THERE))
    for finding in study.findings:
        found = papers_page.candidates(plan, finding)
        assert len(found) <= 1, f"{finding.question}\n" + "\n".join(
            "    " + " / ".join(one.label for one in sides) for sides in found
        )


@pytest.mark.parametrize("size", papers_page.SIZES)
@pytest.mark.parametrize("study", papers_page.studies(), ids=lambda study: study.name)
def test_two_cells_of_a_finding_differ_in_what_it_names(study: Study, size: str) -> None:
    plan = make_plan(load_study(study.path, size=size), load_platform(papers_page.ALL_THERE))
    strange = {}
    for finding in study.findings:
        for one, other in papers_page.candidates(plan, finding) if finding.over else ():
            named = {*finding.of, *(finding.over or ())} | FOLLOWS
            named |= set(OF_INPUT) if "input" in named else set()
            more = differing(one, other) - named
            if one.workload != other.workload and "workload" not in named:
                more.add("workload")
            if more:
                strange[finding.question] = (sorted(more), one.label, other.label)
    assert strange == {}


def test_the_page_of_claims_is_current() -> None:
    assert papers_page.text(paper_answers.recorded()) == papers_page.PAGE.read_text("utf-8"), (
        "write it anew: python -m reports.exports.papers_page"
    )


@pytest.mark.parametrize("study", PLAYED, ids=lambda one: one[0])
def test_what_a_model_plays_is_planned_on_a_profile_of_the_paper_s_machine(
    study: tuple[str, str, tuple[str, ...]],
) -> None:
    name, profile, _ = study
    platform = load_platform(str(PROFILES / f"{profile}.toml"))
    assert platform.is_simulated
    asked = load_study(study_files()[name], size="paper")
    plan = make_plan(asked, platform)
    modelled = [
        pair
        for one in asked.findings
        if one.over
        for pair in papers_page.candidates(plan, one)
        if differing(*pair) & {"nodes", "peer"}
    ]
    assert modelled, f"no finding of {name} asks what the model knows"


@pytest.mark.parametrize("claim", ["bae2019/nodes", "shams2017/nvlink", "wang2018/gpus-nodes"])
def test_what_nobody_here_can_measure_was_played_and_says_so(claim: str) -> None:
    played = [one for one in paper_answers.recorded() if one.simulated and one.claim == claim]
    assert played
    assert all("taken for granted" in one.machine and one.low is None for one in played)
    assert all("%)" not in one.answer for one in played)


def test_what_was_entered_answers_findings_that_there_are() -> None:
    there = {
        (study.name, finding.claim, finding.question, finding.measure)
        for study in papers_page.studies()
        for finding in study.findings
    }
    entered = paper_answers.recorded()
    strange = [
        one for one in entered if (one.study, one.claim, one.question, one.measure) not in there
    ]
    assert strange == []
    assert all(one.n and one.machine for one in entered if one.value is not None)


def test_answers_are_of_the_cells_that_their_findings_mean() -> None:
    """A study may change after it was run, and a run of some cells may lack the ones meant."""
    entered = [one for one in paper_answers.recorded() if one.cells]
    strange = [one for one in entered if not papers_page.is_meant(one)]
    assert [(one.study, one.size, one.question) for one in strange] == []
    other = next(one for one in entered if len(one.cells) == 2)
    assert not papers_page.is_meant(replace(other, cells=other.cells[::-1]))


def test_an_answer_of_other_cells_than_those_meant_is_named_and_not_entered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = next(one for one in paper_answers.recorded() if len(one.cells) == 2)
    strange = replace(good, cells=good.cells[::-1])
    asked_once, of_a_user = replace(good, question="Asked once?"), replace(good, study="mine")
    silent = replace(strange, value=None)
    entered = papers_page.meant([strange, good, asked_once, silent, of_a_user])
    assert list(entered) == [good, silent]
    assert capsys.readouterr().err.count("Not entered, something else is asked: ") == 3


def test_a_machine_is_told_as_more_than_a_count_of_nodes() -> None:
    machines = {one.machine for one in paper_answers.recorded() if one.value is not None}
    assert [one for one in machines if "core" not in one and " × " not in one] == []


def test_a_size_without_the_cell_names_those_that_have_it() -> None:
    page = papers_page.text(paper_answers.recorded())
    assert "has no counted trial of it" not in page
    (row,) = (one for one in page.splitlines() if "How much faster does CosmoFlow train" in one)
    assert "smoke: not measured: this size has no such cell; of size node and paper" in row


def test_a_cell_without_peers_needs_devices_that_have_another_way() -> None:
    def holes(**changed: object) -> set[str]:
        cell = {"workload": "tinycnn", "framework": "torch", "strategy": "ddp"}
        other = {"workload": "tinycnn", "framework": "torch", "batch": 8}
        study = built_study("one", {"title": "One", "include": [{**cell, **changed}, other]})
        return {one.why for one in make_plan(study, load_platform(papers_page.ALL_THERE)).holes}

    assert holes(peer=False, device="gpu", ranks_per_node=2) == set()
    (why,) = holes(peer=False, device="cpu", ranks_per_node=2)
    assert "ddp of torch has no other way between CPUs of a node" in why
    (why,) = holes(peer=False, device="gpu")
    assert "one device of a node has no peer there" in why
    assert holes(memory_policy="fast-first") == set()


def test_an_undisturbed_answer_is_not_replaced_by_one_beside_other_work() -> None:
    alone = next(
        one
        for one in paper_answers.recorded()
        if one.value is not None and not one.beside_other_work
    )
    disturbed = replace(alone, value=9.0, beside_other_work=True)
    silent = replace(alone, value=None)
    assert paper_answers.merged([alone], [disturbed]) == (alone,)
    assert paper_answers.merged([disturbed], [alone]) == (alone,)
    assert paper_answers.merged([disturbed], [silent]) == (disturbed,)


def test_an_answer_of_more_trials_is_not_replaced_by_one_of_fewer() -> None:
    one = next(one for one in paper_answers.recorded() if one.value is not None and one.n == 1)
    six = replace(one, value=9.0, n=6)
    assert paper_answers.merged([six], [one]) == (six,)
    assert paper_answers.merged([one], [six]) == (six,)


def test_a_run_of_some_cells_says_nothing_of_what_it_was_not_asked(tmp_path: Path) -> None:
    asked = '[[finding]]\nquestion = "{0}?"\npaper = "!"\nof = {{ framework = "{0}" }}\n'
    run = write_run(tmp_path, [RecordedCell()], Recording())
    (run / "study.toml").write_text(asked.format("torch") + asked.format("jax"), "utf-8")
    told = {one.question: one.answer for one in paper_answers.answers(run)}
    assert told["jax?"] == "not measured: this run has no such cell"
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    plan["study"]["only"] = ["framework=torch"]
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    assert [one.question for one in paper_answers.answers(run)] == ["torch?"]


def test_more_than_linear_is_no_answer() -> None:
    plain = replace(paper_answers.recorded()[0], measure="efficiency", value=0.9, answer="0.9")
    above = replace(plain, value=9.0, answer="9.0 of linear")
    assert paper_answers.merged([above], [plain]) == (plain,)
    assert paper_answers.merged([plain], [above]) == (plain,)
    assert not above.is_measured
    one = next(one for one in paper_answers.recorded() if one.measure == "overhead_s")
    less = replace(one, value=-0.4, answer="−0.4 s of a step")
    assert not less.is_measured
    page = papers_page.text([less])
    assert (
        "no answer: less than nothing, so it is noise or its baseline was slowed (−0.4 s of a step)"
        in page
    )
