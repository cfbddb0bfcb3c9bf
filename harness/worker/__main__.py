"""A worker: ``python -m harness.worker JOB.json``, one process per rank.

Exit codes: 0 finished; 3 the ``failed`` event says why; anything else is not the worker's own word.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from harness.worker import external_loop, feed, loop, place
from harness.worker.checkpoints.request import asked
from harness.worker.contracts import Activity, Adapter, OutOfMemory, Refused, Unsupported, door
from harness.worker.events import Events
from harness.worker.facts import resources
from harness.worker.job import Job, read, without_purpose
from harness.worker.network.workload import (
    Checkpointing,
    Collective,
    LayerAlone,
    Opening,
    Reading,
    Training,
    Workload,
)

if TYPE_CHECKING:
    from harness.worker.checkpoints.series import Series
    from harness.worker.gate.timed_updates import TimedUpdates
    from harness.worker.windows.turns import RankTurns

FAILED = 3
ALONE = "runs no layer alone"
SAVES_NOTHING = "saves no checkpoints"


class Worker:
    """One rank of a job: what it was asked, where it stands, what it says."""

    def __init__(self, job: Job, where: place.Place, events: Events, folder: str) -> None:
        self.job = job
        self.where = where
        self.events = events
        self.folder = folder

    def work(self) -> None:
        """Open the adapter and go through the door that the job names.

        After a fault nothing is closed: a group of ranks that lost one may never close.
        """
        doors: Dict[str, Callable[[Adapter, Workload], None]] = {
            "trial": self._trial,
            "examine": self._examine,
            "probe": self._probe,
            "attribute": self._attribute,
            "ceilings": self._ceilings,
        }
        if self.job.purpose not in doors:
            raise Unsupported("a worker has no door called '{}'".format(self.job.purpose))
        self._phase("open")
        resources.require_allocator(self.job.factors)
        workload = self._workload()
        module = importlib.import_module(self.job.adapter_module)
        if self.job.purpose == "probe":
            os.environ.update(getattr(module, "PROBED", {}))
        adapter = module.open(without_purpose(self.job), self.where)
        from harness.worker.redaction.redact import redact_values  # a probe may end before this

        versions = {"python": sys.version.split()[0]}
        versions.update(adapter.versions())
        self.events.say("versions", versions=redact_values(versions))
        doors[self.job.purpose](adapter, workload)
        self._phase("close")
        adapter.close()

    def _workload(self) -> Workload:
        described: Workload = importlib.import_module(self.job.workload_module).WORKLOAD
        if not isinstance(described, Training):
            return described
        from harness.worker.network.asked_workload import asked_workload  # what reads has no layers

        return asked_workload(described, self.job.workload, self.job.factors)

    def _trial(self, adapter: Adapter, workload: Workload) -> None:
        self._phase("build")
        job = self.job
        activity = self._activity(adapter, workload)
        self._assert_identity(activity, workload)
        self.events.say("units", units=dict(activity.units))
        warmup, until = job.warmup, job.until
        marks = door(activity, "marks")
        proof = None if marks is not None else self._proof(activity, workload)
        series = self._checkpoints(activity, workload)
        window_steps = 0
        if marks is not None:
            external_loop.run(marks, self.events, warmup=warmup, until=until)
        else:
            window_steps = loop.run(
                activity,
                self.events,
                warmup=warmup,
                until=until,
                size=self.where.size,
                checkpoints=series,
                turns=self._turns(),
                window_steps=job.window_steps,
            )
        if proof is not None:
            self._phase("examine")
        from harness.worker.facts import multiplications  # nothing is timed any more

        # Where the measured phase ended: from another state a step may leave out less.
        counted = multiplications.counted(activity, workload, job.scale, job.factors)
        if proof is not None:
            proof.close(window_steps, time.monotonic_ns)
        if series is not None:
            series.close()
        facts = {**adapter.facts(), **counted}
        if proof is not None:
            facts.update(start=proof.start, restarts=proof.restarts)
        if self.where.size > 1:
            from harness.worker.facts import network_use  # a lone rank has nobody to talk to

            facts["network"] = network_use.carried()
            if marks is None:
                activity.agree(0.0)  # who ends first takes the others' connections along
        self._say_facts(facts)

    def _activity(self, adapter: Adapter, workload: Workload) -> Activity:
        """Open what a workload steps; only networks and kernels are lowered by the adapter."""
        options = self.job.options
        if isinstance(workload, Collective):
            from harness.worker import collective  # few cells only exchange messages

            size = collective.message(workload, self.job.factors)
            exchange = self._needed(adapter, "exchange", "exchanges no messages")
            opened = exchange(workload.operation, size)
            return collective.activity(opened, workload, size, self.where)
        feed = self._feed(workload)
        if isinstance(workload, LayerAlone):
            from harness.worker.gate import layer_activity  # few cells are of one layer

            return layer_activity.opened(self._needed(adapter, "examine", ALONE), workload, feed)
        if isinstance(workload, (Opening, Reading)):
            from harness.worker.input.open import reading  # few cells only read

            loaders = door(adapter, "loaders")
            return reading(workload, feed, None if loaders is None else loaders(options))
        if isinstance(workload, Checkpointing):
            from harness.worker.checkpoints.held_state import HeldActivity  # few cells only save

            trained = adapter.activity(workload.training, feed, options)
            self._needed(trained, "saver", SAVES_NOTHING)
            return HeldActivity(trained, workload.unit)
        return adapter.activity(workload, feed, options)

    def _needed(self, behind: Any, name: str, lack: str) -> Any:
        found = door(behind, name)
        if found is None:
            raise Unsupported("the {} adapter {}".format(self.job.framework, lack))
        return found

    def _checkpoints(self, activity: Activity, workload: Workload) -> Optional[Series]:
        wanted = asked(workload, self.job.factors, self.job.paths)
        if wanted is None:
            return None
        saver = self._needed(activity, "saver", SAVES_NOTHING)
        from harness.worker.checkpoints.series import Series  # most trials take none

        return Series(wanted, saver(), self.where)

    def _proof(self, activity: Activity, workload: Workload) -> Optional[TimedUpdates]:
        if "proof" not in self.job.paths:
            return None
        from harness.worker.gate.timed_updates import proof_of  # only what trains has one

        paths = dict(self.job.paths)
        if "proved" in paths:
            paths["proved"] = os.path.join(self.folder, paths["proved"])
        proof = proof_of(activity, workload, paths, self.where)
        if proof is not None:
            proof.open()
        return proof

    def _turns(self) -> Optional[RankTurns]:
        if place.TURNS not in os.environ:
            return None
        from harness.worker.windows.turns import RankTurns  # most trials run alone

        return RankTurns(int(os.environ[place.TURNS]))

    def _examine(self, adapter: Adapter, workload: Workload) -> None:
        given, made = self.job.paths["given"], self.job.paths["made"]
        if "data" in self.job.paths:
            from harness.worker.gate import fed_batches  # no trial does

            fed_batches.examine(self._activity(adapter, workload), given, made, self.where.rank)
            return
        from harness.worker.gate.subject import examine  # no trial does

        examine(adapter, workload, given, made)

    def _probe(self, adapter: Adapter, workload: Workload) -> None:
        probe = self._needed(adapter, "probe", "cannot be probed")
        if not isinstance(workload, Training):
            self._say_facts(adapter.facts())  # there is no network to look into
            return
        self._say_facts(probe(workload, self._feed(workload), self.job.options))

    def _attribute(self, adapter: Adapter, workload: Workload) -> None:
        attribute = self._needed(adapter, "attribute", "attributes no step to its layers")
        from harness.worker.attribution import events  # no trial does

        made = partial(attribute, workload, self._feed(workload), self.job.options)
        events.keep(self.events, self.where, made)

    def _ceilings(self, adapter: Adapter, workload: Workload) -> None:
        from harness.worker.facts import ceilings  # no trial does

        ceilings.measure(adapter, workload, self.job, self.where, self.events)

    def _feed(self, workload: Workload) -> feed.Feed:
        job = self.job
        files = None
        if "data" in job.paths:
            from harness.worker.input.files import described  # most trials read nothing

            files = described(
                job.factors, job.paths["data"], job.seed, self.where, meeting=self.folder
            )
        return feed.describe(workload, job.scale, seed=job.seed, place=self.where, files=files)

    def _assert_identity(self, activity: Activity, workload: Workload) -> None:
        if not isinstance(workload, Training):
            return
        from harness.worker.network import identity  # only what trains has layers

        found = identity.read(activity, workload)
        self.events.say("identity", **found)
        identity.require(found, activity, workload, self.job)

    def _say_facts(self, facts: Any) -> None:
        from harness.worker.facts import variables  # nothing is timed any more
        from harness.worker.redaction.redact import redact_values

        run = os.path.normpath(os.path.join(self.job.directory, *[os.pardir] * 3))
        told = variables.seen(os.environ, self.job.variables, run)
        self.events.say(
            "facts", facts=redact_values(dict(resources.used(), variables=told, **facts))
        )

    def _phase(self, name: str) -> None:
        self.events.say("phase", name=name, t=time.monotonic_ns())
        self.events.flush()


def main(path: str) -> int:
    """Work one job; say how it ended."""
    job = read(path)
    where = place.find(os.environ)
    # An agent's ranks stand in their folder, wherever it was moved; its path may be another's now.
    folder = os.curdir if place.TOKEN in os.environ else job.directory
    events = Events(os.path.join(folder, "events.{}.jsonl".format(where.rank)), where)
    try:
        Worker(job, where, events, folder).work()
    except Unsupported as fault:
        return _fail(events, "unsupported", fault)
    except Refused as fault:
        return _fail(events, "refused", fault)
    except (OutOfMemory, MemoryError) as fault:
        return _fail(events, "out-of-memory", fault)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the rim: no fault ends untold
        return _fail(events, "error", fault)
    events.say("finished", t=time.monotonic_ns())
    events.close()
    return 0


def _fail(events: Events, kind: str, fault: BaseException) -> int:
    from harness.worker.redaction.failure import tell  # as a rule nothing fails

    tell(events, kind, fault)
    return FAILED


if __name__ == "__main__":
    faulthandler.enable()
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    if code:
        # Threads that a framework left behind must not keep a failed rank, and with it all others.
        os._exit(code)
