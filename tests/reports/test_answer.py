"""The answer says what is clear first, then what is not, and never more than the data."""

from __future__ import annotations

import dataclasses

from harness.analysis.limits.holding_back import NOT_KNOWN, Limit
from harness.analysis.ranking import side_word
from reports.text.answer import answer, sentence
from reports.text.cards import top_two
from tests.reports import samples


def only(results, workload="alexnet"):
    return next(r for r in results.rankings if r.workload == workload)


def test_the_clear_comparison_comes_before_the_doubtful_one():
    text = sentence(only(samples.demo()))
    assert text == (
        "jax fp32 is 0.800 × as fast as torch fp32 [0.785, 0.815]. "
        "jax bf16 is 0.560 × as fast as torch fp32 [0.545, 0.575]. "
        "Whether torch bf16 is faster or slower than torch fp32 is not known: these 6 blocks "
        "cannot tell; about 10 would."
    )


def test_equally_fast_is_said_when_the_reference_has_an_equal():
    text = sentence(only(samples.demo(), "tinycnn"))
    assert text.startswith(
        "torch bf16 and torch fp32 are equally fast [0.973, 0.997]: the whole interval is within "
        "3 % of 1. "
    )


def of_comparisons(*compared):
    """Give a study of one workload: the reference and these, fastest first."""
    cells = [
        samples.cell("tinycnn", "torch", "fp32", 30.0, samples.comparison("", 1.0, "reference")),
        *(
            samples.cell("tinycnn", f"fw{place}", "fp32", 60.0 - place, one)
            for place, one in enumerate(compared)
        ),
    ]
    return dataclasses.replace(
        samples.demo(), cells=tuple(cells), varied=("framework",), warnings=()
    )


def test_both_questions_of_a_study_are_answered_with_where_and_how_surely():
    here = of_comparisons(
        samples.comparison("", 1.23, "faster"), samples.comparison("", 0.78, "slower")
    )
    told = answer(here)
    assert told.sentences[0][1] == (
        "fw0 is 1.23 × as fast as torch [1.22, 1.24]. "
        "fw1 is 0.780 × as fast as torch [0.765, 0.795]."
    )
    assert told.basis == (
        "Measured on this machine in 6 blocks; the intervals hold together with 96.9 %."
    )


def test_where_nothing_is_answered_the_open_ones_share_a_sentence():
    here = of_comparisons(*[samples.comparison("", 1.01, "cannot tell", more=4)] * 2)
    assert (
        answer(here)
        .sentences[0][1]
        .endswith(
            "Whether fw0 or fw1 is faster or slower than torch is not known: these 6 blocks "
            "cannot tell; about 10 would."
        )
    )
    assert answer(here).sentences[0][1].startswith("fw0 has the highest rate, ")


def test_where_nothing_of_many_is_answered_no_sentence_names_them_all():
    here = of_comparisons(*[samples.comparison("", 1.01, "cannot tell")] * 9)
    told = answer(here).sentences[0][1].partition(". ")[2]
    assert told == (
        "Whether any of the other 9 is faster or slower than torch is not known: "
        "these 6 blocks cannot tell."
    )


def test_of_many_comparisons_the_fastest_are_told_and_the_others_counted():
    compare = samples.comparison
    here = of_comparisons(
        *[compare("", 1.5, "faster")] * 3,
        compare("", 1.4, "faster"),
        compare("", 1.0, "same"),
        *[compare("", 0.8, "slower")] * 2,
        compare("", 0.9, "cannot tell"),
    )
    text = answer(here).sentences[0][1]
    assert text.count(" × as fast as ") == 3
    assert text.endswith(
        "Of 5 more, 1 is faster, 2 are slower, 1 is equally fast, of 1 it is open."
    )


def test_of_a_machine_as_it_was_found_the_processor_is_named():
    here = of_comparisons(samples.comparison("", 1.23, "faster"))
    found = {"title": "this machine", "as_found": True, "node": {"cpu": "AMD EPYC", "cpus": 2}}
    runs = (dataclasses.replace(here.runs[0], platform=found),)
    told = answer(dataclasses.replace(here, runs=runs)).basis
    assert told.startswith("Measured on this machine (AMD EPYC, 2 CPUs) in 6 blocks; ")


def test_where_factors_are_the_answer_the_level_is_that_of_their_intervals():
    here = samples.factorial()
    assert {cell.comparison.interval.level for cell in here.cells[:2]} == {0.969}
    assert answer(here).basis.endswith("the intervals hold together with 95 %.")


def test_several_machines_have_no_basis_in_common():
    assert answer(samples.two_runs()).basis == ""


def test_a_faster_cell_is_named_with_its_ratio():
    here = samples.demo()
    cells = [
        samples.cell("alexnet", "jax", "fp32", 40.0, samples.comparison("", 1.3, "faster")),
        samples.cell("alexnet", "torch", "fp32", 31.0, samples.comparison("", 1.0, "reference")),
    ]
    told = sentence(only(dataclasses.replace(here, cells=tuple(cells))))
    assert told == "jax is 1.30 × as fast as torch [1.29, 1.31]."


def test_one_cell_alone_is_compared_with_nothing():
    here = samples.demo()
    alone = dataclasses.replace(here, cells=here.cells[:1], varied=())
    assert sentence(only(alone)).endswith("there is nothing to compare it with.")


def test_without_any_number_there_is_no_answer():
    here = samples.failures()
    none = dataclasses.replace(here, cells=here.cells[3:4])
    assert answer(none).sentences[0][1] == (
        "No trial gave a number that counts, so there is no answer yet."
    )


def test_a_cell_whose_trials_were_all_rejected_is_not_said_to_have_had_none():
    here = samples.demo()
    rejected = dataclasses.replace(
        here.cells[0],
        rate=None,
        comparison=None,
        trials=tuple(
            dataclasses.replace(one, verdict="contended", counted=False)
            for one in here.cells[0].trials
        ),
    )
    told = answer(dataclasses.replace(here, cells=(rejected, *here.cells[1:]))).warnings[0]
    assert told.endswith("no number (every trial was rejected as contended).")


def test_a_run_that_has_not_begun_says_so_once():
    here = samples.demo()
    bare = [dataclasses.replace(c, rate=None, comparison=None, trials=()) for c in here.cells]
    told = answer(dataclasses.replace(here, cells=tuple(bare), warnings=("0 of 84 trials.",)))
    assert told.sentences[0][1] == "No trial was run, so there is no answer yet."
    assert told.warnings == ("0 of 84 trials.",)


def test_nothing_measured_is_said_plainly():
    empty = dataclasses.replace(samples.demo(), cells=())
    assert answer(empty).sentences == (("", "Nothing was measured."),)


def test_too_few_blocks_are_called_too_few():
    few = dataclasses.replace(
        samples.comparison("", 1.02, "cannot tell"),
        interval=None,
        blocks=3,
        why="fewer than 6 blocks",
    )
    cells = [
        samples.cell("alexnet", "jax", "fp32", 32.0, few),
        samples.cell("alexnet", "torch", "fp32", 31.0, samples.comparison("", 1.0, "reference")),
    ]
    told = sentence(only(dataclasses.replace(samples.demo(), cells=tuple(cells))))
    assert told.endswith("is not known: 3 blocks are too few to tell.")


def test_top_two_that_are_not_the_reference_are_apart_only_if_their_intervals_are():
    make, compare = samples.cell, samples.comparison
    cells = [
        make("alexnet", "jax", "fp32", 60.0, compare("", 2.0, "faster"), noise=0.001),
        make("alexnet", "tensorflow", "fp32", 59.0, compare("", 1.99, "faster"), noise=0.001),
        make("alexnet", "torch", "fp32", 30.0, compare("", 1.0, "reference")),
    ]
    overlapping = dataclasses.replace(samples.demo(), cells=tuple(cells))
    assert top_two(only(overlapping))[0] == "Cannot tell"
    cells[0] = dataclasses.replace(cells[0], comparison=compare("", 2.2, "faster"))
    apart = dataclasses.replace(samples.demo(), cells=tuple(cells))
    assert top_two(only(apart))[0] == "Yes"


def test_a_cell_that_computes_something_else_is_not_ranked_and_is_warned_of():
    told = answer(samples.failures())
    assert "torch bf16" not in [told.rankings[0].name(c) for c in told.rankings[0].cells]
    assert any("computes something else (logits differ" in w for w in told.warnings)


def test_a_cell_without_a_number_is_warned_of_with_its_reason():
    told = answer(samples.failures())
    assert any("no number (out of memory in your cgroup" in w for w in told.warnings)


def test_several_machines_get_no_verdict_between_them():
    told = sentence(only(samples.two_runs()))
    assert told.startswith("On this machine, torch bf16 reaches 32.2 images/s (interval 31.2–32.5)")
    assert "on minna, 2 × 28 cores" in told
    assert "faster" not in told


def test_a_card_that_could_only_say_that_nothing_is_known_is_left_out():
    titles = [card.title for card in answer(samples.demo()).cards]
    assert titles == ["Fastest", "Are the top two distinguishable?", "How far to trust this"]


def test_cells_that_were_not_compared_are_said_not_to_be_instead_of_a_dash():
    results = dataclasses.replace(samples.demo(), cells=samples.reading(), varied=("reader",))
    told = answer(results)
    (card,) = (one for one in told.cards if one.title == "Are the top two distinguishable?")
    assert (card.value, card.detail) == (
        "Not compared",
        "pread reader and threads reader were not compared",
    )


def test_trust_counts_trials_and_re_runs():
    card = answer(samples.demo()).cards[-1]
    assert card.value == "42 of 43 trials valid"
    assert card.detail.startswith("1 re-run; gate: 6 equivalent")


def test_a_factor_that_only_follows_the_framework_is_not_in_the_name():
    cells = [
        samples.cell("alexnet", framework, "fp32", rate, None)
        for framework, rate in (("torch", 31.0), ("jax", 25.0))
    ]
    cells[1] = dataclasses.replace(cells[1], factors={**cells[1].factors, "compile": True})
    cells[0] = dataclasses.replace(cells[0], factors={**cells[0].factors, "compile": False})
    ranked = only(dataclasses.replace(samples.demo(), cells=tuple(cells), varied=("compile",)))
    assert [ranked.name(cell) for cell in ranked.cells] == ["torch", "jax"]


def test_of_several_runs_a_warning_names_the_one_that_lacks_a_number():
    results = samples.two_runs()
    last = results.cells[-1]
    without = dataclasses.replace(last, rate=None, comparison=None, trials=())
    cells = (*results.cells[:-1], without)
    (warning,) = (
        w
        for w in answer(dataclasses.replace(results, cells=cells)).warnings
        if "no number (no trial was run)" in w
    )
    ranking = only(results, last.workload)
    assert warning.startswith(f"{last.workload} on {ranking.machine(last)}, ")


def with_power(results, watts):
    cells = tuple(
        dataclasses.replace(cell, utilisation={**cell.utilisation, "power_w": watt})
        for cell, watt in zip(results.cells, watts, strict=True)
    )
    return dataclasses.replace(results, cells=cells)


def test_the_thriftiest_is_named_for_each_workload():
    results = samples.demo()
    card = answer(with_power(results, [100.0] * len(results.cells))).cards[1]
    assert card.value == "Depends on the workload"
    assert card.detail.count(" per joule") == len(results.rankings) == 2


def test_of_several_machines_the_fastest_and_the_thriftiest_are_named_with_theirs():
    results = samples.two_runs()
    own = {True: 1e6, False: 1.0}  # watts
    here = results.runs[0].name
    watts = [own[cell.run == here] for cell in results.cells]
    for card in answer(with_power(results, watts)).cards[:2]:
        assert card.value.endswith(" on minna, 2 × 28 cores")


def test_a_run_that_asks_only_how_far_things_scale_is_answered_by_efficiency():
    told = answer(samples.scaled())
    ((_, said),) = told.sentences
    assert said.startswith("torch ddp is 88.")
    assert "efficient at 8 nodes against 1 node. It stays above 80 % up to there" in said
    assert "torch horovod is 7" in said
    assert "× as fast" not in said
    (card,) = (one for one in told.cards if one.title == "At least 80 % efficient up to")
    assert card.value == "Depends on the cell"
    assert card.detail == "torch ddp: 8 nodes; torch horovod: 4 nodes"


def test_where_no_energy_is_known_a_card_says_what_holds_the_fastest_back():
    results = samples.demo()
    ranking = only(results)
    fastest, *others = ranking.cells
    held = {fastest.key: bound(fastest, "kernel-bound", 0.7), others[0].key: bound(others[0])}
    results = dataclasses.replace(results, cells=tuple(ranking.cells))
    card = answer(results, held).cards[1]
    assert card.title == "What holds the fastest back"
    assert (card.value, card.detail) == ("kernel-bound 70 %", ranking.name(fastest))
    unknown = dataclasses.replace(bound(fastest, NOT_KNOWN), why_unknown=("disturbed",))
    card = answer(results, {fastest.key: unknown}).cards[1]
    assert (card.value, card.detail) == ("not known", f"{ranking.name(fastest)}: disturbed")
    watts = [100.0] * len(results.cells)
    assert answer(with_power(results, watts), held).cards[1].title == "Most work per joule"


def bound(cell, verdict="host-bound", share=0.4):
    """Give what holds a cell back, as far as a card asks."""
    return Limit(cell, verdict, {"kernels": share}, 0.0, (), None, None, 0.0, (), None)


def test_of_two_runs_on_one_machine_an_answer_depends_on_the_run():
    results = samples.two_runs()
    assert side_word(results.runs) == "machine"
    here = results.runs[0]
    assert side_word((here, dataclasses.replace(here, name="again"))) == "run"
