"""An adapter that misbehaves in its third step, in the way its option asks for."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from harness.worker.contracts import Unsupported


class Unruly:
    """Adapter and activity in one."""

    def __init__(self, job: Any, place: Any) -> None:
        self.units = {"steps": 1.0}
        self._job = job
        self._place = place
        self._steps = 0
        self._how = job.options["how"].replace("-", "_")
        if self._how == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def versions(self) -> Mapping[str, str]:
        told = self._how == "tells-all"
        return {"unruly": "1.0", **(os.environ if told else {})}

    def activity(self, workload: Any, feed: Any, options: Mapping[str, Any]) -> Unruly:
        if self._how == "unsupported":
            raise Unsupported("unruly cannot do this, and says so")
        return self

    def step(self) -> None:
        self._steps += 1
        if self._steps == 3:
            getattr(self, self._how)()

    def sync(self) -> None:
        pass

    def values(self) -> Mapping[str, float]:
        return {}

    def agree(self, value: float) -> float:
        return value

    def facts(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        pass

    def behave(self) -> None:
        pass

    def hang(self) -> None:
        threading.Event().wait()

    def hang_at_first(self) -> None:
        if "." not in self._job.trial:
            self.hang()

    def wait_for_go(self) -> None:
        """Wait until somebody writes into a pipe beside the run, if there is one."""
        pipe = pathlib.Path(self._job.directory).parents[3] / "go"
        if pipe.is_fifo():
            pipe.read_bytes()

    def deaf(self) -> None:
        self.hang()

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def one_rank_killed(self) -> None:
        if self._place.rank == 1:
            self.killed()
        self.hang()

    def hog(self) -> None:
        hoard = []
        while True:
            hoard.append(b"x" * 4_000_000)

    def quits(self) -> None:
        os._exit(0)

    def raises(self) -> None:
        raise ValueError("the third step is one too many")

    def out_of_words(self) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def disk_full(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_disk(self) -> None:
        """Fill the disk that the run lies on, but only once."""
        folder = pathlib.Path(self._job.directory).parents[3]
        if not (folder / "filled").exists():
            (folder / "filled").touch()
            with (folder / "ballast").open("wb", buffering=0) as ballast:
                while ballast.write(bytes(1 << 16)):
                    pass

    def flood(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            for number in range(100_000):
                stream.write(f"line {number:06d} of very many such lines\n")
        sys.stderr.write("the very last words\n")

    def tells_all(self) -> None:
        """Print its environment in three ways, and fail with all of it in the message."""
        lines = "\n".join(f"{name}={value}" for name, value in os.environ.items())
        sys.stdout.write(lines + "\n")
        sys.stderr.write(repr(dict(os.environ)) + "\n")
        sys.stdout.write(json.dumps({"TF_CONFIG": json.dumps(dict(os.environ))}) + "\n")
        raise RuntimeError(lines)

    def daemon(self) -> None:
        self._daemonise(dict(os.environ))

    def nameless_daemon(self) -> None:
        self._daemonise({})

    def _daemonise(self, environment: Mapping[str, str]) -> None:
        """Fork twice, leave the session, ignore SIGTERM; go on when the grandchild does so."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                code = (
                    "import os, signal, sys, threading\n"
                    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                    "os.write(int(sys.argv[1]), str(os.getpid()).encode())\n"
                    "threading.Event().wait()\n"
                )
                os.set_inheritable(writer, True)
                argv = [sys.executable, "-S", "-c", code, str(writer)]
                os.execve(sys.executable, argv, environment)
            os._exit(0)
        pathlib.Path(self._job.directory, "daemon.pid").write_bytes(os.read(reader, 20))


open = Unruly  # noqa: A001 - the contract's name
