"""Open torch for a job: its versions, its activity, its facts and its further doors."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any, Dict, Mapping

from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.network.workload import Ceiling
from harness.worker.place import Place

# cuBLAS repeats exactly only with a fixed workspace, which it reads before its first call.
DETERMINISTIC_CUBLAS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def open(job: Job, place: Place) -> TorchAdapter:  # noqa: A001 - the contract's name
    """Import torch and set it up as the job's factors say."""
    if job.factors.get("deterministic"):
        os.environ.setdefault(*DETERMINISTIC_CUBLAS)
    return TorchAdapter(job, place)


class TorchAdapter:
    """torch in this process."""

    def __init__(self, job: Job, place: Place) -> None:
        from harness.worker.adapters.torch import settings
        from harness.worker.adapters.torch.strategies import strategy

        self._job = job
        self.settings = settings.apply(job.factors, job.options, place)
        self._strategy = strategy.join(job, place, self.settings)
        self._trainer: Any = None

    def versions(self) -> Mapping[str, str]:
        """Name torch and the libraries that compute for it."""
        import torch

        build = torch.__config__.show()
        found = {
            "oneDNN": re.search(r"MKL-DNN v([\d.]+)", build),
            "MKL": re.search(r"Math Kernel Library Version ([\d.]+)", build),
        }
        versions = {name: match.group(1) for name, match in found.items() if match}
        versions["torch"] = torch.__version__
        if torch.version.cuda:
            versions["CUDA"] = torch.version.cuda
            versions["cuDNN"] = str(torch.backends.cudnn.version())
        return versions

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Lower the workload, start its optimiser and draw its batch."""
        from harness.worker.adapters.torch import failures
        from harness.worker.adapters.torch.activity import MarkedActivity, TrainingActivity
        from harness.worker.adapters.torch.training import Trainer

        if isinstance(workload, Ceiling):
            from harness.worker.adapters.torch import ceiling

            tier = self._job.paths.get("tier")
            return ceiling.activity(workload, self.settings, self._job.seed, tier)
        make: Any = MarkedActivity if self.settings.is_gpu else TrainingActivity
        if feed.files is not None:
            from harness.worker.adapters.torch.input.loading import (
                FedActivity,
                FedMarkedActivity,
                own,
            )

            fed = FedMarkedActivity if self.settings.is_gpu else FedActivity
            make = partial(fed, loaders=own(options, feed.input[1:]))
        try:
            self._trainer = Trainer(workload, self.settings, self._job.seed, self._strategy)
            self._trainer.start_optimiser(feed.batch_per_step)
            return make(self._trainer, feed, workload.unit)
        except RuntimeError as error:
            raise failures.read(error) from error

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages as the strategy exchanges gradients."""
        return self._strategy.exchange(operation, message)

    def loaders(self, options: Mapping[str, Any]) -> Any:
        """Read files with torch's own DataLoader where it is asked for."""
        from harness.worker.adapters.torch.input.loading import own

        return own(options)

    def facts(self) -> Mapping[str, Any]:
        """Say what this process used."""
        from harness.worker.adapters.torch import facts

        return {**facts.collect(self.settings, self._trainer), **self._strategy.facts()}

    def examine(self, workload: Any, precision: str) -> Any:
        """Lower a workload for the gate: every number in float64, or as it is timed."""
        from harness.worker.adapters.torch.subject import TorchSubject

        return TorchSubject(workload, self.settings, precision)

    def probe(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a few steps under observation and say which kernels ran."""
        from harness.worker.adapters.torch import probing
        from harness.worker.adapters.torch.strategies import exchange_hooks

        activity = self.activity(workload, feed, options)
        observed = probing.observe(activity, activity.trainer.network, self.settings)
        facts: Dict[str, Any] = {**self.facts(), **observed, **exchange_hooks.watched(activity)}
        return facts

    def attribute(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Say which layer and pass took which share of a step."""
        from harness.worker.adapters.torch.tracing import attribution

        return attribution.attribute(self.activity(workload, feed, options), workload.network)

    def close(self) -> None:
        """Drop the network, with its memory, and leave the other ranks."""
        self._trainer = None
        self._strategy.close()
