"""The page is one file that holds everything, escapes everything and stays small."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.blocks.compare_cells import BROUGHT
from harness.analysis.evidence import Evidence
from harness.store.dataset import Dataset
from reports.page.page import render
from reports.text.answer import answer
from tests import runs
from tests.reports import large_samples, samples


class Outline(HTMLParser):
    """What is in a page: elements with attributes, ids, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.elements if a.get("id")]


ALL = [samples.demo, samples.two_runs, samples.failures, samples.hostile, samples.everything]


def test_the_page_of_a_recorded_run_is_as_approved(tmp_path, golden):
    behave = runs.Behaviour
    cells = [
        runs.RecordedCell(gate="equivalent"),
        runs.RecordedCell(framework="jax", behaviour=behave(step_s=0.025), gate="equivalent"),
        runs.RecordedCell(
            factors={"precision": "bf16"},
            behaviour=behave(step_s=0.0195),
            outcomes={3: "timed-out"},
        ),
    ]
    directory = runs.write_run(tmp_path, cells)
    page = render(analyse(Dataset([directory])))
    page = re.sub(r"(<(style|script)[^>]*>).*?(</\2>)", r"\1…\3", page, flags=re.DOTALL)
    page = re.sub(r"sha256-[\w+/=]+", "sha256-…", page).replace(str(tmp_path), "FOLDER")
    golden("reports/page.html", page)


@pytest.mark.parametrize("make", ALL)
def test_nothing_on_a_page_points_to_a_network(make):
    for tag, attributes in Outline(render(make(), samples.evidence())).elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            target = attributes.get(name)
            assert not target or target.startswith(("#", "data:")), (tag, target)


@pytest.mark.parametrize("make", ALL)
def test_the_policy_allows_exactly_the_scripts_and_styles_of_the_page(make):
    page = render(make(), samples.evidence())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = set(
        re.findall(r"'(sha256-[^&]+)&#39;|(sha256-[\w+/=]+)", policy[1].replace("&#39;", "'"))
    )
    allowed = {a or b for a, b in allowed}
    inline = re.findall(
        r"<(style|script)(?![^>]*application/json)[^>]*>(.*?)</\1>", page, re.DOTALL
    )
    digests = {
        "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for _, text in inline
    }
    assert digests == {a.rstrip("'") for a in allowed}
    assert "default-src 'none'" in policy[1].replace("&#39;", "'")
    assert "unsafe" not in policy[1]


def test_hostile_names_stay_text():
    page = render(samples.hostile(), samples.evidence())
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20


@pytest.mark.parametrize("make", ALL)
def test_ids_are_unique_and_every_link_leads_somewhere(make):
    outline = Outline(render(make(), samples.evidence()))
    assert len(outline.ids()) == len(set(outline.ids()))
    for _, attributes in outline.elements:
        target = attributes.get("href") or ""
        if target.startswith("#"):
            assert target[1:] in outline.ids()


def test_a_section_without_data_is_not_there():
    ids = Outline(render(samples.two_runs())).ids()
    assert not {
        "holes",
        "scaling",
        "timelines",
        "roofline",
        "findings",
        "energy",
        "ladders",
        "changes",
    } & set(ids)
    assert {"cells", "differences", "trials", "provenance", "method", "glossary"} <= set(ids)


def test_sections_stand_in_the_order_a_reader_needs_them():
    ids = Outline(render(samples.everything(), samples.evidence())).ids()
    wanted = ["scaling", "findings", "cells", "differences", "step-time", "expected-scaling"]
    wanted += ["roofline", "ladders", "timelines", "energy", "trials", "gate", "provenance"]
    wanted += ["method", "glossary"]
    assert [name for name in ids if name in wanted] == wanted


def test_rejected_trials_are_crosses_with_their_reason():
    page = render(samples.demo())
    assert page.count('class="cross"') == 1
    assert "block 4: contended, another process used 0.9 cores for 3 s" in page


def test_a_pilot_is_no_valid_trial_but_says_what_it_was_for():
    told = samples.demo()
    first = told.cells[0]
    pilot = dataclasses.replace(first.trials[0], block=0, counted=False)
    cells = (dataclasses.replace(first, trials=(pilot, *first.trials)), *told.cells[1:])
    page = render(dataclasses.replace(told, cells=cells))
    assert "pilot: chose the reference, and is discarded" in page
    assert "block 0" not in page


def test_dots_of_a_workload_share_an_axis_of_rates():
    page = render(samples.demo())
    axis = page.split('data-name="trials alexnet"')[1].split("</thead>")[0]
    assert ">images/s</span>" in axis
    slow, fast = (
        re.findall(r'cx="([\d.]+)%', page.split(f'<span class="name">{name}</span>')[1])[0]
        for name in ("jax fp32", "torch bf16")
    )
    assert float(slow) < float(fast)


def test_a_rate_that_was_moved_to_its_blocks_is_explained_once_and_where_it_leaves_its_dots():
    def moved(cell):
        if cell.comparison.answer == "reference":
            return cell
        span = dataclasses.replace(cell.rate.interval, meaning=samples.MEANING + BROUGHT)
        return dataclasses.replace(cell, rate=dataclasses.replace(cell.rate, interval=span))

    here = samples.demo()
    page = render(dataclasses.replace(here, cells=tuple(map(moved, here.cells))))
    why = "rates are moved so that they have the ratios measured within blocks"
    assert f"whiskers intervals: {samples.MEANING}, 96.9 %; {why}." in page
    assert BROUGHT not in page
    assert "may lie beside its dots" in page
    assert "may lie beside its dots" not in render(here)


def test_what_is_told_by_dots_is_folded_as_a_table_however_few_trials_there_are():
    few = dataclasses.replace(samples.demo(), cells=samples.demo().cells[:2])
    (fold,) = re.findall(r"<details[^>]*><summary>All \d+ trials as a table", render(few))
    assert " open" not in fold


def test_from_twenty_cells_on_a_page_leads_with_what_factors_do():
    page = render(samples.factorial())
    answer = page.split('<p class="answer')[1].split("</p>")[0]
    assert "bf16 is 5.7" in answer
    assert "Batch matters little." in answer
    assert page.index('id="factors"') < page.index('id="ranking"')
    assert 'id="factors"' not in render(samples.demo())


def test_an_answer_has_a_line_for_each_sentence():
    page = render(samples.factorial())
    said = page.split('<p class="answer one">')[1].split("</p>")[0]
    lines = re.findall(r'<span class="line">(.*?)</span>', said)
    assert len(lines) == 5
    assert lines[0].startswith("bf16 is 5.72")
    assert "".join(lines).replace("\u00a0", " ") == answer(samples.factorial()).sentences[0][1]
    short = dataclasses.replace(samples.demo(), cells=samples.demo().cells[:3])
    assert render(short).count('class="line"') == 2


def test_the_answer_that_stays_at_the_top_names_its_workload_where_there_are_several():
    brief = re.search(r'<p class="brief"[^>]*>([^<]*)', render(samples.demo()))
    assert brief is not None
    assert brief[1].startswith("alexnet: jax fp32 is 0.800")


def test_commands_in_sentences_are_marked_as_code_and_stay_text():
    warned = dataclasses.replace(samples.demo(), warnings=("Say `bakeoff <resume>` again.",))
    assert "<li>Say <code>bakeoff &lt;resume&gt;</code> again.</li>" in render(warned)


def test_lines_are_said_to_be_intervals_only_where_there_are_some():
    versus = samples.versus()
    assert "Lines are intervals." in render(samples.two_runs(), Evidence(comparison=versus))
    bare = tuple(
        dataclasses.replace(one, change=dataclasses.replace(one.change, low=None, high=None))
        for one in versus.pairs
    )
    without = dataclasses.replace(versus, pairs=bare)
    assert "Lines are intervals." not in render(samples.two_runs(), Evidence(comparison=without))


def test_a_long_ranking_folds_after_ten_rows_but_never_its_reference():
    ranking = render(samples.factorial()).split('id="ranking"')[1].split("</section>")[0]
    _, *rows = ranking.split("<tbody>")[1].split("<tr")
    open_rows = [row for row in rows if "rest" not in row.split(">")[0]]
    assert len(rows) == 180
    assert len(open_rows) == 11
    assert "reference" in open_rows[-1]
    assert "<span>169</span> more cells" in ranking


def test_failures_are_a_matrix_with_one_example_each_and_the_rest_folded():
    page = render(samples.many_failures())
    section = page.split('<section id="failures">')[1].split("</section>")[0]
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))
    assert (
        "Of 180 cells, 6 timed out (every cell of fw1 · bf16 · batch 128), "
        "6 ran out of memory (every cell of fw2 · fp32 · batch 128)."
    ) in told
    assert "framework fw1 60 6 0" in told
    assert "batch 128 36 6 6" in told
    assert "precision fp32 90 0 6" in told
    assert told.count("no end after 30 min") == 1 + 6
    assert re.findall(r"batch (\d+) 36", told) == ["128"], "where nothing failed, no row"
    assert re.findall(r"threads (\d+) 30", told) == ["1", "2", "3", "4", "5", "6"]
    assert "All 12 cells" in told
    (first,) = re.findall(r"<li>(resnet50, [^<]*no end[^<]*)</li>", page)
    assert first.startswith("resnet50, 6 cells, such as fw1")
    assert first.endswith(": no number (no end after 30 min).")


def test_a_matrix_of_failures_says_in_words_what_was_not_set_or_switched_off():
    few = samples.many_failures()
    cells = []
    for cell in few.cells:
        is_even = cell.factors["threads"] % 2 == 0
        set_so = {"peer": is_even, "allocator": "a" if is_even else None}
        cells.append(dataclasses.replace(cell, factors={**cell.factors, **set_so}))
    varied = (*few.varied, "peer", "allocator")
    page = render(dataclasses.replace(few, cells=tuple(cells), varied=varied))
    section = page.split('<section id="failures">')[1].split("</section>")[0]
    found = set(re.findall(r"<td[^>]*>(yes|no|not set|True|False|None)\b(?! )", section))
    assert found == {"yes", "no", "not set"}


def test_the_axis_of_scaling_counts_what_its_sentence_counts():
    section = render(samples.scaled()).split('<section id="scaling">')[1].split("</section>")[0]
    assert "efficient at 8 nodes" in section
    assert ">nodes</text>" in section
    assert ">devices</text>" not in section


def test_a_page_without_failures_has_no_section_of_them():
    assert 'id="failures"' not in render(samples.demo())


def test_the_browser_is_told_how_to_run_each_cell_again():
    page = render(samples.demo())
    told = json.loads(page.split('id="cells-data">')[1].split("</script>")[0])
    assert told["runs"] == [["quickstart-2026-11-21", "bakeoff run quickstart"]]
    title, words, only = told["factors"][2]
    assert (title, words) == ("precision", ["bf16", "fp32"])
    assert only == ["precision=bf16", "precision=fp32"]
    assert all(f'id="{anchor}"' in page for anchor in told["cells"])


def test_what_a_study_tolerates_is_said_where_its_trials_stand():
    told = samples.demo()
    first = told.cells[0]
    trials = tuple(dataclasses.replace(one, verdict="contended") for one in first.trials)
    run = dataclasses.replace(told.runs[0], measure={"tolerate": ["contended"]})
    cells = (dataclasses.replace(first, trials=trials), *told.cells[1:])
    page = render(dataclasses.replace(told, runs=(run,), cells=cells))
    assert "6 trials found contended count all the same: the study says tolerate" in page
    assert "6 contended, which the study tolerates" in page


def test_the_header_says_on_what_with_what_and_when():
    head = render(samples.demo()).split("<h1>")[0]
    assert "AMD EPYC, 2 cores, 24.0 GiB of memory, no GPU" in head
    assert "torch 2.13.0, jax 0.10.2, bakeoff 0.1.0" in head
    assert "2025-11-21 04:40 UTC" in head


def test_no_place_on_the_machine_leaves_it_with_the_page():
    told = samples.demo()
    run = dataclasses.replace(told.runs[0], directory="/home/somebody/runs/quickstart-2026-11-21")
    page = render(dataclasses.replace(told, runs=(run,)))
    assert "/home/" not in page
    assert "…/bin/bakeoff" in page


def test_a_cell_the_gate_rejected_is_greyed_and_not_ranked():
    page = render(samples.failures())
    row = page.split('class="greyed">')[1].split("</tr>")[0]
    assert "torch bf16" in row
    assert "not ranked" in row


def test_what_was_not_checked_carries_a_mark():
    assert '<span class="hidden"> (not checked)</span>' in render(samples.demo())


def test_every_chart_has_its_table():
    page = render(samples.everything(), samples.evidence())
    for name in re.findall(r'role="img"[^>]*data-name="([^"]+)"', page):
        assert re.search(f'table class="grid[^"]*" data-name="{name.removesuffix("-narrow")}', page)


def test_a_page_of_fifty_cells_stays_below_310_kilobytes():
    assert len(render(samples.big(50)).encode()) <= 310_000


def test_a_page_of_a_thousand_cells_stays_below_2_megabytes_and_60_thousand_elements():
    page = render(samples.factorial(6, 7, 12))
    assert len(page.encode()) <= 2_000_000
    assert elements(page) <= 60_000


def test_a_page_of_180_cells_stays_below_1_megabyte_and_30_thousand_elements():
    page = render(samples.factorial())
    assert len(page.encode()) <= 1_000_000
    assert elements(page) <= 30_000


def test_a_page_of_180_divided_cells_stays_below_2_and_a_half_megabytes():
    page = render(*large_samples.divided())
    assert len(page.encode()) <= 2_500_000
    assert elements(page) <= 70_000


def test_a_large_page_folds_what_ran_and_draws_the_first_of_its_meters():
    few = samples.factorial(2, 2, 4)
    cells = tuple(samples.with_facts(samples.with_power(cell)) for cell in few.cells)
    page = render(dataclasses.replace(few, cells=cells))
    ran = page.split('<section id="what-ran"')[1].split("</section>")[0]
    seen, _, folded = ran.partition("<summary>23 more</summary>")
    assert (seen.count("<dt>"), folded.count("<dt>")) == (10, 23)
    energy = page.split('<section id="energy"')[1].split("</section>")[0]
    assert energy.count("data-bar=") == 2 * 10
    assert (
        "The first 10 of 32 cells are drawn, or of those that a filter leaves; the table has all."
        in energy
    )


def test_from_twenty_cells_on_sections_below_every_cell_are_lines_with_what_they_find():
    few, many = render(samples.big(19)), render(samples.big(20))
    assert 'class="folded"' not in few
    folded = re.findall(r'<section id="([\w-]+)" class="folded">', many)
    assert folded == [
        "growth",
        "differences",
        "step-time",
        "trials",
        "gate",
        "provenance",
        "method",
        "glossary",
    ]
    assert "<h2>Every trial</h2> <span>120 of 120 trials count</span></summary>" in many
    assert "<h2>Do they compute the same?</h2> <span>20 equivalent, of 20 cells</span>" in many
    method = many.split('<section id="method"')[1].split("</section>")[0]
    assert method.count("<details") == 1, "it is not folded twice"


def test_what_holds_many_cells_back_is_counted_in_a_line():
    page = render(*large_samples.divided())
    limits = page.split('<section id="limits"')[1].split("</section>")[0]
    assert "<span>" in limits.partition("</summary>")[0]


def test_answers_and_rankings_of_many_large_workloads_unfold():
    page = render(large_samples.nine_workloads())
    assert page.split('class="answers opens"')[0].count('<p class="answer one">') == 3
    assert "<summary>6 more workloads</summary>" in page
    nine = large_samples.nine_workloads()
    four = [one for one in nine.cells if int(one.workload.removeprefix("network")) <= 4]
    page_of_four = render(dataclasses.replace(nine, cells=tuple(four)))
    assert "<summary>1 more workload</summary>" in page_of_four
    assert page.count('<section class="ranking folded"') == 7
    assert "<small>cpu</small></h2> <span>fw0 bf16 batch 128: 796 images/s</span>" in page


def test_of_several_large_workloads_the_first_is_drawn_and_the_others_unfold():
    page = render(large_samples.workloads())
    matters = page.split('<section id="factors">')[1].split("</section>")[0]
    assert re.findall(r'<details class="fold opens"><summary>(\w+) <small>', matters) == [
        "alexnet",
        "tinycnn",
    ]
    assert "<small>bf16 is 5.74 × as fast as fp32" in matters


def elements(page):
    """Count what a browser makes of a page, without what its scripts add."""
    return len(re.findall(r"<[a-z]", page))


def test_of_a_study_too_large_to_draw_whole_the_fastest_and_what_lost_trials_are_drawn():
    results = samples.factorial(3, 5, 9)
    last = results.cells[-1]
    lost = dataclasses.replace(last.trials[0], counted=False, verdict="contended")
    cells = (*results.cells[:-1], dataclasses.replace(last, trials=(lost, *last.trials[1:])))
    page = render(dataclasses.replace(results, cells=cells))
    section = page.split('<section id="trials"')[1].split("</section>")[0]
    assert section.count("6 of 6") == 180
    assert section.count("5 of 6") == 1
    assert "Drawn are 181 of 270 cells" in section
    assert "The 1 of 1620 trials that do not count" in section


def test_a_column_that_says_the_usual_of_every_trial_is_left_out():
    assert 'data-key="outcome"' not in render(samples.demo())
    assert 'data-key="outcome"' in render(samples.failures())


def test_what_is_vendored_is_what_was_published():
    folder = Path(render.__code__.co_filename).parents[1] / "assets" / "uplot"
    for line in (folder / "SHA256SUMS.txt").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_only_variables_that_change_speed_leave_the_machine():
    here = samples.demo()
    environment = {"OMP_NUM_THREADS": "2", "HOME": "/home/mallory", "DB_HOST": "db.internal"}
    environment["TF_CLI_CONFIG_FILE"] = "/home/mallory/.terraformrc"
    run = dataclasses.replace(here.runs[0], provenance={"environment": environment})
    page = render(dataclasses.replace(here, runs=(run,)))
    assert "OMP_NUM_THREADS" in page
    assert "mallory" not in page
    assert "db.internal" not in page


def test_a_cell_stands_beside_the_nearest_published_figure():
    here = samples.demo()
    platform = {"name": "dgx", "accelerators": [{"name": "NVIDIA Tesla V100-SXM2-16GB"}]}
    cell = samples.cell("resnet50", "torch", "fp16", 800.0, None, batch=64)
    cell = dataclasses.replace(cell, factors={**cell.factors, "device": "gpu"})
    run = dataclasses.replace(here.runs[0], platform=platform, provenance={})
    page = render(dataclasses.replace(here, runs=(run,), cells=(cell,)))
    assert "of the nearest published figure" in page


def test_raw_data_are_linked_from_a_page_beside_its_run(tmp_path):
    directory = runs.write_run(tmp_path / "my runs", [runs.RecordedCell()])
    results = analyse(Dataset([directory]))
    for place in (directory / "report.html", tmp_path / "all.html"):
        links = [
            attributes["href"]
            for tag, attributes in Outline(render(results, place=place)).elements
            if tag == "a" and not (attributes["href"] or "").startswith("#")
        ]
        assert len(links) > 6
        for link in links:
            assert (place.parent / unquote(link or "")).is_dir()


def test_raw_data_elsewhere_are_named_and_not_linked(tmp_path):
    directory = runs.write_run(tmp_path / "runs", [runs.RecordedCell()])
    page = render(analyse(Dataset([directory])), place=tmp_path / "mail" / "report.html")
    assert 'href="cells' not in page
    assert "cells/" in page


def test_every_number_of_the_first_screen_shows_its_trials_and_intervals():
    screen = render(samples.demo()).split('<section id="cells">')[0]
    row = re.search(r"<tr[^>]*>\s*<th[^>]*><a[^>]*>jax fp32.*?</tr>", screen, re.DOTALL)
    assert row is not None
    shown = re.sub(r"<[^>]+>", " ", row[0])
    assert re.search(r"\[24\.\d+, 25\.\d+\]\s+6\s+0\.80\d*\s+\[0\.7\d+, 0\.8\d+\]", shown), shown


def test_many_warnings_are_folded_with_the_gravest_first():
    here = dataclasses.replace(samples.failures(), warnings=tuple(f"remark {i}" for i in range(9)))
    page = render(here)
    shown, _, folded = page.split("<nav")[0].partition('<details class="warned opens">')
    assert shown.count("<li>") == 3
    assert "it computes something else" in shown
    assert "no number (out of memory" in shown
    assert folded.count("<li>remark") == 8


def test_cells_that_failed_alike_share_a_warning():
    here = samples.failures()
    failed = here.cells[3]
    twin = dataclasses.replace(failed, key="twin", framework="keras")
    told = answer(dataclasses.replace(here, cells=(*here.cells, twin)))
    assert any("jax bf16, keras bf16: no number" in warning for warning in told.warnings)


def test_two_runs_compared_lead_with_what_changed():
    page = render(samples.two_runs(), Evidence(comparison=samples.versus()))
    assert "<h1>What changed from quickstart-2026-11-21 to quickstart-minna?</h1>" in page
    assert (
        "quickstart-minna is faster than quickstart-2026-11-21 in 1 of 4 cells and slower in 1"
        in page
    )
    assert "only in the first run" in page
    assert "6.8.0" in page
    assert "The two runs were not measured together." in page.split("<section")[0]


def test_the_cards_of_two_runs_compared_say_what_changed_most_and_what_differs_besides():
    told = Evidence(comparison=samples.versus())
    page = render(samples.two_runs(), told).split('<dl class="cards">')[1].split("</dl>")[0]
    cards = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd[^>]*>(.*?)</dd>", page)
    assert cards[0] == (
        "Of 4 cells in both runs",
        "1 slower",
        "1 faster; 1 same; 1 cannot tell; 1 cell is not compared",
    )
    assert cards[1][:2] == ("Largest change", "2.41 ×")
    assert cards[1][2].endswith("[2.30, 2.52]")
    assert cards[2] == ("What differs besides", "1 thing", "host.kernel: 6.1.0 → 6.8.0")
    assert cards[3][0] == "How far to trust this"


def test_a_machine_of_which_only_the_name_is_known_is_named():
    told = samples.demo()
    run = dataclasses.replace(told.runs[0], platform={"title": "A laptop"}, provenance={})
    head = render(dataclasses.replace(told, runs=(run,))).split("<h1>")[0]
    assert "A laptop · torch 2.13.0, jax 0.10.2 · 2025-11-21 04:40 UTC" in head


def test_a_ladder_says_which_share_each_rung_keeps_and_where_the_bottleneck_is():
    section = render(samples.everything()).split('id="ladders"')[1].split("</section>")[0]
    assert "1,300 samples/s, 54 % of the one above" in section
    assert "Bottleneck: CPU-bound." in section


def test_energy_names_its_meter():
    section = render(samples.everything()).split('id="energy"')[1].split("</section>")[0]
    assert "375 W" in section
    assert "NVML&#39;s energy counter, RAPL energy counters" in section


def test_a_step_that_nobody_split_shows_its_percentiles():
    section = render(samples.demo()).split('id="step-time"')[1].split("</section>")[0]
    assert "How long a step takes" in section
    assert "to p95" in section


def test_an_environment_that_only_one_run_used_is_one_line_of_what_differs():
    told = samples.versus()
    only = tuple(
        (f"environment.jax@0.4.{key}", "x", "–") for key in ("packages.numpy", "packages.jax")
    )
    changed = ("environment.torch.packages.torch", "2.12", "2.13")
    against = dataclasses.replace(told, differences=(*only, changed))
    page = render(samples.two_runs(), Evidence(comparison=against))
    assert page.count("environment.jax@0.4<") == 1
    assert "packages.numpy" not in page
    assert "2.13" in page
