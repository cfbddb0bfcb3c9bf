"""Say what a run's traced steps leave unexplained: of each cell's step, and of each difference.

    python -m tests.bench.closure RUN

The first table has each cell that was divided: how much longer its steps were while they were
traced, and the share of them that carried no mark. The second has each two cells of one workload
whose rates can be told apart: the unexplained part of their difference, and the largest of what was
told.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

from harness.analysis.evidence import Evidence
from harness.analysis.explain.cells import explained
from harness.analysis.explain.step_shares import UNEXPLAINED, StepShares, step_s, timed_shares
from harness.analysis.explain.words import part_name
from harness.analysis.numbers import seconds, share
from harness.analysis.read import read_results
from harness.analysis.results import Results
from harness.sections.contract.gather import gather_limits
from harness.store.record_readers.attribution import NOT_MADE


def of_cells(results: Results, evidence: Evidence) -> None:
    """Print what carried no mark in each cell's step."""
    divided = evidence.attributions or {}
    print("| cell | step | longer while traced | of the step without a mark |\n|---|---|---|---|")
    for cell in results.cells:
        name = results.names[cell.run, cell.key]
        if cell.rate is None:
            continue
        step = seconds(step_s(cell))
        found = timed_shares(cell, divided.get(cell.key, NOT_MADE))
        if isinstance(found, StepShares):
            unmarked = found.parts.get(UNEXPLAINED)
            slowed = "–" if found.slowed is None else share(found.slowed)
            print(f"| {name} | {step} | {slowed} | {share(unmarked.mean if unmarked else 0.0)} |")
        else:
            print(f"| {name} | {step} | – | {found} |")


def of_pairs(results: Results, evidence: Evidence) -> None:
    """Print what is unexplained of each difference that can be told."""
    print(
        "| slower | faster | difference | unexplained of it | largest part |\n|---|---|---|---|---|"
    )
    for one, other in combinations(results.cells, 2):
        if one.workload != other.workload or None in (one.rate, other.rate):
            continue
        told = explained(results, evidence, one, other)
        first, second = (results.names[cell.run, cell.key] for cell in (told.first, told.second))
        if told.refusal:
            print(f"| {first} | {second} | – | – | {told.refusal} |")
            continue
        rest, largest = told.unexplained, told.terms[0]
        of_it = 0.0 if rest is None else rest.difference_s / told.difference_s
        part = f"{part_name(largest)}, {share(largest.difference_s / told.difference_s)}"
        print(f"| {first} | {second} | {seconds(told.difference_s)} | {share(of_it)} | {part} |")


def main() -> None:
    """Read one run, and print both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    results = read_results([parser.parse_args().run])
    evidence = gather_limits(results)
    of_cells(results, evidence)
    print()
    of_pairs(results, evidence)


if __name__ == "__main__":
    main()
