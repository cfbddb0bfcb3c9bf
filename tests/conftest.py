"""Account for the time tests take, by CI's stages, and compare with golden files."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from harness.blas_threads import one_thread
from tests.forked_workers import Workers

with one_thread():  # of two lanes on two cores, none has a core to spin on
    import numpy  # noqa: F401

BUDGET = Path(__file__).parent.parent / ".ci" / "budget.toml"
# How long examples take is the machine's business, and which are drawn must not be chance.
hypothesis.settings.register_profile(
    "bakeoff",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("bakeoff")
# What a shell starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What the user of this machine left to be known later is none of the tests' business.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="bakeoff-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

STAGES = ("framework", "engine", "io", "browser", "gauntlet")

GOLDEN = Path(__file__).parent / "golden"

_seconds: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="accept the text as it is now")


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Keep frameworks imported for the whole session, and what they compile for all lanes of it."""
    folder = tmp_path_factory.getbasetemp()
    kept = Workers((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "compiled")
    yield kept
    kept.close()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare generated text with the file that was last accepted."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return compare


def _stage(item: pytest.Item) -> str:
    return next((name for name in STAGES if item.get_closest_marker(name)), "unit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files: one that is begun last keeps one lane busy, and the other idle."""
    long_files = {item.path for item in items if _stage(item) != "unit"}
    items.sort(key=lambda item: item.path not in long_files)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    outcome = yield
    report = outcome.get_result()
    report.user_properties.append(("stage", _stage(item)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    stage = dict(report.user_properties).get("stage", "unit")
    _seconds[str(stage)] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    minutes = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    spent = [
        f"{stage} {seconds / 60:.1f} of {minutes[stage]} min"
        for stage, seconds in sorted(_seconds.items())
    ]
    terminalreporter.write_line("Test time by CI stage: " + ", ".join(spent))
