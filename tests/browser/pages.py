"""The pages that tests open, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from harness.analysis.evidence import Evidence
from reports.page.page import render
from tests.reports import samples

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
