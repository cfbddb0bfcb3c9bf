"""Examine one cell after another, as far as no result of it is stored.

(a) Semantics, in float64: the adapter's own lowering, on the host's weights and batch, against
    the reference (``reference.py``): layers, loss, gradients, running statistics, five updates.
(b) The timed lowering, in the cell's own precision and layout and compiled as it is: each layer on
    inputs that the precision holds exactly, then output and loss of the whole network.

What was found is kept by a hash of everything that could change it: a second run costs nothing.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import plugins
from harness.environments import cache, worker_python
from harness.environments.worker_python import Interpreter
from harness.errors import Unavailable
from harness.gate import layers, own_updates, ranks, semantics
from harness.gate import tolerances as arithmetic
from harness.gate.conditions import Circumstances
from harness.gate.feed import examination as feed
from harness.gate.jobs import Examiner, Go, examination_job, examined_factors
from harness.gate.kept_parts import KeptParts, NotKept
from harness.gate.processes import separate_process
from harness.gate.progress import ExaminationProgress, Watcher
from harness.gate.reference import GateReferences, code_digest
from harness.gate.reference import key as reference_key
from harness.gate.result import GatePart, Result, joined
from harness.gate.tensors import folders, requests, sums
from harness.plan.cell import Cell
from harness.plan.gate_duration import examination_s, trains_on_files, trains_together
from harness.platform.platform import Platform
from harness.ranks.payload import Closures, Payload
from harness.store.bounded_cache import Cache
from harness.store.outcome import Ended
from harness.store.records import EQUIVALENT, EXAMINATION_FAILED, NOT_CHECKED
from harness.study.framework import framework_info
from harness.worker.network.workload import Collective, Training

_TIMEOUT_S = 900.0

_MOST_BYTES = 4 << 30
"""How much of references is kept: they are cheap to make again, and one is up to 2.5 GB."""


class CellGate:
    """Examinations of one payload; processes start only where no result is stored."""

    def __init__(
        self, platform: Platform, payload: Payload, kept: Path, watch: Watcher, stack: ExitStack
    ) -> None:
        self._platform = platform
        self._payload = payload
        self._parts = KeptParts(kept, self._log)
        self._progress = ExaminationProgress(watch)
        self._stack = stack
        self._closures = Closures(payload)
        self._circumstances = Circumstances(platform)
        self._interpreters: dict[str, Interpreter] = {}
        self._place: _Workplace | None = None
        self._large = Cache(kept / "references", _MOST_BYTES, self._found_edited)
        stack.callback(self._large.release_all)
        self._references = GateReferences(self._large, self._compute)

    def known(self, cell: Cell) -> Result | None:
        """Give a cell's result where nothing has to be examined for it."""
        self._parts.examines = False
        try:
            return self.check(cell, cell.label)
        except NotKept:
            return None
        finally:
            self._parts.examines = True

    def check(self, cell: Cell, title: str) -> Result:
        """Examine a cell as far as no result is stored, and give its result."""
        self._progress.begin(title)
        self._parts.is_edited = False
        result = self._check(cell)
        if not self._parts.is_edited:
            return result
        why = "examined anew, since what was kept had been changed by hand"
        return replace(result, detail=f"{result.detail}; {why}")

    def _check(self, cell: Cell) -> Result:
        if self._platform.is_simulated:
            return Result(NOT_CHECKED, "on a simulated platform nothing is computed")
        workload = plugins.workload(cell.workload, cell.factors)
        if isinstance(workload, Collective):
            return Result(EQUIVALENT, "each trial proves its message before it is timed")
        if not isinstance(workload, Training):
            return Result(NOT_CHECKED, "it trains no network")
        self._progress.expect(examination_s(cell, workload))
        small = requests.examined(workload)
        try:
            exact = self._part(cell, small, None)
            timed = self._part(cell, small, str(cell.factors["precision"]))
        except Unavailable as problem:
            return Result(NOT_CHECKED, " ".join(str(problem).split()))
        except separate_process.ProcessFailed as problem:
            why = f"the reference could not be computed: {problem}"
            return Result(EXAMINATION_FAILED, why)
        at = "" if small is workload else f" at {'×'.join(map(str, small.network.input))}"
        result = joined(exact, timed, cell, at)
        if result.state in (NOT_CHECKED, EXAMINATION_FAILED):
            return result
        try:
            if trains_together(cell):
                result = ranks.joined(result, self._ranks(cell, small), at, ranks.words(cell))
            if trains_on_files(cell):
                result = feed.joined(result, self._feed(cell, workload), cell)
        except Unavailable as problem:
            return Result(NOT_CHECKED, " ".join(str(problem).split()))
        return result

    def _part(self, cell: Cell, small: Training, precision: str | None) -> GatePart:
        """Give one part of an examination, stored or new; without a precision, the semantics."""
        interpreter = self._interpreter(cell.environment)
        factors = examined_factors(cell, precision)
        key = cache.digest(
            [
                reference_key(small),
                self._circumstances.of(cell.environment, interpreter),
                self._closures.digest(cell.workload_module, cell.adapter_module),
                interpreter.identity,
                _code_digest(),
                precision,
                factors,
                dict(cell.options),
                [one.model_dump() for one in framework_info(cell.adapter).differs],
            ]
        )
        examine = partial(self._examine, cell, small, precision, interpreter, factors)
        return self._parts.part(key, examine)

    def _ranks(self, cell: Cell, small: Training) -> GatePart:
        """Compare the cell's ranks with one rank; a stored result is reused."""
        interpreter = self._interpreter(cell.environment)
        chosen = {"bucket_mb": cell.factors.get("bucket_mb"), **examined_factors(cell, None)}
        chosen["compile"] = framework_info(cell.adapter).default("compile")
        code = self._closures.digest(cell.workload_module, cell.adapter_module)
        where = self._circumstances.of(cell.environment, interpreter)
        facts = [code, interpreter.identity, _code_digest(), cell.strategy, chosen, where]
        facts.append(reference_key(small))

        what = f"{ranks.words(cell)}: {cell.framework}"
        examine = partial(ranks.examine, cell, small, chosen)
        alone = partial(self._alone, what, interpreter, examine)
        key = cache.digest([*facts, dict(cell.options)])
        return self._parts.part(key, alone)

    def _feed(self, cell: Cell, workload: Training) -> GatePart:
        """Compare what the cell's network is fed with the files; a stored result is reused."""
        interpreter = self._interpreter(cell.environment)
        modules = (cell.workload_module, cell.adapter_module, *cell.reader_modules)
        code = self._closures.digest(*modules)
        where: object = self._circumstances.of(cell.environment, interpreter)
        scale: object = [cell.scale.ranks > 1, cell.scale.devices_per_rank > 1, cell.strategy]
        what = f"what it is fed: {cell.framework}"
        examine = partial(feed.examine, cell, workload)
        alone = partial(self._alone, what, interpreter, examine)
        facts = [code, interpreter.identity, feed.code_digest(), where, scale]
        facts += [feed.chosen(cell), feed.content_of(cell), dict(cell.options)]
        return self._parts.part(cache.digest(facts), alone)

    def _alone(
        self, what: str, interpreter: Interpreter, examine: Callable[[Path, Go], GatePart]
    ) -> GatePart:
        """Let jobs be examined in an empty folder."""
        place = self._workplace()
        self._progress.doing(what)
        with tempfile.TemporaryDirectory(dir=place.scratch) as name:
            return examine(
                Path(name),
                lambda job: place.examiner.go(job, interpreter, place.payload, _TIMEOUT_S),
            )

    def _examine(
        self,
        cell: Cell,
        small: Training,
        precision: str | None,
        interpreter: Interpreter,
        factors: Mapping[str, Any],
    ) -> GatePart:
        what = "float64" if precision is None else f"{precision} as timed"
        place = self._workplace()
        self._progress.doing(f"{what}: reference")
        if precision is None:
            reference = self._references.semantics(small)
        else:
            reference = self._references.layers(small, precision)
        self._progress.doing(f"{what}: {cell.framework}")
        with tempfile.TemporaryDirectory(dir=place.scratch) as name:
            asked, made = Path(name) / "given", Path(name) / "made"
            if precision is None:
                requests.write_semantics(small, reference.given, reference.made, asked)
            else:
                requests.write_timed(reference.given, asked)
            job = examination_job(cell, "examine", factors, {"given": asked, "made": made})
            judged = place.examiner.go(job, interpreter, place.payload, _TIMEOUT_S)
            if judged.ended is Ended.TIMED_OUT:
                return GatePart(None, f"its examination had not ended after {_TIMEOUT_S:.0f} s")
            if judged.ended is not Ended.OK:
                return GatePart(None, judged.reason, judged.ended is Ended.UNSUPPORTED)
            answer = folders.open_folder(made)
            given, expected = reference.given, reference.made
            declared = [one.tensors for one in framework_info(cell.adapter).differs]
            if precision is None:
                finding = semantics.semantics(small, given, expected, answer, declared)
            else:
                finding = layers.timed(small, precision, given, expected, answer, declared)
            return GatePart(finding, facts=answer.about["facts"])

    def _interpreter(self, environment: str) -> Interpreter:
        """Find an interpreter and read its packages' files, once."""
        if environment not in self._interpreters:
            found = worker_python.resolve(environment, self._platform)
            self._interpreters[environment] = worker_python.identified(found)
        return self._interpreters[environment]

    def _found_edited(self, words: str) -> None:
        self._parts.is_edited = True
        self._progress.doing(words)

    def _compute(self, function: Callable[..., object], *given: Any) -> None:
        self._workplace().examiner.compute(function, *given)

    def _log(self) -> str:
        return self._workplace().examiner.log()

    def _workplace(self) -> _Workplace:
        """Start an agent and make a scratch folder, at the first examination."""
        if self._place is None:
            scratch = self._stack.enter_context(self._large.scratch("gate"))
            self._payload.copy(scratch / "payload")
            examiner = self._stack.enter_context(Examiner(self._platform, scratch))
            self._place = _Workplace(scratch, scratch / "payload", examiner)
        return self._place


@dataclass(frozen=True)
class _Workplace:
    """Where examinations run."""

    scratch: Path
    payload: Path
    examiner: Examiner


def _code_digest() -> str:
    """Digest the host's code that decides a result."""
    whole = hashlib.sha256(code_digest().encode())
    for module in (arithmetic, semantics, layers, sums, own_updates, ranks):
        whole.update(Path(module.__file__ or "").read_bytes())
    return whole.hexdigest()
