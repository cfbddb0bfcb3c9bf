"""The pages that tests open, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from harness.analysis.evidence import Evidence
from reports.page.page import render
from tests.reports import large_samples, samples

PAGES: dict[str, Callable[[], str]] = {
    "demo": cache(lambda: render(samples.demo())),
    "two-runs": cache(lambda: render(samples.two_runs())),
    "compared": cache(lambda: render(samples.two_runs(), Evidence(comparison=samples.versus()))),
    "failures": cache(lambda: render(samples.failures())),
    "everything": cache(lambda: render(samples.everything(), samples.evidence())),
    "hostile": cache(lambda: render(samples.hostile())),
    "many": cache(lambda: render(samples.factorial(2, 2, 4))),
    "large": cache(lambda: render(samples.factorial())),
}
LARGE: dict[str, Callable[[], str]] = {
    "bare": PAGES["large"],
    "divided": cache(lambda: render(*large_samples.divided())),
    "workloads": cache(lambda: render(large_samples.workloads())),
    "nine workloads": cache(lambda: render(large_samples.nine_workloads())),
    "failures": cache(lambda: render(samples.many_failures())),
    "all of it": cache(lambda: render(*large_samples.all_of_it())),
}
"""Pages of 180 cells each, which differ in what is known of them."""
