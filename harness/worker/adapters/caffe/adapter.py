"""Open the caffe program for a worker: BVLC's, or Intel's flavour of it.

Which one, the environment says: ``caffe`` runs CAFFE_BIN, ``caffe@intel`` INTEL_CAFFE_BIN, whose
nets name an engine. Defaults and why: the engine is the build's own; threads are all that the
rank may use; on a GPU, the rank's own. Caffe computes in fp32 and trains with one process, which
drives several GPUs with ``several-gpus``: each takes a batch of its own, and the gradients' mean is
what all are updated by.

``caffe time`` says what each pass and layer takes, and what Caffe made of the net. It is run once
for each net of a cell, and what it printed is kept beside the cell's compile caches.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import resource
import shutil
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence

from harness.worker import loop
from harness.worker.adapters.caffe import blobs, builds, database, program, prototxt
from harness.worker.adapters.caffe.engines import Engines
from harness.worker.adapters.caffe.log import Log
from harness.worker.adapters.caffe.solver import solver
from harness.worker.adapters.caffe.training_net import lower
from harness.worker.contracts import Unsupported
from harness.worker.external_loop import Mark
from harness.worker.facts.resources import threads
from harness.worker.feed import Feed
from harness.worker.input.dataset import Dataset
from harness.worker.input.open import opened
from harness.worker.job import Job, Span
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Training
from harness.worker.place import Place

if TYPE_CHECKING:
    from harness.worker.attribution.account import Attribution

ITERATIONS = 5
PROGRAMS = {"bvlc": ("CAFFE_BIN", "caffe"), "intel": ("INTEL_CAFFE_BIN", "caffe")}
TIMES = "BAKEOFF_CAFFE_TIMES"
"""The variable that names the folder for what ``caffe time`` printed."""


class WrongShape(Exception):
    """Say that Caffe set up another network than the one described."""


class CaffeActivity:
    """A net and how to train it; the steps happen in another process."""

    def __init__(self, adapter: CaffeAdapter, workload: Training, feed: Feed) -> None:
        self._adapter = adapter
        self._workload = workload
        self.units: Mapping[str, float] = {workload.unit: feed.work_per_rank}
        self._feed = feed
        source = None if feed.files is None else adapter.lay(opened(feed)[0])
        self.net, tops = lower(workload, feed, adapter.engines, source)
        self._net_path = adapter.write("net.prototxt", self.net)
        self.timing = adapter.timed_before(self._net_path) or adapter.time_net(self._net_path)
        self._assert_shapes(tops)

    def time(self) -> Any:
        """Time each layer of the net once more."""
        return self._adapter.time_net(self._net_path)

    def marks(self, until: Span) -> Iterator[Mark]:
        """Train until this is closed, with windows as long as the loop's own."""
        step_s = sum(self.timing.passes.values())
        message = solver(
            self._workload,
            net=self._net_path,
            batch_per_step=self._feed.batch_per_step,
            display=loop.steps_per_window(step_s, until),
            device=self._adapter.device,
            seed=self._feed.seed,
        )
        return self._adapter.train(self._adapter.write("solver.prototxt", message))

    def parameters(self) -> int:
        """Count what the solver changes, from the prototxt that Caffe reads."""
        with builtins.open(self._net_path, encoding="utf-8") as file:
            net = prototxt.read(file.read())
        return blobs.infer(net, tuple(self._feed.input)).learned

    def _assert_shapes(self, tops: Mapping[str, str]) -> None:
        """Compare what Caffe printed on setting up with what the vocabulary says."""
        wanted = {site.path: site.output for site in sites(self._workload.network)}
        for path, layer in tops.items():
            said = self.timing.shapes.get(layer)
            if said is None:
                continue
            expected = (
                self._feed.scale.batch_per_device,
                *(size for size in wanted[path] if size != 1),
            )
            if (said[0], *(size for size in said[1:] if size != 1)) != expected:
                raise WrongShape(
                    "layer '{}' is {} in Caffe, not {}".format(path, said[1:], wanted[path])
                )


class CaffeAdapter:
    """One caffe program."""

    def __init__(self, job: Job, place: Place) -> None:
        self.flavour = os.environ.get("BAKEOFF_CAFFE_FLAVOUR", "bvlc")
        self.device = str(job.factors.get("device") or "cpu")
        self.engines = Engines(self.flavour, job.options.get("engine"))
        if self.device == "gpu" and self.flavour == "intel":
            raise Unsupported("Intel's flavour computes on CPUs")
        variable, name = PROGRAMS[self.flavour]
        self._argv = [os.environ.get(variable) or name]
        count = job.scale.devices_per_rank
        self._gpus = [place.local_rank * count + number for number in range(count)]
        self._threads = threads(job.factors)
        self._env = program.environment(self._threads)
        self._folder = os.path.join(job.directory, "caffe")
        self._timing: Dict[str, Any] = {}

    def versions(self) -> Mapping[str, str]:
        """Name the program's version and flavour, and what it computes products with."""
        return {
            "caffe": self._version(),
            "flavour": self.flavour,
            **builds.beneath(builds.loaded_by(self._argv[0], self._env)),
        }

    def activity(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> CaffeActivity:
        """Write the net, and time it once, which shows what Caffe made of it."""
        activity = CaffeActivity(self, workload, feed)
        timing = activity.timing
        self._timing = {
            "forward_s": timing.passes["forward"],
            "backward_s": timing.passes["backward"],
            "input_s": timing.layers.get("input", {}).get("forward"),
            "engine": self.engines.used(timing.engine, self.device),
        }
        return activity

    def probe(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Dict[str, Any]:
        """Say what each layer takes in both directions."""
        activity = self.activity(workload, feed, options)
        return dict(self.facts(), layers=activity.timing.layers)

    def attribute(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Attribution:
        """Say which layer and pass takes which share of a step."""
        from harness.worker.adapters.caffe import attribution  # no trial does

        paths = [site.path for site in sites(workload.network)]
        return attribution.attribute(self.activity(workload, feed, options), paths)

    def examine(self, workload: Training, precision: str) -> Any:
        """Examine layer by layer in fp32, where this interpreter has the program's pycaffe."""
        if precision == "float64":
            raise Unsupported("Caffe computes in fp32 only")
        os.environ.update(program.environment(self._threads))  # read as the library is loaded
        try:
            import caffe
        except ImportError as fault:
            raise Unsupported(
                "Caffe's program gives no tensors out, and this interpreter has no pycaffe "
                "that can be imported ({}); name one that has: [frameworks.{}] interpreter in "
                "the platform".format(fault, self._table)
            ) from fault
        timed = builds.program_build(self._argv[0], self._version(), self._env)
        examined = builds.module_build(caffe)
        why = builds.disagreement(timed, examined)
        if why is not None:
            raise Unsupported(
                "the pycaffe of this interpreter proves nothing of what is timed: {}; name the "
                "program's own: [frameworks.{}] interpreter in the platform".format(
                    why, self._table
                )
            )
        from harness.worker.adapters.caffe.subject import CaffeSubject

        if self.device == "gpu":
            caffe.set_device(self._gpus[0])
            caffe.set_mode_gpu()
        else:
            caffe.set_mode_cpu()
        return CaffeSubject(
            caffe,
            workload,
            write=self.write,
            engines=self.engines,
            device=self.device,
            unshown=builds.unshown(timed, examined),
        )

    def facts(self) -> Mapping[str, Any]:
        """Say what was used, by the programs that ran."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            # A layer alone is timed here, through pycaffe.
            "clock": "external" if self._timing else None,
            "device": self.device,
            "replicas": len(self._gpus),
            "program": self._argv[0],
            "threads": self._threads,
            "peak_rss_bytes": used.ru_maxrss * 1024,
            "cpu_s": used.ru_utime + used.ru_stime,
            **self._timing,
        }

    def close(self) -> None:
        """Close nothing: no file is held open."""

    def write(self, name: str, message: prototxt.Message) -> str:
        """Write a file that Caffe reads, beside the trial's own."""
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, name)
        with builtins.open(path, "w", encoding="utf-8") as file:
            file.write(prototxt.write(message))
        return path

    def lay(self, dataset: Dataset) -> str:
        """Show Caffe a database, as it wants it, beside the trial's own files."""
        return database.lay(dataset, os.path.join(self._folder, "input"))

    def timed_before(self, net: str) -> Optional[Log]:
        """Give what ``caffe time`` printed of this net in an earlier trial of the cell, if any."""
        kept = self._kept(net)
        return program.timing(kept) if kept is not None and os.path.isfile(kept) else None

    def time_net(self, net: str) -> Log:
        """Run ``caffe time``; keep what it printed for the cell's other trials."""
        log, kept = self._log("time"), self._kept(net)
        argv = [*self._argv, "time", "-model", net, "-iterations", str(ITERATIONS)]
        made = program.time_net([*argv, *self._flags(self._gpus[:1])], self._env, log)
        if kept is not None:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            os.replace(shutil.copyfile(log, "{}.{}".format(kept, os.getpid())), kept)
        return made

    def train(self, solver_path: str) -> Iterator[Mark]:
        """Run ``caffe train``."""
        argv = [*self._argv, "train", "-solver", solver_path, *self._flags(self._gpus)]
        return program.train(argv, self._env, self._log("train"))

    @property
    def _table(self) -> str:
        """Name the platform's table of this flavour."""
        return "caffe" if self.flavour == "bvlc" else '"caffe@{}"'.format(self.flavour)

    def _version(self) -> str:
        return program.version(self._argv, self._env)

    def _flags(self, gpus: Sequence[int]) -> List[str]:
        return ["-gpu", ",".join(map(str, gpus))] if self.device == "gpu" else []

    def _kept(self, net: str) -> Optional[str]:
        """Name the file for what is timed of a net; trials of a cell differ in their folder."""
        folder = os.environ.get(TIMES)
        if folder is None:
            return None
        with builtins.open(net, encoding="utf-8") as file:
            told = file.read().replace(self._folder, "") + builds.stamp(self._argv[0], self._env)
        return os.path.join(folder, hashlib.sha256(told.encode()).hexdigest()[:16] + ".log")

    def _log(self, name: str) -> str:
        return os.path.join(self._folder, name + ".log")


def open(job: Job, place: Place) -> CaffeAdapter:  # noqa: A001 - the contract's name
    """Find the program that the environment names."""
    if place.size > 1:
        raise Unsupported("Caffe trains with one process here; several-gpus lets it drive several")
    if job.strategy not in ("none", "several-gpus"):
        raise Unsupported("caffe adapter: no strategy '{}'".format(job.strategy))
    return CaffeAdapter(job, place)
