"""The verb `compare`: one run against another, cell by cell; a gate for CI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit, note
from harness.cli.partner_options import refuse_without
from harness.errors import UsageError
from harness.units import counted

if TYPE_CHECKING:
    from harness.analysis.between_runs.run_comparison import Pair, Versus

METRICS = ("rate", "p50", "p95", "p99", "first-step")
_LIMIT = re.compile(r"^\s*(slower|faster)\s*>\s*(\d+(?:\.\d+)?)\s*%\s*$")


@click.command("compare")
@click.argument("before", metavar="RUN_A")
@click.argument("after", metavar="RUN_B", required=False)
@click.option("--now", is_flag=True, help="Measure both once more, in one session by turns.")
@click.option("--platform", metavar="NAME|FILE", help="With --now: the machine, for studies.")
@click.option("--trust-plan", is_flag=True, help="With --now: as for bakeoff resume.")
@click.option("--trust-payload", is_flag=True, help="With --now: as for bakeoff resume.")
@click.option("--fail-if", "limit", help='Exit with 1 on such a change, e.g. "slower > 3 %".')
@click.option(
    "--repeats",
    multiple=True,
    metavar="RUN",
    help="A run, or a folder of runs, of the same cells here; those beside A and B are found.",
)
@click.option("--metric", type=click.Choice(METRICS), default="rate", help="What is compared.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML.")
@click.option(
    "--github-summary",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append Markdown, for example to $GITHUB_STEP_SUMMARY.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(
    before: str,
    after: str | None,
    *,
    now: bool,
    platform: str | None,
    trust_plan: bool,
    trust_payload: bool,
    limit: str | None,
    repeats: tuple[str, ...],
    metric: str,
    junit: Path | None,
    github_summary: Path | None,
    as_json: bool,
) -> int:
    """Say in which cells RUN_B is faster or slower than RUN_A, and what else differs between them.

    With --now, A and B are runs (carried out once more, with the code that they ran) or studies:
    what both have is measured in one session by turns, and nothing of the day is in the answer.
    RUN_A alone is such a session: its answer once more, for example after `bakeoff resume`.

    Cells are joined by what they are. Two sessions differ by their day too: how far is learnt from
    runs that repeat the same cells on the same machine. It takes two of them, or one that ran A's
    or B's code where the two ran different code; with fewer the answer is "cannot tell". --now
    needs none. A cell fails --fail-if only if its interval excludes "no change" and its ratio
    exceeds the limit.
    """
    way, share = _parse(limit)
    refuse_without(
        "now", now, platform=platform, trust_plan=trust_plan, trust_payload=trust_payload
    )
    import_numpy()
    from harness.analysis.read import (
        read_comparison,
        read_one_session,
        run_directories,
        run_directory,
    )
    from harness.store.files import explained, write_whole
    from reports.text import run_comparison

    code = 0
    if now:
        from harness.cli.compare_now import measure_both
        from harness.run.trust import Trust

        if after is None:
            raise UsageError("--now takes two sides: runs, or studies.")
        trust = Trust(payload=trust_payload, plan=trust_plan)
        run, code = measure_both(before, after, platform=platform, trust=trust)
        if code > 1:  # interrupted: there is no answer yet
            return code
        versus_first = read_one_session(run, metric)
    elif after is None:
        versus_first = read_one_session(run_directory(before), metric)
    else:
        first, second = run_directory(before), run_directory(after)
        named = run_directories(repeats) if repeats else ()
        versus_first = read_comparison(first, second, metric, repeats=named)
    failed = _failed(versus_first, way, share)
    if junit is not None:
        write_whole(junit, run_comparison.as_junit(versus_first, failed))
    if github_summary is not None:
        with explained(github_summary), github_summary.open("a", encoding="utf-8") as file:
            file.write(run_comparison.as_github(versus_first, failed))
    emit(
        run_comparison.compared(versus_first, failed),
        lambda: run_comparison.as_text(versus_first, failed),
        as_json=as_json,
    )
    if failed:
        return 1
    open_ones = [one for one in versus_first.pairs if not one.is_judged]
    if limit is not None and open_ones:
        note(_no_gate(len(open_ones), len(versus_first.pairs)))
        return 2
    return code


def _no_gate(cells: int, of: int) -> str:
    return (
        f"--fail-if: {cells} of {counted(of, 'cell')} cannot be judged, because it is not known "
        "how far two sessions differ. The exit code is 2, so that this does not pass as a success. "
        "Name runs that repeat them by --repeats, or use --now."
    )


def _parse(limit: str | None) -> tuple[str | None, float]:
    if limit is None:
        return None, 0.0
    match = _LIMIT.match(limit)
    if match is None:
        raise UsageError(
            f'--fail-if: \'{limit}\' is not understood. Known: "slower > 3 %", "faster > 3 %".'
        )
    return match[1], float(match[2]) / 100


def _failed(comparison: Versus, way: str | None, share: float) -> list[Pair]:
    """Find the cells that changed for sure, and by more than the limit."""
    found = []
    for pair in comparison.pairs:
        ratio, low, high = pair.change.ratio, pair.change.low, pair.change.high
        if ratio is None or low is None or high is None:
            continue
        slower = way == "slower" and high < 1 and ratio < 1 - share
        faster = way == "faster" and low > 1 and ratio > 1 + share
        if slower or faster:
            found.append(pair)
    return found
