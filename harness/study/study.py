"""Read a study: what a person asks for, in one TOML, with all its faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.errors import UsageError, nearest
from harness.study.checks import Checker, selection_from_text
from harness.study.factors import FACTORS
from harness.study.finding import FindingTable, check_claims
from harness.study.matrix import Exclusion, Matrix, Selection, flattened, selection
from harness.study.measure import Measure, MeasureTable, longer_than_timeout, resolved
from harness.toml.document import Document, read_document
from harness.toml.tables import Listed, Table, check
from harness.toml.write import toml_text


class Defaults(Table):
    """Factors that the matrix leaves open, by workload and by framework."""

    workload: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Defaults of one workload; they come before those of a framework."""
    framework: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Defaults of one framework, or framework@environment."""


class Varied(Table):
    """What a study varies."""

    matrix: dict[str, Any] = Field(default_factory=dict)
    """Factors that are crossed: a value, or a list of values."""
    zip: Listed[dict[str, Any]] = ()
    """Factors that move together: lists of equal length."""
    include: Listed[dict[str, Any]] = ()
    """Single cells."""
    exclude: Listed[dict[str, Any]] = ()
    """Cells to leave out, each with its `why`."""
    defaults: Defaults = Defaults()
    """Factors that the matrix leaves open."""
    measure: MeasureTable = MeasureTable()
    """How cells are measured."""


class StudyFile(Varied):
    """A study."""

    title: str = Field(min_length=1)
    """What the page is called."""
    question: str = ""
    """What the study is to answer, in one sentence."""
    platform: str | None = None
    """The machine, where the study is about one; otherwise it is named on the command line."""
    claim: Listed[str] = ()
    """The claims of papers that it measures, PAPER/WHAT; each has a finding."""
    finding: Listed[FindingTable] = ()
    """What the paper behind the study found; the page lays what was measured beside it."""
    size: dict[str, Varied] = Field(default_factory=dict)
    """Sizes by name: what they say replaces that part of the study."""


@dataclass(frozen=True)
class Study:
    """What a person asks for."""

    name: str
    title: str
    question: str
    platform: str | None
    size: str | None
    sizes: tuple[str, ...]
    matrix: Matrix
    measure: Measure
    reference: Selection | None
    claims: tuple[str, ...]
    """The claims of papers that it measures."""
    findings: tuple[FindingTable, ...]
    only: tuple[tuple[str, Selection], ...]
    """What was narrowed on the command line, as it was written."""
    overrides: tuple[str, ...]
    path: Path
    document: Document

    @property
    def text(self) -> str:
        """The file as it was read."""
        return self.document.text


def study_files(folder: Path | None = None) -> dict[str, Path]:
    """Give every study in ``studies/`` here and beside the harness, by name."""
    found: dict[str, Path] = {}
    here = (folder or Path()) / "studies"
    for place in (here, Path(__file__).parents[2] / "studies"):
        for path in sorted(place.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found


def load_study(
    ref: str | Path,
    *,
    size: str | None = None,
    only: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> Study:
    """Read a study by path or name; refuse all its faults together."""
    path = _path(ref)
    return _study(path, read_document(path), size, only, overrides)


def built_study(
    name: str,
    data: Mapping[str, Any],
    *,
    size: str | None = None,
    only: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> Study:
    """Make a study of values as a file would hold them; its faults are said as those of a file."""
    return _study(Path(name), Document(name, toml_text(data)), size, only, overrides)


def _study(
    path: Path,
    document: Document,
    size: str | None,
    only: Sequence[str],
    overrides: Sequence[str],
) -> Study:
    checker = Checker(document)
    file = check(document, StudyFile, document.data, elsewhere=_table_of)
    checker.study(document.data)
    sizes = document.data.get("size")
    if isinstance(sizes, dict):
        for name, part in sizes.items():
            checker.study(part, ("size", name))
    if size is not None:
        _choose_size(document, size, sizes if isinstance(sizes, dict) else {})
    for override in overrides:
        document.set(override)
    if size is not None or overrides:
        file = check(document, StudyFile, document.data, elsewhere=_table_of)
        checker.study(document.data)
    checker.whole(document.data)
    if file is not None:
        _check_repetition(document, file.measure)
        _check_turns(document, file.measure)
        _check_timeout(document, file.measure)
        check_claims(document, file.claim, file.finding)
    narrowed = tuple((text, selection_from_text(text)) for text in only)
    document.refuse_faults()
    assert file is not None, "a study without faults has its value"
    return Study(
        name=path.stem,
        title=file.title,
        question=file.question,
        platform=file.platform,
        size=size,
        sizes=tuple(file.size),
        matrix=_matrix(file),
        measure=resolved(file.measure),
        reference=None if file.measure.reference is None else selection(file.measure.reference),
        claims=file.claim,
        findings=file.finding,
        only=narrowed,
        overrides=tuple(overrides),
        path=path,
        document=document,
    )


def _table_of(name: str) -> str | None:
    """Name the table that a key belongs in which stands in none."""
    if name in FACTORS:
        return "matrix"
    return "measure" if name in MeasureTable.model_fields else None


def _check_repetition(document: Document, measure: MeasureTable) -> None:
    """Refuse limits of a repetition that there is not, or that end before it begins."""
    is_repeated = measure.until_interval is not None or measure.stop is not None
    if measure.trials_at_most is not None and not is_repeated:
        problem = "says nothing without until_interval or stop"
        document.fault(("measure", "trials_at_most"), problem)
    if measure.budget is not None and not is_repeated and "trials" in measure.model_fields_set:
        problem = 'chooses how many trials there are; leave out trials, or say stop = "answered"'
        document.fault(("measure", "budget"), problem)
    if measure.until_interval is not None and measure.stop is not None:
        document.fault(("measure", "stop"), "and until_interval both say when to end; keep one")
    fewest = resolved(measure).trials  # fewer than the table's where answers end it
    if measure.trials_at_most is not None and measure.trials_at_most < fewest:
        document.fault(("measure", "trials_at_most"), f"is fewer than trials, {fewest}")


def _check_turns(document: Document, measure: MeasureTable) -> None:
    """Refuse the length of turns that nobody takes."""
    if "turn" in measure.model_fields_set and not measure.turns:
        document.fault(("measure", "turn"), "says nothing where trials take no turns (turns)")


def _check_timeout(document: Document, measure: MeasureTable) -> None:
    """Refuse a protocol that no trial can follow, at the line that was written."""
    why = longer_than_timeout(measure)
    if why is not None:
        key = "timeout" if "timeout" in measure.model_fields_set else "until"
        problem = why if key == "timeout" else f"the default timeout {why}"
        document.fault(("measure", key), problem)


def _path(ref: str | Path) -> Path:
    path = Path(ref)
    if path.suffix == ".toml" or path.is_file():
        return path
    files = study_files()
    if str(ref) in files:
        return files[str(ref)]
    known = ", ".join(sorted(files)) or "none here"
    hint = nearest(str(ref), files)
    raise UsageError(
        f"no study is called '{ref}'.{hint}\n    Known: {known}; or give a .toml file."
    )


def _choose_size(document: Document, size: str, sizes: dict[str, Any]) -> None:
    if size not in sizes:
        known = ", ".join(sizes) or "none"
        hint = nearest(size, sizes)
        raise UsageError(f"{document.file} has no size '{size}'.{hint}\n    Known: {known}.")
    if isinstance(sizes[size], dict):
        document.overlay(("size", size), whole=("measure", "reference"))


def _matrix(file: StudyFile) -> Matrix:
    excludes = []
    for table in file.exclude:
        wanted = {name: value for name, value in table.items() if name != "why"}
        excludes.append(Exclusion(selection(wanted), str(table["why"])))
    return Matrix(
        axes=selection(file.matrix).wanted,
        zips=tuple(selection(table).wanted for table in file.zip),
        includes=tuple(flattened(table) for table in file.include),
        excludes=tuple(excludes),
        workload_defaults={name: flattened(one) for name, one in file.defaults.workload.items()},
        framework_defaults={name: flattened(one) for name, one in file.defaults.framework.items()},
    )
